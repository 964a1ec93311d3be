"""The Python of README and docs runs when it is pasted, and prints what the documents say."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/data.md", "docs/training.md")
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


def python_blocks() -> list[tuple[str, str, str]]:
    """The page, the code, and the output block below it, if there is one."""
    return [
        (page, code, output)
        for page in PAGES
        for code, output in BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    ]


def commented_outputs(code: str) -> list[str]:
    """The comment after each call of print; a print without one is an error."""
    lines = code.splitlines()
    found = []
    for node in ast.walk(ast.parse(code)):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_call and node.func.id == "print":
            _, separator, comment = lines[node.end_lineno - 1].partition("  # ")
            assert separator, f"the output of this print is not documented: {ast.unparse(node)}"
            found.append(comment.strip())
    return found


@pytest.mark.parametrize("number", range(len(python_blocks())))
def test_block_runs_and_prints_what_the_page_says(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page, code, output = python_blocks()[number]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"{page} block {number + 1}", "exec"), {"__name__": "__main__"})  # noqa: S102
    printed = capsys.readouterr().out
    if output:
        assert printed.strip() == output.strip()
    else:
        for expected in commented_outputs(code):
            assert expected in printed


def test_every_print_must_be_documented() -> None:
    with pytest.raises(AssertionError, match="not documented"):
        commented_outputs("print(\n    1 + 1\n)")
    assert commented_outputs("print(\n    1 + 1\n)  # 2") == ["2"]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 200


@pytest.mark.parametrize(
    "page", [*PAGES, "docs/facets.md", "docs/architecture.md", "docs/method.md"]
)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), target
