"""docs/own-parts.md, executed from its start to its table; and what loading it refuses."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_features import small_run, write_table

import dgn
from dgn import parts
from dgn.apps.cli.main import main
from dgn.errors import BrokenInput

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "own-parts.md").read_text(encoding="utf-8")
MODULE = "my_parts"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with my_parts.py of the page; nothing of it is imported."""
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / f"{MODULE}.py").write_text(code[1])
    (tmp_path / "rows.py").write_text(code[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv(parts.IMPORTS, "")
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield tmp_path
    sys.modules.pop(MODULE, None)


def forget() -> None:
    """As in a new process: nothing of the user is imported."""
    sys.modules.pop(MODULE, None)
    os.environ[parts.IMPORTS] = ""


def test_page_leads_from_rows_to_its_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run([sys.executable, "rows.py"], cwd=folder, check=True)
    block = re.search(r"```console\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    for command in block.group(1).replace("\\\n", " ").strip().splitlines():
        forget()
        capsys.readouterr()
        assert main(shlex.split(command)[1:]) == 0
    printed = capsys.readouterr().out
    table = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert table is not None
    wanted, found = (re.split(r"\s+", text) for text in (table.group(1), printed))
    names = [word for word in wanted if not re.search(r"\d", word)]
    assert set(names) <= set(found)
    for name in ("BM25", "paper", "mine"):  # another machine may round a query differently
        ours, theirs = (words[words.index(name) + 1 :][:5:2] for words in (wanted, found))
        assert list(map(float, theirs)) == pytest.approx(list(map(float, ours)), abs=0.05)

    # Without the module, the model is refused in one sentence, and nothing is imported.
    forget()
    with pytest.raises(BrokenInput, match=r"my_parts is not imported\. If you trust it, pass --im"):
        dgn.Selector.from_pretrained("runs/mine")
    assert main(["evaluate", "--queries", "test.jsonl", "--model", "runs/mine"]) == 1
    assert MODULE not in sys.modules
    # The other model names no part of the user.
    assert dgn.Selector.from_pretrained("runs/paper").select("river", ["A river.", "x"], k=1)
    # A second folder with the same module: the loaded selector saves what it was.
    assert main(["info", "--import", MODULE]) == 0
    dgn.Selector.from_pretrained("runs/mine").save_pretrained("copy")
    assert json.loads(Path("copy/config.json").read_text())["encoder"]["concave"] == (
        "my_parts:Hyperbola(half=0.5)"
    )


def test_search_and_toml_know_parts_of_the_user(folder: Path) -> None:
    data = [write_table(folder / "train", 30, 1), write_table(folder / "validation", 20, 2)]
    run = small_run((data[0], data[1]), epochs=1)
    Path("base.toml").write_text(
        run.to_toml().replace('relaxation = "softmax"', 'relaxation = "my_parts:Standardized"')
    )
    search = ["--search", "concave=log,my_parts:Hyperbola", "relaxation.least=1e-6:1e-2:log"]
    common = ["--config", "base.toml", "--out", "search", "--trials", "2", "--quiet"]
    assert main(["tune", *search, *common]) == 0
    best = Path("search/best.toml").read_text()
    assert 'relaxation = "my_parts:Standardized(least=' in best
    forget()
    assert main(["train", "--config", "search/best.toml", "--out", "best", "--quiet"]) == 0
    shutil.rmtree("best")


@pytest.mark.usefixtures("folder")
def test_parts_that_are_not_there_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--train", "a", "--validation", "b", "--out", "run"]
    for flag, message in (
        (["--relaxation", "my_parts:Standardised"], "has no class Standardised (did you mean Sta"),
        (["--relaxation", "my_part:X"], "module my_part cannot be imported: No module named"),
        (["--relaxation", "my_parts:Hyperbola"], "my_parts:Hyperbola is not a relaxation"),
        (["--relaxation", "sofmax"], "got 'sofmax' (did you mean softmax?)"),
        (["--loss", "layerwize"], "(did you mean layerwise?)"),
        (["--objective", "feature"], "objective must be one of feature-coverage"),
        (["--import", "nowhere"], "The module nowhere cannot be imported"),
        (["--import"], "--import needs a module"),
    ):
        assert main(["train", *data, *flag]) == 2
        assert message in capsys.readouterr().err
