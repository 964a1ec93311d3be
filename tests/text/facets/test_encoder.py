import numpy as np
import pytest

from claim_page import CLAIM, PAGE, TITLE
from dgn.text import token_idf
from dgn.text.facets import FacetEncoder
from dgn.text.facets.encoder import default_vectors
from dgn.text.facets.formula import FacetSizes, start_weights
from dgn.text.query import Query
from models import shipped, untrained, wordllama


def test_queries_become_a_set_function_over_passages() -> None:
    queries = [Query.of(CLAIM, PAGE, titles=TITLE), Query.of("Cows", ["A cow."])]
    objective, items = untrained().encoder.encode(queries)
    assert items.mask.sum(axis=1).tolist() == [5, 1]
    assert objective.weights.shape == (2, items.features.shape[2])


def test_facets_are_the_words_of_the_query() -> None:
    for encoder in (untrained().encoder, shipped().encoder):
        facets = encoder.facets(Query(CLAIM, ()))
        assert "".join(facet.name for facet in facets) == CLAIM.replace(" ", "")[:-1]
        places = [place for facet in facets for place in facet.features]
        objective, items = encoder.encode([Query.of(CLAIM, PAGE)])
        assert places == list(range(len(places)))
        assert len(places) <= items.features.shape[2] == objective.weights.shape[1]


def test_tokens_are_those_of_the_vectors() -> None:
    counts = untrained().encoder.count_tokens(PAGE)
    assert counts == [len(rows) for rows in wordllama().token_rows(PAGE)]


def test_untrained_encoder_has_no_learned_parameters() -> None:
    assert untrained().encoder.parameters == 0
    weights = start_weights(FacetSizes(256, 2, 5), 0)
    encoder = FacetEncoder(weights, wordllama())
    assert encoder.parameters == sum(w.size for w in vars(weights).values())
    assert shipped().encoder.parameters > 0


def test_parts_have_defaults() -> None:
    encoder = FacetEncoder()
    assert encoder.vectors.fingerprint == default_vectors().fingerprint == wordllama().fingerprint
    np.testing.assert_array_equal(encoder.idf, token_idf())


def test_saved_arrays_are_the_weights() -> None:
    description, arrays = shipped().encoder.save()
    assert description["family"] == "facets"
    assert description["vectors"] == wordllama().fingerprint
    assert FacetSizes(**description["sizes"]) == shipped().encoder.weights.sizes
    assert description["idf"] == "shipped"
    assert set(arrays) == set(vars(shipped().encoder.weights))


@pytest.mark.parametrize("idf", [1.0, 7.0])
def test_idf_can_be_given(idf: float) -> None:
    constant = np.full(len(wordllama().table), idf, np.float32)
    query = Query.of("bridge opened harbour", PAGE)
    objective, _ = FacetEncoder(vectors=wordllama(), idf=constant).encode([query])
    # The same for all content words, whatever the constant: their weights sum to a constant.
    words = objective.weights[0, :3]
    np.testing.assert_allclose(words, words[0], rtol=1e-5)
