"""Baselines on pooled vectors, compared with a search for one query at a time."""

from collections.abc import Sequence

import numpy as np
import pytest

from dgn.errors import InvalidInput, MissingExtra
from dgn.evaluation import STRATEGIES, Diversified, PooledTopK
from dgn.text import PooledVectors
from dgn.text.query import Query
from dgn.text.vectors import unit_rows


class Numbered(PooledVectors):
    """A vector for each text, which depends on the text alone."""

    dimension = 12
    fingerprint = "numbered"

    def pooled(self, texts: Sequence[str]) -> np.ndarray:
        seeds = [sum(map(ord, text)) * len(text) for text in texts]
        rows = [np.random.default_rng(seed).standard_normal(12) for seed in seeds]
        return np.array(rows, dtype=np.float32).reshape(len(texts), 12)


VECTORS = Numbered()


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    random = np.random.default_rng(3)
    return [
        Query.of(f"query {n}", [f"passage {n} {'x' * i}" for i in range(random.integers(3, 9))])
        for n in range(40)
    ]


def test_cosine_for_one_query_at_a_time(queries: list[Query]) -> None:
    nearest = PooledTopK(VECTORS).select(queries, 4)
    for row, query in enumerate(queries):
        wanted, passages = VECTORS.pooled([query.text])[0], VECTORS.pooled(query.texts)
        cosines = unit_rows(passages) @ wanted
        assert nearest[row][nearest[row] >= 0].tolist() == np.argsort(-cosines)[:4].tolist()


def test_names_are_those_of_the_tables() -> None:
    assert PooledTopK(VECTORS).name == "Top-k"
    assert PooledTopK(VECTORS, "Top-k, unit").name == "Top-k, unit"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_diversifier_without_diversity_starts_with_the_nearest(
    queries: list[Query], strategy: str
) -> None:
    pytest.importorskip("pyversity", reason="pyversity is in dgn[peers]")
    selected = Diversified(strategy, VECTORS, 0.0).select(queries, 3)
    nearest = PooledTopK(VECTORS).select(queries, 1)
    np.testing.assert_array_equal(selected[:, 0], nearest[:, 0])
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in selected)
    assert Diversified(strategy, VECTORS, 0.2).name == f"{strategy.upper()} 0.2"


def test_mistakes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyversity", reason="pyversity is in dgn[peers]")
    with pytest.raises(InvalidInput, match="diversity must be from 0 to 1; got 2"):
        Diversified("mmr", VECTORS, 2)
    with pytest.raises(InvalidInput, match="strategy must be one of mmr, msd, dpp; got 'best'"):
        Diversified("best", VECTORS)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"dgn\[peers\]"):
        Diversified("mmr", VECTORS)
