"""fastText's own `.bin` models: an unseen word gets the vectors of its subwords."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.errors import BrokenInput, require_extra
from dgn.files import fingerprint_of
from dgn.text.tokens import split_words
from dgn.text.vectors import TokenVectors, WordRows, fingerprint_with


@final
class FastTextBin(TokenVectors):
    """No word is unknown. The table holds the words that were met so far."""

    def __init__(self, path: Path, split: Callable[[str], list[str]] = split_words) -> None:
        require_extra("Reading fastText .bin files", package="gensim", extra="fasttext")
        if not path.is_file():
            raise BrokenInput(path, None, found="no such file", allowed="a fastText .bin file")
        self.fingerprint = fingerprint_with(f"fasttext:{fingerprint_of(path)}", split)
        gensim: Any = importlib.import_module("gensim.models.fasttext")
        try:
            self._model: Any = gensim.load_facebook_vectors(str(path))
        except Exception as error:  # gensim raises whatever the bytes make it stumble over
            raise BrokenInput(
                path, None, found=f"something else ({error})", allowed="a fastText .bin file"
            ) from error
        self.dimension = int(self._model.vector_size)
        self._met: dict[str, int] = {}
        self._vectors: list[NDArray[np.float32]] = []
        self._stacked = np.empty((0, self.dimension), dtype=np.float32)
        self._lock = threading.Lock()
        self._word_rows = WordRows(self.row_of, split)

    @property
    def table(self) -> NDArray[Any]:
        if len(self._stacked) < len(self._vectors):
            self._stacked = np.stack(self._vectors)
        return self._stacked

    def token_rows(self, texts: Sequence[str]) -> list[Sequence[int]]:
        return self._word_rows.rows(texts)

    def row_of(self, word: str) -> int:
        """The row of a word; a word that was not met before gets a new one."""
        with self._lock:
            if word not in self._met:
                self._vectors.append(np.asarray(self._model.get_vector(word), dtype=np.float32))
                self._met[word] = len(self._vectors) - 1
            return self._met[word]
