"""The facets with a transformer: the words of every text have vectors in their context."""

from dgn.minilm.encoder import MiniLMEncoder

__all__ = ["MiniLMEncoder"]
