"""The facets with a transformer: contextual word vectors, and a reader that judges relevance."""

from dgn.encoders.minilm.family import MiniLMFamily

__all__ = ["MiniLMFamily"]
