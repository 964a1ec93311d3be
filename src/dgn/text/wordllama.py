"""The default vectors: wordllama's 256-dimensional token table, from inside its wheel.

The table and the tokenizer are read directly: importing wordllama would take longer than importing
all of dgn, and would give access to its pooled vectors only.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.errors import DGNError
from dgn.files import fingerprint_of
from dgn.text.tokens import clean_brackets
from dgn.text.vectors import SubwordVectors

_WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
_TOKENIZER = Path("tokenizers") / "l2_supercat_tokenizer_config.json"
_SERIAL_TEXTS = 64
"""Up to this many texts, starting the tokenizer's threads costs more than they save."""


@final
class WordLlamaVectors(SubwordVectors):
    """Subword tokens: no word is unknown."""

    def __init__(self) -> None:
        folder = _package_folder()
        import safetensors.numpy
        from tokenizers import Tokenizer

        weights: Any = safetensors.numpy.load_file(folder / _WEIGHTS)
        self._table: NDArray[Any] = weights["embedding.weight"].astype(np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.dimension = self._table.shape[1]
        self.fingerprint = f"wordllama:{fingerprint_of(folder / _WEIGHTS)}"

    @property
    def table(self) -> NDArray[Any]:
        return self._table

    @property
    def pieces(self) -> list[str]:
        return [self._tokenizer.id_to_token(row) for row in range(len(self._table))]

    def token_spans(self, text: str) -> list[tuple[int, int, int]]:
        """Positions are those in `clean_brackets(text)`."""
        encoded = self._tokenizer.encode(clean_brackets(text), add_special_tokens=False)
        return [(row, *span) for row, span in zip(encoded.ids, encoded.offsets, strict=True)]

    def token_rows(self, texts: Sequence[str]) -> list[Sequence[int]]:
        cleaned = [clean_brackets(text) for text in texts]
        if len(cleaned) <= _SERIAL_TEXTS:
            encode = self._tokenizer.encode
            return [encode(text, add_special_tokens=False).ids for text in cleaned]
        return [e.ids for e in self._tokenizer.encode_batch_fast(cleaned, add_special_tokens=False)]


def _package_folder() -> Path:
    found = importlib.util.find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise DGNError(
            "The package wordllama is not installed; install it with: pip install wordllama"
        )
    return Path(found.submodule_search_locations[0])
