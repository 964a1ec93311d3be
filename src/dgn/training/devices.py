"""Where tensors live."""

from __future__ import annotations

import os
import platform
import re
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.data.batches import Place
from dgn.errors import InvalidInput


def find_device(name: str) -> torch.device:
    """The device of this name; of several GPUs, each process of torchrun takes its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise InvalidInput("device", found=name, allowed="auto, cpu, cuda or cuda:N")
    if name == "cuda" and "LOCAL_RANK" in os.environ:
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        found = f"{name} ({str(error).splitlines()[0]})"
        raise InvalidInput("device", found=found, allowed="auto, cpu, cuda or cuda:N") from None
    if device.type == "cuda" and ":" in name:
        torch.cuda.set_device(device)
    return device


def name_of(device: torch.device) -> str:
    """What it is, in words."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    threads = torch.get_num_threads()
    return f"{platform.machine()} CPU, {threads} thread(s), torch {torch.__version__}"


def placed_on(device: torch.device | str) -> Place:
    """Puts NumPy arrays onto a device, for batches to be formed there."""
    on_gpu = torch.device(device).type == "cuda"

    def place(array: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        # From pinned memory a copy needs no waiting; from other memory, each one would.
        return tensor.pin_memory().to(device, non_blocking=True) if on_gpu else tensor.to(device)

    return place
