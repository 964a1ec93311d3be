"""Scores and embeddings of the caller: what they add, and how much they are worth."""

import numpy as np
import pytest
import torch

import dgn
from claim_page import CLAIM, PAGE
from dgn.core.functions import FacilityLocation, FeatureCoverage, Items, SetFunction
from dgn.selector.scores import vector_function, with_scores
from dgn.text.query import Passage, Query
from models import shipped, untrained

FEATURES = np.array([[[4.0, 1.0, 0.0], [1.0, 1.0, 3.0]], [[2.0, 0.5, 1.0], [0.0, 0.0, 0.0]]])
MASK = np.array([[True, True], [True, False]])
WEIGHTS = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
TARGET = np.array([[4.0, 2.0, 0.0], [2.0, 2.0, 0.0]])
RANDOM = np.random.default_rng(0)


def queries_with(*scores: list[float] | None) -> list[Query]:
    return [
        Query("q", tuple(Passage("p", score=score) for score in own or [None] * 2))
        for own in scores
    ]


def scored(f: SetFunction, items: Items, *scores: list[float] | None, weight: float):
    return with_scores(queries_with(*scores), f, items, weight)[:2]


@pytest.mark.parametrize(
    "f",
    [
        FeatureCoverage(),
        FeatureCoverage(np.array([1.0, 2.0, 3.0])),
        FeatureCoverage(WEIGHTS, target=TARGET),
        FacilityLocation(WEIGHTS),
    ],
    ids=["no weights", "shared weights", "weights by query", "another function"],
)
def test_scores_are_one_more_feature(f: SetFunction) -> None:
    items = Items(FEATURES, MASK)
    g, more = scored(f, items, [2.0, 6.0], None, weight=0.5)
    plain = f.gains(items, f.empty(items))
    added = [[0.0, 0.5 * plain[0].max()], [0.0, 0.0]]
    np.testing.assert_allclose(g.gains(more, g.empty(more)), plain + np.array(added))


def test_scores_stand_directly_after_the_features_of_a_query() -> None:
    """Then sums over a row are the same in every batch, bit for bit."""
    weights = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 0.0]])
    f = FeatureCoverage(weights, target=weights)
    g, more = scored(f, Items(FEATURES, MASK), [0.0, 1.0], [1.0], weight=1.0)
    assert more.features[0, :, 3].tolist() == [0.0, 3.0]
    assert more.features[1, 0].tolist() == [2.0, 0.5, 0.0, 0.0], "one score says nothing"
    assert g.weights[1, 2] > 0
    assert g.target.tolist() == [[1.0, 2.0, 3.0, 0.0], [1.0, 1.0, 0.0, 0.0]]


@pytest.mark.parametrize("scores", [[1e300, -1e300], [1.0, 0.0], [5e-324, 0.0]])
def test_scores_are_scaled_to_0_and_1(scores: list[float]) -> None:
    f, items = FeatureCoverage(WEIGHTS, target=TARGET), Items(FEATURES, MASK)
    _, items = scored(f, items, scores, None, weight=1.0)
    assert items.features[0, :, -1].tolist() == [3.0, 0.0]


def test_scores_that_contradict_the_words_change_nothing() -> None:
    relevance = np.array(shipped().select(CLAIM, PAGE, k=1).relevance)
    plain = shipped().select(CLAIM, PAGE, k=5)
    assert shipped().select(CLAIM, PAGE, k=5, scores=-relevance).indices == plain.indices


def test_scores_decide_where_no_word_is_found() -> None:
    passages = ["Blick auf den Hafen.", "Der Himmel ist blau.", "Es regnet.", "Zug um Zug."]
    found = shipped().select("Quantum chromodynamics?", passages, k=1, scores=[0, 1, 5, 2])
    assert found.indices == (2,)


def test_new_scores_count() -> None:
    """They agree with the words on the whole, and prefer another passage."""
    gains = shipped().select(CLAIM, PAGE, k=1).explain()
    by_words = np.array([max(one.gains) for one in (*gains.selected, *gains.passed)])
    indices = [one.index for one in (*gains.selected, *gains.passed)]
    scores = np.zeros(len(PAGE))
    scores[indices] = by_words
    order = np.argsort(-scores)
    scores[order[[0, 1]]] = scores[order[[1, 0]]]
    scores[order[-1]] += 0.5 * scores.max()
    plain = shipped().select(CLAIM, PAGE, k=5)
    found = shipped().select(CLAIM, PAGE, k=5, scores=scores.tolist())
    assert found.gains[0] > plain.gains[0]


def vectors_of(texts: list[str], width: int = 24) -> np.ndarray:
    """Vectors that know the letters of texts: not good, and not nonsense."""
    table = np.random.default_rng(1).normal(size=(256, width))
    return np.stack([table[list(text.lower().encode())].sum(axis=0) for text in texts])


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor, np.ndarray.tolist])
def test_embeddings_may_be_of_any_library(kind) -> None:
    query, *passages = vectors_of([CLAIM, *PAGE])
    expected = shipped().select(
        CLAIM, PAGE, query_embedding=query, embeddings=np.stack(passages), score_weight=1
    )
    found = shipped().select(
        CLAIM,
        PAGE,
        query_embedding=kind(query),
        embeddings=kind(np.stack(passages)),
        score_weight=1,
    )
    assert found == expected
    assert found.gains != shipped().select(CLAIM, PAGE).gains


def test_embeddings_are_compared_by_direction_alone() -> None:
    query, *passages = vectors_of([CLAIM, *PAGE])
    scales = np.array([1e-200, 1.0, 1e200, 3.0, 5.0])
    both = [
        shipped().select(CLAIM, PAGE, query_embedding=query, embeddings=own, score_weight=1)
        for own in (np.stack(passages), scales[:, None] * np.stack(passages))
    ]
    assert both[0].indices == both[1].indices
    assert both[0].gains == pytest.approx(both[1].gains, rel=1e-5)


def test_nearly_the_same_vector_covers_the_same() -> None:
    query = np.array([1.0, 1.0, 0.0, 0.0])
    vectors = np.array([[1.0, 0.1, 0, 0], [1.0, 0.11, 0, 0], [0.1, 1.0, 0, 0], [0, 0, 1, 0]])
    texts = ["Alpha.", "Beta.", "Gamma.", "Delta."]
    found = untrained().select(
        "Zeta?", texts, k=4, query_embedding=query, embeddings=vectors, score_weight=1, breadth=0
    )
    assert set(found.indices[:2]) in ({0, 2}, {1, 2}), "not both of the twins"
    assert 3 not in found.indices, "it adds nothing"


def test_queries_with_and_without_vectors_are_answered_as_alone() -> None:
    query, *passages = vectors_of([CLAIM, *PAGE])
    wide, *many = vectors_of([CLAIM, *PAGE], width=40)
    rows = [
        {"query": CLAIM, "passages": PAGE},
        {"query": CLAIM, "passages": PAGE, "query_embedding": query, "embeddings": passages},
        {"query": CLAIM * 3, "passages": PAGE * 3},
        {"query": CLAIM, "passages": PAGE, "query_embedding": wide, "embeddings": many},
        {"query": CLAIM, "passages": PAGE, "scores": [5, 1, 2, 3, 4]},
    ]
    for weight in (None, 0.7):
        together = list(shipped().select_many(rows, k=4, score_weight=weight))
        alone = [next(shipped().select_many([row], k=4, score_weight=weight)) for row in rows]
        for one, other in zip(together, alone, strict=True):
            assert one.indices == other.indices
            assert one.gains == other.gains


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query_embedding": [1.0, 2.0]}, "embeddings is missing; pass both or neither."),
        ({"embeddings": [[1.0]] * 5}, "query_embedding is missing; pass both or neither."),
        (
            {"query_embedding": [1.0], "embeddings": [[1.0]] * 4},
            "embeddings must be 5 vectors, one for each passage; got an array of shape (4, 1).",
        ),
        (
            {"query_embedding": [1.0], "embeddings": [[1.0, 2.0]] * 5},
            "The vectors of the passages have 2 numbers and that of the query has 1; take both "
            "from the same model.",
        ),
        (
            {"query_embedding": [np.nan], "embeddings": [[1.0]] * 5},
            "query_embedding must be an array of finite numbers; got [nan].",
        ),
        (
            {"query_embedding": "vector", "embeddings": [[1.0]] * 5},
            "query_embedding must be an array of finite numbers; got 'vector'.",
        ),
    ],
)
def test_mistakes_with_vectors_are_named(arguments, message: str) -> None:
    with pytest.raises(dgn.InvalidInput) as found:
        shipped().select(CLAIM, PAGE, **arguments)
    assert str(found.value) == message


def test_an_index_keeps_vectors(tmp_path) -> None:
    query, *passages = vectors_of([CLAIM, *PAGE])
    selector = shipped()
    index = selector.index(passages=PAGE, embeddings=passages)
    index.save(tmp_path)
    expected = selector.select(
        CLAIM, PAGE, query_embedding=query, embeddings=passages, k=3, score_weight=1
    )
    for one in (index, selector.load_index(tmp_path)):
        found = one.select(CLAIM, query_embedding=query, k=3, score_weight=1)
        assert found.indices == expected.indices
        assert found.gains == pytest.approx(expected.gains, rel=1e-6)
    with pytest.raises(dgn.InvalidInput, match="The index has no embeddings"):
        selector.index(passages=PAGE).select(CLAIM, query_embedding=query)


def test_vectors_alone_are_an_objective() -> None:
    query = RANDOM.normal(size=32)
    items = RANDOM.normal(size=(20, 32))
    items[7] = items[3] = query + 0.1 * RANDOM.normal(size=32)
    f, found = vector_function(query, items)
    selection = dgn.greedy(f, found, 3)
    assert selection.indices[0] in (3, 7)
    assert selection.certificate.ratio > 0.6


@pytest.mark.parametrize("model", ["default", "untrained"])
@pytest.mark.parametrize("breadth", [0, None])
def test_where_the_text_says_nothing_the_caller_decides(model: str, breadth: float | None) -> None:
    selector = dgn.Selector.from_pretrained(model)
    passages = ["The bridge is red.", "Nobody came.", "Paint was delivered."]
    vectors = [[0.35, 0.94], [1.0, 0.0], [0.2, 0.98]]
    by_vectors = selector.select(
        "xyzzy", passages, k=1, query_embedding=[1.0, 0.0], embeddings=vectors, breadth=breadth
    )
    assert by_vectors.indices == (1,)
    by_scores = selector.select("xyzzy", passages, k=2, scores=[2, 9, 1], breadth=breadth)
    assert by_scores.indices[0] == 1
