from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgn.errors import BrokenInput, InvalidInput
from dgn.learn.families import FeatureOptions
from dgn.learn.families.facets import FacetFamily, FacetSettings
from dgn.learn.families.modules import FacetModule
from dgn.text.facets import FacetEncoder
from dgn.text.facets.formula import FacetSizes
from models import shipped, wordllama

FAMILY = FacetFamily()
SMALL = FacetSettings(hidden=5, projection=2)


def test_settings_become_sizes() -> None:
    assert SMALL.sizes(256) == FacetSizes(256, 2, 5)


@pytest.mark.parametrize("name", ["hidden", "projection"])
def test_settings_are_checked(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be at least"):
        FacetSettings(**{name: -1})


@pytest.mark.parametrize("options", [{"vectors": "some.vec"}, {"unit": True}])
def test_facets_need_the_default_vectors(options: dict[str, Any]) -> None:
    FAMILY.check_options(FeatureOptions(encoder="facets"))
    with pytest.raises(InvalidInput, match="wordllama"):
        FAMILY.check_options(FeatureOptions(encoder="facets", **options))


def test_features_depend_on_the_idf_and_on_titles() -> None:
    with_titles = FAMILY.feature_key(FeatureOptions(encoder="facets"))
    without = FAMILY.feature_key(FeatureOptions(encoder="facets", titles=False))
    assert set(with_titles) == {"idf"}
    assert without == {**with_titles, "titles": False}


def test_only_a_dgn_can_be_trained() -> None:
    module = FAMILY.module("dgn", SMALL, 256, 0.1, seed=3)
    assert isinstance(module, FacetModule)
    assert module.sizes == SMALL.sizes(256)
    with pytest.raises(InvalidInput, match="has no encoder architecture; use dgn"):
        FAMILY.module("encoder", SMALL, 256, 0.0, seed=0)


def test_missing_features_are_explained(tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match=r"vectors\.npy"):
        FAMILY.load_tables([tmp_path])


def test_description_and_weights_make_a_model() -> None:
    description = FAMILY.describe("dgn", SMALL, 256, {"vectors": wordllama().fingerprint})
    module = FAMILY.module("dgn", SMALL, 256, 0.0, seed=3)
    arrays = {name: w.numpy() for name, w in module.state_dict().items()}

    def read(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        assert shapes == {name: array.shape for name, array in arrays.items()}
        return dict(arrays)

    encoder = FacetEncoder.load(description, read, None)
    assert encoder.weights.sizes == SMALL.sizes(256)
    assert encoder.save()[0] == description


@pytest.mark.parametrize(
    ("change", "vectors", "message"),
    [
        ({"vectors": "wordllama:0"}, None, "trained on the vectors wordllama:0"),
        ({}, "other.vec", "the facets need wordllama's"),
        ({"sizes": {}}, None, "a dictionary with dimension, hidden"),
        ({"sizes": 3}, None, "sizes must be a dict"),
        ({"more": 1}, None, "a description with the keys"),
    ],
)
def test_mistakes_in_a_description_are_named(
    change: dict[str, Any], vectors: str | None, message: str
) -> None:
    description, arrays = shipped().encoder.save()
    with pytest.raises(InvalidInput, match=message):
        FacetEncoder.load({**description, **change}, lambda _: dict(arrays), vectors)


@pytest.mark.parametrize(("size", "message"), [(-1, "integers"), (128, "the vectors have 256")])
def test_dimension_is_that_of_the_vectors(size: int, message: str) -> None:
    description, arrays = shipped().encoder.save()
    sizes = {**description["sizes"], "dimension": size}
    with pytest.raises(InvalidInput, match=message):
        FacetEncoder.load({**description, "sizes": sizes}, lambda _: dict(arrays), None)
