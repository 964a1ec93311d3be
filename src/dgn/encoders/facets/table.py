"""The matches of a whole data set in memory: every query matched once, without padding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array, device_of, namespace
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
    """Batches whose `x` is Matches, padded when they are formed.

    Args:
        table: The matches of all queries.
        batch_size: The number of queries per batch.
        seed: Determines the order of the queries.
        place: Moves the table to where batches are formed, once; after that, only the numbers of
            the queries of a batch move.
    """

    def __init__(
        self,
        table: MatchTable,
        batch_size: int,
        seed: int,
        place: Place = lambda array: array,
    ) -> None:
        items = table.items
        super().__init__(items, int(items.max()), table.dimension, batch_size, seed, place)
        self._table, self._tokens = table, table.tokens
        sizes = {"token": table.tokens, "item": items, "pair": items * table.tokens}
        self._sizes = {name: place(size) for name, size in sizes.items() if name != "pair"}
        self._starts = {name: place(np.cumsum(size) - size) for name, size in sizes.items()}
        self._by_word = (place(table.vectors), place(table.facts))
        self._query = place(table.query.astype(np.int64))
        self._about, self._passages = place(table.about), place(table.passages)
        self._by_pair = {name: place(array) for name, array in table.by_pair.items()}
        self._by_item = {name: place(array) for name, array in table.by_item.items()}
        self._gold = place(table.gold)
        self._labels = (place(table.negative_weight), place(table.teacher_logits))

    def shape_of(self, rows: NDArray[np.int64]) -> tuple[int, ...]:
        return int(self.lengths[rows].max()), int(self._tokens[rows].max())

    def form(self, rows: Array, shape: tuple[int, ...]) -> Batch:
        xp, device = namespace(self._about), device_of(self._about)
        item, token = (xp.arange(size, device=device) for size in shape)
        tokens, items = (xp.take(self._sizes[name], rows, axis=0) for name in ("token", "item"))
        real, mask = token < tokens[:, None], item < items[:, None]
        starts = {name: xp.take(array, rows, axis=0) for name, array in self._starts.items()}
        at_token = xp.where(real, starts["token"][:, None] + token, 0)
        at_item = xp.where(mask, starts["item"][:, None] + item, 0)
        both = mask[..., None] & real[:, None, :]
        at_pair = starts["pair"][:, None, None] + item[:, None] * tokens[:, None, None] + token
        at_pair = xp.where(both, at_pair, 0)

        def taken(array: Array, places: Array, inside: Array | None = None) -> Array:
            found = xp.take(array, xp.reshape(places, (-1,)), axis=0)
            found = xp.astype(xp.reshape(found, (*places.shape, *array.shape[1:])), xp.float32)
            if inside is None:
                return found
            return xp.where(inside, found, xp.zeros((), dtype=found.dtype, device=device))

        # A word that a batch contains twice is there twice: to find it would cost more.
        words = xp.reshape(xp.take(self._query, xp.reshape(at_token, (-1,)), axis=0), (-1,))
        matches = Matches(
            WordTable(*(taken(array, words) for array in self._by_word)),
            query=xp.reshape(xp.arange(words.shape[0], device=device), at_token.shape),
            real=real,
            mask=mask,
            about=taken(self._about, rows),
            passages=taken(self._passages, at_item, mask[..., None]),
            **{name: taken(array, at_pair, both) for name, array in self._by_pair.items()},
            **{name: taken(array, at_item, mask) for name, array in self._by_item.items()},
        )
        gold = xp.reshape(xp.take(self._gold, xp.reshape(at_item, (-1,)), axis=0), mask.shape)
        labels = (taken(array, at_item) for array in self._labels)
        return Batch(matches, gold & mask, mask, rows, *labels)


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
