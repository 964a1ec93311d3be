"""Differentiable replacements for argmax: how a layer chooses one item softly.

| relaxation | joins the set | gradient of later layers | what the loss sees |
| --- | --- | --- | --- |
| `Softmax` | p, all items a little | exact | log p |
| `Gumbel` | softmax of noisy scores | exact, given the noise | log p of the noisy scores |
| `StraightThrough` | the best item | that of the softmax (biased) | log p |
| `Perturbed` | share of noisy draws that an item wins | unbiased, with variance | Fenchel-Young |
| `Sparsemax` | p with zeros | exact, zero outside the support | Fenchel-Young |
| `ImplicitMLE` | a sampled item | difference of two selections | log p |
| `GreedyLikelihood` | the gold itself | exact, none through a choice | log p of the gold |

They take the same scores, divided by the same temperature. Those with probabilities work with
logarithms, so that no temperature leads to log 0. Those whose p has zeros use the Fenchel-Young
loss of their own p in place of −log p (Blondel et al. 2020): it is 0 only where p is the label, is
finite everywhere, and its gradient is p − label, as that of the softmax is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, cast, final

import torch
from torch import Tensor

from dgn.core.arrays import Bool, Float
from dgn.core.numerics import log_softmax_with_complement, lowest_log
from dgn.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Choice:
    """What one layer chose.

    Attributes:
        log_probs: [batch, items], log p, which the loss uses; or minus the Fenchel-Young loss of
            each item as the label.
        log_others: [batch, items], log(1 − p), which the loss uses; 0 where log_probs already
            weighs all items against each other.
        member: [batch, items], what joins the set: p itself, or a one-hot choice.
        log_left: [batch, items], log(1 − member), what the choice leaves outside.
        probs: [batch, items], p, where log_probs is not its logarithm.
        label: [batch, items], True for the gold item that the choice was led to, if it was.
    """

    log_probs: Tensor
    log_others: Tensor
    member: Tensor
    log_left: Tensor
    probs: Tensor | None = None
    label: Tensor | None = None


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

    def choose_gold(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
        gold: Bool[Tensor, "batch items"],
    ) -> Choice:
        """Choose where the gold that no earlier layer was led to is known; by default not used."""
        del gold
        return self.choose(scores, log_prior, temperature)


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


@final
@dataclass(frozen=True)
class Perturbed(Relaxation):
    """p is the share of noisy draws that each item wins (perturbed argmax, Berthet et al. 2020).

    The noise is normal. Its expectation is smooth in the scores, and both p and its Jacobian,
    Cov(winner, noise), are estimated by the same draws. The loss is the Fenchel-Young loss of the
    paper, E max(scores + noise) − score of the label, whose gradient is p − label.

    Args:
        samples: The number of draws; more are slower, with less variance.
        scale: The strength of the noise, in units of the temperature.
        generator: The source of randomness; by default, torch's global generator.
    """

    samples: int = 8
    scale: float = 1.0
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        _check_above_zero("scale", self.scale)
        if self.samples < 2:
            raise InvalidInput("samples", found=str(self.samples), allowed="at least 2")

    def choose(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
    ) -> Choice:
        logits = scores / temperature + log_prior
        shape = (logits.shape[0], self.samples, logits.shape[1])
        noise = logits.new_empty(shape).normal_(generator=self.generator)
        # Items that cannot win have no noise: it would only add variance to the gradient.
        can_win = log_prior > lowest_log(log_prior) / 2
        noise = torch.where(can_win[:, None, :], noise, 0.0)
        drawn = logits[:, None, :] + self.scale * noise
        winners = _one_hot(drawn.detach())
        probs = winners.mean(dim=1)
        # The difference is exactly zero. Its gradient is the sample covariance of winner and
        # noise, from which the mean of the winners takes variance and no expectation.
        step = (noise * (logits - logits.detach())[:, None, :]).sum(dim=2) / self.scale
        centred = winners - probs[:, None, :]
        member = probs + (centred * step[..., None]).sum(dim=1) / (self.samples - 1)
        # max(drawn) − logits, without the rounding of large logits.
        top = logits.amax(dim=1, keepdim=True).detach()
        best = (drawn - top[:, None, :]).amax(dim=2).mean(dim=1, keepdim=True)
        log_probs = logits - top - best
        return Choice(log_probs, torch.zeros_like(scores), member, _log_left(member), probs)


@final
@dataclass(frozen=True)
class Sparsemax(Relaxation):
    """p is the distribution that is nearest to the scores (Martins and Astudillo 2016).

    Most items have exactly zero and are not touched: a layer chooses among few. An item outside
    the support has no gradient through the set, but the loss reaches it: in place of log p, it is
    the Fenchel-Young loss of sparsemax.
    """

    def choose(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
    ) -> Choice:
        logits = scores / temperature + log_prior
        logits = logits - logits.amax(dim=1, keepdim=True).detach()
        # What is more than 1 below the best has no share; sums of very low logits would overflow.
        near = logits.clamp(min=-2.0)
        probs = near - _threshold(near)
        probs = torch.where(probs > 0, probs, 0.0)
        conjugate = (probs * (near - probs / 2)).sum(dim=1, keepdim=True) + 0.5
        log_probs = logits - conjugate
        return Choice(log_probs, torch.zeros_like(scores), probs, _log_left(probs), probs)


@final
@dataclass(frozen=True)
class ImplicitMLE(Relaxation):
    """A sampled item joins the set; the gradient asks which item would have been better.

    Implicit maximum likelihood (Niepert et al. 2021): the gradient of the scores is the difference
    between the item that was selected and the one that is selected, with the same noise, once the
    scores have moved by `step` against the gradient of the loss. Gumbel noise makes the forward
    pass an exact sample of the softmax. The loss uses log p of the softmax.

    Args:
        step: How far the scores move (λ): smaller has less bias and more variance.
        generator: The source of randomness; by default, torch's global generator.
    """

    step: float = 1.0
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        _check_above_zero("step", self.step)

    def choose(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
    ) -> Choice:
        soft = Softmax().choose(scores, log_prior, temperature)
        noise = _gumbel(scores, self.generator)
        member = cast("Tensor", _Selected.apply(scores / temperature + log_prior, noise, self.step))
        return replace(soft, member=member, log_left=member.detach() * lowest_log(scores))


@final
@dataclass(frozen=True)
class GreedyLikelihood(Relaxation):
    """The likelihood that a stochastic greedy selects the gold (Tschiatschek et al. 2018).

    The stochastic greedy samples each item by the softmax of the gains, given the items before. In
    training, the layers are led along the gold: the set so far is gold, never a mixture, and the
    loss is −Σ log p of each gold item given the ones before. `assignment` has no effect. Without
    gold, a layer samples.

    The likelihood of a set is a sum over all orders of its items. As in their paper, one order
    stands for all of them.

    Args:
        order: "greedy": the most probable gold item first, which the sum is nearly equal to at a
            low temperature. "random": a new order for every step.
        generator: The source of randomness; by default, torch's global generator.
    """

    order: str = "greedy"
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if self.order not in ("greedy", "random"):
            raise InvalidInput("order", found=repr(self.order), allowed="greedy or random")

    def choose(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
    ) -> Choice:
        soft = Softmax().choose(scores, log_prior, temperature)
        picked = _one_hot(soft.log_probs.detach() + _gumbel(scores, self.generator))
        return replace(soft, member=picked, log_left=picked * lowest_log(scores))

    def choose_gold(
        self,
        scores: Float[Tensor, "batch items"],
        log_prior: Float[Tensor, "batch items"],
        temperature: float,
        gold: Bool[Tensor, "batch items"],
    ) -> Choice:
        soft = Softmax().choose(scores, log_prior, temperature)
        found = soft.log_probs.detach()
        rank = found if self.order == "greedy" else _gumbel(scores, self.generator)
        # Where no gold is left, the layer goes on as greedy does; no loss counts it.
        some = gold.any(dim=1, keepdim=True)
        picked = _one_hot(torch.where(some, torch.where(gold, rank, -torch.inf), found))
        return replace(
            soft,
            member=picked,
            log_left=picked * lowest_log(scores),
            label=gold & (picked > 0),
        )


class _Selected(torch.autograd.Function):
    """The best item under some noise; see `ImplicitMLE` for the gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, noise: Tensor, step: float) -> Tensor:
        ctx.save_for_backward(logits, noise)
        ctx.step = step
        return _one_hot(logits + noise)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        logits, noise = ctx.saved_tensors
        better = _one_hot(logits - ctx.step * gradients[0] + noise)
        return (_one_hot(logits + noise) - better) / ctx.step, None, None


def _one_hot(scores: Tensor) -> Tensor:
    """1 for the best item, the first of equals, and 0 for all others."""
    best = scores.argmax(dim=-1, keepdim=True)
    return torch.zeros_like(scores).scatter(-1, best, 1.0)


def _gumbel(like: Tensor, generator: torch.Generator | None) -> Tensor:
    exponential = torch.empty_like(like).exponential_(generator=generator)
    return -torch.log(exponential.clamp(min=torch.finfo(like.dtype).tiny))


def _threshold(logits: Float[Tensor, "batch items"]) -> Float[Tensor, "batch 1"]:
    """What sparsemax subtracts, so that what remains above 0 sums to 1."""
    with torch.no_grad():
        ordered = logits.sort(dim=1, descending=True).values
        rank = torch.arange(1, logits.shape[1] + 1, device=logits.device)
        size = (1 + rank * ordered > ordered.cumsum(dim=1)).sum(dim=1, keepdim=True)
        lowest = ordered.gather(1, size - 1)
        inside = logits >= lowest
    total = torch.where(inside, logits, 0.0).sum(dim=1, keepdim=True)
    return (total - 1) / inside.sum(dim=1, keepdim=True)


def _log_left(member: Tensor) -> Tensor:
    """log(1 − member), finite where all of an item joins the set."""
    whole = member >= 1
    return torch.where(whole, lowest_log(member), torch.log1p(-torch.where(whole, 0.0, member)))


def _check_above_zero(argument: str, found: float) -> None:
    if not found > 0:
        raise InvalidInput(argument, found=f"{found}", allowed="greater than 0")
