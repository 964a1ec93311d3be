"""The encoders as torch modules: the facets, and the pointwise baselines of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dgn.core.arrays import Float
from dgn.core.functions import Items, SetFunction
from dgn.learn.networks import FeedForward
from dgn.text.facets.formula import (
    Facets,
    FacetSizes,
    FacetWeights,
    compute_facets,
    start_weights,
)
from dgn.text.facets.matching import Matches

_NETWORK = ("projection", "hidden", "hidden_bias", "output", "output_bias")


@final
class FacetModule(nn.Module):
    """Learns FacetWeights; its input is Matches of torch tensors.

    Args:
        sizes: How large the encoder is.
        dropout: The share of the network's units that are left out of a training step.
        seed: Determines the random part of the start.
        learns_words: Whether the weights of the words are trained, too. A few hundred examples
            teach the network something; the weights of the words they make worse elsewhere.
    """

    def __init__(
        self, sizes: FacetSizes, dropout: float = 0.0, seed: int = 0, *, learns_words: bool = True
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self._names = tuple(vars(start_weights(sizes, seed)))
        for name, weight in vars(start_weights(sizes, seed)).items():
            trained = learns_words or name in _NETWORK
            self.register_parameter(name, nn.Parameter(torch.from_numpy(weight.copy()), trained))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Matches, mask: Tensor | None = None) -> tuple[SetFunction, Items]:
        """The set function of each query, and its passages as items.

        Args:
            x: The matches of a batch.
            mask: Not used: matches have their own mask.
        """
        del mask
        return self.facets(x).function(x.mask)

    def facets(self, x: Matches) -> Facets:
        """The features of the passages, with the logits of their relevance."""
        return compute_facets(self.weights, x, self.dropout)

    def network_parameters(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """What is trained, in two parts: the network that judges relevance, and the function."""
        trained = [(name, one) for name, one in self.named_parameters() if one.requires_grad]
        network = [one for name, one in trained if name in _NETWORK]
        return network, [one for name, one in trained if name not in _NETWORK]

    @property
    def weights(self) -> FacetWeights:
        """The parameters, as the formula takes them."""
        return FacetWeights(**{name: self.get_parameter(name) for name in self._names})


@final
class ReaderModule(nn.Module):
    """Learns the last layers of MiniLM's reader and the weights of the facets.

    The transformer is not trained: `passages` of a batch are what the last layers see.

    Args:
        weights: The weights of the facets at the start.
        layers: The last layers at the start: pool.weight, pool.bias, score.weight and score.bias.
        unread: The logit of passages that are not read; it stays what it is.
        dropout: The share of units that are left out of a training step.
    """

    def __init__(
        self,
        weights: FacetWeights,
        layers: Mapping[str, NDArray[Any]],
        unread: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self._names, self._unread = tuple(vars(weights)), unread
        for name, weight in vars(weights).items():
            self.register_parameter(name, nn.Parameter(torch.tensor(weight)))
        outputs, inputs = layers["pool.weight"].shape
        self.pool, self.score = nn.Linear(inputs, outputs), nn.Linear(outputs, 1)
        for name, weight in layers.items():
            self.get_parameter(name).data = torch.tensor(weight, dtype=torch.float32)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Matches, mask: Tensor | None = None) -> tuple[SetFunction, Items]:
        """The set function of each query, and its passages as items; the mask is not used."""
        del mask
        return self.facets(x).function(x.mask)

    def facets(self, x: Matches) -> Facets:
        """The features of the passages, with the logits of their relevance."""
        hidden = self.dropout(torch.tanh(self.pool(x.passages)))
        is_read = x.relevance > self._unread + 1
        logits = torch.where(is_read, self.score(hidden)[..., 0], x.relevance)
        names = self._names
        weights = FacetWeights(**{name: self.get_parameter(name) for name in names})
        return compute_facets(weights, replace(x, relevance=logits))


@final
class PooledScorer(nn.Module):
    """A score for each passage by itself: the paper's layers and a linear score.

    Args:
        features: The layers, from X to features.
    """

    def __init__(self, features: FeedForward) -> None:
        super().__init__()
        self.features = features
        self.score = nn.Linear(features.features, 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Float[Tensor, "batch items"]:
        """[batch, items], before the sigmoid."""
        # A NaN in the padding would come back through the gradient.
        x = x if mask is None else torch.where(mask[..., None], x, 0.0)
        return self.score(self.features(x))[..., 0].to(x.dtype)

    @torch.no_grad()
    def start_as_identity(self, scale: float) -> None:
        """Start at top-k of the sum of relu(scale · X)."""
        self.features.start_as_identity(scale)
        self.score.weight.fill_(1.0)
        self.score.bias.fill_(0.0)
