"""The Python of the README and of the docs works when pasted, from top to bottom."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/data.md", "docs/training.md")


def python_blocks() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        found += [(page, code) for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    return found


@pytest.mark.parametrize("number", range(len(python_blocks())))
def test_block_runs_and_prints_what_it_says(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page, code = python_blocks()[number]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"{page} block {number + 1}", "exec"), {"__name__": "__main__"})  # noqa: S102
    printed = capsys.readouterr().out
    for expected in re.findall(r"print\(.*\)  # (.*)", code):
        assert expected.strip() in printed


def test_there_is_something_to_paste() -> None:
    assert len(python_blocks()) >= 2
