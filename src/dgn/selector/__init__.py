"""The front door: `Selector`, what it returns, and the format of saved models."""

from dgn.selector.index import PassageIndex
from dgn.selector.result import PassageSelection
from dgn.selector.selector import Selector

__all__ = ["PassageIndex", "PassageSelection", "Selector"]
