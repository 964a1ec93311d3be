"""How does it improve? Training runs and searches; needs torch (`dgn[train]`).

The configuration and the schedules do not import torch; everything else is imported when it is
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dgn.errors import require_extra
from dgn.training.config import (
    DataConfig,
    FitConfig,
    MachineConfig,
    NetworkConfig,
    RunConfig,
    read_config,
)
from dgn.training.schedules import Fixed, Geometric, Linear, Schedule

if TYPE_CHECKING:
    from dgn.training.devices import find_device, placed_on
    from dgn.training.run import RunResult, is_finished, load_network, open_run, train
    from dgn.training.setup import build_network, parameter_count
    from dgn.training.trainer import EpochReport, Trainer, fit, select_all

_TORCH = {
    "EpochReport": "trainer",
    "RunResult": "run",
    "Trainer": "trainer",
    "build_network": "setup",
    "find_device": "devices",
    "fit": "trainer",
    "is_finished": "run",
    "load_network": "run",
    "open_run": "run",
    "parameter_count": "setup",
    "placed_on": "devices",
    "select_all": "trainer",
    "train": "run",
}

__all__ = [
    "DataConfig",
    "EpochReport",
    "FitConfig",
    "Fixed",
    "Geometric",
    "Linear",
    "MachineConfig",
    "NetworkConfig",
    "RunConfig",
    "RunResult",
    "Schedule",
    "Trainer",
    "build_network",
    "find_device",
    "fit",
    "is_finished",
    "load_network",
    "open_run",
    "parameter_count",
    "placed_on",
    "read_config",
    "select_all",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("Training", package="torch", extra="train")
    return getattr(importlib.import_module(f"dgn.training.{_TORCH[name]}"), name)
