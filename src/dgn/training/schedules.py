"""How the temperature changes from epoch to epoch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from dgn.errors import InvalidInput


class Schedule(ABC):
    """A temperature for every epoch; the first epoch is 0."""

    @abstractmethod
    def at(self, epoch: float) -> float:
        """The temperature of this epoch."""


@final
@dataclass(frozen=True)
class Fixed(Schedule):
    """The same temperature for all epochs; the paper found 3 to 6 best."""

    temperature: float = 4.0

    def __post_init__(self) -> None:
        _check_temperature(self.temperature)

    def at(self, epoch: float) -> float:  # noqa: ARG002
        return self.temperature


@final
@dataclass(frozen=True)
class Geometric(Schedule):
    """Multiplied by `factor` per epoch, down to `lowest`; 0.9 is the paper's annealing by 10%."""

    start: float = 4.0
    factor: float = 0.9
    lowest: float = 0.01

    def __post_init__(self) -> None:
        _check_temperature(self.start)
        _check_temperature(self.lowest)
        if not 0 < self.factor <= 1:
            raise InvalidInput(
                "factor", found=f"{self.factor}", allowed="greater than 0 and at most 1"
            )

    def at(self, epoch: float) -> float:
        return max(self.lowest, self.start * self.factor**epoch)


@final
@dataclass(frozen=True)
class Linear(Schedule):
    """From `start` to `end` in equal steps over `epochs`, then `end`."""

    start: float
    end: float
    epochs: int

    def __post_init__(self) -> None:
        _check_temperature(self.start)
        _check_temperature(self.end)
        if self.epochs < 1:
            raise InvalidInput("epochs", found=str(self.epochs), allowed="at least 1")

    def at(self, epoch: float) -> float:
        return self.start + (self.end - self.start) * min(1.0, epoch / self.epochs)


def _check_temperature(temperature: float) -> None:
    if not 0 < temperature < math.inf:
        raise InvalidInput("temperature", found=f"{temperature}", allowed="greater than 0")
