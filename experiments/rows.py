"""Matched queries as small files, so that they travel to a machine with more cores.

Similarities are kept in steps of 1/255. Vectors are kept in the directions in which passages differ
most, in steps of 1/127; `directions` leads back.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.learn.facets import MatchedQuery
from dgn.text.facets.encoder import FacetEncoder
from dgn.text.facets.matching import AXES, QueryMatches, match_query
from dgn.text.facets.reading import read_queries
from dgn.text.vocabulary import WordTable

_MOST_PASSAGES, _MOST_GOLD, _HARD = 64, 16, 12
_SHARES = ("similarity", "title")
_FLAGS = ("exact", "pair", "is_ordered", "follows")
_VECTORS = ("about", "passages")


@dataclass(frozen=True, eq=False)
class Row(MatchedQuery):
    """A matched query, and what is known about its passages.

    Attributes:
        hard: The passages that are not gold and cover most of the query.
        teacher: [passages], the logits of a cross-encoder; NaN where there are none.
    """

    hard: NDArray[np.int64]
    teacher: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Kind:
    """The rows of one kind of text: those to learn from, and those to report."""

    train: list[Row]
    dev: list[Row]


def matched(
    encoder: FacetEncoder,
    examples: Sequence[Example],
    teacher: NDArray[Any] | None,
    places: NDArray[np.int64] | None = None,
) -> list[Row]:
    """The examples of a kind of text, matched once.

    Args:
        encoder: Reads the words; its function finds the passages that are hard.
        examples: The examples.
        teacher: The logits of their passages, example after example, as far as there are any.
        places: Which of the examples; all by default.
    """
    found: list[Row] = []
    ends = np.concatenate([[0], np.cumsum([len(example.gold) for example in examples])])
    for number in range(len(examples)) if places is None else places.tolist():
        example = examples[number]
        (words,), table, _ = read_queries(encoder.reader, [example.query])
        one = match_query(words, table)
        used, query = np.unique(one["query"], return_inverse=True)
        table = WordTable(table.vectors[used], table.facts[used], table.stem[used])
        gold = np.array(example.gold)
        objective, items = encoder.encode([example.query])
        gains = objective.gains(items, objective.empty(items))[0].copy()
        gains[gold] = -1
        logits = np.full(len(gold), np.nan, np.float32)
        if teacher is not None and ends[number + 1] <= len(teacher):
            logits = teacher[ends[number] : ends[number + 1]].astype(np.float32)
        hard = np.argsort(-gains)[:_HARD]
        found.append(Row({**one, "query": query}, table, gold, hard[~gold[hard]], logits))
    return found


def some_passages(row: Row, kept: NDArray[np.int64]) -> Row:
    """The row with these of its passages, which are in order."""
    one = row.matches
    parts = {name: one[name][kept] for name, axes in AXES.items() if axes[0] == "items"}
    parts["follows"] = parts["follows"] & (np.diff(kept, prepend=-2) == 1)
    hard = np.flatnonzero(np.isin(kept, row.hard))
    return replace(
        row, matches={**one, **parts}, gold=row.gold[kept], hard=hard, teacher=row.teacher[kept]
    )


def shortened(row: Row, random: np.random.Generator) -> Row:
    """At most 64 passages: gold ones, hard ones, and some others."""
    if len(row.gold) <= _MOST_PASSAGES:
        return row
    gold = random.permutation(np.flatnonzero(row.gold))[:_MOST_GOLD]
    chosen = np.concatenate([gold, row.hard])
    others = np.setdiff1d(np.flatnonzero(~row.gold), chosen)
    some = random.permutation(others)[: _MOST_PASSAGES - len(chosen)]
    return some_passages(row, np.sort(np.concatenate([chosen, some])))


def directions_of(kinds: Mapping[str, Kind], count: int) -> NDArray[np.float32]:
    """[dimension, count], the directions in which passages differ most."""
    some = [row.matches["passages"] for kind in kinds.values() for row in kind.train[:100]]
    stacked = np.concatenate(some).astype(np.float64)
    return np.linalg.eigh(stacked.T @ stacked)[1][:, -count:].astype(np.float32)


def save(path: Path, kinds: Mapping[str, Kind], directions: NDArray[np.float32]) -> None:
    """Write the rows of all kinds into one file."""
    rows = [row for kind in kinds.values() for row in (*kind.train, *kind.dev)]
    arrays: dict[str, NDArray[Any]] = {
        "directions": directions,
        "names": np.array(list(kinds)),
        "counts": np.array([[len(kind.train), len(kind.dev)] for kind in kinds.values()]),
        "tokens": np.array([len(row.matches["query"]) for row in rows], np.int32),
        "items": np.array([len(row.gold) for row in rows], np.int32),
        "words": np.array([len(row.words.facts) for row in rows], np.int32),
        "hards": np.array([len(row.hard) for row in rows], np.int32),
        "facts": np.concatenate([row.words.facts for row in rows]).astype(np.float16),
        "vectors": _steps(np.concatenate([row.words.vectors for row in rows]) @ directions),
        "gold": np.concatenate([row.gold for row in rows]),
        "hard": np.concatenate([row.hard for row in rows]).astype(np.uint16),
        "teacher": np.concatenate([row.teacher for row in rows]).astype(np.float16),
    }
    for name in AXES:
        parts = [row.matches[name] for row in rows]
        if name in _VECTORS:
            parts = [_steps(part @ directions) for part in parts]
        if name in _SHARES:
            parts = [np.round(np.clip(part, 0, 1) * 255) for part in parts]
        kind: Any = np.float16
        if name in _VECTORS:
            kind = np.int8
        elif name in _SHARES:
            kind = np.uint8
        elif name in _FLAGS:
            kind = np.bool_
        elif name == "query":
            kind = np.uint16
        arrays[f"match/{name}"] = np.concatenate([part.reshape(-1) for part in parts]).astype(kind)
    stream = BytesIO()
    kept: dict[str, Any] = arrays
    np.savez(stream, **kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(stream.getvalue(), preset=2))


def load(path: Path) -> tuple[dict[str, Kind], NDArray[np.float32]]:
    """What `save` wrote: the rows of all kinds, and the directions of their vectors."""
    found = dict(np.load(BytesIO(lzma.decompress(path.read_bytes()))))
    dimension = found["directions"].shape[1]
    tokens, items = found["tokens"].astype(np.int64), found["items"].astype(np.int64)
    sizes: dict[tuple[str, ...], NDArray[np.int64]] = {
        ("tokens",): tokens,
        ("items",): items,
        ("items", "tokens"): items * tokens,
        ("dimension",): np.full_like(tokens, dimension),
        ("items", "dimension"): items * dimension,
    }
    parts = {name: _parts(found[f"match/{name}"], sizes[axes]) for name, axes in AXES.items()}
    words, hards = found["words"].astype(np.int64), found["hards"].astype(np.int64)
    facts, vectors = _parts(found["facts"], words), _parts(found["vectors"], words)
    by_item = {name: _parts(found[name], items) for name in ("gold", "teacher")}
    hard = _parts(found["hard"], hards)
    rows: list[Row] = []
    for row in range(len(tokens)):
        lengths = {"tokens": tokens[row], "items": items[row], "dimension": dimension}
        matches: QueryMatches = {}
        for name, axes in AXES.items():
            array = parts[name][row].reshape([lengths[axis] for axis in axes])
            scale = 127 if name in _VECTORS else 255 if name in _SHARES else 1
            matches[name] = array.astype(np.float32) / scale
            if name in ("query", "follows"):
                matches[name] = array.astype(np.int64 if name == "query" else np.bool_)
        known, own = facts[row].astype(np.float32), vectors[row].astype(np.float32)
        table = WordTable(own * np.float32(1 / 127), known, np.arange(len(known)))
        gold, teacher = (by_item[name][row] for name in ("gold", "teacher"))
        rows.append(
            Row(matches, table, gold, hard[row].astype(np.int64), teacher.astype(np.float32))
        )
    kinds: dict[str, Kind] = {}
    place = 0
    for name, (train, dev) in zip(found["names"].tolist(), found["counts"].tolist(), strict=True):
        middle, end = place + train, place + train + dev
        kinds[name] = Kind(rows[place:middle], rows[middle:end])
        place = end
    return kinds, found["directions"]


def _steps(vectors: NDArray[Any]) -> NDArray[np.int8]:
    return np.round(np.clip(vectors, -1, 1) * 127).astype(np.int8)


def _parts(flat: NDArray[Any], sizes: NDArray[np.int64]) -> Sequence[NDArray[Any]]:
    ends = np.cumsum(sizes)
    return np.split(flat, ends[:-1])
