"""What other methods select from the same passages, for people who ask what the difference is."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from dgn.evaluation import Bm25, Diversified, PooledTopK
from dgn.maximizers import Selections, top_k
from dgn.selector import PassageSelection
from dgn.text import PooledVectors, open_vectors

DIVERSITY = 0.3
"""Of MMR, as in docs/quality.md."""


@cache
def _vectors() -> PooledVectors:
    return open_vectors("wordllama")


def other_methods(selection: PassageSelection) -> list[dict[str, Any]]:
    """Select as many passages as dgn did, by other methods.

    Returns:
        For each method its name, a description, the passages it selects and how much of the query
        they cover by dgn's function.
    """
    count = len(selection)
    found: list[tuple[str, str, tuple[int, ...]]] = [
        ("dgn", "the passages that together cover most", selection.indices)
    ]
    if count:
        query = selection.query
        f, items = selection.problem.objective, selection.problem.items
        gains = f.gains(items, f.empty(items))
        alone = cast("Selections", top_k(gains, count, items.mask))[0]
        by_words = Bm25(stemmed=True).select([query], count)[0]
        by_vectors = PooledTopK(_vectors()).select([query], count)[0]
        diverse = Diversified("mmr", _vectors(), DIVERSITY).select([query], count)[0]
        found += [
            ("one by one", "the same function on each passage alone: no search", alone.indices),
            ("BM25", "top-k by BM25 with stems", _kept(by_words)),
            ("top-k", "top-k by cosine of word vectors", _kept(by_vectors)),
            ("MMR", f"MMR of pyversity, diversity {DIVERSITY:g}, same vectors", _kept(diverse)),
        ]
    rows: list[dict[str, Any]] = []
    twins = selection.query.twins
    for method, description, indices in found:
        # The problem has a repeated passage once.
        covered = selection.problem.coverage_after([twins[index] for index in indices])
        rows.append(
            {
                "method": method,
                "description": description,
                "indices": list(indices),
                "coverage": None if covered is None else float(covered[-1]),
            }
        )
    return rows


def _kept(indices: Any) -> tuple[int, ...]:
    return tuple(int(index) for index in indices if index >= 0)
