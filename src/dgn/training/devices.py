"""Devices and threads: where tensors are, and how many CPU threads work on them."""

from __future__ import annotations

import os
import platform
import re
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.data import Place
from dgn.errors import InvalidInput
from dgn.threads import threads_for


def find_device(name: str) -> torch.device:
    """The device with this name; each process of torchrun takes a GPU of its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise InvalidInput("device", found=repr(name), allowed="auto, cpu, cuda or cuda:N")
    if name == "cuda" and "LOCAL_RANK" in os.environ:
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(
            "device", message=f"The device {name} is not available: {reason}"
        ) from None
    if device.type == "cuda" and ":" in name:
        torch.cuda.set_device(device)
    return device


def name_of(device: torch.device) -> str:
    """A description of the device."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    threads = torch.get_num_threads()
    return f"{platform.machine()} CPU, {threads} threads, torch {torch.__version__}"


def placed_on(device: torch.device | str) -> Place:
    """A function that moves NumPy arrays to a device, so that batches are formed there."""
    on_gpu = torch.device(device).type == "cuda"

    def place(array: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        # Copies from pinned memory do not block; from other memory, each one would.
        return tensor.pin_memory().to(device, non_blocking=True) if on_gpu else tensor.to(device)

    return place


def choose_threads(asked: int, work_per_step: float) -> int:
    """Set the number of CPU threads of torch, and return it.

    Args:
        asked: The number that the user asked for; 0 to choose one. OMP_NUM_THREADS also counts as
            a choice of the user.
        work_per_step: The number of multiplications of a training step, approximately.
    """
    if asked:
        torch.set_num_threads(asked)
    elif "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads_for(work_per_step))
    return torch.get_num_threads()
