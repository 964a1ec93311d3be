"""Models on disk and off the hub: config.json, model.safetensors, README.md; nothing is run.

A folder holds all that selecting needs beside the word vectors: the facets' weights, and how rare
each token is.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, cast

import numpy as np

from dgn.encoders import FacetEncoder, FacetSizes, FacetWeights, TextEncoder
from dgn.encoders.facet_weights import shapes_of
from dgn.errors import BrokenInput, InvalidInput
from dgn.files import write_atomically
from dgn.text.rarity import default_rarity
from dgn.text.wordllama import WordLlamaVectors

FORMAT = "dgn-facets-1"
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
UNTRAINED = "untrained"
"""The model that has learned nothing: cosines, IDF and titles."""

SELECTOR = "selector"
"""Where a run of `dgn train --encoder facets` keeps its selector."""
SHIPPED = Path(__file__).parent.parent / "models" / "facets"
_LARGEST_WEIGHTS = 64 * 2**20
_LARGEST_CONFIG = 2**20
_LARGEST_WEIGHT = 1e4


def load_encoder(model: str | Path | None = None) -> FacetEncoder:
    """The encoder of the shipped model, the untrained one, of a folder, or of a name on the hub."""
    if model is None:
        return load_folder(SHIPPED)
    if model == UNTRAINED:
        return FacetEncoder(WordLlamaVectors(), default_rarity())
    folder = Path(model)
    if folder.is_dir():
        inner = folder / SELECTOR
        return load_folder(inner if inner.is_dir() else folder)
    name = str(model)
    if isinstance(model, Path) or name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise InvalidInput(
            "model", found=f"no folder {model}", allowed="a folder, or a hub's who/what"
        )
    from dgn.selector.hub import fetch_model

    return load_folder(fetch_model(name))


def save_encoder(encoder: TextEncoder, folder: Path) -> None:
    """Write a model; one that is there already is replaced, file by file."""
    from safetensors.numpy import save

    if not isinstance(encoder, FacetEncoder):
        raise InvalidInput(
            "encoder",
            found=type(encoder).__name__,
            allowed="a FacetEncoder; others hold no weights",
        )
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("folder", found=f"a file, {folder}", allowed="a folder, new or not")
    folder.mkdir(parents=True, exist_ok=True)
    sizes = sizes_of(encoder.weights)
    config = {
        "format": FORMAT,
        "vectors": encoder.vectors.fingerprint,
        "sizes": asdict(sizes),
    }
    tensors = {name: np.ascontiguousarray(w) for name, w in vars(encoder.weights).items()}
    tensors["rarity"] = encoder.rarity.astype(np.float16)
    shipped = (SHIPPED / CARD).read_text(encoding="utf-8") if (SHIPPED / CARD).is_file() else ""
    card = shipped if _is_shipped(encoder) else _PLAIN_CARD
    path = folder / CARD
    # A card that the user wrote is kept; the shipped model's must not stand beside other weights.
    if not path.exists() or path.read_text(encoding="utf-8") == shipped:
        write_atomically(path, card)
    write_atomically(folder / WEIGHTS, save(tensors))
    write_atomically(folder / CONFIG, json.dumps(config, indent=2) + "\n")


def sizes_of(weights: FacetWeights) -> FacetSizes:
    """How large an encoder with these weights is."""
    dimension, rank = weights.claim_space.shape
    hidden, features = weights.output.shape
    return FacetSizes(dimension, rank, weights.compare_bias.shape[0], features, hidden)


def load_folder(folder: Path) -> FacetEncoder:
    """The encoder of a model's folder; a missing or an extra weight is an error."""
    config = _config_of(folder / CONFIG)
    sizes = _sizes_in(config, folder / CONFIG)
    vectors = WordLlamaVectors()
    if config["vectors"] != vectors.fingerprint:
        raise BrokenInput(
            folder / CONFIG,
            None,
            found=f"a model for the vectors {config['vectors']}",
            allowed=f"one for those that are installed, {vectors.fingerprint}",
        )
    if sizes.dimension != vectors.dimension:
        raise BrokenInput(
            folder / CONFIG,
            None,
            found=f"dimension {sizes.dimension}",
            allowed=f"{vectors.dimension}, as the vectors have",
        )
    tensors = _tensors_of(folder / WEIGHTS, sizes, len(vectors.table))
    rarity = tensors.pop("rarity").astype(np.float32)
    return FacetEncoder(vectors, rarity, FacetWeights(**tensors))


def _config_of(path: Path) -> dict[str, Any]:
    allowed = "what Selector.save_pretrained or dgn train --encoder facets wrote"
    if not path.is_file():
        raise InvalidInput("model", found=f"no {path}", allowed=f"a folder with {allowed}")
    try:
        if path.stat().st_size > _LARGEST_CONFIG:
            raise ValueError("too large")
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if config["format"] != FORMAT or not isinstance(config["vectors"], str):
            raise ValueError(f"format {config['format']!r}")
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise BrokenInput(path, None, found=f"no selector ({error})", allowed=allowed) from None
    return config


def _sizes_in(config: dict[str, Any], path: Path) -> FacetSizes:
    sizes: Any = config.get("sizes")
    names = {one.name for one in fields(FacetSizes)}
    if type(sizes) is not dict or set(cast("dict[str, Any]", sizes)) != names:
        raise BrokenInput(path, None, found="other sizes", allowed=", ".join(sorted(names)))
    known = cast("dict[str, Any]", sizes)
    if not all(type(size) is int and 0 <= size <= 1024 for size in known.values()):
        raise BrokenInput(path, None, found=f"sizes {known}", allowed="numbers from 0 to 1024")
    return FacetSizes(**known)


def _tensors_of(path: Path, sizes: FacetSizes, vocabulary: int) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if not path.is_file():
        raise InvalidInput("model", found=f"no {path}", allowed="a finished model")
    if path.stat().st_size > _LARGEST_WEIGHTS:
        raise BrokenInput(path, None, found="over 64 MiB", allowed="the weights of a selector")
    try:
        tensors: dict[str, Any] = load(path.read_bytes())
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BrokenInput(path, None, found=str(error), allowed="safetensors") from None
    wanted = {**shapes_of(sizes), "rarity": (vocabulary,)}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if found != wanted:
        names = sorted(set(wanted.items()) ^ set(found.items()))
        raise BrokenInput(
            path, None, found=f"other weights ({names[0][0]})", allowed=f"those of {CONFIG}"
        )
    for name, tensor in tensors.items():
        if tensor.dtype.kind != "f" or not (np.abs(tensor) < _LARGEST_WEIGHT).all():
            raise BrokenInput(
                path, None, found=f"{tensor.dtype} in {name}", allowed="floats of a sensible size"
            )
    return tensors


def _is_shipped(encoder: FacetEncoder) -> bool:
    shipped = load_folder(SHIPPED).weights if (SHIPPED / WEIGHTS).is_file() else None
    return shipped is not None and all(
        np.array_equal(ours, getattr(shipped, name)) for name, ours in vars(encoder.weights).items()
    )


_PLAIN_CARD = """---
library_name: dgn
tags: [sentence-selection, evidence, submodular]
---

# Claim facets

A selector of the Python library `dgn`: out of many sentences it picks the few that together cover
a claim. Load it with `dgn.Selector.from_pretrained(this folder)`. Say here what it was trained on,
with which seed, how well it does and where it fails.
"""
