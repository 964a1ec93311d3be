"""The matches of a whole data set in memory: every query matched once, without padding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.data import Batch, Batches, Place
from dgn.encoders.facets.matching import BY_ITEM, BY_PAIR, Matches, WordTable
from dgn.encoders.features import TEACHER_LOGITS, load_array
from dgn.errors import BrokenInput, InvalidInput

_WHOLES = ("about", "passages")
_ARRAYS = (
    *("vectors", "facts", "ids", "tokens", "items", "query", "gold"),
    *(*_WHOLES, *BY_PAIR, *BY_ITEM),
)


@dataclass(frozen=True, eq=False)
class MatchTable:
    """The matches of a data set, laid end to end.

    Attributes:
        vectors: [words, dimension], float16.
        facts: [words, 5].
        ids: [queries], their identifiers.
        tokens: [queries], the number of words of each query.
        items: [queries], the number of passages of each query.
        query: The words of all queries.
        gold: For each passage, whether it is gold.
        about: [queries, dimension], float16, the vector of each query as a whole.
        passages: [passages, dimension], float16, the vector of each passage as a whole.
        by_pair: The arrays of QueryMatches with an entry for each passage and word.
        by_item: The arrays of QueryMatches with an entry for each passage.
        negative_weight: For each passage that is not gold, how much it counts against the gold:
            less than 1 where it may be evidence that nobody labelled.
        teacher_logits: For each passage, the logit of a stronger model; NaN where there is none.
    """

    vectors: NDArray[Any]
    facts: NDArray[Any]
    ids: NDArray[Any]
    tokens: NDArray[np.int64]
    items: NDArray[np.int64]
    query: NDArray[np.int32]
    gold: NDArray[np.bool_]
    about: NDArray[Any]
    passages: NDArray[Any]
    by_pair: dict[str, NDArray[Any]]
    by_item: dict[str, NDArray[Any]]
    negative_weight: NDArray[np.float32]
    teacher_logits: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        """The dimension of the word vectors."""
        return self.vectors.shape[1]

    @classmethod
    def load(cls, folder: Path | str, negative_weight: float = 1.0) -> MatchTable:
        """Read what `dgn data features --encoder facets` wrote."""
        folder = Path(folder)
        found = {name: load_array(folder / f"{name}.npy") for name in _ARRAYS}
        by_pair = {name: found.pop(name) for name in BY_PAIR}
        by_item = {name: found.pop(name) for name in BY_ITEM}
        count = len(found["gold"])
        return cls(
            **found,
            by_pair=by_pair,
            by_item=by_item,
            negative_weight=np.full(count, negative_weight, np.float32),
            teacher_logits=_read_logits(folder, count),
        )

    @classmethod
    def join(cls, tables: Sequence[MatchTable]) -> MatchTable:
        """Several data sets as one, in this order."""
        if len({table.dimension for table in tables}) != 1:
            found = ", ".join(str(table.dimension) for table in tables) or "none"
            raise InvalidInput("tables", found=found, allowed="tables of one dimension")
        before = [0, *itertools.accumulate(len(table.vectors) for table in tables)]

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(table, name) for table in tables])

        def shifted(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
            """Rows of the words, which are numbered through all tables."""
            return np.concatenate([a + np.int32(n) for a, n in zip(arrays, before, strict=False)])

        return cls(
            **{name: joined(name) for name in ("vectors", "facts", "ids", "tokens", "items")},
            query=shifted([table.query for table in tables]),
            **{name: joined(name) for name in ("gold", *_WHOLES)},
            by_pair={name: np.concatenate([t.by_pair[name] for t in tables]) for name in BY_PAIR},
            by_item={name: np.concatenate([t.by_item[name] for t in tables]) for name in BY_ITEM},
            negative_weight=joined("negative_weight"),
            teacher_logits=joined("teacher_logits"),
        )

    def rows(self, rows: NDArray[np.int64]) -> MatchTable:
        """Some of the queries, with all words."""
        token_places = _places(self.tokens, rows)
        item_places = _places(self.items, rows)
        pair_places = _places(self.items * self.tokens, rows)
        return replace(
            self,
            ids=self.ids[rows],
            tokens=self.tokens[rows],
            items=self.items[rows],
            query=self.query[token_places],
            gold=self.gold[item_places],
            about=self.about[rows],
            passages=self.passages[item_places],
            by_pair={name: array[pair_places] for name, array in self.by_pair.items()},
            by_item={name: array[item_places] for name, array in self.by_item.items()},
            negative_weight=self.negative_weight[item_places],
            teacher_logits=self.teacher_logits[item_places],
        )


@final
class MatchBatches(Batches):
    """Batches whose `x` is Matches, padded when they are formed."""

    def __init__(
        self,
        table: MatchTable,
        batch_size: int,
        seed: int,
        place: Place = lambda array: array,
    ) -> None:
        super().__init__(table.items, int(table.items.max()), table.dimension, batch_size, seed)
        self._place, self._table = place, table
        self._token_starts = np.cumsum(table.tokens) - table.tokens
        self._item_starts = np.cumsum(table.items) - table.items
        pairs = table.items * table.tokens
        self._pair_starts = np.cumsum(pairs) - pairs

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        table, place = self._table, self._place
        matches, at_item = self._padded(rows)
        placed = matches.placed(place)
        return Batch(
            placed,
            place(table.gold[at_item] & matches.mask),
            placed.mask,
            rows,
            place(table.negative_weight[at_item]),
            place(table.teacher_logits[at_item]),
        )

    def _padded(self, rows: NDArray[np.int64]) -> tuple[Matches, NDArray[np.int64]]:
        """The matches of these queries, and where each of their passages is in the table."""
        table = self._table
        tokens, items = table.tokens[rows], table.items[rows]
        token, item = np.arange(int(tokens.max())), np.arange(int(items.max()))
        real, mask = token < tokens[:, None], item < items[:, None]
        at_token = np.where(real, self._token_starts[rows][:, None] + token, 0)
        at_item = np.where(mask, self._item_starts[rows][:, None] + item, 0)
        both = mask[..., None] & real[:, None, :]
        at_pair = self._pair_starts[rows][:, None, None] + item[:, None] * tokens[:, None, None]
        at_pair = np.where(both, at_pair + token, 0)
        query = table.query[at_token]
        words, place = np.unique(query, return_inverse=True)
        by_pair = {
            name: np.where(both, table.by_pair[name][at_pair], 0).astype(np.float32)
            for name in BY_PAIR
        }
        by_item = {
            name: np.where(mask, table.by_item[name][at_item], 0).astype(np.float32)
            for name in BY_ITEM
        }
        passages = np.where(mask[..., None], table.passages[at_item], 0).astype(np.float32)
        matches = Matches(
            WordTable(table.vectors[words].astype(np.float32), table.facts[words]),
            query=place.reshape(query.shape),
            real=real,
            mask=mask,
            about=table.about[rows].astype(np.float32),
            passages=passages,
            **by_pair,
            **by_item,
        )
        return matches, at_item


def _places(sizes: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the parts of some queries are in an array of the parts of all queries."""
    starts, chosen = np.cumsum(sizes) - sizes, sizes[rows]
    ahead = np.arange(int(chosen.sum())) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    return np.repeat(starts[rows], chosen) + ahead


def _read_logits(folder: Path, count: int) -> NDArray[np.float32]:
    """The teacher's logits of a folder of features, one for each passage; NaN without a file."""
    path = folder / TEACHER_LOGITS
    if not path.is_file():
        return np.full(count, np.nan, np.float32)
    logits = load_array(path)
    if logits.shape != (count,) or logits.dtype.kind != "f":
        raise BrokenInput(
            path,
            None,
            found=f"{logits.dtype} {logits.shape}",
            allowed=f"{count} numbers, which python -m experiments.teach writes for these features",
        )
    return logits.astype(np.float32)
