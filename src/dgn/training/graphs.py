"""Whole training steps as CUDA graphs: the GPU runs a step without waiting for Python.

A step of a small network is a hundred kernels of a few microseconds. Launched one by one from
Python they take longer than they run; recorded once, they are launched together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
