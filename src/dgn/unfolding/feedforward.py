"""The paper's encoder: linear layers, each followed by ReLU, from what is known of an item to h."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from dgn.arrays import Float
from dgn.errors import InvalidInput


class FeedForwardEncoder(nn.Module):
    """H = relu(W₂ · relu(W₁ · X + b₁) + b₂), for any number of layers.

    widths: the inputs, then the width of every layer; (300, 300, 254) in the paper. ReLU makes
    the features non-negative, as a coverage function needs them.
    dropout: the share of hidden units that are left out of a training step.
    """

    def __init__(self, widths: tuple[int, ...], dropout: float = 0.0) -> None:
        super().__init__()
        if len(widths) < 2 or min(widths) < 1:
            raise InvalidInput(
                "widths", found=str(widths), allowed="the inputs and at least one layer, all ≥ 1"
            )
        if not 0 <= dropout < 1:
            raise InvalidInput("dropout", found=f"{dropout}", allowed="0 ≤ dropout < 1")
        self.widths = widths
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))

    @property
    def features(self) -> int:
        """The width of the last layer."""
        return self.widths[-1]

    def forward(self, x: Float[Tensor, "batch items inputs"]) -> Float[Tensor, "batch items _"]:
        *hidden, last = self.layers
        for layer in hidden:
            x = self.dropout(torch.relu(layer(x)))
        return torch.relu(last(x))

    @torch.no_grad()
    def start_with_scale(self, scale: float) -> None:
        """Multiply the first layer's weights: X of unit vectors is small, and its start too."""
        self.layers[0].get_parameter("weight").mul_(scale)

    @torch.no_grad()
    def start_as_identity(self, scale: float = 1.0) -> None:
        """Make the encoder exactly relu(scale · X): training then starts at untrained greedy.

        Hidden layers at least as wide as the inputs carry X through; their further units stay
        random, unused at first and free to be learned. A last layer narrower than the inputs keeps
        the first of them.
        """
        inputs = self.widths[0]
        if min(self.widths[1:-1], default=inputs) < inputs or self.features > inputs:
            raise InvalidInput(
                "widths",
                found=str(self.widths),
                allowed=f"hidden layers of at least {inputs} and at most {inputs} features, "
                "for a start as the identity",
            )
        for depth, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)  # noqa: S101
            rows = min(inputs, layer.out_features)
            layer.weight[:rows] = 0
            layer.weight[:rows, :rows] = torch.eye(rows) * (scale if depth == 0 else 1.0)
            layer.bias[:rows] = 0
