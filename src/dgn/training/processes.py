"""Several processes that train one network together, started by torchrun, or a single one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch import distributed as dist


@dataclass(frozen=True)
class Processes:
    """The rank of this process among `size` of them."""

    rank: int = 0
    size: int = 1

    @property
    def writes(self) -> bool:
        """Whether this process writes files and prints messages; only one does."""
        return self.rank == 0

    def share(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The part of a batch that belongs to this process; it may be empty."""
        return rows if self.size == 1 else np.array_split(rows, self.size)[self.rank]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace every tensor, in place, by its sum over all processes, in a single message."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        place = 0
        for tensor in tensors:
            tensor.copy_(flat[place : place + tensor.numel()].view_as(tensor))
            place += tensor.numel()

    def from_first(self, numbers: Sequence[float], device: torch.device) -> tuple[float, ...]:
        """The numbers of the first process, in all of them: all must agree on when to stop."""
        if self.size == 1:
            return tuple(numbers)
        box = torch.tensor(numbers, dtype=torch.float64, device=device)
        dist.broadcast(box, src=0)
        return tuple(float(number) for number in box)

    def wait(self) -> None:
        """Wait for all processes: one that leaves while others are at work may be aborted."""
        if self.size > 1:
            dist.barrier()


def join_processes(device: torch.device) -> Processes:
    """The processes that torchrun started, or this single one."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Processes()
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return Processes(dist.get_rank(), size)


@contextmanager
def interrupts_ignored() -> Generator[None]:
    """Processes started in this block ignore Ctrl-C; the one that started them then ends them.

    Otherwise a worker would be interrupted anywhere, even in its imports, and print a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def is_orphan() -> bool:
    """Whether the process that started this one was killed."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def leave_processes() -> None:
    """Undo `join_processes`."""
    if dist.is_initialized():
        dist.destroy_process_group()
