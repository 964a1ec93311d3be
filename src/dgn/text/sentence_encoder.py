"""Pooled vectors of any sentence-transformers model, by its name or its folder."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from dgn.arrays import Array, Float
from dgn.errors import InvalidInput, require_extra
from dgn.files import fingerprint_of
from dgn.text.tokens import clean_brackets
from dgn.text.vectors import PooledVectors


@final
class SentenceEncoder(PooledVectors):
    """A transformer reads the whole text; it gives no token vectors.

    Args:
        model: The name or the folder of a model, or a SentenceTransformer.
    """

    def __init__(self, model: Any) -> None:
        self._model = _loaded(model) if isinstance(model, str) else model
        self.dimension = int(self._model.encode([""], show_progress_bar=False).shape[1])
        if isinstance(model, str):
            folder = Path(model)
            version = fingerprint_of(folder) if folder.is_dir() else model
        else:
            version = f"a model of this process, {id(model)}"
        self.fingerprint = f"sentence-transformers:{version}"

    def pooled(self, texts: Sequence[str]) -> Float[Array, "texts dimension"]:
        cleaned = [clean_brackets(text) for text in texts]
        vectors = self._model.encode(cleaned, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32).reshape(len(cleaned), self.dimension)


def _loaded(model: str) -> Any:
    require_extra("sentence-transformers:MODEL", package="sentence_transformers", extra="sentences")
    package: Any = importlib.import_module("sentence_transformers")
    try:
        return package.SentenceTransformer(model)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            "vectors",
            message=f"The sentence-transformers model {model!r} cannot be loaded: {error}",
        ) from error
