import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from dgn.data import Batch, Claim, Example, Line, Position, example_of, parse_row
from dgn.errors import BrokenInput, InvalidInput
from dgn.learn.families.base import TEACHER_LOGITS
from dgn.learn.families.facets_table import MatchBatches, MatchTable, MatchWriter
from dgn.text.facets.matching import AXES, Matches, QueryMatches
from models import match, reader

ROWS = [
    b'{"claim": "The ship sank twice.", "title": "Ship", "sentences": ["It sank in 1901.",'
    b' "It was raised.", "Then it sank again."], "evidence": [[0, 2]]}',
    b'{"claim": "A town has two rivers", "documents": [{"title": "Town", "sentences":'
    b' ["The Lann flows here."]}, {"title": "Rivers", "sentences": ["The Orr too.", "Cows."]}],'
    b' "evidence": [[[0, 0], [1, 0]]]}',
]


def examples(count: int) -> list[Example]:
    return [parse_row(Line("rows", n + 1, ROWS[n % 2])).example() for n in range(count)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with MatchWriter(tmp_path, reader()) as writer:
        for example in examples(5):
            writer.add(example)
    return tmp_path


@pytest.fixture
def table(folder: Path) -> MatchTable:
    return MatchTable.load(folder)


def batch_of(table: MatchTable, *rows: int) -> Batch:
    return MatchBatches(table, len(rows), seed=0).batch(np.array(rows))


def matches_of(example: Example) -> QueryMatches:
    (one,), _ = match([example.query])
    return one


def check_same(one: QueryMatches, matches: Matches) -> None:
    """The only query of a batch is the query matched alone, except for float16."""
    for name in set(AXES) - {"query"}:
        assert np.allclose(getattr(matches, name)[0], one[name], atol=1e-3), name
    assert matches.query.shape[1] == len(one["query"])


def test_table_gives_back_what_was_matched(table: MatchTable) -> None:
    assert len(table) == 5
    for row, example in enumerate(examples(5)):
        (one,), table_of_words = match([example.query])
        batch = batch_of(table, row)
        check_same(one, batch.x)
        words = batch.x.query[0]
        for name in ("vectors", "facts"):
            expected = getattr(table_of_words, name)[one["query"]]
            assert np.allclose(getattr(batch.x, name)[words], expected, atol=1e-3)
        assert batch.gold[0].tolist() == list(example.gold)
        assert batch.negative_weight.tolist() == [[1.0] * len(one["length"])]
        assert np.isnan(batch.teacher_logits).all()


def test_joined_and_divided_tables_have_the_same_queries(folder: Path, table: MatchTable) -> None:
    joined = MatchTable.join([table, MatchTable.load(folder, 0.25)])
    assert len(joined) == 10
    some = joined.rows(np.array([6, 1]))
    check_same(matches_of(examples(2)[1]), batch_of(some, 1).x)
    check_same(matches_of(examples(2)[1]), batch_of(joined, 8).x)
    assert batch_of(some, 0, 1).negative_weight[:, 0].tolist() == [0.25, 1.0]
    with pytest.raises(InvalidInput, match="tables of one dimension; got none"):
        MatchTable.join([])


def test_padding_is_zero_and_marked(table: MatchTable) -> None:
    batch = batch_of(table, 0, 1)
    matches = batch.x
    assert matches.mask.tolist() == batch.mask.tolist() == [[True] * 3, [True] * 3]
    assert matches.real.sum(axis=1).tolist() == table.tokens[:2].tolist()
    hidden = ~matches.real[:, None, :] & np.ones_like(matches.similarity, bool)
    assert not matches.similarity[hidden].any()
    assert batch.gold.sum() == 4


def test_batches_contain_every_query_once(table: MatchTable) -> None:
    source = MatchBatches(table, 2, seed=0, to_device=torch.from_numpy)
    assert (len(source), source.query_count, source.width, source.inputs) == (3, 5, 3, 256)
    seen = np.concatenate([rows for _, rows in source.rows_from(Position())])
    assert sorted(seen) == list(range(5))
    batch = source.batch(np.array([0, 1]))
    assert isinstance(batch.x.similarity, torch.Tensor)
    assert isinstance(batch.gold, torch.Tensor)
    assert batch.x.similarity.dtype == torch.float32


def test_teacher_logits_are_read_with_the_table(folder: Path) -> None:
    count = sum(len(example.gold) for example in examples(5))
    np.save(folder / TEACHER_LOGITS, np.arange(count, dtype=np.float64))
    batch = batch_of(MatchTable.load(folder), 1)
    assert batch.teacher_logits.tolist() == [[3.0, 4.0, 5.0]]


@pytest.mark.parametrize("logits", [np.zeros(3, np.float32), np.zeros(15, np.int64)])
def test_teacher_logits_of_other_features_are_refused(folder: Path, logits: np.ndarray) -> None:
    np.save(folder / TEACHER_LOGITS, logits)
    with pytest.raises(BrokenInput, match=r"teacher_logits\.npy: .*experiments\.teach"):
        MatchTable.load(folder)


def test_damaged_table_is_explained(folder: Path) -> None:
    (folder / "gold.npy").write_bytes(b"")
    with pytest.raises(BrokenInput, match=r"gold\.npy: .*Run dgn data features again"):
        MatchTable.load(folder)


ROW = (
    b'{"query": "It sank twice", "title": "Ship", "sentences": ["It sank.", "It rose.", "Twice."]}'
)
EXAMPLE = parse_row(Line("rows", 1, ROW)).example()


def write(folder: Path, examples: list[Example], *, titles: bool = True) -> MatchWriter:
    folder.mkdir()
    with MatchWriter(folder, reader(), titles=titles) as writer:
        for example in examples:
            writer.add(example)
    return writer


def test_counts_and_different_words(tmp_path: Path) -> None:
    claim = dataclasses.replace(EXAMPLE.claim, id="2")
    again = dataclasses.replace(EXAMPLE, claim=claim)
    writer = write(tmp_path / "f", [EXAMPLE, again] * 40)  # more than one batch
    assert (writer.query_count, writer.passage_count, writer.missing_count) == (80, 240, 0)
    table = MatchTable.load(tmp_path / "f")
    assert table.ids.tolist() == ["1", "2"] * 40
    alone = write(tmp_path / "alone", [EXAMPLE])
    assert alone.query_count == 1
    words = MatchTable.load(tmp_path / "alone").vectors
    assert len(table.vectors) == len(words), "every different word is stored once"
    assert table.vectors.dtype == np.float16


def test_missing_evidence_is_counted(tmp_path: Path) -> None:
    row = parse_row(Line("rows", 1, ROW[:-1] + b', "evidence": [[9]]}'))
    assert write(tmp_path / "f", [row.example()]).missing_count == 1


def test_titles_can_be_left_out(tmp_path: Path) -> None:
    titled = parse_row(Line("rows", 1, ROW.replace(b"It sank twice", b"The ship sank"))).example()
    write(tmp_path / "titled", [titled])
    write(tmp_path / "without", [titled], titles=False)
    assert MatchTable.load(tmp_path / "titled").arrays["title"].any()
    assert not MatchTable.load(tmp_path / "without").arrays["title"].any()


@pytest.mark.parametrize("failed", [True, False])
def test_nothing_is_written_after_a_failure_or_without_queries(
    tmp_path: Path, failed: bool
) -> None:
    def fail() -> None:
        with MatchWriter(tmp_path, reader()) as writer:
            if failed:
                writer.add(example_of(Claim("1", "It sank"), EXAMPLE.query.passages))
                raise OSError("disk full")

    if failed:
        with pytest.raises(OSError, match="disk full"):
            fail()
    else:
        fail()
    assert not list(tmp_path.iterdir())
