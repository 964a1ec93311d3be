"""Model folders: what is written can be read, and what was changed is refused."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.data import read_rows
from dgn.errors import BrokenInput, InvalidInput
from dgn.evaluation import EvaluationSet, SelectorBaseline
from dgn.selector.model_folder import (
    CARD,
    CONFIG,
    SHIPPED,
    WEIGHTS,
    load_model,
    read_config,
    save_model,
)
from models import shipped, untrained

SAMPLES = Path(__file__).parents[2] / "samples" / "claims.jsonl"


@pytest.fixture(scope="module")
def samples() -> EvaluationSet:
    return EvaluationSet(tuple(read_rows(SAMPLES)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shipped().save_pretrained(tmp_path / "mine")
    return tmp_path / "mine"


# The model inside the package


def test_shipped_model_is_small() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 3_000_000
    assert {path.name for path in SHIPPED.iterdir()} == {CARD, CONFIG, WEIGHTS}


def test_shipped_model_has_the_scores_of_its_card(samples: EvaluationSet) -> None:
    (row,) = re.findall(r"^\| samples/claims.jsonl.*$", shipped().card, re.MULTILINE)
    expected = [float(cell) for cell in row.split("|")[2:6]]
    indices = SelectorBaseline("facets", shipped()).select(samples.queries, 7)
    found = [samples.recalls_at(k, indices).mean() for k in (1, 3, 5, 7)]
    assert found == pytest.approx(expected, abs=0.0006)


def test_untrained_model_has_a_name() -> None:
    by_name = dgn.Selector.from_pretrained("untrained")
    assert by_name.select(CLAIM, PAGE, k=5) == untrained().select(CLAIM, PAGE, k=5)
    assert by_name.card == ""
    assert load_model("untrained")[0].parameters == 0


# Writing and reading


def test_saved_model_is_the_same(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {CARD, CONFIG, WEIGHTS}
    again = dgn.Selector.from_pretrained(folder)
    assert again.card == shipped().card == (SHIPPED / CARD).read_text(encoding="utf-8")
    assert (folder / CARD).read_bytes() == (SHIPPED / CARD).read_bytes()
    assert again.select(CLAIM, PAGE, titles=TITLE) == shipped().select(CLAIM, PAGE, titles=TITLE)
    for name, weight in vars(shipped().encoder.weights).items():
        np.testing.assert_array_equal(getattr(again.encoder.weights, name), weight)
    assert dgn.Selector.from_pretrained(str(folder)).card == again.card


def test_saved_twice_is_the_same_folder(folder: Path, tmp_path: Path) -> None:
    dgn.Selector.from_pretrained(folder).save_pretrained(tmp_path / "again")
    for name in (CARD, CONFIG, WEIGHTS):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_untrained_model_can_be_saved_with_a_short_card(tmp_path: Path) -> None:
    untrained().save_pretrained(tmp_path / "u")
    again = dgn.Selector.from_pretrained(tmp_path / "u")
    assert again.select(CLAIM, PAGE).indices == untrained().select(CLAIM, PAGE).indices
    assert "**Limits.**" in again.card
    assert again.card.startswith("---\nlibrary_name: dgn\n")


def test_card_always_belongs_to_the_weights(tmp_path: Path) -> None:
    for selector in (shipped(), untrained()):
        selector.save_pretrained(tmp_path / "m")
        again = dgn.Selector.from_pretrained(tmp_path / "m")
        assert again.card == (tmp_path / "m" / CARD).read_text(encoding="utf-8")
        assert (again.card == shipped().card) == (selector is shipped())


def test_training_is_kept_in_the_config(folder: Path) -> None:
    description, training = read_config(folder)
    assert training is None
    save_model(shipped().encoder, folder, training={"seed": 3})
    assert read_config(folder) == (description, {"seed": 3})
    assert json.loads((folder / CONFIG).read_text())["format"] == "dgn-model-2"
    assert len(dgn.Selector.from_pretrained(folder).select(CLAIM, PAGE)) == 5


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInput, match="is a file; choose a folder"):
        shipped().save_pretrained(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


# Mistakes


@pytest.mark.parametrize("name", ["missing", "../missing", Path("a/b"), "/a/b", "~/a"])
def test_missing_folder_is_named(name: str | Path) -> None:
    with pytest.raises(InvalidInput, match=f"The folder {name} does not exist"):
        dgn.Selector.from_pretrained(name)


def test_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rf"{tmp_path.name} is not a model folder"):
        dgn.Selector.from_pretrained(tmp_path)


def change_config(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads((folder / CONFIG).read_text())
    change(content)
    (folder / CONFIG).write_text(json.dumps(content))


def change_arrays(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    arrays = load((folder / WEIGHTS).read_bytes())
    change(arrays)
    (folder / WEIGHTS).write_bytes(save(arrays))


def cut_weights(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])


NAN = np.array([0, np.nan, 0], np.float32)
HUGE = np.array([0, 1e9, 0], np.float32)

DAMAGE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "cut weights": (cut_weights, WEIGHTS, "expected a safetensors file"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), WEIGHTS, "the file does not exist"),
    "empty weights": (lambda f: (f / WEIGHTS).write_bytes(b""), WEIGHTS, "a safetensors file"),
    "other sizes": (
        lambda f: change_config(f, lambda c: c["encoder"]["sizes"].update(hidden=3)),
        WEIGHTS,
        "the arrays that config.json describes",
    ),
    "impossible sizes": (
        lambda f: change_config(f, lambda c: c["encoder"]["sizes"].update(hidden=-1)),
        CONFIG,
        "integers from 0 to 4096",
    ),
    "unknown size": (
        lambda f: change_config(f, lambda c: c["encoder"]["sizes"].update(more=1)),
        CONFIG,
        "a dictionary with",
    ),
    "other vectors": (
        lambda f: change_config(f, lambda c: c["encoder"].update(vectors="wordllama:0")),
        CONFIG,
        "trained on the vectors wordllama:0",
    ),
    "other family": (
        lambda f: change_config(f, lambda c: c["encoder"].update(family="other")),
        CONFIG,
        "one of facets, minilm",
    ),
    "other format": (
        lambda f: change_config(f, lambda c: c.update(format="dgn-model-9")),
        CONFIG,
        "format 'dgn-model-9'",
    ),
    "first format": (
        lambda f: change_config(f, lambda c: c.update(format="dgn-facets-1")),
        CONFIG,
        "a model of format dgn-model-2",
    ),
    "no JSON": (lambda f: (f / CONFIG).write_text("{"), CONFIG, "a model of format"),
    "empty config": (lambda f: (f / CONFIG).write_text("{}"), CONFIG, "a model of format"),
    "list": (lambda f: (f / CONFIG).write_text("[]"), CONFIG, "a model of format"),
    "family is a number": (
        lambda f: change_config(f, lambda c: c["encoder"].update(family=3)),
        CONFIG,
        "another structure",
    ),
    "large config": (
        lambda f: (f / CONFIG).write_text(" " * (2**20 + 1)),
        CONFIG,
        "the file is too large",
    ),
    "extra array": (
        lambda f: change_arrays(f, lambda a: a.update(more=np.zeros(2, np.float32))),
        WEIGHTS,
        "found more with shape",
    ),
    "missing array": (lambda f: change_arrays(f, lambda a: a.pop("bonus")), WEIGHTS, "bonus"),
    "NaN": (
        lambda f: change_arrays(f, lambda a: a.update(bonus=NAN)),
        WEIGHTS,
        "bonus does not consist of finite floats",
    ),
    "integers": (
        lambda f: change_arrays(f, lambda a: a.update(bonus=np.zeros(3, np.int64))),
        WEIGHTS,
        "bonus does not consist of finite floats",
    ),
    "very large weights": (
        lambda f: change_arrays(f, lambda a: a.update(bonus=HUGE)),
        WEIGHTS,
        "bonus does not consist of finite floats",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_changed_model_is_refused(folder: Path, kind: str) -> None:
    damage, name, message = DAMAGE[kind]
    damage(folder)
    with pytest.raises(BrokenInput, match=re.escape(str(folder))) as raised:
        dgn.Selector.from_pretrained(folder)
    assert name in str(raised.value).partition(": ")[0]
    assert message in str(raised.value)


def test_model_without_a_card_can_be_read(folder: Path) -> None:
    (folder / CARD).unlink()
    assert dgn.Selector.from_pretrained(folder).card == ""


def test_interrupted_save_leaves_a_model_that_can_be_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, folder.parent / "copy")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        untrained().save_pretrained(folder)
    monkeypatch.undo()
    assert dgn.Selector.from_pretrained(folder).select(CLAIM, PAGE) == shipped().select(CLAIM, PAGE)
    assert not list(folder.glob(".*"))
