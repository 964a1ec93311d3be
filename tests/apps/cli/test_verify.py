import json
from pathlib import Path

import pytest

from claim_page import CLAIM, PAGE
from dgn.apps.cli.main import main
from models import shipped


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    path = tmp_path / "receipt.json"
    path.write_text(shipped().select(CLAIM, PAGE, k=2).receipt().to_json())
    return path


def test_a_receipt_is_right(receipt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(receipt)]) == 0
    assert "the same selection was computed again" in capsys.readouterr().out


def test_dgn_select_prints_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages = tmp_path / "passages.txt"
    passages.write_text("\n".join(PAGE))
    given = ["--given", "It sank.", "--pinned", "2", "--max-tokens", "60"]
    assert main(["select", CLAIM, "--passages", str(passages), "--receipt", *given]) == 0
    path = tmp_path / "receipt.json"
    path.write_text(capsys.readouterr().out)
    assert main(["verify", str(path)]) == 0
    assert main(["select", CLAIM, "--passages", str(passages), "--context", "-k", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("[")


def test_a_wrong_one_is_found_out(receipt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(receipt.read_text())
    content["coverage"] = 0.123
    receipt.write_text(json.dumps(content))
    assert main(["verify", str(receipt)]) == 1
    assert "coverage is 0.123" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["/etc", "../model", None, 5])
def test_a_receipt_does_not_name_files_to_open(
    receipt: Path, name: object, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(receipt.read_text())
    content["model"]["name"] = name
    receipt.write_text(json.dumps(content))
    assert main(["verify", str(receipt)]) == 2
    assert "pass --model" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"model": 3}', "[" * 100_000])
def test_something_else_is_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    assert main(["verify", str(path)]) in (1, 2)
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["verify", str(tmp_path / "none.json")]) == 1
