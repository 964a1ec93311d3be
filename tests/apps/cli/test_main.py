"""The command line as a whole: exit codes, signals, and what is printed when something fails."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from dgn.apps.cli import select
from dgn.apps.cli.main import main
from dgn.errors import BrokenInput, DGNError, InvalidInput, MissingExtra

SELECT = ["select", "A query", "page.txt"]


@pytest.mark.parametrize("number", ["0", "-1", "many", "1.5"])
def test_wrong_number_is_a_usage_error(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*SELECT, f"--k={number}"])
    assert stopped.value.code == 2
    assert f"{number!r} is not an integer of at least 1" in capsys.readouterr().err


def test_version_and_missing_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("dgn 0.")
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2


@pytest.mark.parametrize("arguments", [["other"], ["select", "--other"], ["data", "features"]])
def test_usage_errors_have_the_exit_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InvalidInput("k", found="0", allowed="at least 1"), 2, "k must be at least 1; got 0."),
        (BrokenInput("f.jsonl", 3, message="it is broken."), 1, "f.jsonl, line 3: it is broken."),
        (DGNError("The store is not complete."), 1, "The store is not complete."),
        (MissingExtra("This", package="torch", extra="train"), 1, "This requires torch"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "No space left on device"),
        (UnicodeEncodeError("ascii", "aé", 1, 2, "ordinal"), 1, "set PYTHONIOENCODING=utf-8"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_failures_are_one_line_and_an_exit_code(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr(select, "_run", fail)
    assert main(SELECT) == code
    printed = capsys.readouterr().err
    assert printed.startswith("dgn: ")
    assert message in printed
    assert len(printed.splitlines()) == 1


def test_sigterm_ends_with_143_and_the_handler_is_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def terminate(_: object) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return 0

    def keep(*_: object) -> None:
        """In place of the default, which would end the tests."""

    monkeypatch.setattr(select, "_run", terminate)
    before = signal.signal(signal.SIGTERM, keep)
    try:
        with pytest.raises(SystemExit) as stopped:
            main(SELECT)
        assert stopped.value.code == 143
        assert signal.getsignal(signal.SIGTERM) is keep
    finally:
        signal.signal(signal.SIGTERM, before)


INTERRUPTED = """
import importlib.abc, sys

class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
sys.argv = ["dgn", "select", "It sank", {page!r}]
from dgn.apps.cli import run
sys.exit(run())
"""


@pytest.mark.parametrize(
    "module", ["dgn.apps.cli.main", "dgn.apps.cli.select", "dgn.selector.selector", "numpy"]
)
def test_ctrl_c_during_imports_prints_one_line(module: str, tmp_path) -> None:
    page = tmp_path / "page.txt"
    page.write_text("It sank.")
    code = INTERRUPTED.format(module=module, page=str(page))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "dgn: interrupted\n"
    assert done.returncode == 130


def test_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dgn", "--version"], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("dgn 0.")
    assert done.returncode == 0
