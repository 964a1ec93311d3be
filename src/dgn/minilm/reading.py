"""What MiniLM reads: texts by themselves, and a query together with a passage.

A text that is too long for MiniLM is read in windows that overlap; nothing of it is left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.native.transformer import Transformer
from dgn.minilm.package import END, HEADS, START, TextTokens
from dgn.text.vectors import unit_rows
from dgn.text.words import word_spans

_TEXT_WINDOW, _TEXT_OVERLAP = 254, 64
PASSAGE_WINDOW, _PASSAGE_OVERLAP = 192, 64
_LONGEST_QUERY, _LONGEST_TITLE = 48, 16
_TITLE_END = 1012
"""A full stop, as MiniLM's tokenizer writes it."""

_LAYERS, _WIDTH, _WIDE = 6, 384, 1536
_LINEAR_MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
MOST_AROUND = 120
"""With a query, a title and a passage, this many tokens on each side fit into MiniLM's window."""


@final
class TextReader:
    """Texts by themselves: a vector for every word, and one for the whole.

    Args:
        base: MiniLM's weights.
    """

    def __init__(self, base: Mapping[str, NDArray[np.float32]]) -> None:
        self._transformer = Transformer(base, HEADS)

    def __call__(
        self, texts: Sequence[str], tokens: Sequence[TextTokens]
    ) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
        """The vectors of some texts.

        Args:
            texts: Normalized texts.
            tokens: The tokens of each of them.

        Returns:
            For each text the vectors of its words, [words, width], of length 1; and the vectors of
            the texts as wholes, [texts, width], of length 1, or 0 for a text without a word.
        """
        parts = [windows(len(one.ids), _TEXT_WINDOW, _TEXT_OVERLAP) for one in tokens]
        read = [
            [START, *one.ids[first:last], END]
            for one, some in zip(tokens, parts, strict=True)
            for first, last in some
        ]
        vectors = self._transformer(read)
        # One search for all texts: each text's characters begin where those of the last one end.
        room = np.array([0, *itertools.accumulate(len(text) + 1 for text in texts)], np.int64)
        spans = [word_spans(text) for text in texts]
        counts = np.array([len(own) for own in spans], np.int64)
        edges = np.array([*itertools.chain.from_iterable(spans)], np.int64).reshape(-1, 2)
        edges += np.repeat(room[:-1], counts)[:, None]
        begins = np.array([*itertools.chain.from_iterable(one.begins for one in tokens)], np.int64)
        begins += np.repeat(room[:-1], [len(one.ids) for one in tokens])
        rows = np.fromiter(_rows_of(tokens, parts), np.int64, len(begins))
        word = np.searchsorted(edges[:, 1], begins, side="right")
        inside = word < len(edges)
        inside[inside] &= begins[inside] >= edges[word[inside], 0]
        words = np.zeros((len(edges), vectors.shape[1]), np.float32)
        word, rows = word[inside], rows[inside]
        if len(word):
            first = np.flatnonzero(np.diff(word, prepend=-1))
            words[word[first]] = np.add.reduceat(vectors[rows], first, axis=0)
        sizes = [sum(last - first + 2 for first, last in some) for some in parts]
        starts = np.cumsum(sizes, dtype=np.int64) - np.array(sizes, np.int64)
        wholes = np.add.reduceat(vectors, starts, axis=0) * (counts > 0)[:, None]
        by_text = np.split(unit_rows(words).astype(np.float32), np.cumsum(counts)[:-1])
        return by_text, unit_rows(wholes).astype(np.float32)


@final
class PairReader:
    """A query together with a passage, and with what stands around the passage.

    Args:
        base: MiniLM's weights.
        arrays: What was trained; see `MiniLMEncoder`.
        around: How many tokens before and after a passage are read with it.
    """

    def __init__(
        self,
        base: Mapping[str, NDArray[np.float32]],
        arrays: Mapping[str, NDArray[Any]],
        around: tuple[int, int],
    ) -> None:
        named = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
        changed = dict(base)
        for name in map_names():
            change = named[f"{name}.up"] @ named[f"{name}.down"]
            changed[f"{name}.weight"] = (base[f"{name}.weight"] + change).astype(np.float32)
        self._transformer = Transformer(changed, HEADS)
        self._layers = {name: named[name] for name in named if name.startswith(("pool", "score"))}
        self._around = around

    def __call__(self, pairs: Sequence[Sequence[Sequence[int]]]) -> NDArray[np.float32]:
        """[pairs], the logit of each: that of its best window.

        Args:
            pairs: Tokens of the query, of the title, of the passage before, of the passage, and of
                the passage after; none for what is not there.
        """
        return self.with_vectors(pairs)[0]

    def with_vectors(
        self, pairs: Sequence[Sequence[Sequence[int]]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """[pairs] and [pairs, width], the logit of each pair, and what its last layers see."""
        if not pairs:
            return np.zeros(0, np.float32), np.zeros((0, _WIDTH), np.float32)
        parts = [self._windows_of(*pair) for pair in pairs]
        read = [*itertools.chain.from_iterable(parts)]
        vectors = self._transformer(
            [tokens for tokens, _ in read], [kinds for _, kinds in read], only_first=True
        )
        layers = self._layers
        hidden = np.tanh(vectors @ layers["pool.weight"].T + layers["pool.bias"])
        logits = (hidden @ layers["score.weight"][0] + layers["score.bias"]).astype(np.float32)
        ends = np.cumsum([len(some) for some in parts])
        starts = [0, *ends[:-1].tolist()]
        best = [s + int(logits[s:e].argmax()) for s, e in zip(starts, ends.tolist(), strict=True)]
        return logits[best], vectors[best]

    def _windows_of(
        self,
        query: Sequence[int],
        title: Sequence[int],
        earlier: Sequence[int],
        passage: Sequence[int],
        later: Sequence[int],
    ) -> list[tuple[list[int], list[int]]]:
        """The tokens and the kinds of what is read, window by window."""
        before, after = self._around
        named = [*title[:_LONGEST_TITLE], _TITLE_END] if title else []
        asked = [START, *query[:_LONGEST_QUERY], END]
        found: list[tuple[list[int], list[int]]] = []
        for first, last in windows(len(passage), PASSAGE_WINDOW, _PASSAGE_OVERLAP):
            # Inside a passage, its own tokens stand around a window.
            left = passage[:first] if first else earlier
            right = passage[last:] if last < len(passage) else later
            tokens = [*asked, *named, *passage[first:last], END]
            kinds = [0] * len(asked) + [1] * (len(tokens) - len(asked))
            for some in (left[max(0, len(left) - before) :], right[:after]):
                tokens += [*some, END] if some else []
            found.append((tokens, kinds + [0] * (len(tokens) - len(kinds))))
        return found


def windows(count: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Where windows over so many tokens begin and end; the last one ends with the text.

    Examples:
        >>> windows(25, 10, 4)
        [(0, 10), (6, 16), (12, 22), (15, 25)]
    """
    if count <= size:
        return [(0, count)]
    starts = [*range(0, count - size, size - overlap), count - size]
    return [(start, start + size) for start in starts]


def _rows_of(
    tokens: Sequence[TextTokens], parts: Sequence[Sequence[tuple[int, int]]]
) -> Iterator[int]:
    """The row of every token among those of all windows; in an overlap, each window has a half."""
    row = 0
    for one, some in zip(tokens, parts, strict=True):
        cuts = [(after[0] + before[1]) // 2 for before, after in itertools.pairwise(some)]
        edges = [0, *cuts, len(one.ids)]
        for (first, last), own in zip(some, itertools.pairwise(edges), strict=True):
            yield from range(row + 1 + own[0] - first, row + 1 + own[1] - first)
            row += last - first + 2


def map_names() -> Iterator[str]:
    """The names of all linear maps of the transformer."""
    for layer in range(_LAYERS):
        for name in _LINEAR_MAPS:
            yield f"encoder.layer.{layer}.{name}"


def reader_shapes(rank: int) -> dict[str, tuple[int, ...]]:
    """The arrays of a reader whose linear maps were changed by this rank; none for rank 0."""
    if not rank:
        return {}
    shapes: dict[str, tuple[int, ...]] = {
        "pool.weight": (_WIDTH, _WIDTH),
        "pool.bias": (_WIDTH,),
        "score.weight": (1, _WIDTH),
        "score.bias": (1,),
    }
    for name in map_names():
        is_wide = "attention" not in name
        inputs = _WIDE if is_wide and name.endswith(".output.dense") else _WIDTH
        outputs = _WIDE if name.endswith("intermediate.dense") else _WIDTH
        shapes |= {f"{name}.down": (rank, inputs), f"{name}.up": (outputs, rank)}
    return shapes
