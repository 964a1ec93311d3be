from pathlib import Path

import numpy as np
import pytest
import torch

from dgn.data import Batch, Example, Line, Position, parse_row
from dgn.encoders.facets.matching import BY_ITEM, BY_PAIR, Matches, QueryMatches
from dgn.encoders.facets.table import MatchBatches, MatchTable
from dgn.encoders.facets.writer import MatchWriter
from dgn.encoders.features import TEACHER_LOGITS
from dgn.errors import BrokenInput, InvalidInput
from models import matcher

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
    with MatchWriter(tmp_path, matcher()) as writer:
        for example in examples(5):
            writer.add(example)
    return tmp_path


@pytest.fixture
def table(folder: Path) -> MatchTable:
    return MatchTable.load(folder)


def batch_of(table: MatchTable, *rows: int) -> Batch:
    return MatchBatches(table, len(rows), seed=0).batch(np.array(rows))


def matches_of(example: Example) -> QueryMatches:
    (one,), _ = matcher().match([example.query])
    return one


def check_same(one: QueryMatches, matches: Matches) -> None:
    """The only query of a batch is the query matched alone, except for float16."""
    for name in (*BY_PAIR, *BY_ITEM, "about", "passages"):
        assert np.allclose(getattr(matches, name)[0], getattr(one, name), atol=1e-3), name
    assert matches.query.shape[1] == len(one.query)


def test_table_gives_back_what_was_matched(table: MatchTable) -> None:
    assert len(table) == 5
    for row, example in enumerate(examples(5)):
        (one,), words = matcher().match([example.query])
        batch = batch_of(table, row)
        check_same(one, batch.x)
        ours = batch.x.words.vectors
        assert np.allclose(ours[batch.x.query[0]], words.vectors[one.query], atol=1e-3)
        assert batch.gold[0].tolist() == list(example.gold)
        assert batch.negative_weight.tolist() == [[1.0] * len(one.length)]
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
    source = MatchBatches(table, 2, seed=0, place=torch.from_numpy)
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
