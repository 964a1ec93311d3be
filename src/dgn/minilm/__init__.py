"""The facets with a transformer: contextual word vectors, and a reader that judges relevance."""

from dgn.minilm.encoder import MiniLMEncoder

__all__ = ["MiniLMEncoder"]
