"""The facets as a torch module: its parameters are the weights of the formula."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from dgn.encoders.facets.formula import encode
from dgn.encoders.facets.matching import Matches
from dgn.encoders.facets.weights import FacetSizes, FacetWeights, start_weights
from dgn.objectives import Items, SetFunction

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
        return encode(self.weights, x, self.dropout)

    @property
    def weights(self) -> FacetWeights:
        """The parameters, as the formula takes them."""
        return FacetWeights(**{name: self.get_parameter(name) for name in self._names})
