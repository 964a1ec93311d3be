"""The greedy layer, and K of them in a row: forward greedy as a differentiable network.

One layer scores every item by its gain given the soft set so far, chooses one softly, and adds it:

    p = softmax(gain / τ) over the items that are not yet inside,    s ← s ∪ p

An item that is inside to the degree s competes with weight 1 − s: at 0 and 1 this is greedy itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dgn.arrays import Float
from dgn.errors import InvalidInput
from dgn.numerics import lowest_log
from dgn.objectives import Items, SetFunction, State
from dgn.unfolding.relaxations import Choice, Relaxation, Softmax
from dgn.unfolding.soft_gains import soft_gains

PAPER_LAYERS = 7
PAPER_TEMPERATURE = 4.0


@dataclass(frozen=True, eq=False)
class SoftState:
    """The set so far, and log(1 − membership) of each item, [batch, items], kept as a logarithm."""

    state: State
    log_outside: Float[Tensor, "batch items"]


@dataclass(frozen=True, eq=False)
class Unfolded:
    """What the layers chose.

    log_probs, log_others: [batch, layers, items], log p and log(1 − p) of every layer's choice.
    membership: [batch, items] in [0, 1], the soft set in the end: a relaxed k-hot vector.
    value: [batch], f of that set.
    """

    log_probs: Tensor
    log_others: Tensor
    membership: Tensor
    value: Tensor


class GreedyLayer(nn.Module):
    """One step of greedy for any set function. It has no weights of its own."""

    def __init__(self, relaxation: Relaxation | None = None) -> None:
        super().__init__()
        self.relaxation = relaxation or Softmax()

    def forward(
        self, objective: SetFunction, items: Items, soft: SoftState, temperature: float
    ) -> tuple[Choice, SoftState]:
        lowest = lowest_log(soft.log_outside)
        gains = soft_gains(objective, items, soft.state)
        log_prior = torch.where(items.mask, soft.log_outside, lowest)
        choice = self.relaxation.choose(gains, log_prior, temperature)
        state = objective.add(items, soft.state, choice.member)
        log_outside = (soft.log_outside + choice.log_left).clamp(min=lowest)
        return choice, SoftState(state, log_outside)


class UnfoldedGreedy(nn.Module):
    """K greedy layers: a trainable, diverse "choose k" for any set function.

    layers: K, how many items are chosen.
    temperature: τ. A schedule may change it between epochs.
    relaxation: how a layer chooses; the paper's softmax by default.

        >>> import torch
        >>> from dgn.objectives import FeatureCoverage, Items
        >>> choose = UnfoldedGreedy(layers=2, temperature=0.01)
        >>> items = Items(torch.tensor([[2.0, 0.0], [1.5, 0.1], [0.0, 1.0]]))
        >>> choose(FeatureCoverage(), items).membership.round(decimals=3)
        tensor([[1., 0., 1.]])
    """

    def __init__(
        self,
        layers: int = PAPER_LAYERS,
        temperature: float = PAPER_TEMPERATURE,
        relaxation: Relaxation | None = None,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise InvalidInput("layers", found=str(layers), allowed="at least 1")
        self.layers = layers
        self.temperature = temperature
        self.layer = GreedyLayer(relaxation)

    def forward(
        self,
        objective: SetFunction,
        items: Items,
        context: State | None = None,
        prior: Tensor | None = None,
    ) -> Unfolded:
        """Unfold the search.

        prior: [batch, items], what each item's chance is multiplied with at every layer; 1 if
        left out. In a loss, an item of less than 1 counts less against the gold.
        """
        # Sums and logarithms keep the precision of the features, also under mixed precision.
        with torch.autocast(items.features.device.type, enabled=False):
            return self._unfold(objective, items, context, prior)

    def _unfold(
        self, objective: SetFunction, items: Items, context: State | None, prior: Tensor | None
    ) -> Unfolded:
        temperature = checked_temperature(self.temperature)
        state = objective.empty(items, context)
        given = objective.value(state)
        log_prior = torch.zeros_like(state.outside)
        if prior is not None:
            log_prior = prior.to(log_prior.dtype).log().clamp(min=lowest_log(log_prior))
        soft = SoftState(state, log_prior)
        choices: list[Choice] = []
        for _ in range(self.layers):
            choice, soft = self.layer(objective, items, soft, temperature)
            choices.append(choice)
        return Unfolded(
            log_probs=torch.stack([choice.log_probs for choice in choices], dim=1),
            log_others=torch.stack([choice.log_others for choice in choices], dim=1),
            membership=torch.where(items.mask, 1 - soft.state.outside, 0.0),
            value=objective.value(soft.state) - given,
        )


def checked_temperature(temperature: float) -> float:
    """The temperature, once it is known to be a finite number above 0."""
    if not 0 < temperature < math.inf:
        raise InvalidInput("temperature", found=f"{temperature}", allowed="a number above 0")
    return temperature
