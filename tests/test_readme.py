"""The README's Python works when pasted, from top to bottom."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(python_blocks())))
def test_block_runs_and_prints_what_it_says(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code = python_blocks()[number]
    exec(compile(code, f"README block {number + 1}", "exec"), {"__name__": "__main__"})  # noqa: S102
    printed = capsys.readouterr().out
    for expected in re.findall(r"print\(.*\)  # (.*)", code):
        assert expected.strip() in printed


def test_there_is_something_to_paste() -> None:
    assert len(python_blocks()) >= 2
