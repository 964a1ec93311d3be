"""Features of a data set: made once, made again when an input changes, never half written."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dgn.data import Dataset, Example, Problems, read_examples
from dgn.data.store import build_store
from dgn.errors import BrokenInput, InvalidInput
from dgn.learn.families import FeatureOptions
from dgn.learn.families.pooled_table import PooledTable
from dgn.learn.features import (
    TEACHER_LOGITS,
    FeatureReport,
    _build,
    build_features,
    read_key,
    read_source,
)
from fever_files import CLAIMS, write_claims, write_jsonl, write_wiki


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    build_store(write_wiki(tmp_path / "wiki-pages"), tmp_path / "pages.db")
    return Dataset(write_claims(tmp_path / "dev.jsonl"), tmp_path / "pages.db")


def build(data: Dataset, out: Path, **options: object) -> FeatureReport:
    return build_features(data, out, FeatureOptions(**options), workers=1)


@pytest.mark.parametrize("encoder", ["pooled", "facets"])
def test_features_are_counted_and_described(data: Dataset, tmp_path: Path, encoder: str) -> None:
    seen: list[tuple[int, int]] = []
    report = build_features(
        data,
        tmp_path / "f",
        FeatureOptions(encoder=encoder),
        workers=1,
        on_progress=lambda *counts: seen.append(counts),
    )
    assert report == FeatureReport(True, 2, 6, 0)
    assert seen == [(0, 0), (2, 6)]
    key = read_key(tmp_path / "f")
    assert key["encoder"] == encoder
    assert key["queries"] == data.fingerprints()["queries"]
    assert read_source(tmp_path / "f") == "wordllama"


def test_up_to_date_features_are_not_made_again(data: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "features"
    build(data, out)
    assert build(data, out) == FeatureReport(False, 2, 6, 0)
    write_jsonl(data.queries, [CLAIMS[0], CLAIMS[1]])
    assert build(data, out).changed == ("queries",)
    assert build(data, out, unit=True).changed == ("unit",)
    assert not build(data, out, unit=True).made


def test_removed_input_is_a_change(data: Dataset, tmp_path: Path) -> None:
    rows = [{"id": n, "pages": ["Ines_Moreau"]} for n in (1, 2, 3)]
    retrieved = write_jsonl(tmp_path / "retrieved.jsonl", rows)
    report = build(Dataset(data.queries, data.pages, retrieved), tmp_path / "f")
    assert (report.queries, report.passages, report.missing) == (3, 2, 2)
    assert build(data, tmp_path / "f").changed == ("retrieved",)


def test_failed_build_leaves_the_old_features(data: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "features"
    build(data, out)
    before = PooledTable.load(out)

    def broken(problems: Problems) -> Iterator[Example]:
        yield from data.examples(problems)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        _build(broken, out, FeatureOptions(), {"queries": "9"}, Problems(), 1, lambda *_: None)
    np.testing.assert_array_equal(before.queries, PooledTable.load(out).queries)
    assert sorted(path.name for path in tmp_path.glob("features*")) == ["features"]


def test_damaged_features_are_made_again(data: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "features"
    build(data, out)
    (out / "gold.npy").unlink()
    assert build(data, out).changed == ("its own files",)
    assert PooledTable.load(out).ids.tolist() == ["1", "2"]
    assert sorted(path.name for path in tmp_path.glob("features*")) == ["features"]


def test_teacher_logits_are_not_a_part_of_the_features(data: Dataset, tmp_path: Path) -> None:
    build(data, tmp_path / "f")
    np.save(tmp_path / "f" / TEACHER_LOGITS, np.zeros(6, np.float32))
    assert not build(data, tmp_path / "f").made


def test_vectors_that_float16_cannot_hold_are_refused(data: Dataset, tmp_path: Path) -> None:
    (tmp_path / "big.vec").write_text("1 2\nfilm 90000 1\n")
    with pytest.raises(InvalidInput, match="which float16 cannot hold; use --unit"):
        build(data, tmp_path / "out", vectors=str(tmp_path / "big.vec"))
    assert not list(tmp_path.glob("out*"))
    assert build(data, tmp_path / "out", vectors=str(tmp_path / "big.vec"), unit=True).made


def test_folders_with_other_files_are_left_alone(data: Dataset, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidInput, match="contains other files"):
        build(data, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_data_set_without_queries_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no query with passages"):
        _build(lambda _: [], tmp_path / "out", FeatureOptions(), {}, Problems(), 1, lambda *_: None)
    assert not list(tmp_path.glob("out*"))


def test_queries_without_words_or_passages_are_problems(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "Blank").write_text("\n\n")
    (tmp_path / "docs" / "Ship").write_text("It sank .\n")
    span = {"docid": "Ship", "start_sentence": 0, "end_sentence": 1}
    rows = [
        {"annotation_id": "1", "query": "It sank", "evidences": [[span]]},
        {"annotation_id": "2", "query": "?!", "evidences": [[span]]},
        {"annotation_id": "3", "query": "It sank", "evidences": [[span | {"docid": "Blank"}]]},
    ]
    data = Dataset(write_jsonl(tmp_path / "dev.jsonl", rows), tmp_path / "docs")
    problems = Problems(skip=True)
    report = build_features(data, tmp_path / "f", FeatureOptions(), problems, workers=1)
    assert report.queries == 1
    assert [str(problem) for problem in problems.kept] == [
        "claim 2: the claim has no word.",
        "claim 3: its pages have no sentence.",
    ]
    assert len(list(read_examples(data.queries, data.pages))) == 3


@pytest.mark.parametrize(
    ("content", "message"), [(None, "contains no features"), ("[]", "meta.json")]
)
def test_folder_without_features_is_explained(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "meta.json").write_text(content)
    with pytest.raises((InvalidInput, BrokenInput), match=message):
        read_key(tmp_path)
