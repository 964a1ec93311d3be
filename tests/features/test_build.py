from pathlib import Path

import numpy as np
import pytest

from dgn.data.batches import ClaimBatches
from dgn.data.feature_table import FeatureTable
from dgn.data.lines import Problems
from dgn.data.sources import read_examples
from dgn.data.store import build_store
from dgn.errors import InvalidInput
from dgn.features import FeatureOptions, build_features
from dgn.text import open_vectors
from dgn.text.matching import unit_rows
from fever_files import write_claims, write_wiki


@pytest.fixture
def data(tmp_path: Path) -> tuple[Path, Path]:
    build_store(write_wiki(tmp_path / "wiki-pages"), tmp_path / "pages.db")
    return write_claims(tmp_path / "dev.jsonl"), tmp_path / "pages.db"


def build(data: tuple[Path, Path], out: Path, key: str = "1", **options: object) -> object:
    return build_features(
        lambda problems: read_examples(*data, problems),
        out,
        FeatureOptions(**options),
        {"claims": key},
        workers=1,
    )


@pytest.mark.parametrize("unit", [False, True])
def test_from_fevers_files_to_batches(data: tuple[Path, Path], tmp_path: Path, unit: bool) -> None:
    report = build(data, tmp_path / "features", unit=unit)
    assert (report.made, report.claims, report.sentences) == (True, 2, 6)
    table = FeatureTable.load(tmp_path / "features")
    batch = ClaimBatches(table, 2, seed=0).batch(np.arange(2))
    vectors = open_vectors("wordllama")
    for row, example in enumerate(read_examples(*data)):
        texts = [candidate.text for candidate in example.candidates]
        claim, sentences = vectors.pooled([example.claim.text]), vectors.pooled(texts)
        if unit:
            claim, sentences = unit_rows(claim), unit_rows(sentences)
        np.testing.assert_allclose(batch.x[row, : len(texts)], claim * sentences, atol=2e-2)
        assert batch.gold[row, : len(texts)].tolist() == list(example.gold)


def test_two_workers_write_what_one_writes(data: tuple[Path, Path], tmp_path: Path) -> None:
    build(data, tmp_path / "one")
    build_features(
        lambda problems: read_examples(*data, problems),
        tmp_path / "two",
        FeatureOptions(),
        {"claims": "1"},
        workers=2,
    )
    for name in ("claims", "sentences", "offsets", "candidates", "gold"):
        one, two = (np.load(tmp_path / folder / f"{name}.npy") for folder in ("one", "two"))
        np.testing.assert_array_equal(one, two)


def test_the_same_is_not_made_twice_and_a_change_is_noticed(
    data: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "features"
    build(data, out)
    assert not build(data, out).made
    assert build(data, out, key="2").changed == ("claims",)
    assert build(data, out, key="2", unit=True).changed == ("unit",)
    assert not build(data, out, key="2", unit=True).made


def test_an_input_that_went_is_a_change_too(data: tuple[Path, Path], tmp_path: Path) -> None:
    def build_with(inputs: dict[str, str]) -> tuple[str, ...]:
        report = build_features(
            lambda problems: read_examples(*data, problems),
            tmp_path / "features",
            FeatureOptions(),
            inputs,
            workers=1,
        )
        return report.changed

    build_with({"claims": "1", "retrieved": "2"})
    assert build_with({"claims": "1"}) == ("retrieved",)


def test_a_build_that_fails_leaves_the_old_features(
    data: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "features"
    build(data, out)
    before = FeatureTable.load(out)

    def broken(problems: Problems) -> object:
        yield from read_examples(*data, problems)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        build_features(broken, out, FeatureOptions(), {"claims": "9"}, workers=1)
    np.testing.assert_array_equal(before.claims, FeatureTable.load(out).claims)


def test_damaged_features_are_made_anew(data: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "features"
    build(data, out)
    (out / "gold.npy").unlink()
    assert build(data, out).changed == ("its own files",)
    assert FeatureTable.load(out).ids.tolist() == ["1", "2"]
    assert sorted(path.name for path in tmp_path.glob("features*")) == ["features"]


def test_vectors_beyond_float16_are_refused(data: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "big.vec").write_text("1 2\nfilm 90000 1\n")
    with pytest.raises(InvalidInput, match="what float16 holds; use --unit"):
        build(data, tmp_path / "out", vectors=str(tmp_path / "big.vec"))
    assert not list(tmp_path.glob("out*"))


def test_other_peoples_folders_are_left_alone(data: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidInput, match="found other files in"):
        build(data, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_nothing_to_embed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="examples: found none"):
        build_features(lambda _: [], tmp_path / "out", FeatureOptions(), {}, workers=1)
