"""One step of learning: Adam with its rates, the pull to the start, and the average of weights."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from dgn.learn.fit import FitConfig


class Optimizer:
    """Updates the weights of a network.

    Args:
        network: The network.
        config: How to train.
        total_steps: The number of steps, which the schedule of the learning rate needs.
        groups: Groups of parameters as torch takes them, each with its own `lr` or `weight_decay`
            if they differ from those of the configuration; by default, one group of all.

    Attributes:
        step_count: The number of steps so far.
    """

    def __init__(
        self,
        network: nn.Module,
        config: FitConfig,
        total_steps: int,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        self._config, self._total_steps = config, total_steps
        self._weights = {n: w for n, w in network.named_parameters() if w.requires_grad}
        self._start = self._copies() if config.decay_to_start else {}
        self._average = self._copies() if config.ema_decay else {}
        self.step_count = 0
        # Without decay, AdamW is Adam.
        self._adam = torch.optim.AdamW(
            [{"params": list(self._weights.values())}] if groups is None else list(groups),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        self._rates = [group["lr"] for group in self._adam.param_groups]

    @property
    def share(self) -> float:
        """The learning rate of the next step as a share of its largest value."""
        config = self._config
        share = min(1.0, (self.step_count + 1) / config.warmup) if config.warmup else 1.0
        done = min(1.0, self.step_count / self._total_steps)
        if config.schedule == "linear":
            share *= 1 - done
        elif config.schedule == "cosine":
            share *= 0.5 * (1 + math.cos(math.pi * done))
        return share

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights with their gradients, then clear the gradients."""
        config, share = self._config, self.share
        for group, rate in zip(self._adam.param_groups, self._rates, strict=True):
            group["lr"] = rate * share
        if config.max_grad_norm:
            torch.nn.utils.clip_grad_norm_(self._weights.values(), config.max_grad_norm)
        self._adam.step()
        self._adam.zero_grad()
        for name, start in self._start.items():
            pull = min(1.0, config.learning_rate * share * config.decay_to_start)
            self._weights[name].lerp_(start, pull)
        # At first the average is short, so that the start is soon forgotten.
        decay = min(config.ema_decay, (1 + self.step_count) / (10 + self.step_count))
        for name, average in self._average.items():
            average.lerp_(self._weights[name], 1 - decay)
        self.step_count += 1

    @contextmanager
    def averaged(self) -> Generator[None]:
        """Within the block, the network has the averaged weights, if there are any."""
        learned = self._copies() if self._average else {}
        self._put(self._average)
        try:
            yield
        finally:
            self._put(learned)

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to continue."""
        return {
            "adam": self._adam.state_dict(),
            "start": self._start,
            "average": self._average,
            "step_count": self.step_count,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self._adam.load_state_dict(state["adam"])
        self._start, self._average = state["start"], state["average"]
        self.step_count = state["step_count"]

    def _copies(self) -> dict[str, Tensor]:
        return {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def _put(self, weights: dict[str, Tensor]) -> None:
        for name, weight in weights.items():
            self._weights[name].copy_(weight)
