"""The front door: `Selector`, its limits, what it returns, and the format of saved models."""

from dgn.selector.index import PassageIndex
from dgn.selector.limits import Limits
from dgn.selector.result import PassageSelection
from dgn.selector.selector import Selector

__all__ = ["Limits", "PassageIndex", "PassageSelection", "Selector"]
