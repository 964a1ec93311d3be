"""The greedy layer, and K of them in a row: forward greedy as a differentiable network.

One layer computes the gain of every item given the soft set so far, chooses one item softly, and
adds it:

    p = softmax(gain / τ) over the items that are not yet in the set,    s ← s ∪ p

An item that is in the set to the degree s competes with weight 1 − s: for s = 0 and s = 1 this is
greedy itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dgn.core.arrays import Float, namespace
from dgn.core.functions import Items, SetFunction, State, as_items
from dgn.core.numerics import lowest_log
from dgn.errors import InvalidInput
from dgn.learn.relaxations import Choice, Relaxation, Softmax

# From now on the namespace of tensors is a lookup, which torch.compile can trace.
namespace(torch.empty(0))
namespace(nn.Parameter(torch.empty(0)))

PAPER_LAYERS = 7
PAPER_TEMPERATURE = 4.0


@dataclass(frozen=True, eq=False)
class SoftState:
    """The set so far.

    Attributes:
        state: The state of the set function.
        log_outside: [batch, items], log(1 − membership) of each item.
    """

    state: State
    log_outside: Float[Tensor, "batch items"]


@dataclass(frozen=True, eq=False)
class Unfolded:
    """What the layers chose.

    Attributes:
        log_probs: [batch, layers, items], log p of the choice of every layer.
        log_others: [batch, layers, items], log(1 − p).
        membership: [batch, items] in [0, 1], how far each item is in the soft set at the end:
            1 − Π_j (1 − p_j). It sums to less than the number of layers where two layers share an
            item (about 6.3 for 7 layers at τ = 4); `chosen` sums to it exactly.
        value: [batch], f of the soft set.
    """

    log_probs: Tensor
    log_others: Tensor
    membership: Tensor
    value: Tensor

    @property
    def chosen(self) -> Float[Tensor, "batch items"]:
        """How often each item is chosen, Σ_j p_j: it sums to the number of layers.

        An item that several layers share may have more than 1.
        """
        return self.log_probs.exp().sum(dim=1)


class GreedyLayer(nn.Module):
    """One step of greedy for any set function; it has no weights of its own."""

    def __init__(self, relaxation: Relaxation | None = None) -> None:
        super().__init__()
        self.relaxation = relaxation or Softmax()

    def forward(
        self,
        objective: SetFunction,
        items: Items,
        soft: SoftState,
        temperature: float,
    ) -> tuple[Choice, SoftState]:
        lowest = lowest_log(soft.log_outside)
        gains = objective.gains(items, soft.state)
        log_prior = torch.where(items.mask, soft.log_outside, lowest)
        choice = self.relaxation.choose(gains, log_prior, temperature)
        state = objective.add(items, soft.state, choice.member)
        log_outside = (soft.log_outside + choice.log_left).clamp(min=lowest)
        return choice, SoftState(state, log_outside)


class UnfoldedGreedy(nn.Module):
    """K greedy layers: a trainable, diverse "choose k" for any set function.

    Args:
        layers: K, the number of items that are chosen.
        temperature: τ; a schedule may change it between epochs.
        relaxation: How a layer chooses; by default the softmax of the paper.

    Examples:
        >>> import torch
        >>> from dgn.core.functions import FeatureCoverage, Items
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
        items: Items | Tensor,
        context: State | None = None,
        prior: Tensor | None = None,
    ) -> Unfolded:
        """Unfold the search.

        Args:
            objective: The set function.
            items: The ground sets, as Items or as features, [batch, items, features] or
                [items, features]; the features must not be negative.
            context: What is already covered.
            prior: [batch, items], what the probability of each item is multiplied with in every
                layer; by default 1. In a loss, an item with less than 1 counts less against the
                gold.

        Raises:
            InvalidInput: A feature is negative or not finite. On a GPU this is an asynchronous
                assertion, so that a training step does not wait for the device. Compiled layers
                do not check.
        """
        items = as_items(items)
        if not 0 < self.temperature < math.inf:
            raise InvalidInput("temperature", found=f"{self.temperature}", allowed="greater than 0")
        _check_features(items.features)
        # Sums and logarithms keep the precision of the features, also under mixed precision.
        with torch.autocast(items.features.device.type, enabled=False):
            start = objective.empty(items, context)
            log_prior = torch.zeros_like(start.outside)
            if prior is not None:
                log_prior = prior.to(log_prior.dtype).log().clamp(min=lowest_log(log_prior))
            soft = SoftState(start, log_prior)
            choices: list[Choice] = []
            for _ in range(self.layers):
                choice, soft = self.layer(objective, items, soft, self.temperature)
                choices.append(choice)
            end = soft.state
            return Unfolded(
                log_probs=torch.stack([choice.log_probs for choice in choices], dim=1),
                log_others=torch.stack([choice.log_others for choice in choices], dim=1),
                membership=torch.where(items.mask, 1 - end.outside, 0.0),
                value=objective.value(end) - objective.value(start),
            )


def _check_features(features: Tensor) -> None:
    """Raise InvalidInput unless all features are finite and at least 0."""
    if torch.compiler.is_compiling():
        return
    is_good = ((features >= 0) & (features < math.inf)).all()
    if features.is_cuda:
        torch._assert_async(is_good)  # pyright: ignore
        return
    try:
        if bool(is_good):
            return
    except RuntimeError:  # inside torch.func.vmap, values cannot be read
        return
    if not bool(features.isfinite().all()):
        raise InvalidInput("features", found="a NaN or an infinity", allowed="finite numbers")
    raise InvalidInput(
        "features",
        found=f"{float(features.min()):g}",
        allowed="at least 0 everywhere; apply ReLU or softplus to them",
    )
