"""README and docs: their code prints what they say, their commands exist, their links lead on."""

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dgn.apps.cli.main import build_parser, main

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


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
        place = 0
        for expected in commented_outputs(code):
            found = printed.find(expected, place)
            assert found >= 0, f"{expected!r} is not in {printed[place:]!r}"
            place = found + len(expected)


def test_every_print_must_be_documented() -> None:
    with pytest.raises(AssertionError, match="not documented"):
        commented_outputs("print(\n    1 + 1\n)")
    assert commented_outputs("print(\n    1 + 1\n)  # 2") == ["2"]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), target


def commands() -> list[tuple[str, str]]:
    """Every command of dgn in the pages, with its page."""
    return [
        (page, line.strip())
        for page in PAGES
        for block in CONSOLE.findall((ROOT / page).read_text(encoding="utf-8"))
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith("dgn ")
    ]


@pytest.mark.parametrize(("page", "command"), commands())
def test_commands_exist_and_those_on_samples_run(
    page: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = shlex.split(command, comments=True)[1:]
    pages = [(sorted(ROOT.glob(one)) if "*" in one else []) or [one] for one in arguments]
    arguments = [str(one) for some in pages for one in some]
    options, more = build_parser(arguments).parse_known_args(arguments)
    assert not [one for one in more if one.startswith("-")], f"{page}: {more}"
    if arguments[0] == "select" and "samples/" in command and "--model" not in command:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "samples").symlink_to(ROOT / "samples")
        assert main(arguments) == 0
        assert capsys.readouterr().out or (tmp_path / str(options.out)).stat().st_size


@pytest.mark.parametrize("page", PAGES)
def test_json_and_toml_can_be_read(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for kind, block in re.findall(r"```(json|toml)\n(.*?)```", text, re.DOTALL):
        if kind == "toml":
            assert tomllib.loads(block)
        else:
            rows = re.sub(r",\n ", ", ", block).splitlines()  # a long row is broken to fit
            assert all(json.loads(row) for row in rows)


def test_site_is_built_without_warnings() -> None:
    pytest.importorskip("zensical", reason="zensical is not installed")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "site"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    site = ROOT / "build" / "site"
    for page in PAGES[1:]:
        assert (site / Path(page).with_suffix(".html").name).is_file()
    text = (site / "index.html").read_text(encoding="utf-8")
    assert "fonts.googleapis" not in text
