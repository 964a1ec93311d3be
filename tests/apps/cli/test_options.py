import argparse
import io
import sys
from pathlib import Path

import pytest

from dgn.apps.cli import options
from dgn.apps.cli.options import (
    new_file,
    positive,
    print_problems,
    refuse_overwriting,
    show_progress,
)
from dgn.data import Problems
from dgn.errors import BrokenInput, InvalidInput


def test_positive_integers() -> None:
    assert positive("12") == 12
    for text in ("0", "-1", "1.5", "many", "", "²"):
        with pytest.raises(argparse.ArgumentTypeError, match="not an integer of at least 1"):
            positive(text)


def test_files_to_write_need_an_existing_folder(tmp_path: Path) -> None:
    assert new_file(str(tmp_path / "a.jsonl")) == tmp_path / "a.jsonl"
    for text in (str(tmp_path), str(tmp_path / "none" / "a.jsonl"), "."):
        with pytest.raises(argparse.ArgumentTypeError, match="not a file in an existing folder"):
            new_file(text)


def test_output_must_not_be_an_input(tmp_path: Path) -> None:
    source, link, other = (tmp_path / name for name in ("a", "b", "c"))
    source.write_text("")
    link.symlink_to(source)
    refuse_overwriting(None, [source])
    refuse_overwriting(other, [source, None, "-"])
    for out, given in ((source, str(source)), (link, source), (source, link)):
        with pytest.raises(InvalidInput, match="is also an input; choose another file"):
            refuse_overwriting(out, [other, given])


def test_only_the_first_problems_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    problems = Problems(skip=True)
    print_problems(problems)
    assert capsys.readouterr().err == ""
    for line in range(1, 26):
        problems.report(BrokenInput("rows.jsonl", line, message="it is broken."))
    print_problems(problems)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "skipped 25 broken rows:"
    assert lines[1] == "  rows.jsonl, line 1: it is broken."
    assert lines[-1] == "  and 5 more"
    assert len(lines) == 22


class Clock:
    """A time that moves as told."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_without_a_terminal_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(options, "time", clock)
    with show_progress("reading") as update:
        for step in range(60):
            clock.now += 1.0
            update(f"{step} pages", step / 100 if step % 2 else None)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "reading: 9 pages (9%)",
        "reading: 19 pages (19%)",
        "reading: 29 pages (29%)",
        "reading: 39 pages (39%)",
        "reading: 49 pages (49%)",
        "reading: 59 pages (59%)",
    ]


def test_quick_work_prints_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("reading") as update:
        update("1 page", None)
    assert capsys.readouterr() == ("", "")


def test_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress("reading") as update:
        update("half", 0.5)
    assert "reading: half" in terminal.getvalue()
