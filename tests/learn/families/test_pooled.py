from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dgn.core import native
from dgn.core import greedy
from dgn.errors import InvalidInput
from dgn.learn.families import FeatureOptions
from dgn.learn.families.pooled import PooledFamily, PooledSettings
from dgn.text.pooled import PooledEncoder
from dgn.text.query import Query
from dgn.text.vectors import unit_rows
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


@pytest.mark.parametrize(
    "change", [{"scale": 0.0}, {"start": "zero"}, {"weights_start": 0.0}, {"concave": "lgo"}]
)
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


@pytest.mark.parametrize(
    ("concave", "form"),
    [
        *(("log", "log1p"), ("sqrt", "sqrt"), ("power(exponent=0.3)", "power")),
        *(("one-minus-exp", "one_minus_exp"), ("saturated(cap=2)", "saturated")),
    ],
)
def test_weights_and_concave_function_at_the_start(concave: str, form: str) -> None:
    settings = PooledSettings(widths=(4,), weights_start=0.05, concave=concave)
    module = FAMILY.module("dgn", settings, 256, 0.0, 0)
    objective, _ = module(torch.zeros(1, 2, 256))
    assert objective.weights.detach().tolist() == pytest.approx([0.05] * 4)
    assert native.compiled(objective).form == form  # and its kernels are used


@pytest.mark.parametrize("concave", ["log", "sqrt", "power(exponent=0.3)", "saturated(cap=0.02)"])
def test_run_time_has_the_concave_function_of_training(concave: str) -> None:
    settings = PooledSettings(start="identity", scale=20.0, weights_start=0.05, concave=concave)
    module = FAMILY.module("dgn", settings, 256, 0.0, 0).eval()
    known = {"vectors": wordllama().fingerprint, "source": "wordllama", "unit": True}
    description = FAMILY.describe("dgn", settings, 256, known)
    weights = {name: weight.numpy() for name, weight in module.state_dict().items()}
    encoder = PooledEncoder.load(description, lambda _: weights, None)
    assert encoder.save()[0] == description
    query = Query.of("winter river", ["A river in winter.", "Glass.", "A river.", "Cold winter."])
    objective, items = encoder.encode([query])
    texts = unit_rows(wordllama().pooled([query.text, *query.texts]))
    texts = texts.astype(np.float16).astype(np.float32)
    with torch.no_grad():
        theirs = greedy(*module(torch.from_numpy(texts[:1] * texts[1:])[None]), 3)
    ours = greedy(objective, items, 3)
    assert ours.indices.tolist() == theirs.indices.tolist()
    np.testing.assert_allclose(ours.gains, theirs.gains.numpy(), rtol=1e-4)


def test_model_from_before_the_choice_of_a_concave_function_is_read() -> None:
    old = described()
    del old["concave"]
    assert PooledEncoder.load(old, zeros, None).save()[0]["concave"] == "log"
    with pytest.raises(InvalidInput, match="the module elsewhere is not imported"):
        PooledEncoder.load(described(concave="elsewhere:Root"), zeros, None)
