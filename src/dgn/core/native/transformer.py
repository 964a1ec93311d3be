"""A transformer (BERT) with 8-bit weights: by the compiled kernel, or by NumPy without one.

Every row that meets a linear map is rounded to 8 bits by itself, so that the vectors of a text do
not depend on the texts that are read with it. Texts are not padded.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.native import structures
from dgn.core.native.library import address_of, highest_isa, is_available, library
from dgn.parallel import available_cores, run_in_parts

_COLUMNS = 64
"""How many outputs of a linear map the kernel computes together."""

_TOKENS_AT_ONCE = 128
_LARGEST_WEIGHT, _LARGEST_INPUT = 127, 255


@final
@dataclass(frozen=True, eq=False)
class Linear:
    """A linear map, x ↦ W x + b, with weights of 8 bits.

    Attributes:
        weights: [outputs, inputs], int8.
        scales: [outputs], what a weight of 1 is worth.
        bias: [outputs].
    """

    weights: NDArray[np.int8]
    scales: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def of(cls, weights: NDArray[np.float32], bias: NDArray[np.float32]) -> Linear:
        """Round weights; each output has its own scale."""
        scales = np.abs(weights).max(axis=1) / _LARGEST_WEIGHT
        scales[scales == 0] = 1
        rounded = np.rint(weights / scales[:, None]).astype(np.int8)
        return cls(rounded, scales.astype(np.float32), bias.astype(np.float32))

    def __call__(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """[rows, outputs], the definition of what the kernel computes."""
        low = x.min(axis=1, keepdims=True)
        span = x.max(axis=1, keepdims=True) - low
        inverse = np.divide(_LARGEST_INPUT, span, out=np.zeros_like(span), where=span > 0)
        rounded = np.floor((x - low) * inverse + np.float32(0.5))
        weights = self.weights.astype(np.float32).T
        products = (rounded @ weights) * (span / _LARGEST_INPUT) + weights.sum(axis=0) * low
        return products * self.scales + self.bias


@final
class Transformer:
    """Texts to vectors.

    Args:
        weights: The weights of a BERT, by their names in its files.
        heads: The number of heads of its attention.
        epsilon: What its normalization adds to a variance.
    """

    def __init__(
        self, weights: Mapping[str, NDArray[np.float32]], heads: int, epsilon: float = 1e-12
    ) -> None:
        names = ("word", "position", "token_type")
        tables = [weights[f"embeddings.{name}_embeddings.weight"] for name in names]
        self._tables = [np.ascontiguousarray(table, np.float32) for table in tables]
        self._norm = _norm_of(weights, "embeddings")
        self.width, self._heads, self._epsilon = tables[0].shape[1], heads, epsilon
        self._layers = [
            _Layer.of(weights, f"encoder.layer.{number}")
            for number in itertools.takewhile(
                lambda n: f"encoder.layer.{n}.output.dense.weight" in weights, itertools.count()
            )
        ]
        self._compiled: tuple[structures.Transformer, list[Any]] | None = None

    @property
    def longest(self) -> int:
        """How many tokens a text can have."""
        return len(self._tables[1])

    def __getstate__(self) -> dict[str, Any]:
        """Addresses mean nothing in another process."""
        return {**self.__dict__, "_compiled": None}

    def __call__(
        self,
        texts: Sequence[Sequence[int]],
        kinds: Sequence[Sequence[int]] | None = None,
        *,
        only_first: bool = False,
    ) -> NDArray[np.float32]:
        """The vectors of the tokens of some texts.

        Args:
            texts: The tokens of each text, at least one.
            kinds: 0 or 1 for each token; by default 0.
            only_first: Whether only the vector of the first token of each text is wanted.

        Returns:
            [all tokens, width] in order, or [texts, width] if only the first is wanted.
        """
        start = np.array([0, *itertools.accumulate(map(len, texts))], np.int64)
        flat = itertools.chain.from_iterable
        tokens = np.fromiter(flat(texts), np.int64, int(start[-1]))
        kind = np.zeros(len(tokens), np.uint8)
        if kinds is not None:
            kind[:] = np.fromiter(flat(kinds), np.uint8, len(tokens))
        vectors = np.empty((len(texts) if only_first else len(tokens), self.width), np.float32)
        read, threads = self._read, 1
        if is_available():
            # Held here, because another thread may lay the weights out at the same time.
            compiled = self._compiled = self._compiled or self._laid_out()
            read, threads = partial(_read_compiled, compiled[0]), available_cores()
        edges = _portions(start, threads)

        def some(first: int, last: int) -> None:
            for one in range(first, last):
                begin, end = edges[one], edges[one + 1]
                own = start[begin : end + 1]
                place = slice(begin, end) if only_first else slice(own[0], own[-1])
                read(tokens, kind, own, vectors[place], only_first)

        run_in_parts(some, len(edges) - 1, threads)
        return vectors

    def _read(
        self,
        tokens: NDArray[np.int64],
        kinds: NDArray[np.uint8],
        start: NDArray[np.int64],
        to: NDArray[np.float32],
        only_first: bool,
    ) -> None:
        """Some texts by NumPy: the definition."""
        inside = slice(start[0], start[-1])
        first: NDArray[np.int64] = np.repeat(start[:-1], np.diff(start))
        places = np.arange(start[0], start[-1], dtype=np.int64) - first
        words, positions, by_kind = self._tables
        x = words[tokens[inside]] + positions[places] + by_kind[kinds[inside]]
        x = self._normed(x, self._norm)
        ends = (start - start[0])[1:-1]
        for layer in self._layers:
            states = np.split(layer.attention(x), ends)
            seen = np.concatenate([self._attend(own) for own in states])
            x = self._normed(x + layer.mixed(seen), layer.attention_norm)
            x = self._normed(x + layer.narrow(_gelu(layer.wide(x))), layer.output_norm)
        to[:] = x[(start - start[0])[:-1]] if only_first else x

    def _attend(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """What each token of one text sees of the others."""
        shape = len(states), 3, self._heads, self.width // self._heads
        query, key, value = states.reshape(shape).transpose(1, 2, 0, 3)
        weights = query @ key.transpose(0, 2, 1) / np.float32(math.sqrt(shape[3]))
        weights = np.exp(weights - weights.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        return (weights @ value).transpose(1, 0, 2).reshape(len(states), self.width)

    def _normed(self, x: NDArray[np.float32], norm: NDArray[np.float32]) -> NDArray[np.float32]:
        apart = x - x.mean(axis=1, keepdims=True)
        deviation = np.sqrt((apart * apart).mean(axis=1, keepdims=True) + self._epsilon)
        return apart / deviation * norm[0] + norm[1]

    def _laid_out(self) -> tuple[structures.Transformer, list[Any]]:
        """The weights as the kernel reads them, and the arrays that must live as long."""
        kept: list[Any] = [*self._tables, self._norm]
        layers = (structures.TransformerLayer * len(self._layers))()
        for place, layer in enumerate(self._layers):
            maps = (layer.attention, layer.mixed, layer.wide, layer.narrow)
            arrays = [_packed(one) for one in maps]
            norms = layer.attention_norm, layer.output_norm
            kept += [arrays, norms]
            laid = [
                structures.Linear(*map(address_of, own), *one.weights.shape[::-1])
                for one, own in zip(maps, arrays, strict=True)
            ]
            layers[place] = structures.TransformerLayer(*laid, *map(address_of, norms))
        kept.append(layers)
        model = structures.Transformer(
            *map(address_of, (*self._tables, self._norm)),
            ctypes.addressof(layers),
            len(layers),
            self.width,
            self._heads,
            self._epsilon,
        )
        return model, kept


@final
@dataclass(frozen=True, eq=False)
class _Layer:
    """One layer; `attention` computes the query, the key and the value of a token."""

    attention: Linear
    mixed: Linear
    wide: Linear
    narrow: Linear
    attention_norm: NDArray[np.float32]
    output_norm: NDArray[np.float32]

    @classmethod
    def of(cls, weights: Mapping[str, NDArray[np.float32]], name: str) -> _Layer:
        def linear(*parts: str) -> Linear:
            both = (
                np.concatenate([weights[f"{name}.{part}.{kind}"] for part in parts])
                for kind in ("weight", "bias")
            )
            return Linear.of(*both)

        return cls(
            linear(*(f"attention.self.{part}" for part in ("query", "key", "value"))),
            linear("attention.output.dense"),
            linear("intermediate.dense"),
            linear("output.dense"),
            _norm_of(weights, f"{name}.attention.output"),
            _norm_of(weights, f"{name}.output"),
        )


def _read_compiled(
    model: structures.Transformer,
    tokens: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    start: NDArray[np.int64],
    to: NDArray[np.float32],
    only_first: bool,
) -> None:
    """Some texts by the kernel."""
    texts = structures.Texts(
        *map(address_of, (tokens, kinds, start)), len(start) - 1, only_first, address_of(to)
    )
    both = ctypes.byref(model), ctypes.byref(texts)
    work = np.empty(library().dgn_transform_work(*both), np.float32)
    texts.work = address_of(work)
    library().dgn_transform(highest_isa(), *both)


def _norm_of(weights: Mapping[str, NDArray[np.float32]], name: str) -> NDArray[np.float32]:
    """[2, width], the scale and the shift of a normalization."""
    parts = [weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias")]
    return np.stack(parts).astype(np.float32)


def _packed(linear: Linear) -> tuple[NDArray[Any], ...]:
    """The arrays of a linear map in the order of dgn_linear."""
    outputs, inputs = linear.weights.shape
    by_four = linear.weights.reshape(outputs // _COLUMNS, _COLUMNS, inputs // 4, 4)
    packed = np.ascontiguousarray(by_four.transpose(0, 2, 1, 3))
    sums = linear.weights.sum(axis=1, dtype=np.int64).astype(np.float32)
    return packed, linear.scales, sums, linear.bias


def _portions(start: NDArray[np.int64], threads: int) -> list[int]:
    """Where each portion of the texts begins, and the end: so many tokens, or a single text."""
    size = min(_TOKENS_AT_ONCE, math.ceil(int(start[-1]) / (2 * threads)))
    edges = [0]
    for text in range(1, len(start) - 1):
        if start[text + 1] - start[edges[-1]] > size:
            edges.append(text)
    return [*edges, len(start) - 1] if len(start) > 1 else edges


def _gelu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """x Φ(x), with the error function of Abramowitz and Stegun, 7.1.26 (error below 1.5e-7)."""
    z = np.abs(x) * np.float32(math.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    terms = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    series = np.zeros_like(t)
    for term in terms:
        series = series * t + np.float32(term)
    tail = series * t * np.exp(-z * z) / 2
    return x * np.where(x > 0, 1 - tail, tail)
