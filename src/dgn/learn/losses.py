"""What training minimizes: the paper's layer-wise cross-entropy, and the pointwise loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, final, get_args

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from dgn.core.arrays import Bool, Float
from dgn.core.numerics import lowest_log
from dgn.errors import InvalidInput
from dgn.learn.layers import Unfolded

Assignment = Literal["ordered", "matched", "set"]
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
            each layer then removes its most probable one.
        reduction: "mean" over the sets that have gold, "sum", or "none" for [batch].
    """

    assignment: Assignment | str = "matched"
    reduction: Reduction | str = "mean"

    def __post_init__(self) -> None:
        for argument, choices in (("assignment", Assignment), ("reduction", Reduction)):
            value, allowed = getattr(self, argument), get_args(choices)
            if value not in allowed:
                raise InvalidInput(
                    argument, found=repr(value), allowed=f"one of {', '.join(allowed)}"
                )

    def __call__(self, unfolded: Unfolded, gold: Tensor) -> Float[Tensor, "..."]:
        """The loss of the unfolded layers.

        Args:
            unfolded: What the layers chose.
            gold: [batch, items], True for gold items.
        """
        layers = unfolded.log_probs.shape[1]
        _check_gold(gold, unfolded.log_probs[:, 0])
        if self.assignment == "ordered":
            labels = _ordered_labels(gold, layers)
            losses = _binary_losses(unfolded.log_probs, unfolded.log_others, labels)
        elif self.assignment == "matched":
            labels = _matched_labels(unfolded.log_probs, gold)[0]
            losses = _binary_losses(unfolded.log_probs, unfolded.log_others, labels)
        else:
            losses = _set_losses(unfolded.log_probs, gold)
        layer = torch.arange(layers, device=gold.device)
        # A hard choice may have taken the label of a later layer, which can learn nothing from it.
        is_left = losses < -lowest_log(losses) / 8
        counted = is_left & (layer < gold.sum(dim=1, keepdim=True))
        by_set = torch.where(counted, losses, 0.0).sum(dim=1)
        return _reduced(by_set, gold.any(dim=1), self.reduction)


def weighted_binary_cross_entropy(
    scores: Float[Tensor, "batch items"],
    gold: Tensor,
    mask: Bool[Tensor, "batch items"],
    positive_weight: float,
) -> Float[Tensor, ""]:
    """The loss of the pointwise baselines: the mean over real items, each by itself.

    Args:
        scores: [batch, items], before the sigmoid.
        gold: [batch, items], True for gold items.
        mask: [batch, items], False for padding.
        positive_weight: How often a gold item counts.
    """
    _check_gold(gold, scores)
    weight = scores.new_full((), positive_weight)  # filled on the device: nothing waits for it
    losses = binary_cross_entropy_with_logits(
        scores, gold.to(scores.dtype), pos_weight=weight, reduction="none"
    )
    return torch.where(mask, losses, 0.0).sum() / mask.sum()


def relevance_loss(
    logits: Float[Tensor, "batch items"],
    gold: Tensor,
    mask: Bool[Tensor, "batch items"],
    teacher_logits: Float[Tensor, "batch items"] | None = None,
    teacher_share: float = 0.0,
) -> Float[Tensor, ""]:
    """The loss of logits of relevance: each gold item against all others, and each by itself.

    Args:
        logits: [batch, items].
        gold: [batch, items], True for gold items; every set has at least one.
        mask: [batch, items], False for padding.
        teacher_logits: [batch, items], logits of a stronger model; NaN where there are none.
        teacher_share: The share of the loss that they have.
    """
    _check_gold(gold, logits)
    others = torch.where(mask & ~gold, logits, lowest_log(logits))
    above = logits - torch.logsumexp(others, dim=1, keepdim=True)
    share = gold.to(logits.dtype)
    listwise = -(logsigmoid(above) * share).sum(dim=1) / share.sum(dim=1)
    wanted = _SMOOTHING + (1 - 2 * _SMOOTHING) * share
    if teacher_logits is not None:
        taught = torch.sigmoid(torch.nan_to_num(teacher_logits))
        taught = torch.where(teacher_logits.isfinite(), taught, wanted)
        wanted = (1 - teacher_share) * wanted + teacher_share * taught
    pointwise = binary_cross_entropy_with_logits(logits, wanted, reduction="none")[mask].mean()
    return (1 - teacher_share) * listwise.mean() + (_POINTWISE_SHARE + teacher_share) * pointwise


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
