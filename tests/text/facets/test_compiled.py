"""Queries in several languages: alone and in batches, by the kernel and by NumPy."""

import numpy as np
import pytest

import dgn
from dgn.core import native
from dgn.core.functions import FeatureCoverage, Items
from dgn.text import Query
from dgn.text.facets import FacetEncoder
from dgn.text.facets.encoder import default_vectors
from foreign_texts import PASSAGES
from models import shipped

ENGLISH = Query.of(
    "When did the bridge open?",
    documents=[
        {
            "title": "Corran Bridge",
            "sentences": ["The bridge opened in 1911.", "Ice damaged a pier.", "Why not?"],
        }
    ],
)
MIXED = Query.of(
    "Wann wurde die Brücke von Corran geöffnet?",
    documents=[
        {
            "title": "Brücke von Corran",
            "sentences": [
                "Die Brücke wurde im Jahr 1911 geöffnet, und der Zug fuhr über sie.",
                "The bridge of Corran was opened in 1911 by the queen.",
                "Corran, 1911",
                "Eis",
            ],
        },
        {
            "title": "",
            "sentences": [
                "En 1947, la glace a endommagé le pont parce que les piles étaient trop faibles."
            ],
        },
    ],
)


def queries() -> list[Query]:
    return [
        ENGLISH,
        *(Query.of(question, passages) for question, *passages in PASSAGES.values()),
        MIXED,
        Query.of(ENGLISH.text, [MIXED.texts[0], *ENGLISH.texts]),
    ]


def encoded(encoder: FacetEncoder, some: list[Query]) -> tuple[FeatureCoverage, Items]:
    objective, items = encoder.encode(some)
    assert isinstance(objective, FeatureCoverage)
    return objective, items


@pytest.mark.parametrize("name", [None, "untrained"])
def test_a_batch_of_languages_is_as_each_query_alone(name: str | None) -> None:
    encoder = dgn.Selector.from_pretrained(name).encoder
    assert isinstance(encoder, FacetEncoder)
    some = queries()
    together, items = encoded(encoder, some)
    fresh = dgn.Selector.from_pretrained(name).encoder
    assert isinstance(fresh, FacetEncoder)
    for row, query in reversed([*enumerate(some)]):
        alone, own = encoded(fresh, [query])
        count, width = own.features.shape[1:]
        np.testing.assert_array_equal(items.features[row, :count, :width], own.features[0])
        np.testing.assert_array_equal(together.weights[row, :width], alone.weights[0])
        np.testing.assert_array_equal(together.target[row, :width], alone.target[0])
        assert items.mask[row].sum() == count
        assert not items.features[row, :, width:].any()


@pytest.mark.skipif(not native.is_available(), reason="there is no kernel to compare")
def test_the_kernel_agrees_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = FacetEncoder()
    compiled = [encoded(encoder, [query]) for query in queries()]
    monkeypatch.setattr(native, "is_available", lambda: False)
    for (fast, items), query in zip(compiled, queries(), strict=True):
        plain, own = encoded(encoder, [query])
        np.testing.assert_allclose(items.features, own.features, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(fast.weights, plain.weights, rtol=1e-4, atol=1e-6)


def test_passages_in_other_languages_are_found_by_names_and_numbers() -> None:
    selection = shipped().select_queries([MIXED], dgn.Limits(k=2))[0]
    assert selection.indices[0] == 0
    assert MIXED.read_language == "de"
    gains = {one.index: one for one in selection.explain().selected}
    assert {word.word for word in gains[0].covers} >= {"Brücke", "geöffnet"}


def test_words_are_as_rare_as_the_passages_say() -> None:
    same = "Die Brücke und der Fluss."
    query = Query.of("Die Brücke und der Fluss der Stadt", [same, same + " Stadt!", "Brücke"])
    objective, _ = encoded(FacetEncoder(), [query])
    weight = dict(zip(query.text.split(), objective.weights[0].tolist(), strict=False))
    assert weight["Stadt"] > weight["Brücke"] > weight["und"] > 0


def test_weights_that_were_learned_from_any_language_are_used_for_it() -> None:
    german = queries()[3]
    assert german.read_language == "de"
    vectors = default_vectors()
    weights = shipped().encoder.save()[1]
    learned = FacetEncoder(type(FacetEncoder().weights)(**weights), vectors, languages="any")
    ours, _ = encoded(learned, [german])
    fixed, _ = encoded(FacetEncoder(vectors=vectors), [german])
    assert ours.weights.shape != fixed.weights.shape
    description, arrays = learned.save()
    assert description["languages"] == "any"
    loaded = FacetEncoder.load(description, lambda _: dict(arrays))
    np.testing.assert_array_equal(encoded(loaded, [german])[0].weights, ours.weights)
    with pytest.raises(dgn.InvalidInput, match="languages must be english or any"):
        FacetEncoder(languages="all")
