"""Matches, compared with a plain loop over words."""

import numpy as np
import pytest

from claim_page import CLAIM, PAGE, TITLE
from dgn.encoders.facets.matching import BY_ITEM, BY_PAIR, Matches, QueryMatches, WordTable
from dgn.errors import InvalidInput
from dgn.query import Passage, Query
from models import matcher, reader

SHIP = ["The ship sank in 1901.", "", "It was raised, and sank again twice.", "¶ …"]
SHIP_DOCUMENT = {"sentences": SHIP, "title": "The ship"}
QUERY = Query.of("The ship sank twice in 1901.", documents=[SHIP_DOCUMENT])


def match_one(query: Query, *, titles: bool = True) -> QueryMatches:
    (found,), _ = matcher().match([query], titles=titles)
    return found


def test_matches_are_those_of_a_plain_loop() -> None:
    (found,), words = matcher().match([QUERY])
    query, *passages = (reader().read([text]) for text in (QUERY.text, *SHIP))
    assert found.cosine.shape == (4, len(query.texts[0]))
    for a, passage in enumerate(passages):
        for t, token in enumerate(query.texts[0]):
            cosines = passage.vectors[passage.texts[0]] @ query.vectors[token]
            assert found.cosine[a, t] == pytest.approx(max(cosines, default=0), abs=1e-5)
            spelled = passage.spelling[passage.texts[0]].tolist()
            assert found.exact[a, t] == (query.spelling[token] in spelled)
            if len(cosines):
                nearest = words.vectors[found.matched[a, t]] @ query.vectors[token]
                assert nearest == pytest.approx(max(cosines), abs=1e-5)
    assert found.length.tolist() == [len(passage.texts[0]) for passage in passages]


def test_titles_pairs_and_positions() -> None:
    found = match_one(QUERY)
    tokens = [word for word, places in matcher().words(QUERY.text) for _ in places]
    titled = [token for token, share in zip(tokens, found.title[0], strict=True) if share == 1]
    assert titled == ["The", "ship"]
    # "sank" is two tokens, which follow each other wherever the word occurs; "twice" follows
    # "sank" in the query alone.
    assert found.pair[0].sum() > found.pair[2].sum()
    assert not found.pair[2][tokens.index("twice")]
    assert found.follows.tolist() == [False, True, True, True]
    assert found.position.tolist() == [0, 1, 2, 3]
    assert found.document_size.tolist() == [4] * 4


def test_titles_can_be_left_out() -> None:
    assert match_one(QUERY).title.any()
    assert not match_one(QUERY, titles=False).title.any()


def test_sentences_of_other_documents_are_not_neighbours() -> None:
    places = [(0, 0), (0, 1), (1, 0), (1, 2)]
    passages = [
        Passage(text, "The ship", document, position)
        for text, (document, position) in zip(SHIP, places, strict=True)
    ]
    found = match_one(Query(QUERY.text, tuple(passages)))
    assert found.follows.tolist() == [False, True, False, False]
    assert found.document_size.tolist() == [2, 2, 2, 2]


def test_loose_passages_are_in_the_middle_and_nobodys_neighbours() -> None:
    found = match_one(Query.of(QUERY.text, SHIP))
    assert not found.follows.any()
    assert found.position.tolist() == [1.5] * 4
    assert found.document_size.tolist() == [4] * 4


def test_query_without_words_or_passages_is_an_error() -> None:
    for query, argument in ((Query("?!", QUERY.passages), "query"), (Query("A", ()), "passages")):
        with pytest.raises(InvalidInput) as raised:
            matcher().match([query])
        assert raised.value.argument == argument


def test_batch_is_padded_with_zeros() -> None:
    queries = [QUERY, Query.of(CLAIM, PAGE, titles=TITLE), Query.of("Cows", ["A cow."])]
    matches, words = matcher().match(queries)
    batch = Matches.of(matches, WordTable.of(words))
    for row, one in enumerate(matches):
        items, tokens = one.cosine.shape
        assert batch.mask[row].tolist() == [True] * items + [False] * (5 - items)
        assert batch.real[row].sum() == tokens
        np.testing.assert_array_equal(batch.query[row, :tokens], one.query)
        for name in BY_PAIR:
            own = getattr(batch, name)[row]
            np.testing.assert_array_equal(own[:items, :tokens], getattr(one, name))
            assert not own[items:].any()
            assert not own[:, tokens:].any()
        for name in BY_ITEM:
            np.testing.assert_array_equal(getattr(batch, name)[row, :items], getattr(one, name))


def test_batch_can_be_moved() -> None:
    matches, words = matcher().match([QUERY])
    batch = Matches.of(matches, WordTable.of(words))
    moved = batch.placed(lambda array: array.copy())
    for name in ("query", "mask", "cosine", "follows"):
        np.testing.assert_array_equal(getattr(moved, name), getattr(batch, name))
    np.testing.assert_array_equal(moved.words.facts, batch.words.facts)


def test_facts_of_a_word_do_not_depend_on_other_queries() -> None:
    # A word's capital flag was once that of another query of the batch.
    lower = Query.of("a tamsett of sikkim", ["tamsett sank"])
    upper = Query.of("Tamsett Of Sikkim", ["Sikkim Sank"])
    _, alone = matcher().match([lower])
    for together in ([upper, lower], [lower, upper]):
        matches, words = matcher().match(together)
        own = matches[together.index(lower)].query
        np.testing.assert_array_equal(words.flags[own], alone.flags[alone.texts[0]])
        np.testing.assert_array_equal(words.idf[own], alone.idf[alone.texts[0]])


def test_spelled_out_brackets_are_not_words() -> None:
    assert [word for word, _ in matcher().words("Ripon -LRB- college -RRB-")] == [
        "Ripon",
        "college",
    ]
