"""One step of learning: optimizer, learning rate, decays, gradient norm, moving average."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor

from dgn.training.config import FitConfig
from dgn.unfolding import SelectionNetwork


class Optimizer:
    """Updates the weights of a network; its state can be saved and restored.

    Attributes:
        start: The weights that `decay_to_start` pulls towards: those at construction.
        average: The moving average of the weights, if there is one.
        step_count: The number of steps so far.
    """

    def __init__(self, network: SelectionNetwork, config: FitConfig, total_steps: int) -> None:
        self._config, self._total_steps = config, total_steps
        self._weights = dict(network.named_parameters())
        self.start = self._copies() if config.decay_to_start else {}
        self.average = self._copies() if config.ema_decay else {}
        self.step_count = 0
        self._pull: float | Tensor = 0.0
        self._blend: float | Tensor = 0.0
        kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
        on_gpu = all(weight.is_cuda for weight in self._weights.values())
        # On a GPU, numbers that change from step to step are on the device (see StepGraphs).
        self._rates = torch.zeros(3, device="cuda") if on_gpu else None
        self._optimizer = kind(
            self._weights.values(),
            lr=config.learning_rate if self._rates is None else self._rates[0],
            weight_decay=config.weight_decay,
            fused=on_gpu or None,
            capturable=on_gpu,
        )

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return self._config.learning_rate * learning_rate_share(
            self._config, self.step_count, self._total_steps
        )

    @property
    def gradients(self) -> list[Tensor]:
        """The gradient of every weight, zeros where there is none yet."""
        for weight in self._weights.values():
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        return [weight.grad for weight in self._weights.values() if weight.grad is not None]

    def step(self) -> None:
        """Update the weights with their gradients, then clear the gradients."""
        self.prepare()
        self.update()
        self.step_count += 1

    def prepare(self) -> None:
        """Set the rates of the next step."""
        rate = self.learning_rate
        # At first the average is short, so that the start is soon forgotten.
        decay = min(self._config.ema_decay, (1 + self.step_count) / (10 + self.step_count))
        rates = (rate, min(1.0, rate * self._config.decay_to_start), 1 - decay)
        if self._rates is not None:
            self._rates.copy_(torch.tensor(rates).pin_memory(), non_blocking=True)
            self._pull, self._blend = self._rates[1], self._rates[2]
            return
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._pull, self._blend = rates[1:]

    @torch.no_grad()
    def update(self) -> None:
        """Update the weights at the rates of this step; a graph may have recorded it."""
        if self._config.max_grad_norm:
            torch.nn.utils.clip_grad_norm_(self._weights.values(), self._config.max_grad_norm)
        self._optimizer.step()
        self._optimizer.zero_grad()
        for name, start in self.start.items():
            self._weights[name].lerp_(start, self._pull)
        for name, average in self.average.items():
            average.lerp_(self._weights[name], self._blend)

    @contextmanager
    def averaged(self) -> Generator[None]:
        """Within the block, the network has the averaged weights, if there are any."""
        own = self._copies() if self.average else {}
        self._put(self.average)
        try:
            yield
        finally:
            self._put(own)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that `restore` needs, by name."""
        state = self._optimizer.state_dict()["state"]
        return {
            **{f"start.{name}": tensor for name, tensor in self.start.items()},
            **{f"average.{name}": tensor for name, tensor in self.average.items()},
            **{
                f"optimizer.{number}.{part}": tensor
                for number, parts in state.items()
                for part, tensor in parts.items()
            },
        }

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor], step_count: int) -> None:
        """Resume from what `tensors` returned."""
        for name, start in self.start.items():
            start.copy_(tensors[f"start.{name}"])
        for name, average in self.average.items():
            average.copy_(tensors[f"average.{name}"])
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimizer."):
                _, number, part = name.split(".")
                state.setdefault(int(number), {})[part] = tensor
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.step_count = step_count

    def _copies(self) -> dict[str, Tensor]:
        return {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def _put(self, weights: dict[str, Tensor]) -> None:
        for name, weight in weights.items():
            self._weights[name].copy_(weight)


def learning_rate_share(config: FitConfig, step: int, total_steps: int) -> float:
    """The learning rate of a step as a share of its largest value; the first step is 0."""
    share = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    done = min(1.0, step / total_steps)
    if config.schedule == "linear":
        share *= 1 - done
    elif config.schedule == "cosine":
        share *= 0.5 * (1 + math.cos(math.pi * done))
    return share
