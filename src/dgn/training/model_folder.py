"""A trained model on disk: `config.json` says what it is, `model.safetensors` holds its weights.

Loading is strict: a missing or extra weight is an error, and nothing in the folder is run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from safetensors import SafetensorError
from safetensors.torch import load, save

from dgn.encoders import FacetEncoder
from dgn.errors import BrokenInput, InvalidInput
from dgn.files import write_atomically
from dgn.selector.pretrained import SELECTOR, save_encoder
from dgn.text.rarity import default_rarity
from dgn.text.wordllama import WordLlamaVectors
from dgn.training.config import RunConfig, config_of
from dgn.training.facet_network import FacetNetwork
from dgn.training.networks import build_network
from dgn.unfolding import SelectionNetwork

FORMAT = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"


@dataclass(frozen=True)
class ModelDescription:
    """What `config.json` holds.

    inputs: how many numbers an item has. features: what each folder of features was made from.
    """

    config: RunConfig
    inputs: int
    features: dict[str, Any]


def write_description(folder: Path, description: ModelDescription) -> None:
    """Write `config.json`."""
    content = {
        "format": FORMAT,
        "inputs": description.inputs,
        "features": description.features,
        **description.config.as_tables(),
    }
    write_atomically(folder / CONFIG, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_description(folder: Path) -> ModelDescription:
    """Read `config.json`; unknown names are errors."""
    path = folder / CONFIG
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version, inputs = content.pop("format"), content.pop("inputs")
        features = content.pop("features")
    except OSError:
        raise InvalidInput("model", found=f"no {path}", allowed="a folder of dgn train") from None
    except (ValueError, KeyError, AttributeError, TypeError):
        raise BrokenInput(path, None, found="no model", allowed="what dgn train wrote") from None
    if version != FORMAT or type(inputs) is not int or type(features) is not dict:
        raise BrokenInput(path, None, found=f"format {version!r}", allowed=f"format {FORMAT}")
    return ModelDescription(config_of(content, path), inputs, cast(dict[str, Any], features))


def write_weights(folder: Path, network: SelectionNetwork) -> None:
    """Write `model.safetensors`."""
    weights = {name: w.detach().cpu().contiguous() for name, w in network.state_dict().items()}
    write_atomically(folder / WEIGHTS, save(weights))


def write_selector(folder: Path, network: FacetNetwork) -> None:
    """Write what selecting needs without torch, for `dgn.Selector.from_pretrained`."""
    encoder = FacetEncoder(WordLlamaVectors(), default_rarity(), network.weights())
    save_encoder(encoder, folder / SELECTOR)


def load_network(folder: Path | str) -> SelectionNetwork:
    """The trained network of a run, on the CPU, ready to select."""
    folder = Path(folder)
    described = read_description(folder)
    path = folder / WEIGHTS
    if not path.is_file():
        raise InvalidInput(
            "model", found=f"no {path}", allowed="a finished run; the same dgn train goes on"
        )
    network = build_network(described.config.network, described.inputs, seed=0)
    try:
        network.load_state_dict(load(path.read_bytes()))
    except (SafetensorError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise BrokenInput(
            path, None, found=reason, allowed=f"the weights that {CONFIG} describes"
        ) from None
    return network.eval()
