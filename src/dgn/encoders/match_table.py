"""The matches of a whole data set, resident in memory: every claim matched once, nothing padded."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.encoders.matches import BY_ITEM, BY_PAIR, Matches, WordTable
from dgn.errors import BrokenInput, InvalidInput

SOFT_LABELS = "soft_labels.npy"
ARRAYS = ("vectors", "facts", "ids", "tokens", "items", "claim", "gold", *BY_PAIR, *BY_ITEM)


@dataclass(frozen=True, eq=False)
class MatchTable:
    """The matches of a data set; `by_pair` and `by_item` as in ClaimMatches, laid end to end.

    vectors: [words, dimension], float16; facts: [words, 4]. ids: [claims].
    tokens, items: [claims], how many words and sentences each claim has.
    claim: the claims' words. gold: one for each sentence. rivals: for each sentence that is not
    gold, how much it counts against the gold: less than 1 where it may be evidence all the same.
    soft: for each sentence, the logit that a stronger model gives it, where there is one; else NaN.
    """

    vectors: NDArray[Any]
    facts: NDArray[Any]
    ids: NDArray[Any]
    tokens: NDArray[np.int64]
    items: NDArray[np.int64]
    claim: NDArray[np.int32]
    gold: NDArray[np.bool_]
    by_pair: dict[str, NDArray[Any]]
    by_item: dict[str, NDArray[Any]]
    rivals: NDArray[np.float32]
    soft: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        """How long the words' vectors are."""
        return self.vectors.shape[1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[claims], how many candidates each has."""
        return self.items

    @classmethod
    def load(cls, folder: Path | str) -> MatchTable:
        """Open what `dgn data features --encoder facets` wrote."""
        folder = Path(folder)
        found = {name: _load(folder / f"{name}.npy") for name in ARRAYS}
        by_pair = {name: found.pop(name) for name in BY_PAIR}
        by_item = {name: found.pop(name) for name in BY_ITEM}
        count = len(found["gold"])
        rivals = np.ones(count, np.float32)
        soft = np.full(count, np.nan, np.float32)
        if (folder / SOFT_LABELS).is_file():
            soft = read_soft_labels(folder, count)
        return cls(**found, by_pair=by_pair, by_item=by_item, rivals=rivals, soft=soft)

    @classmethod
    def join(cls, tables: Sequence[MatchTable]) -> MatchTable:
        """Several data sets as one, in this order."""
        if len({table.dimension for table in tables}) != 1:
            found = ", ".join(str(table.dimension) for table in tables) or "no table"
            raise InvalidInput("tables", found=found, allowed="at least one, all of one dimension")
        before = [0, *itertools.accumulate(len(table.vectors) for table in tables)]

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(table, name) for table in tables])

        by_pair = {
            name: np.concatenate([table.by_pair[name] for table in tables]) for name in BY_PAIR
        }
        by_pair["matched"] = np.concatenate(
            [t.by_pair["matched"] + np.int32(n) for t, n in zip(tables, before, strict=False)]
        )
        return cls(
            **{name: joined(name) for name in ("vectors", "facts", "ids", "tokens", "items")},
            claim=np.concatenate(
                [t.claim + np.int32(n) for t, n in zip(tables, before, strict=False)]
            ),
            gold=joined("gold"),
            by_pair=by_pair,
            by_item={
                name: np.concatenate([table.by_item[name] for table in tables]) for name in BY_ITEM
            },
            rivals=joined("rivals"),
            soft=joined("soft"),
        )

    def of_claims(self, rows: NDArray[np.int64]) -> MatchTable:
        """Some of the claims, with all words."""
        token_places = _places(self.tokens, rows)
        item_places = _places(self.items, rows)
        pair_places = _places(self.items * self.tokens, rows)
        return replace(
            self,
            ids=self.ids[rows],
            tokens=self.tokens[rows],
            items=self.items[rows],
            claim=self.claim[token_places],
            gold=self.gold[item_places],
            by_pair={name: array[pair_places] for name, array in self.by_pair.items()},
            by_item={name: array[item_places] for name, array in self.by_item.items()},
            rivals=self.rivals[item_places],
            soft=self.soft[item_places],
        )

    def with_rivals(self, rivals: NDArray[np.float32] | float) -> MatchTable:
        """The same, where sentences that are not gold count that much against it."""
        return replace(self, rivals=np.broadcast_to(np.float32(rivals), self.gold.shape).copy())


@dataclass(frozen=True, eq=False)
class Labels:
    """[batch, items] each; named as in MatchTable."""

    gold: NDArray[np.bool_]
    rivals: NDArray[np.float32]
    soft: NDArray[np.float32]


class PaddedClaims:
    """Cuts padded batches out of a table."""

    def __init__(self, table: MatchTable) -> None:
        self._table = table
        self._token_starts = np.cumsum(table.tokens) - table.tokens
        self._item_starts = np.cumsum(table.items) - table.items
        pairs = table.items * table.tokens
        self._pair_starts = np.cumsum(pairs) - pairs

    def of(self, rows: NDArray[np.int64]) -> tuple[Matches, Labels]:
        """The matches of these claims, and what is known of their sentences."""
        table = self._table
        tokens, items = table.tokens[rows], table.items[rows]
        token, item = np.arange(int(tokens.max())), np.arange(int(items.max()))
        real, mask = token < tokens[:, None], item < items[:, None]
        at_token = np.where(real, self._token_starts[rows][:, None] + token, 0)
        at_item = np.where(mask, self._item_starts[rows][:, None] + item, 0)
        both = mask[..., None] & real[:, None, :]
        at_pair = self._pair_starts[rows][:, None, None] + item[:, None] * tokens[:, None, None]
        at_pair = np.where(both, at_pair + token, 0)
        claim, matched = table.claim[at_token], table.by_pair["matched"][at_pair]
        met = np.zeros(len(table.vectors), np.bool_)
        met[claim] = True
        met[matched] = True
        words = np.flatnonzero(met)
        place = np.cumsum(met) - 1
        by_pair = {
            name: np.where(both, table.by_pair[name][at_pair], 0).astype(np.float32)
            for name in BY_PAIR[1:]
        }
        by_item = {
            name: np.where(mask, table.by_item[name][at_item], 0).astype(np.float32)
            for name in BY_ITEM
        }
        matches = Matches(
            WordTable(table.vectors[words].astype(np.float32), table.facts[words]),
            claim=place[claim],
            real=real,
            mask=mask,
            matched=place[matched],
            **by_pair,
            **by_item,
        )
        return matches, Labels(
            table.gold[at_item] & mask, table.rivals[at_item], table.soft[at_item]
        )


def _places(sizes: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the parts of some claims lie in an array of all claims' parts."""
    starts, chosen = np.cumsum(sizes) - sizes, sizes[rows]
    ahead = np.arange(int(chosen.sum())) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    return np.repeat(starts[rows], chosen) + ahead


def read_soft_labels(folder: Path, count: int) -> NDArray[np.float32]:
    """The soft labels of a folder of features: one for each sentence."""
    soft = _load(folder / SOFT_LABELS)
    if soft.shape != (count,) or soft.dtype.kind != "f":
        raise BrokenInput(
            folder / SOFT_LABELS,
            None,
            found=f"{soft.dtype} {soft.shape}",
            allowed=f"{count} numbers; dgn teach makes them for these features",
        )
    return soft.astype(np.float32)


def _load(path: Path) -> NDArray[Any]:
    try:
        return np.load(path)
    except (OSError, ValueError, EOFError) as error:
        raise BrokenInput(
            path,
            None,
            found=str(error),
            allowed="what dgn data features --encoder facets wrote; make them anew",
        ) from None
