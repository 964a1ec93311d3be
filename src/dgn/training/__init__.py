"""How does it get better? Training runs; needs torch (`dgn[train]`)."""

from dgn.errors import require_extra

require_extra("dgn.training", package="torch", extra="train")
require_extra("dgn.training", package="safetensors", extra="train")

from dgn.training.config import (
    DataConfig,
    FitConfig,
    MachineConfig,
    NetworkConfig,
    RunConfig,
    read_config,
)
from dgn.training.devices import find_device, placed_on
from dgn.training.fit import fit
from dgn.training.model_folder import load_network
from dgn.training.networks import build_network, parameter_count
from dgn.training.run import RunResult, is_finished, open_run, train
from dgn.training.trainer import EpochReport, Trainer, pick_all

__all__ = [
    "DataConfig",
    "EpochReport",
    "FitConfig",
    "MachineConfig",
    "NetworkConfig",
    "RunConfig",
    "RunResult",
    "Trainer",
    "build_network",
    "find_device",
    "fit",
    "is_finished",
    "load_network",
    "open_run",
    "parameter_count",
    "pick_all",
    "placed_on",
    "read_config",
    "train",
]
