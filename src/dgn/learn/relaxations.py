"""Differentiable replacements for argmax: how a layer chooses one item softly.

All of them work with logarithms: a choice is log p, never p, so that no temperature leads to log 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dgn.core.arrays import Float
from dgn.core.numerics import log_softmax_with_complement, lowest_log
from dgn.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Choice:
    """What one layer chose.

    Attributes:
        log_probs: [batch, items], log p, which the loss uses.
        log_others: [batch, items], log(1 − p), which the loss uses.
        member: [batch, items], what joins the set: p itself, or a one-hot choice.
        log_left: [batch, items], log(1 − member), what the choice leaves outside.
    """

    log_probs: Tensor
    log_others: Tensor
    member: Tensor
    log_left: Tensor


class Relaxation(ABC):
    """Turns scores into a choice of one item, differentiably."""

    @abstractmethod
    def choose(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
    ) -> Choice:
        """Choose by p ∝ prior · exp(scores / temperature)."""


@final
@dataclass(frozen=True)
class Softmax(Relaxation):
    """The relaxation of the paper: p = softmax(gain / τ) joins the set as it is."""

    def choose(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
    ) -> Choice:
        log_probs, log_others = log_softmax_with_complement(scores / temperature + log_prior)
        return Choice(log_probs, log_others, torch.exp(log_probs), log_others)


@final
@dataclass(frozen=True)
class Gumbel(Relaxation):
    """Softmax of the scores with Gumbel noise: samples a set instead of averaging over sets.

    Args:
        scale: The strength of the noise.
        generator: The source of randomness; by default, torch's global generator.
    """

    scale: float = 1.0
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise InvalidInput("scale", found=f"{self.scale}", allowed="greater than 0")

    def choose(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
    ) -> Choice:
        return Softmax().choose(scores + self.noise(scores), log_prior, temperature)

    def noise(self, like: Tensor) -> Tensor:
        """New noise for scores like these, with its strength."""
        exponential = torch.empty_like(like).exponential_(generator=self.generator)
        return -self.scale * torch.log(exponential.clamp(min=torch.finfo(like.dtype).tiny))


@final
@dataclass(frozen=True)
class StraightThrough(Relaxation):
    """Forward the argmax, backward the gradient of another relaxation.

    The layers then build the same set as at run time; the loss still uses log p.
    """

    inner: Relaxation = Softmax()

    def choose(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
    ) -> Choice:
        soft = self.inner.choose(scores, log_prior, temperature)
        picked = torch.zeros_like(soft.member)
        picked = picked.scatter(-1, soft.log_probs.argmax(dim=-1, keepdim=True), 1.0)
        # The difference is exactly zero and carries the gradient.
        member = picked + (soft.member - soft.member.detach())
        return Choice(soft.log_probs, soft.log_others, member, picked * lowest_log(scores))
