"""Matches, compared with a plain loop over words."""

import numpy as np
import pytest

from claim_page import CLAIM, PAGE, TITLE
from dgn.errors import InvalidInput
from dgn.text.facets.matching import (
    AXES,
    SAME_STEM,
    SOME_NUMBER,
    Matches,
    QueryMatches,
    TextVectors,
    match_query,
)
from dgn.text.facets.reading import read_queries
from dgn.text.query import Passage, Query
from dgn.text.words import stem, written_words
from models import match, matches_of, reader

SHIP = ["The ship sank in 1901.", "", "It was raised, and sank again twice.", "¶ …"]
SHIP_DOCUMENT = {"sentences": SHIP, "title": "The ship"}
QUERY = Query.of("The ship sank twice in 1901.", documents=[SHIP_DOCUMENT])


def match_one(query: Query, *, titles: bool = True) -> QueryMatches:
    (found,), _ = match([query], titles=titles)
    return found


def similar(query: str, passage: str) -> float:
    """The similarity of two words, by the rules and the cosine of their vectors."""
    ((asked,), (other,)), table = reader().read([query, passage])
    if asked == other:
        return 1.0
    if table.facts[asked, 1]:
        same_kind = table.facts[asked, 1:3].tolist() == table.facts[other, 1:3].tolist()
        return SOME_NUMBER if same_kind else 0.0
    cosine = float(table.vectors[asked] @ table.vectors[other])
    cosine = 0.0 if table.facts[other, 1] else cosine
    return max(cosine, SAME_STEM if table.stem[asked] == table.stem[other] else 0.0)


def test_matches_are_those_of_a_plain_loop() -> None:
    found = match_one(QUERY)
    asked = written_words(QUERY.text)
    assert found["similarity"].shape == (4, len(asked))
    for a, text in enumerate(SHIP):
        words = written_words(text)
        for t, word in enumerate(asked):
            nearest = max((similar(word, other) for other in words), default=0.0)
            assert found["similarity"][a, t] == pytest.approx(max(nearest, 0), abs=1e-5)
            assert found["exact"][a, t] == (stem(word) in map(stem, words))
    assert found["length"].tolist() == [len(written_words(text)) for text in SHIP]


def test_titles_pairs_and_positions() -> None:
    found = match_one(QUERY)
    words = written_words(QUERY.text)
    assert words == ["The", "ship", "sank", "twice", "in", "1901"]
    titled = [word for word, share in zip(words, found["title"][0], strict=True) if share == 1]
    assert titled == ["The", "ship"]
    assert found["pair"][0].tolist() == [False, True, True, False, False, True]
    assert not found["pair"][2].any(), "twice follows sank in the query alone"
    assert found["follows"].tolist() == [False, True, True, True]
    assert found["position"].tolist() == [0, 1, 2, 3]
    assert found["is_ordered"].all()


@pytest.mark.parametrize(
    ("query", "passage", "similarity"),
    [
        ("1901", "1901", 1.0),
        ("1901", "1907", SOME_NUMBER),
        ("1901", "17", 0.0),
        ("12,942", "12942", 1.0),
        ("1,942", "1942", SOME_NUMBER),
        ("5.50", "5½", 1.0),
        ("10²", "102", SOME_NUMBER),
        ("10²", "10^2", 1.0),
        ("-5", "5", SOME_NUMBER),
        (".5", "0.5", 1.0),
        ("1,5", "1.5", 1.0),
        ("1,5", "15", SOME_NUMBER),
        ("17", "18", SOME_NUMBER),
        ("ships", "SHIP", SAME_STEM),
        ("ship", "ship's", SAME_STEM),
        ("Ship", "sHIP", 1.0),
    ],
)
def test_numbers_and_forms(query: str, passage: str, similarity: float) -> None:
    found = match_one(Query.of(query, [passage]))
    assert found["similarity"][0, 0] == pytest.approx(similarity)


def test_precision_is_the_share_of_the_passage_that_is_about_the_query() -> None:
    texts = ["The ship sank.", "The ship sank, and the bakery sold bread and cakes.", "Bread."]
    found = match_one(Query.of("The ship sank", texts))
    assert found["precision"][0] > found["precision"][1] > found["precision"][2]
    assert found["precision"][0] == pytest.approx(1, abs=0.1)


def test_another_model_may_give_the_vectors() -> None:
    (words,), table, _ = read_queries(reader(), [Query.of("The ship", ["A boat.", "17"])])
    texts = len(words.start) - 1
    vectors = TextVectors(
        np.ones((len(words.rows), 1), np.float32), np.ones((texts, 1), np.float32)
    )
    found = match_query(words, table, vectors)
    assert found["similarity"].tolist() == [[1, 1], [0, 0]], "numbers are compared as wholes"
    assert found["likeness"].tolist() == [1, 1]


def test_titles_can_be_left_out() -> None:
    assert match_one(QUERY)["title"].any()
    assert not match_one(QUERY, titles=False)["title"].any()


def test_sentences_of_other_documents_are_not_neighbours() -> None:
    places = [(0, 0), (0, 1), (1, 0), (1, 2)]
    passages = [
        Passage(text, "The ship", document, position)
        for text, (document, position) in zip(SHIP, places, strict=True)
    ]
    found = match_one(Query(QUERY.text, tuple(passages)))
    assert found["follows"].tolist() == [False, True, False, False]


def test_loose_passages_have_no_position_and_no_neighbours() -> None:
    found = match_one(Query.of(QUERY.text, SHIP))
    assert not found["follows"].any()
    assert not found["position"].any()
    assert not found["is_ordered"].any()


def test_query_without_words_or_passages_is_an_error() -> None:
    for query, argument in ((Query("?!", QUERY.passages), "query"), (Query("A", ()), "passages")):
        with pytest.raises(InvalidInput) as raised:
            match([query])
        assert raised.value.argument == argument


def test_batch_is_padded_with_zeros() -> None:
    queries = [QUERY, Query.of(CLAIM, PAGE, titles=TITLE), Query.of("Cows", ["A cow."])]
    matches, table = match(queries)
    batch = Matches.of(matches, table)
    for row, one in enumerate(matches):
        items, tokens = one["similarity"].shape
        assert batch.mask[row].tolist() == [True] * items + [False] * (5 - items)
        assert batch.real[row].sum() == tokens
        own = batch.query[row, :tokens]
        np.testing.assert_array_equal(batch.vectors[own], table.vectors[one["query"]])
        np.testing.assert_array_equal(batch.facts[own], table.facts[one["query"]])
        for name in set(AXES) - {"query"}:
            padded, plain = getattr(batch, name)[row], one[name]
            inside = tuple(map(slice, plain.shape))
            np.testing.assert_array_equal(padded[inside], plain)
            padded[inside] = 0
            assert not padded.any(), name


def test_batch_can_be_moved() -> None:
    batch = matches_of([QUERY])
    moved = batch.moved(lambda array: array.copy())
    for name in vars(batch):
        np.testing.assert_array_equal(getattr(moved, name), getattr(batch, name))


def test_facts_of_a_word_do_not_depend_on_other_queries() -> None:
    lower = Query.of("a tamsett of sikkim", ["tamsett sank"])
    upper = Query.of("Tamsett Of Sikkim", ["Sikkim Sank"])
    (one,), alone = match([lower])
    for together in ([upper, lower], [lower, upper]):
        matches, table = match(together)
        own = matches[together.index(lower)]["query"]
        np.testing.assert_array_equal(table.facts[own], alone.facts[one["query"]])


def test_spelled_out_brackets_are_not_words() -> None:
    assert written_words("Ripon -LRB- college -RRB-") == ["Ripon", "college"]
