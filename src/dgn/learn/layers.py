"""The greedy layer, and K of them in a row: forward greedy as a differentiable network.

One layer computes the gain of every item given the soft set so far, chooses one item softly, and
adds it:

    p = softmax(gain / τ) over the items that are not yet in the set,    s ← s ∪ p

An item that is in the set to the degree s competes with weight 1 − s: for s = 0 and s = 1 this is
greedy itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dgn.core import native
from dgn.core.arrays import Float, namespace
from dgn.core.functions import Items, SetFunction, State, as_items
from dgn.core.numerics import lowest_log
from dgn.errors import InvalidInput
from dgn.learn import fused
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
        probs: [batch, layers, items], p, where log_probs is not its logarithm.
        labels: [batch, layers, items], True for the gold item that each layer was led to, if the
            relaxation leads layers along the gold.
    """

    log_probs: Tensor
    log_others: Tensor
    membership: Tensor
    value: Tensor
    probs: Tensor | None = None
    labels: Tensor | None = None

    @property
    def chosen(self) -> Float[Tensor, "batch items"]:
        """How often each item is chosen, Σ_j p_j: it sums to the number of layers.

        An item that several layers share may have more than 1.
        """
        probs = self.log_probs.exp() if self.probs is None else self.probs
        return probs.sum(dim=1)


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
        gold: Tensor | None = None,
    ) -> tuple[Choice, SoftState]:
        lowest = lowest_log(soft.log_outside)
        gains = objective.gains(items, soft.state)
        log_prior = torch.where(items.mask, soft.log_outside, lowest)
        if gold is None:
            choice = self.relaxation.choose(gains, log_prior, temperature)
        else:
            choice = self.relaxation.choose_gold(gains, log_prior, temperature, gold)
        state = objective.add(items, soft.state, choice.member)
        log_outside = (soft.log_outside + choice.log_left).clamp(min=lowest)
        return choice, SoftState(state, log_outside)


class UnfoldedGreedy(nn.Module):
    """K greedy layers: a trainable, diverse "choose k" for any set function.

    Args:
        layers: K, the number of items that are chosen.
        temperature: τ; a schedule may change it between epochs.
        relaxation: How a layer chooses; by default the softmax of the paper.
        fused: Whether all layers may run as one operation, which is faster and needs less memory
            (see `dgn.learn.fused`). Where it does not apply, the layers run one by one.

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
        *,
        fused: bool = True,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise InvalidInput("layers", found=str(layers), allowed="at least 1")
        self.layers = layers
        self.temperature = temperature
        self.layer = GreedyLayer(relaxation)
        self.fused = fused

    def forward(
        self,
        objective: SetFunction,
        items: Items | Tensor,
        context: State | None = None,
        prior: Tensor | None = None,
        gold: Tensor | None = None,
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
            gold: [batch, items], True for gold items, for relaxations that lead the layers along
                them; the others do not use it.

        Raises:
            InvalidInput: A feature is negative. On a GPU this is an asynchronous assertion, so
                that a training step does not wait for the device.
        """
        items = as_items(items)
        # Sums and logarithms keep the precision of the features, also under mixed precision.
        with torch.autocast(items.features.device.type, enabled=False):
            return self._unfold(objective, items, context, prior, gold)

    def _unfold(
        self,
        objective: SetFunction,
        items: Items,
        context: State | None,
        prior: Tensor | None,
        gold: Tensor | None,
    ) -> Unfolded:
        temperature = self.temperature
        if not 0 < temperature < math.inf:
            raise InvalidInput("temperature", found=f"{temperature}", allowed="greater than 0")
        state = objective.empty(items, context)
        log_prior = torch.zeros_like(state.outside)
        if prior is not None:
            log_prior = prior.to(log_prior.dtype).log().clamp(min=lowest_log(log_prior))
        relaxation, coverage = self.layer.relaxation, native.compiled(objective)
        is_plain = not self.fused or type(self.layer) is not GreedyLayer
        if is_plain or not fused.can_fuse(coverage, items.features, relaxation):
            return self._layer_by_layer(objective, items, SoftState(state, log_prior), gold)
        assert coverage is not None  # noqa: S101
        log_probs, log_others, outside, level = fused.unfold(
            coverage,
            items.features,
            items.mask,
            log_prior,
            state.level,
            relaxation,
            temperature,
            self.layers,
        )
        after = State(level, outside, maker=state.maker)
        return _unfolded(objective, items, log_probs, log_others, state, after)

    def _layer_by_layer(
        self, objective: SetFunction, items: Items, soft: SoftState, gold: Tensor | None
    ) -> Unfolded:
        _check_not_negative(items.features)
        start, choices = soft.state, list[Choice]()
        for _ in range(self.layers):
            choice, soft = self.layer(objective, items, soft, self.temperature, gold)
            if gold is not None and choice.label is not None:
                gold = gold & ~choice.label
            choices.append(choice)
        log_probs, log_others = (
            torch.stack([getattr(choice, name) for choice in choices], dim=1)
            for name in ("log_probs", "log_others")
        )
        probs, labels = (
            [one for choice in choices if (one := getattr(choice, name)) is not None]
            for name in ("probs", "label")
        )
        return replace(
            _unfolded(objective, items, log_probs, log_others, start, soft.state),
            probs=torch.stack(probs, dim=1) if probs else None,
            labels=torch.stack(labels, dim=1) if labels else None,
        )


def _unfolded(
    objective: SetFunction,
    items: Items,
    log_probs: Tensor,
    log_others: Tensor,
    start: State,
    end: State,
) -> Unfolded:
    return Unfolded(
        log_probs=log_probs,
        log_others=log_others,
        membership=torch.where(items.mask, 1 - end.outside, 0.0),
        value=objective.value(end) - objective.value(start),
    )


def _check_not_negative(features: Tensor) -> None:
    if torch.compiler.is_compiling():
        return
    if features.is_cuda:
        torch._assert_async((features >= 0).all() | features.isnan().any())  # pyright: ignore
        return
    try:
        negative = bool((features < 0).any())
    except RuntimeError:  # inside torch.func.vmap, values cannot be read
        return
    if negative:
        raise fused.negative_features(features)
