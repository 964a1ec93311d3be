"""The front door: `Selector`, what it picks from, what it gives back and why."""

from dgn.selector.selection import SentenceSelection
from dgn.selector.selector import Selector
from dgn.selector.sources import Document, Sentence

__all__ = ["Document", "Selector", "Sentence", "SentenceSelection"]
