"""What training minimizes: the paper's layer-wise cross-entropy, and the pointwise loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal, final, get_args

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from dgn.core.arrays import Bool, Float
from dgn.core.numerics import lowest_log
from dgn.errors import InvalidInput
from dgn.learn.layers import Unfolded

Assignment = Literal["ordered", "matched", "set", "cumulative"]
Reduction = Literal["mean", "sum", "none"]

_POINTWISE_SHARE, _SMOOTHING = 0.3, 0.05
"""Of the relevance loss; experiments.mixture trains the shipped model with the same numbers."""


class Loss(ABC):
    """What the greedy layers learn from; derive from it for a loss of your own."""

    @abstractmethod
    def __call__(self, unfolded: Unfolded, gold: Tensor) -> Float[Tensor, "..."]:
        """The mean loss of the sets that have gold; 0 if none has.

        Args:
            unfolded: What the layers chose.
            gold: [batch, items], True for gold items; False for padding.
        """


@final
@dataclass(frozen=True)
class LayerwiseCrossEntropy(Loss):
    """The paper's loss: the sum of a cross-entropy for each of the first min(K, |L|) layers.

    Args:
        assignment: Which gold item is the label of a layer; gold is a set and has no order.
            "ordered": layer j has the j-th gold item. "matched": each layer has the gold item
            that it finds most probable among those that no earlier layer had. Both minimize
            −log p of the label and −log(1 − p) of every other item, the negative of the paper's
            equation. "set": −log of the total probability of the remaining gold items, of which
            each layer then removes its most probable one. "cumulative" reads the state of the
            paper's equation as the soft set after the layer: like "matched", with 1 − Π (1 − p)
            over all layers so far in place of p. It works against a set with two gold items, whose
            state has both where the equation allows one; the paper remarks on that.
        reduction: "mean" over the sets that have gold, "sum", or "none" for [batch].
    """

    assignment: Assignment | str = "matched"
    reduction: Reduction | str = "mean"

    def __post_init__(self) -> None:
        for argument, choices in (("assignment", Assignment), ("reduction", Reduction)):
            found, allowed = getattr(self, argument), get_args(choices)
            if found not in allowed:
                raise InvalidInput(
                    argument, found=repr(found), allowed=f"one of {', '.join(allowed)}"
                )

    def __call__(self, unfolded: Unfolded, gold: Tensor) -> Float[Tensor, "..."]:
        """The loss of the unfolded layers.

        Args:
            unfolded: What the layers chose.
            gold: [batch, items], True for gold items.
        """
        layers = unfolded.log_probs.shape[1]
        _check_gold(gold, unfolded.log_probs[:, 0])
        if unfolded.labels is not None:  # the layers were led along the gold, and p is given it
            losses = -torch.where(unfolded.labels, unfolded.log_probs, 0.0).sum(dim=2)
        elif self.assignment == "ordered":
            labels = _ordered_labels(gold, layers)
            losses = _binary_losses(unfolded.log_probs, unfolded.log_others, labels)
        elif self.assignment == "matched":
            labels = _matched_labels(unfolded.log_probs, gold)[0]
            losses = _binary_losses(unfolded.log_probs, unfolded.log_others, labels)
        elif self.assignment == "cumulative":
            labels = _matched_labels(unfolded.log_probs, gold)[0]
            losses = _binary_losses(*_soft_sets(unfolded), labels)
        else:
            losses = _set_losses(unfolded.log_probs, gold)
        layer = torch.arange(layers, device=gold.device)
        # A hard choice may have taken the label of a later layer, which can learn nothing from it.
        is_left = losses < -lowest_log(losses) / 8
        counted = is_left & (layer < gold.sum(dim=1, keepdim=True))
        by_set = torch.where(counted, losses, 0.0).sum(dim=1)
        return _reduced(by_set, gold.any(dim=1), self.reduction)


@dataclass(frozen=True)
class Distillation:
    """Mixes the loss with the choice of a stronger model, the teacher.

    Args:
        weight: The share of the loss that the teacher has, from 0 to 1.
        temperature: What the logits of the teacher are divided by.
    """

    weight: float
    temperature: float = 2.0

    def mix(
        self,
        criterion: LayerwiseCrossEntropy,
        unfolded: Unfolded,
        gold: Tensor,
        mask: Tensor,
        teacher_logits: Tensor,
        prior: Tensor | None,
    ) -> Float[Tensor, ""]:
        """The loss, mixed with the cross-entropy of the first layer against the teacher.

        Args:
            criterion: The loss without a teacher.
            unfolded: What the layers chose.
            gold: [batch, items], True for gold items.
            mask: [batch, items], False for padding.
            teacher_logits: [batch, items]; sets with a NaN among them have the plain loss.
            prior: [batch, items], the prior of the layers, if any.
        """
        plain = replace(criterion, reduction="none")(unfolded, gold)
        has_gold = gold.any(dim=1)
        taught = ~(teacher_logits.isnan() & mask).any(dim=1) & has_gold
        logits = teacher_logits / self.temperature
        if prior is not None:  # the layers have it too, and agreement must not change anything
            logits = logits + prior.log()
        logits = torch.where(mask & taught[:, None], logits, lowest_log(teacher_logits))
        wanted = torch.softmax(logits, dim=1)
        distilled = -(wanted * unfolded.log_probs[:, 0].clamp(min=-50)).sum(dim=1)
        mixed = torch.where(taught, (1 - self.weight) * plain + self.weight * distilled, plain)
        return torch.where(has_gold, mixed, 0.0).sum() / has_gold.sum().clamp(min=1)


def weighted_binary_cross_entropy(
    scores: Float[Tensor, "batch items"],
    gold: Tensor,
    mask: Bool[Tensor, "batch items"],
    positive_weight: float,
    negative_weight: Tensor | None = None,
) -> Float[Tensor, ""]:
    """The loss of the pointwise baselines: the mean over real items, each by itself.

    Args:
        scores: [batch, items], before the sigmoid.
        gold: [batch, items], True for gold items.
        mask: [batch, items], False for padding.
        positive_weight: How often a gold item counts.
        negative_weight: [batch, items], how often another item counts; by default once.
    """
    _check_gold(gold, scores)
    weight = scores.new_full((), positive_weight)  # filled on the device: nothing waits for it
    losses = binary_cross_entropy_with_logits(
        scores, gold.to(scores.dtype), pos_weight=weight, reduction="none"
    )
    if negative_weight is not None:
        losses = torch.where(gold, losses, losses * negative_weight)
    return torch.where(mask, losses, 0.0).sum() / mask.sum()


def relevance_loss(
    logits: Float[Tensor, "batch items"], gold: Tensor, mask: Bool[Tensor, "batch items"]
) -> Float[Tensor, ""]:
    """The loss of logits of relevance: each gold item against all others, and each by itself.

    Args:
        logits: [batch, items].
        gold: [batch, items], True for gold items; every set has at least one.
        mask: [batch, items], False for padding.
    """
    _check_gold(gold, logits)
    others = torch.where(mask & ~gold, logits, lowest_log(logits))
    above = logits - torch.logsumexp(others, dim=1, keepdim=True)
    share = gold.to(logits.dtype)
    listwise = -(logsigmoid(above) * share).sum(dim=1) / share.sum(dim=1)
    wanted = _SMOOTHING + (1 - 2 * _SMOOTHING) * share
    pointwise = binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    return listwise.mean() + _POINTWISE_SHARE * pointwise[mask].mean()


def _ordered_labels(gold: Bool[Tensor, "batch items"], layers: int) -> Tensor:
    """[batch, layers, items], True at the j-th gold item."""
    rank = gold.cumsum(dim=1) - 1
    layer = torch.arange(layers, device=gold.device)
    return gold[:, None, :] & (rank[:, None, :] == layer[None, :, None])


def _matched_labels(
    log_probs: Float[Tensor, "batch layers items"], gold: Bool[Tensor, "batch items"]
) -> tuple[Tensor, Tensor]:
    """[batch, layers, items] each: the gold item of each layer, and those that it chose from."""
    left = gold
    labels: list[Tensor] = []
    remaining: list[Tensor] = []
    for log_p in log_probs.detach().unbind(dim=1):
        remaining.append(left)
        best = torch.where(left, log_p, -torch.inf).argmax(dim=1, keepdim=True)
        label = torch.zeros_like(left).scatter(1, best, True) & left
        labels.append(label)
        left = left & ~label
    return torch.stack(labels, dim=1), torch.stack(remaining, dim=1)


def _soft_sets(unfolded: Unfolded) -> tuple[Tensor, Tensor]:
    """[batch, layers, items] each: log s and log(1 − s) of the soft set after each layer."""
    lowest = lowest_log(unfolded.log_others)
    log_out = unfolded.log_others.cumsum(dim=1).clamp(min=lowest)
    first, *others = unfolded.log_probs.unbind(dim=1)
    log_in = [first]
    for before, log_p in zip(log_out.unbind(dim=1), others, strict=False):
        # s ∪ p = s + (1 − s) p. In logarithms, an item that is far outside keeps its gradient.
        log_in.append(torch.logaddexp(log_in[-1], before + log_p))
    return torch.stack(log_in, dim=1), log_out


def _binary_losses(
    log_in: Float[Tensor, "batch layers items"],
    log_out: Float[Tensor, "batch layers items"],
    labels: Bool[Tensor, "batch layers items"],
) -> Float[Tensor, "batch layers"]:
    return -torch.where(labels, log_in, log_out).sum(dim=2)


def _set_losses(
    log_probs: Float[Tensor, "batch layers items"], gold: Bool[Tensor, "batch items"]
) -> Float[Tensor, "batch layers"]:
    _, remaining = _matched_labels(log_probs, gold)
    return -torch.logsumexp(torch.where(remaining, log_probs, lowest_log(log_probs)), dim=2)


def _reduced(by_set: Tensor, counted: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return by_set
    total = by_set.sum()
    return total if reduction == "sum" else total / counted.sum().clamp(min=1)


def _check_gold(gold: Tensor, like: Tensor) -> None:
    if gold.dtype != torch.bool:
        raise InvalidInput("gold", found=f"dtype {gold.dtype}", allowed="a tensor of booleans")
    if gold.shape != like.shape:
        raise InvalidInput(
            "gold",
            found=f"shape {tuple(gold.shape)}",
            allowed=f"a tensor of shape {tuple(like.shape)}",
        )
