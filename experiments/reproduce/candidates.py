"""Claims with more or fewer candidates: the distance to the setting of the paper, and imbalance.

The paper's claims have all pages of their evidence, and 16.5% of them need more than one. Ours need
one. So we measure the same networks, trained on one page, with the pages of other claims added, and
with two claims joined into one that needs both pages.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dgn.learn.families.pooled_table import PooledTable

ONE_PAGE, JOINED = "1 page", "2 claims joined"
PAGES = (2, 3, 4, 6)


def harder_sets(table: PooledTable) -> dict[str, PooledTable]:
    """The claims as they are, with more pages, and joined, by name."""
    more = {f"{pages} pages": with_pages(table, pages) for pages in PAGES}
    return {ONE_PAGE: table, **more, JOINED: joined(table)}


def varied(table: PooledTable, candidates: str) -> PooledTable:
    """The claims with the candidates of one of `plan.IMBALANCES`."""
    if candidates == "as they are":
        return table
    if candidates == "1 per gold":
        return thinned(table)
    return with_pages(table, int(candidates.removesuffix(" pages")))


def thinned(table: PooledTable, seed: int = 0) -> PooledTable:
    """Every claim with its gold, and at most as many other passages, drawn at random."""
    random = np.random.default_rng(seed)
    kept = table.gold.copy()
    for start, end in zip(table.offsets[:-1], table.offsets[1:], strict=True):
        others = np.flatnonzero(~table.gold[start:end]) + start
        wanted = min(len(others), max(1, int(table.gold[start:end].sum())))
        kept[random.choice(others, wanted, replace=False)] = True
    counts = np.add.reduceat(kept.astype(np.int64), table.offsets[:-1])
    return replace(
        table,
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        candidates=table.candidates[kept],
        gold=table.gold[kept],
    )


def others_per_gold(table: PooledTable) -> float:
    """The number of passages that are not gold, for each one that is."""
    return float((~table.gold).sum() / max(1, table.gold.sum()))


def with_pages(table: PooledTable, pages: int, seed: int = 0) -> PooledTable:
    """Every claim with the passages of `pages` − 1 claims about other pages, none of them gold."""
    random = np.random.default_rng(seed)
    rows = [
        [row, *_others(table, row, pages - 1, random)] for row in range(len(table))
    ]  # the claim itself first
    return _combined(table, rows, own_gold_only=True)


def joined(table: PooledTable, seed: int = 0) -> PooledTable:
    """Every claim joined with one about another page: the candidates and the gold of both.

    The vector of the joined claim is the mean of both.
    """
    random = np.random.default_rng(seed)
    rows = [[row, *_others(table, row, 1, random)] for row in range(len(table))]
    second = np.array([pair[-1] for pair in rows])
    vectors = table.queries.astype(np.float32)
    mean = (vectors + vectors[second]) / 2
    lengths = np.linalg.norm(vectors, axis=1)
    if np.allclose(lengths[lengths > 0], 1, atol=1e-2):  # unit vectors stay unit vectors
        mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-6)
    both = _combined(table, rows, own_gold_only=False)
    return replace(both, queries=mean.astype(np.float16))


def _others(table: PooledTable, row: int, count: int, random: np.random.Generator) -> list[int]:
    """Other claims, each about a page of its own."""
    starts = table.candidates[table.offsets[:-1]]  # a page is known by its first passage
    used = {int(starts[row])}
    found: list[int] = []
    for other in random.permutation(len(table)):
        if len(found) == count:
            break
        if int(starts[other]) not in used:
            used.add(int(starts[other]))
            found.append(int(other))
    return found


def _combined(table: PooledTable, rows: list[list[int]], *, own_gold_only: bool) -> PooledTable:
    candidates: list[NDArray[np.int32]] = []
    gold: list[NDArray[np.bool_]] = []
    offsets = [0]
    for own, *others in rows:
        for row in (own, *others):
            part = slice(table.offsets[row], table.offsets[row + 1])
            candidates.append(table.candidates[part])
            gold.append(table.gold[part] & (row == own or not own_gold_only))
        offsets.append(offsets[-1] + sum(len(c) for c in candidates[-1 - len(others) :]))
    return replace(
        table,
        offsets=np.array(offsets, np.int64),
        candidates=np.concatenate(candidates),
        gold=np.concatenate(gold),
    )
