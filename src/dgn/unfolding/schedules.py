"""How the temperature changes from epoch to epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from dgn.errors import InvalidInput
from dgn.unfolding.layer import checked_temperature


class Schedule(ABC):
    """A temperature for every epoch, the first being 0."""

    @abstractmethod
    def at(self, epoch: float) -> float:
        """The temperature of this epoch."""


@final
@dataclass(frozen=True)
class Fixed(Schedule):
    """The same temperature always; the paper found 3 to 6 best."""

    temperature: float = 4.0

    def __post_init__(self) -> None:
        checked_temperature(self.temperature)

    def at(self, epoch: float) -> float:  # noqa: ARG002
        return self.temperature


@final
@dataclass(frozen=True)
class Geometric(Schedule):
    """Times `factor` an epoch, down to `lowest`; the paper's annealing by 10% is 0.9."""

    start: float = 4.0
    factor: float = 0.9
    lowest: float = 0.01

    def __post_init__(self) -> None:
        checked_temperature(self.start)
        checked_temperature(self.lowest)
        if not 0 < self.factor <= 1:
            raise InvalidInput("factor", found=f"{self.factor}", allowed="0 < factor ≤ 1")

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
        checked_temperature(self.start)
        checked_temperature(self.end)
        if self.epochs < 1:
            raise InvalidInput("epochs", found=str(self.epochs), allowed="at least 1")

    def at(self, epoch: float) -> float:
        return self.start + (self.end - self.start) * min(1.0, epoch / self.epochs)
