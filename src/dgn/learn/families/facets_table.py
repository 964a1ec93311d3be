"""The matches of a whole data set: written to a folder, in memory, and batch by batch.

Every query is matched once, and nothing is padded until a batch is formed. Which arrays there are,
and along which axes, is defined in one place: `AXES` of `dgn.text.facets.matching`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, device_of, namespace
from dgn.core.native.facets import WordTable
from dgn.data import Batch, Batches, Example, ToDevice
from dgn.errors import BrokenInput, InvalidInput
from dgn.files import save_array
from dgn.learn.families.base import TEACHER_LOGITS, FeatureWriter, broken_features, load_array
from dgn.text.facets.matching import AXES, Matches, QueryMatches, match_query
from dgn.text.facets.reading import read_queries
from dgn.text.vocabulary import FACTS, WordReader

_QUERIES_PER_BATCH = 64
_HALF = ("similarity", "title", "about", "passages")
"""Stored in half precision: they are the largest, and their errors are small."""


_ANY, _SHARE = (-np.inf, np.inf), (0.0, 1.01)
"""Shares may be a little above 1, by rounding."""

_RANGES = {
    **dict.fromkeys(("similarity", "exact", "pair", "title", "numbers"), _SHARE),
    **dict.fromkeys(("is_ordered", "follows"), _SHARE),
    **dict.fromkeys(("length", "position"), (0.0, np.inf)),
}
"""What the arrays may contain; the others have any finite numbers."""

_LONGEST_QUERY = 1 << 20


def _ragged(name: str) -> tuple[str, ...]:
    """The axes of an array whose lengths differ from query to query."""
    return tuple(axis for axis in AXES[name] if axis != "dimension")


def _sizes(
    tokens: NDArray[np.int64], items: NDArray[np.int64]
) -> dict[tuple[str, ...], NDArray[np.int64]]:
    return {
        (): np.ones_like(tokens),
        ("tokens",): tokens,
        ("items",): items,
        ("items", "tokens"): items * tokens,
    }


@dataclass(frozen=True, eq=False)
class MatchTable:
    """The matches of a data set, laid end to end.

    Attributes:
        vectors: [words, dimension], float16.
        facts: [words, 5], what else is known about the words.
        ids: [queries], their identifiers.
        tokens: [queries], the number of words of each query.
        items: [queries], the number of passages of each query.
        gold: For each passage, whether it is gold.
        arrays: The arrays of AXES, those of all queries end to end.
        negative_weight: For each passage that is not gold, how much it counts against the gold:
            less than 1 where it may be evidence that nobody labelled.
        teacher_logits: For each passage, the logit of a stronger model; NaN where there is none.
    """

    vectors: NDArray[Any]
    facts: NDArray[Any]
    ids: NDArray[Any]
    tokens: NDArray[np.int64]
    items: NDArray[np.int64]
    gold: NDArray[np.bool_]
    arrays: dict[str, NDArray[Any]]
    negative_weight: NDArray[np.float32]
    teacher_logits: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        """The dimension of the word vectors."""
        return self.vectors.shape[1]

    @property
    def sizes(self) -> dict[tuple[str, ...], NDArray[np.int64]]:
        """How many entries each query has in arrays with these ragged axes."""
        return _sizes(self.tokens, self.items)

    @classmethod
    def load(cls, folder: Path | str, negative_weight: float = 1.0) -> MatchTable:
        """Read what `dgn data features --encoder facets` wrote."""
        folder = Path(folder)

        def loaded(name: str, kind: str, *shape: int | None, **within: Any) -> NDArray[Any]:
            return load_array(folder / f"{name}.npy", kind, shape, **within)

        vectors = loaded("vectors", "f", None, None)
        words, dimension = vectors.shape
        ids = loaded("ids", "U", None)
        gold = loaded("gold", "b", None)
        tokens = loaded("tokens", "i", len(ids), within=(1, _LONGEST_QUERY))
        items = loaded("items", "i", len(ids), within=(1, len(gold)))
        if not len(ids) or items.sum() != len(gold):
            raise broken_features(
                folder / "items.npy",
                f"expected {len(gold):,} passages in all, as in gold.npy; found {items.sum():,}.",
            )
        sizes = {axes: int(size.sum()) for axes, size in _sizes(tokens, items).items()}
        arrays: dict[str, NDArray[Any]] = {}
        for name, axes in AXES.items():
            shape = (sizes[_ragged(name)], *[dimension] * ("dimension" in axes))
            within = (0, words - 1) if name == "query" else _RANGES.get(name, _ANY)
            arrays[name] = loaded(name, "i" if name == "query" else "fb", *shape, within=within)
        return cls(
            vectors,
            loaded("facts", "f", words, FACTS),
            ids,
            tokens,
            items,
            gold,
            arrays,
            negative_weight=np.full(len(gold), negative_weight, np.float32),
            teacher_logits=_read_logits(folder, len(gold)),
        )

    @classmethod
    def join(cls, tables: Sequence[MatchTable]) -> MatchTable:
        """Several data sets as one, in this order."""
        if len({table.dimension for table in tables}) != 1:
            found = ", ".join(str(table.dimension) for table in tables) or "none"
            raise InvalidInput("tables", found=found, allowed="tables of one dimension")

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(table, name) for table in tables])

        arrays = {name: np.concatenate([t.arrays[name] for t in tables]) for name in AXES}
        # Words are numbered through all tables.
        before = [0, *itertools.accumulate(len(table.vectors) for table in tables)]
        rows = [t.arrays["query"] + np.int32(n) for t, n in zip(tables, before, strict=False)]
        names = ("vectors", "facts", "ids", "tokens", "items", "gold")
        return cls(
            **{name: joined(name) for name in names},
            arrays={**arrays, "query": np.concatenate(rows)},
            negative_weight=joined("negative_weight"),
            teacher_logits=joined("teacher_logits"),
        )

    def rows(self, rows: NDArray[np.int64]) -> MatchTable:
        """Some of the queries, with all words."""
        indices = {axes: _entries(sizes, rows) for axes, sizes in self.sizes.items()}
        of_item = indices[("items",)]
        return replace(
            self,
            ids=self.ids[rows],
            tokens=self.tokens[rows],
            items=self.items[rows],
            gold=self.gold[of_item],
            arrays={name: array[indices[_ragged(name)]] for name, array in self.arrays.items()},
            negative_weight=self.negative_weight[of_item],
            teacher_logits=self.teacher_logits[of_item],
        )


@final
class MatchBatches(Batches):
    """Batches whose `x` is Matches, padded when they are formed.

    Args:
        table: The matches of all queries.
        batch_size: The number of queries per batch.
        seed: Determines the order of the queries.
        to_device: Moves the table to where batches are formed, once; after that, only the numbers
            of the queries of a batch move.
    """

    def __init__(
        self,
        table: MatchTable,
        batch_size: int,
        seed: int,
        to_device: ToDevice = lambda array: array,
    ) -> None:
        items = table.items
        super().__init__(items, int(items.max()), table.dimension, batch_size, seed, to_device)
        self._tokens = table.tokens
        sizes = table.sizes
        self._sizes = {axes: to_device(sizes[axes]) for axes in (("tokens",), ("items",))}
        self._starts = {axes: to_device(np.cumsum(size) - size) for axes, size in sizes.items()}
        self._words = (to_device(table.vectors), to_device(table.facts))
        arrays = {**table.arrays, "query": table.arrays["query"].astype(np.int64)}
        self._arrays = {name: to_device(array) for name, array in arrays.items()}
        self._gold = to_device(table.gold)
        self._labels = (to_device(table.negative_weight), to_device(table.teacher_logits))

    def shape_of(self, rows: NDArray[np.int64]) -> tuple[int, ...]:
        return int(self.lengths[rows].max()), int(self._tokens[rows].max())

    def form(self, rows: Array, shape: tuple[int, ...]) -> Batch:
        xp, device = namespace(self._gold), device_of(self._gold)
        item, token = (xp.arange(size, device=device) for size in shape)
        tokens, items = (
            xp.take(self._sizes[axes], rows, axis=0) for axes in (("tokens",), ("items",))
        )
        real, mask = token < tokens[:, None], item < items[:, None]
        both = mask[..., None] & real[:, None, :]
        starts = {axes: xp.take(array, rows, axis=0) for axes, array in self._starts.items()}
        offsets: dict[tuple[str, ...], Array] = {
            ("tokens",): token[None, :],
            ("items",): item[None, :],
            ("items", "tokens"): item[:, None] * tokens[:, None, None] + token,
        }
        inside: dict[tuple[str, ...], Array] = {
            ("tokens",): real,
            ("items",): mask,
            ("items", "tokens"): both,
        }
        indices: dict[tuple[str, ...], Array] = {(): rows}
        for axes, offset in offsets.items():
            start = xp.reshape(starts[axes], (-1, *[1] * len(axes)))
            indices[axes] = xp.where(inside[axes], start + offset, 0)

        def taken(array: Array, at: Array) -> Array:
            values = xp.take(array, xp.reshape(at, (-1,)), axis=0)
            return xp.reshape(values, (*at.shape, *array.shape[1:]))

        def padded(name: str) -> Array:
            axes = _ragged(name)
            values = xp.astype(taken(self._arrays[name], indices[axes]), xp.float32)
            if not axes:
                return values
            is_real = inside[axes]
            if values.ndim > is_real.ndim:
                is_real = is_real[..., None]
            return xp.where(is_real, values, xp.zeros((), dtype=values.dtype, device=device))

        # A word that a batch contains twice is there twice: to find it would cost more.
        words = xp.reshape(taken(self._arrays["query"], indices[("tokens",)]), (-1,))
        vectors, facts = (xp.astype(taken(array, words), xp.float32) for array in self._words)
        matches = Matches(
            vectors=vectors,
            facts=facts,
            real=real,
            mask=mask,
            query=xp.reshape(xp.arange(words.shape[0], device=device), real.shape),
            **{name: padded(name) for name in AXES if name != "query"},
        )
        gold = taken(self._gold, indices[("items",)])
        labels = (
            xp.astype(taken(array, indices[("items",)]), xp.float32) for array in self._labels
        )
        return Batch(matches, gold & mask, mask, rows, *labels)


@final
class MatchWriter(FeatureWriter):
    """Collects examples, matches them, and writes the arrays of a MatchTable at the end.

    Every different word is stored once.
    """

    def __init__(self, folder: Path, reader: WordReader, *, titles: bool = True) -> None:
        self._folder, self._reader, self._titles = folder, reader, titles
        self._waiting: list[Example] = []
        self._words: dict[bytes, int] = {}
        self._vectors: list[NDArray[np.float16]] = []
        self._facts: list[NDArray[np.float32]] = []
        self._matches: list[QueryMatches] = []
        self._ids: list[str] = []
        self._gold: list[NDArray[np.bool_]] = []
        self.query_count = self.passage_count = self.missing_count = 0

    def add(self, example: Example) -> None:
        self._waiting.append(example)
        self._count(example)
        if len(self._waiting) >= _QUERIES_PER_BATCH:
            self._match()

    def add_matched(self, example: Example, matches: QueryMatches, table: WordTable) -> None:
        """Add an example that was matched already, with the table of its words.

        All examples of a folder are added in the same way.
        """
        self._count(example)
        self._store(example, matches, table)

    def __enter__(self) -> MatchWriter:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is not None or not self.query_count:
            return
        self._match()
        arrays: dict[str, NDArray[Any]] = {
            "vectors": np.concatenate(self._vectors),
            "facts": np.concatenate(self._facts),
            "ids": np.array(self._ids),
            "tokens": np.array([len(one["query"]) for one in self._matches]),
            "items": np.array([len(one["length"]) for one in self._matches]),
            "gold": np.concatenate(self._gold),
        }
        for name, axes in AXES.items():
            shape = (-1, *[arrays["vectors"].shape[1]] * ("dimension" in axes))
            arrays[name] = np.concatenate([one[name].reshape(shape) for one in self._matches])
        for name, array in arrays.items():
            save_array(self._folder / f"{name}.npy", array)

    def _match(self) -> None:
        if not self._waiting:
            return
        queries = [example.query for example in self._waiting]
        words, table, _ = read_queries(self._reader, queries, titles=self._titles)
        for one, example in zip(words, self._waiting, strict=True):
            self._store(example, match_query(one, table), table)
        self._waiting = []

    def _count(self, example: Example) -> None:
        self.query_count += 1
        self.passage_count += len(example.query.passages)
        self.missing_count += len(example.missing)

    def _store(self, example: Example, matches: QueryMatches, table: WordTable) -> None:
        stored = {name: matches[name].astype(np.float16) for name in _HALF}
        rows = self._rows_of(matches["query"], table)
        self._matches.append({**matches, **stored, "query": rows})
        self._ids.append(example.claim.id)
        self._gold.append(np.array(example.gold, dtype=bool))

    def _rows_of(self, words: NDArray[np.int64], table: WordTable) -> NDArray[np.int32]:
        """The rows of these words among all words so far; new ones are added."""
        vectors, facts = table.vectors[words].astype(np.float16), table.facts[words]
        rows = np.zeros(len(words), np.int32)
        new: list[int] = []
        for number, vector in enumerate(vectors):
            key = vector.tobytes() + facts[number].tobytes()
            if key not in self._words:
                self._words[key] = len(self._words)
                new.append(number)
            rows[number] = self._words[key]
        self._vectors.append(vectors[new])
        self._facts.append(facts[new])
        return rows


def _entries(sizes: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the entries of some queries are in an array of the entries of all queries."""
    starts, chosen = np.cumsum(sizes) - sizes, sizes[rows]
    ahead = np.arange(int(chosen.sum())) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    return np.repeat(starts[rows], chosen) + ahead


def _read_logits(folder: Path, count: int) -> NDArray[np.float32]:
    """The teacher's logits of a folder of features, one for each passage; NaN without a file."""
    path = folder / TEACHER_LOGITS
    if not path.is_file():
        return np.full(count, np.nan, np.float32)
    logits = load_array(path, is_finite=False)
    if logits.shape != (count,) or logits.dtype.kind != "f" or np.isinf(logits).any():
        raise BrokenInput(
            path,
            None,
            found=f"{logits.dtype} {logits.shape}",
            allowed=f"{count} numbers, which python -m experiments.teach writes for these features",
        )
    return logits.astype(np.float32)
