"""One step of learning: the optimizer with its rates, and whole steps as CUDA graphs.

A step of a small network is a hundred kernels of a few microseconds. Launched one by one from
Python they take longer than they run; recorded once, they are launched together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.learn.config import FitConfig
from dgn.learn.networks import SelectionNetwork

_MOST_GRAPHS = 64


class StepGraphs:
    """Runs steps, and records one graph for each shape of a batch.

    Everything that changes from step to step must be in tensors: the numbers of the queries, the
    learning rate. What Python decides is decided when a graph is recorded; `forget` makes it
    decide again.

    Args:
        step: A training step, from the numbers of the queries on the device and the shape of the
            batch. It must not wait for the device.
        device: The GPU.
    """

    def __init__(
        self, step: Callable[[Tensor, tuple[int, ...]], None], device: torch.device
    ) -> None:
        self._step, self._device = step, device
        self._graphs: dict[tuple[int, ...], tuple[Any, Tensor]] = {}
        self._seen: set[tuple[int, ...]] = set()
        self._pool: Any = None

    def run(self, rows: NDArray[np.int64], shape: tuple[int, ...]) -> None:
        """Run a step."""
        shape = tuple(map(_rounded, shape))
        key = (len(rows), *shape)
        numbers = torch.from_numpy(rows).pin_memory()
        if key not in self._seen or (key not in self._graphs and len(self._graphs) >= _MOST_GRAPHS):
            # The first step of a shape compiles and allocates, which cannot be recorded.
            self._seen.add(key)
            self._step(numbers.to(self._device, non_blocking=True), shape)
            return
        if key not in self._graphs:
            self._graphs[key] = self._record(len(rows), shape)
        graph, static = self._graphs[key]
        static.copy_(numbers, non_blocking=True)
        graph.replay()

    def forget(self) -> None:
        """Record again from now on: something that Python decides has changed."""
        self._graphs.clear()

    def _record(self, count: int, shape: tuple[int, ...]) -> tuple[Any, Tensor]:
        static = torch.zeros(count, dtype=torch.int64, device=self._device)
        graph = torch.cuda.CUDAGraph()
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=self._pool):
            self._step(static, shape)
        return graph, static


def _rounded(size: int) -> int:
    """The next larger of a few sizes, at most a quarter larger: padding changes no result."""
    step = max(4, 1 << max(0, size.bit_length() - 3))
    return -(-size // step) * step


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
