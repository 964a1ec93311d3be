from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dgn.errors import InvalidInput
from dgn.learn.families import FeatureOptions
from dgn.learn.families.pooled import PooledFamily, PooledSettings
from dgn.text.encoders import PooledEncoder
from models import wordllama

FAMILY = PooledFamily()


@pytest.mark.parametrize(
    ("architecture", "settings", "widths"),
    [
        ("dgn", {}, (300, 254)),
        ("dgn", {"start": "identity"}, (300, 300)),
        ("dgn", {"widths": (7, 5, 3)}, (7, 5, 3)),
        ("encoder", {}, (300, 270)),
        ("deep-encoder", {}, (701, 702, 300)),
    ],
)
def test_widths_are_those_of_the_paper_unless_given(
    architecture: str, settings: dict[str, Any], widths: tuple[int, ...]
) -> None:
    assert PooledSettings(**settings).all_widths(architecture, 300) == (300, *widths)


@pytest.mark.parametrize(("architecture", "widths"), [("encoder", (3,)), ("deep-encoder", (3, 3))])
def test_baselines_have_fixed_depths(architecture: str, widths: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="layers for the"):
        PooledSettings(widths=widths).all_widths(architecture, 300)


@pytest.mark.parametrize("change", [{"scale": 0.0}, {"start": "zero"}])
def test_settings_are_checked(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        PooledSettings(**change)


def test_pooled_features_never_use_titles() -> None:
    FAMILY.check_options(FeatureOptions())
    with pytest.raises(InvalidInput, match="--no-titles"):
        FAMILY.check_options(FeatureOptions(titles=False))


def test_incomplete_gold_is_refused() -> None:
    with pytest.raises(InvalidInput, match="pass all folders as train"):
        FAMILY.load_tables([], partial=[Path("folder")])


def test_start_depends_on_the_seed_alone() -> None:
    def state(seed: int) -> dict[str, torch.Tensor]:
        return FAMILY.module("dgn", PooledSettings(), 12, 0.0, seed).state_dict()

    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    one, same, other = state(0), state(0), state(1)
    assert torch.equal(before, torch.random.get_rng_state())
    name = "features.layers.0.weight"
    assert torch.equal(one[name], same[name])
    assert not torch.equal(one[name], other[name])


def described(**change: object) -> dict[str, Any]:
    known = {"vectors": wordllama().fingerprint, "source": "wordllama", "unit": True}
    description = FAMILY.describe("dgn", PooledSettings(widths=(4,)), 256, known)
    return {**description, **change}


def zeros(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


def test_description_names_the_arrays() -> None:
    encoder = PooledEncoder.load(described(), zeros, None)
    assert {name: w.shape for name, w in encoder.weights.items()} == {
        "features.layers.0.weight": (4, 256),
        "features.layers.0.bias": (4,),
        "objective.raw": (4,),
    }


@pytest.mark.parametrize(
    ("change", "vectors", "message"),
    [
        ({"vectors": "wordllama:0"}, None, "wordllama is not what the model was trained with"),
        ({"source": ""}, None, "does not say which vectors it needs"),
        ({"source": "gone.vec"}, None, "cannot be opened"),
        ({}, "other.vec", "cannot be opened"),
        ({"widths": [256, -1]}, None, "integers from 0 to 4096"),
        ({"widths": "256"}, None, "widths must be a list"),
        ({"more": 1}, None, "a description with the keys"),
    ],
)
def test_mistakes_in_a_description_are_named(
    change: dict[str, Any], vectors: str | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        PooledEncoder.load(described(**change), zeros, vectors)


def test_vectors_that_have_moved_can_be_passed() -> None:
    encoder = PooledEncoder.load(described(source="gone.vec"), zeros, "wordllama")
    assert encoder.save()[0]["source"] == "wordllama"
