"""Models on disk: config.json, model.safetensors and README.md, the same for every encoder family.

`dgn train` and `Selector.save_pretrained` write such a folder, `Selector.from_pretrained` reads it.
Reading is strict, and nothing in the folder is executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dgn.errors import BrokenInput, InvalidInput, require_extra
from dgn.files import write_atomically
from dgn.text.encoder import Encoder, find_encoder
from dgn.text.facets import FacetEncoder

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
DEFAULT, UNTRAINED = "default", "untrained"
MINILM = "minilm"

_MODELS = Path(__file__).parent / "models"
SHIPPED = _MODELS / "facets"
_FORMAT = "dgn-model-2"
_LARGEST_CONFIG = 2**20
_LARGEST_WEIGHTS = 64 * 2**20
_LARGEST_VALUE = 1e6
_UNREADABLE = (
    InvalidInput,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
)


def load_model(model: str | Path | None) -> tuple[Encoder, str]:
    """The encoder and the card of a model: shipped, untrained, in a folder, or on the hub."""
    if model in (None, DEFAULT):
        return load_folder(SHIPPED)
    if not isinstance(cast("Any", model), str | Path):
        allowed = "a folder, a name on the hub, default, untrained, or minilm"
        raise InvalidInput("model", found=repr(model), allowed=allowed)
    if model == UNTRAINED:
        return FacetEncoder(), ""
    if model == MINILM:
        return load_folder(_MODELS / MINILM)
    folder = Path(model)
    if folder.is_dir():
        return load_folder(folder)
    name = str(model)
    if isinstance(model, Path) or name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise InvalidInput(
            "model",
            message=f"The folder {model} does not exist; pass a model folder, a name on the "
            "Hugging Face hub (user/name), default, untrained, or minilm.",
        )
    return load_folder(_fetched(name))


def load_folder(folder: Path) -> tuple[Encoder, str]:
    """The encoder and the card of a folder; a missing or an additional array is an error."""
    description, _ = read_config(folder)
    card = folder / CARD
    try:
        encoder = find_encoder(description["family"]).load(
            description, lambda shapes: read_arrays(folder, shapes)
        )
    except InvalidInput as error:
        raise BrokenInput(folder / CONFIG, None, message=str(error)) from error
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    return encoder, text


def save_model(
    encoder: Encoder, folder: Path, card: str = "", training: Mapping[str, Any] | None = None
) -> None:
    """Write an encoder as a model folder; an existing one is replaced, file by file.

    Args:
        encoder: The encoder.
        folder: The folder.
        card: The model card; by default, a short one.
        training: How it was trained, as JSON can hold it.
    """
    description, arrays = encoder.save()
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("folder", message=f"{folder} is a file; choose a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / CARD, card or _short_card(description["family"]))
    write_arrays(folder, arrays)
    content: dict[str, Any] = {"format": _FORMAT, "encoder": description}
    if training is not None:
        content["training"] = dict(training)
    write_atomically(folder / CONFIG, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_config(folder: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The description of the encoder in config.json, and how it was trained, if that is known."""
    path = folder / CONFIG
    if not path.is_file():
        raise InvalidInput(
            "model",
            message=f"{folder} is not a model folder: it has no {CONFIG}. Selector.save_pretrained "
            "and dgn train write model folders.",
        )
    try:
        if path.stat().st_size > _LARGEST_CONFIG:
            raise ValueError("the file is too large")
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError(f"format {content['format']!r}")
        unknown = set(content) - {"format", "encoder", "training"}
        if unknown:
            raise ValueError(f"unknown {', '.join(sorted(unknown))}")
        encoder, training = content["encoder"], content.get("training")
        if type(encoder["family"]) is not str or type(training) not in (dict, type(None)):
            raise ValueError("another structure")
    except _UNREADABLE as error:
        raise BrokenInput(
            path, None, found=f"something else ({error})", allowed=f"a model of format {_FORMAT}"
        ) from None
    return cast("dict[str, Any]", encoder), training


def _fetched(name: str) -> Path:
    """The folder in the cache of the hub to which the three files of a model were downloaded."""
    require_extra("The Hugging Face hub", package="huggingface_hub", extra="hub")
    import huggingface_hub
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    hub: Any = huggingface_hub  # whose functions are only partly typed
    try:
        return Path(hub.snapshot_download(name, allow_patterns=[CONFIG, WEIGHTS, CARD]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput(
            "model",
            message=f"{name} is not a folder and cannot be downloaded from the hub: {reason}",
        ) from None


def write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write model.safetensors."""
    from safetensors.numpy import save

    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_atomically(folder / WEIGHTS, save(contiguous))


def read_arrays(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Read model.safetensors, which must contain exactly these arrays of floats."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = folder / WEIGHTS
    if not path.is_file():
        raise BrokenInput(
            path,
            None,
            message="the file does not exist; if this is a run of dgn train, it is not finished: "
            "run the same command again to resume it.",
        )
    if path.stat().st_size > _LARGEST_WEIGHTS:
        raise BrokenInput(path, None, message="the file is larger than 64 MiB.")
    try:
        arrays: dict[str, Any] = load(path.read_bytes())
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BrokenInput(path, None, found=str(error), allowed="a safetensors file") from None
    found = {name: tuple(array.shape) for name, array in arrays.items()}
    if found != dict(shapes):
        name = sorted(set(shapes.items()) ^ set(found.items()))[0][0]
        raise BrokenInput(
            path,
            None,
            found=f"{name} with shape {found.get(name)}",
            allowed=f"the arrays that {CONFIG} describes",
        )
    for name, array in arrays.items():
        with np.errstate(invalid="ignore"):  # a signalling NaN
            is_sensible = array.dtype.kind == "f" and bool(
                (np.abs(array.astype(np.float64)) < _LARGEST_VALUE).all()
            )
        if not is_sensible:
            raise BrokenInput(
                path, None, message=f"{name} does not consist of finite floats of a sensible size."
            )
    return arrays


def _short_card(family: str) -> str:
    encoder = find_encoder(family)
    return f"""---
library_name: dgn
tags: [sentence-selection, evidence, submodular]
---

# A selector of passages

This model selects, out of many passages, the few that together cover a query. Load it with
`dgn.Selector.from_pretrained(FOLDER)` of the Python library `dgn`.

{encoder.description}

**Limits.** {encoder.limits}
"""
