"""The compiled facets against the formula in NumPy, which is their definition."""

import copy
import pickle

import numpy as np
import pytest

from dgn.core import native as kernels
from dgn.errors import InvalidInput
from dgn.text.facets.encoder import FacetEncoder
from dgn.text.facets.formula import FacetSizes, encode, start_weights
from dgn.text.facets.matching import Matches, match_query
from dgn.text.facets.reading import read_queries
from dgn.text.query import Document, Query

pytestmark = pytest.mark.skipif(
    not kernels.is_available(), reason=f"the search is {kernels.describe()}"
)
WORDS = [
    *("the", "of", "a", "who", "when", "ship", "ships", "shipping", "harbour", "opened"),
    *("1901", "1907", "12", "1,200", "3.5", "Clara's", "red", "bridge", "Bridge", "designed"),
    *("engineer,", "not", "—", "…", "it's", "København"),
]


def text_of(random: np.random.Generator, longest: int) -> str:
    return " ".join(random.choice(WORDS, int(random.integers(0, longest))))


def query_of(seed: int) -> Query:
    """Loose passages, or documents with and without titles; some texts have no word."""
    random = np.random.default_rng(seed)
    asked = "bridge " + text_of(random, 40 if seed % 7 == 0 else 14)
    texts = [text_of(random, 25) for _ in range(int(random.integers(1, 12)))]
    if seed % 3 == 0:
        return Query.of(asked, [text or "—" for text in texts])
    documents = [
        Document(sentences=[text or "…" for text in texts], title=text_of(random, 5)),
        Document(sentences=["ship", "the red ship"], title="" if seed % 2 else "Harbour 1901"),
    ]
    return Query.of(asked, documents=documents)


def encoders() -> list[FacetEncoder]:
    """Untrained; with a network of random weights, whose sizes fill no register."""
    sizes = FacetSizes(256, projection=13, hidden=37)
    weights = start_weights(sizes, seed=0)
    random = np.random.default_rng(0)
    changed = {
        name: weight + random.normal(size=weight.shape).astype(np.float32) * 0.2
        for name, weight in vars(weights).items()
    }
    large = start_weights(FacetSizes(256, projection=32, hidden=128), seed=1)
    return [
        FacetEncoder(),
        FacetEncoder(type(weights)(**changed)),
        FacetEncoder(large),
        FacetEncoder(start_weights(FacetSizes(256, 0, 0, 1), seed=0)),
    ]


def check(encoder: FacetEncoder, queries: list[Query]) -> None:
    words, table, _ = read_queries(encoder.reader, queries)
    matches = [match_query(one, table) for one in words]
    wanted, items = encode(encoder.weights, Matches.of(matches, table))
    found, own = encoder.encode(queries)
    np.testing.assert_array_equal(own.mask, items.mask)
    longest = max(len(one["query"]) for one in matches)
    for row, one in enumerate(matches):
        # The formula has the features of whole passages after the padding, the kernel before it.
        words_first = [*range(len(one["query"])), *range(longest, items.features.shape[2])]
        width = len(words_first)
        np.testing.assert_allclose(
            own.features[row][:, :width],
            items.features[row][:, words_first],
            rtol=2e-4,
            atol=2e-4,
        )
        np.testing.assert_allclose(
            found.weights[row, :width], wanted.weights[row, words_first], rtol=1e-4, atol=1e-6
        )
        np.testing.assert_allclose(
            found.target[row, :width], wanted.target[row, words_first], rtol=1e-6
        )
        assert not own.features[row][:, width:].any()


@pytest.mark.parametrize("number", range(4))
def test_the_same_features_as_the_formula(number: int) -> None:
    encoder = encoders()[number]
    for seed in range(60):
        check(encoder, [query_of(seed)])
    check(encoder, [query_of(seed) for seed in range(60, 80)])


def test_every_level_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    for level in range(kernels.highest_isa() + 1):
        monkeypatch.setattr("dgn.core.native.facets.highest_isa", lambda level=level: level)
        for encoder in encoders():
            check(encoder, [query_of(seed) for seed in range(20)])


def test_a_batch_changes_nothing() -> None:
    encoder = encoders()[1]
    queries = [query_of(seed) for seed in range(30)]
    _, together = encoder.encode(queries)
    for row, query in enumerate(queries):
        _, alone = encoder.encode([query])
        _, count, width = alone.features.shape
        np.testing.assert_array_equal(together.features[row, :count, :width], alone.features[0])
        assert not together.features[row, :, width:].any()


def test_queries_without_words_or_passages_are_refused() -> None:
    encoder = FacetEncoder()
    with pytest.raises(InvalidInput, match="a text with a word in it"):
        encoder.encode([Query.of("—", ["a ship"])])


def test_a_used_encoder_can_be_copied_and_pickled() -> None:
    encoder = encoders()[2]
    query = query_of(1)
    _, items = encoder.encode([query])
    kernel = encoder.formulas.english.kernel
    copied = pickle.loads(pickle.dumps(kernel))
    for twin in (copy.deepcopy(kernel), copied):
        words, table, _ = read_queries(encoder.reader, [query])
        np.testing.assert_array_equal(
            twin.compute((table.vectors, table.facts, table.stem), words)[0], items.features
        )
