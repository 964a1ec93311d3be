"""What training minimises: the paper's layer-wise cross-entropy, and the baselines' loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from dgn.arrays import Bool, Float
from dgn.errors import InvalidInput
from dgn.numerics import lowest_log
from dgn.unfolding.layer import Unfolded

Assignment = Literal["ordered", "matched", "set"]
Reduction = Literal["mean", "sum", "none"]


@dataclass(frozen=True)
class LayerwiseCrossEntropy:
    """The paper's loss: a cross-entropy at each of the first min(K, |L|) layers, added up.

    assignment: which gold item is the label of layer j; the gold is a set and has no order.
        "ordered": the j-th by position. "matched": the one that the layer finds most probable,
        of those no layer before took. For both, equation CE of the paper with its sign turned:
        −log p of the label and −log(1 − p) of every other item. "set": −log of the total
        probability of the gold that is left; each layer then takes its most probable one away.
    reduction: "mean" over the sets that have gold, "sum", or "none" for [batch].

    Called with the unfolded layers and gold, [batch, items], True for gold.
    """

    assignment: Assignment | str = "matched"
    reduction: Reduction | str = "mean"

    def __post_init__(self) -> None:
        for argument, choices in (("assignment", Assignment), ("reduction", Reduction)):
            found, allowed = getattr(self, argument), get_args(choices)
            if found not in allowed:
                raise InvalidInput(argument, found=repr(found), allowed=", ".join(allowed))

    def __call__(self, unfolded: Unfolded, gold: Tensor) -> Float[Tensor, "..."]:
        layers = unfolded.log_probs.shape[1]
        _check_gold(gold, unfolded.log_probs[:, 0])
        if self.assignment == "ordered":
            losses = _binary_losses(unfolded, _ordered_labels(gold, layers))
        elif self.assignment == "matched":
            losses = _binary_losses(unfolded, _matched_labels(unfolded.log_probs, gold)[0])
        else:
            losses = _set_losses(unfolded.log_probs, gold)
        layer = torch.arange(layers, device=gold.device)
        counted = layer < gold.sum(dim=1, keepdim=True)
        by_set = torch.where(counted, losses, 0.0).sum(dim=1)
        return _reduced(by_set, gold.any(dim=1), self.reduction)


def weighted_binary_cross_entropy(
    scores: Float[Tensor, "batch items"],
    gold: Tensor,
    mask: Bool[Tensor, "batch items"],
    positive_weight: float,
    rivals: Tensor | None = None,
) -> Float[Tensor, ""]:
    """The baselines' loss: each item by itself, gold counted `positive_weight` times and others
    as often as `rivals` says (once if left out); the mean over real items.
    """
    _check_gold(gold, scores)
    weight = scores.new_full((), positive_weight)  # filled on the device: nothing is waited for
    losses = binary_cross_entropy_with_logits(
        scores, gold.to(scores.dtype), pos_weight=weight, reduction="none"
    )
    if rivals is not None:
        losses = torch.where(gold, losses, losses * rivals)
    return torch.where(mask, losses, 0.0).sum() / mask.sum()


def _ordered_labels(gold: Bool[Tensor, "batch items"], layers: int) -> Tensor:
    """[batch, layers, items], True at the j-th gold item."""
    rank = gold.cumsum(dim=1) - 1
    layer = torch.arange(layers, device=gold.device)
    return gold[:, None, :] & (rank[:, None, :] == layer[None, :, None])


def _matched_labels(
    log_probs: Float[Tensor, "batch layers items"], gold: Bool[Tensor, "batch items"]
) -> tuple[Tensor, Tensor]:
    """[batch, layers, items] each: the gold item that each layer takes, and what it chose from."""
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
    unfolded: Unfolded, labels: Bool[Tensor, "batch layers items"]
) -> Float[Tensor, "batch layers"]:
    return -torch.where(labels, unfolded.log_probs, unfolded.log_others).sum(dim=2)


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
        raise InvalidInput("gold", found=f"dtype {gold.dtype}", allowed="booleans")
    if gold.shape != like.shape:
        raise InvalidInput(
            "gold", found=f"shape {tuple(gold.shape)}", allowed=f"{tuple(like.shape)}"
        )
