"""Differentiable replacements for argmax: how a layer chooses one item softly.

| relaxation | joins the set | gradient of later layers | what the loss sees |
| --- | --- | --- | --- |
| `Softmax` | p, all items a little | exact | log p |
| `Gumbel` | softmax of noisy scores | exact, given the noise | log p of the noisy scores |
| `StraightThrough` | the best item | that of the softmax (biased) | log p |

They take the same scores, divided by the same temperature, and work with logarithms, so that no
temperature leads to log 0. Derive from `Relaxation` for another one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
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
        """Choose one item of every set.

        Args:
            scores: The gain of every item.
            log_prior: What is added to scores / temperature: the logarithm of how far each item is
                outside the set. It is very low for padding and for items that are in the set,
                which must not be chosen.
            temperature: Greater than 0; as it falls, the choice becomes the argmax.
        """


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
        _check_above_zero("scale", self.scale)

    def choose(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
    ) -> Choice:
        return Softmax().choose(scores + self.noise(scores), log_prior, temperature)

    def noise(self, like: Tensor) -> Tensor:
        """New noise for scores like these, with its strength."""
        return self.scale * _gumbel(like, self.generator)


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
        picked = _one_hot(soft.log_probs)
        # The difference is exactly zero and carries the gradient.
        member = picked + (soft.member - soft.member.detach())
        return replace(soft, member=member, log_left=picked * lowest_log(scores))


def _one_hot(scores: Tensor) -> Tensor:
    """1 for the best item, the first of equals, and 0 for all others."""
    best = scores.argmax(dim=-1, keepdim=True)
    return torch.zeros_like(scores).scatter(-1, best, 1.0)


def _gumbel(like: Tensor, generator: torch.Generator | None) -> Tensor:
    exponential = torch.empty_like(like).exponential_(generator=generator)
    return -torch.log(exponential.clamp(min=torch.finfo(like.dtype).tiny))


def _check_above_zero(argument: str, value: float) -> None:
    if not value > 0:
        raise InvalidInput(argument, found=f"{value}", allowed="greater than 0")
