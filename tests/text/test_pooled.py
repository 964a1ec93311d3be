import numpy as np
import pytest
import torch

from claim_page import CLAIM, PAGE
from dgn.core.functions import FeatureCoverage, Items
from dgn.core import greedy
from dgn.errors import InvalidInput
from dgn.learn.families.pooled import PooledFamily, PooledSettings
from dgn.text.pooled import PooledEncoder
from dgn.text.pooled import widths_of
from dgn.text.query import Query
from dgn.text.vectors import unit_rows
from dgn.text.words import split_words
from models import wordllama

QUERIES = [Query.of(CLAIM, PAGE), Query.of("Cows eat grass", ["A cow.", "Grass."])]


def product_of(query: Query, *, unit: bool) -> np.ndarray:
    vectors = wordllama().pooled([query.text, *query.texts])
    vectors = unit_rows(vectors) if unit else vectors
    vectors = vectors.astype(np.float16).astype(np.float32)
    return vectors[:1] * vectors[1:]


@pytest.mark.parametrize("unit", [False, True])
def test_untrained_features_are_the_product_of_pooled_vectors(unit: bool) -> None:
    encoder = PooledEncoder(wordllama(), 3.0, unit=unit)
    objective, items = encoder.encode(QUERIES)
    assert isinstance(objective, FeatureCoverage)
    assert items.mask.sum(axis=1).tolist() == [5, 2]
    for row, query in enumerate(QUERIES):
        expected = np.maximum(3.0 * product_of(query, unit=unit), 0)
        np.testing.assert_array_equal(items.features[row][items.mask[row]], expected)
    assert encoder.parameters == 0


def weights_of(model: str, seed: int = 0) -> tuple[torch.nn.Module, dict[str, np.ndarray]]:
    settings = PooledSettings(widths=(6, 5) if model != "dgn" else (6,), scale=10.0)
    network = PooledFamily().module(model, settings, 256, 0.0, seed).eval()
    return network, {name: w.numpy() for name, w in network.state_dict().items()}


def test_trained_features_are_those_of_the_torch_module() -> None:
    network, weights = weights_of("dgn")
    encoder = PooledEncoder(wordllama(), unit=True, weights=weights)
    objective, items = encoder.encode(QUERIES[:1])
    with torch.no_grad():
        theirs, their_items = network(torch.from_numpy(product_of(QUERIES[0], unit=True))[None])
    np.testing.assert_allclose(items.features, their_items.features.numpy(), atol=1e-5)
    np.testing.assert_allclose(objective.weights, theirs.weights.numpy(), rtol=1e-5)
    assert encoder.parameters == sum(weight.size for weight in weights.values())
    assert widths_of(weights) == [256, 6]


def test_pointwise_model_selects_in_the_order_of_its_scores() -> None:
    network, weights = weights_of("encoder")
    encoder = PooledEncoder(wordllama(), unit=True, weights=weights)
    objective, items = encoder.encode(QUERIES[:1])
    with torch.no_grad():
        scores = network(torch.from_numpy(product_of(QUERIES[0], unit=True))[None])[0]
    selected = greedy(objective, Items(items.features[0]), 5).indices
    assert list(selected) == scores.argsort(descending=True, stable=True).tolist()


def test_very_large_scores_stay_different() -> None:
    _, weights = weights_of("encoder")
    weights["score.weight"] = np.zeros_like(weights["score.weight"])
    weights["score.weight"][:] = 3.0
    weights["score.bias"] = np.array([15.0], np.float32)
    _, items = PooledEncoder(wordllama(), weights=weights).encode(QUERIES[:1])
    assert items.features.dtype == np.float64
    assert len(set(items.features[0, :, 0].tolist())) > 1


def test_tokens_are_words() -> None:
    encoder = PooledEncoder(wordllama())
    assert encoder.count_tokens(PAGE) == [len(split_words(text)) for text in PAGE]
    assert encoder.facets(Query(CLAIM, ())) == ()


@pytest.mark.parametrize("model", ["dgn", "encoder"])
def test_saved_encoder_loads(model: str) -> None:
    _, weights = weights_of(model)
    encoder = PooledEncoder(wordllama(), unit=True, weights=weights, source="wordllama")
    description, arrays = encoder.save()

    def read(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        assert shapes == {name: array.shape for name, array in arrays.items()}
        return arrays

    again = PooledEncoder.load(description, read, None)
    _, items = encoder.encode(QUERIES)
    np.testing.assert_array_equal(again.encode(QUERIES)[1].features, items.features)
    assert again.save()[0] == description


def test_untrained_encoder_cannot_be_saved() -> None:
    with pytest.raises(InvalidInput, match="cannot be saved"):
        PooledEncoder(wordllama()).save()
