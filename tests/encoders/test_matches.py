"""Matches: what the words of a claim find, against the plainest way to find it."""

import dataclasses

import numpy as np
import pytest

from dgn.data.lines import Line
from dgn.data.plain import parse_plain
from dgn.data.records import Example
from dgn.encoders import ClaimMatches, Matcher, Query, as_batch, word_table
from dgn.encoders.match_table import MatchTable, PaddedClaims
from dgn.errors import BrokenInput, InvalidInput
from dgn.features.match_writer import MatchWriter
from dgn.features.queries import query_of
from dgn.text.rarity import default_rarity
from dgn.text.word_tokens import WordReader
from dgn.text.wordllama import WordLlamaVectors

PAGE = ["The ship sank in 1901.", "", "It was raised, and sank again twice.", "¶ …"]
QUERY = Query.of_page("The ship sank twice in 1901.", PAGE, "The ship")


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher(WordReader(WordLlamaVectors(), default_rarity()))


def test_matches_are_those_of_a_plain_loop(matcher: Matcher) -> None:
    (found,), words = matcher.match([QUERY])
    claim, *sentences = (matcher.reader.read([text]) for text in (QUERY.claim, *PAGE))
    assert found.cosine.shape == (4, len(claim.texts[0]))
    for a, sentence in enumerate(sentences):
        for t, token in enumerate(claim.texts[0]):
            cosines = sentence.vectors[sentence.texts[0]] @ claim.vectors[token]
            assert found.cosine[a, t] == pytest.approx(max(cosines, default=0), abs=1e-5)
            spelled = sentence.spelling[sentence.texts[0]].tolist()
            assert found.exact[a, t] == (claim.spelling[token] in spelled)
            if len(cosines):
                nearest = words.vectors[found.matched[a, t]] @ claim.vectors[token]
                assert nearest == pytest.approx(max(cosines), abs=1e-5)
    assert found.length.tolist() == [len(s.texts[0]) for s in sentences]


def test_title_pairs_and_places(matcher: Matcher) -> None:
    (found,), _ = matcher.match([QUERY])
    tokens = [word for word, places in matcher.reader.words(QUERY.claim) for _ in places]
    assert [t for t, said in zip(tokens, found.title[0], strict=True) if said == 1] == [
        "The",
        "ship",
    ]
    # "sank" is two tokens, which follow each other wherever the word is; "twice" follows "sank"
    # in the claim alone.
    assert found.pair[0].sum() > found.pair[2].sum()
    assert not found.pair[2][tokens.index("twice")]
    assert found.follows.tolist() == [False, True, True, True]
    assert found.page_size.tolist() == [4] * 4


def test_sentences_of_other_pages_are_no_neighbours(matcher: Matcher) -> None:
    query = dataclasses.replace(QUERY, pages=[0, 0, 1, 1], places=[0, 1, 0, 2])
    (found,), _ = matcher.match([query])
    assert found.follows.tolist() == [False, True, False, False]
    assert found.page_size.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("query", "argument"),
    [(Query.of_page("?!", PAGE), "claim"), (Query.of_page("A claim", []), "sentences")],
)
def test_nothing_to_match_is_an_error(matcher: Matcher, query: Query, argument: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        matcher.match([query])
    assert raised.value.argument == argument


def examples(count: int) -> list[Example]:
    rows = [
        b'{"claim": "The ship sank twice.", "title": "Ship", "sentences": ["It sank in 1901.",'
        b' "It was raised.", "Then it sank again."], "evidence": [[0, 2]]}',
        b'{"claim": "A town has two rivers", "documents": [{"title": "Town", "sentences":'
        b' ["The Lann flows here."]}, {"title": "Rivers", "sentences": ["The Orr too.", "Cows."]}],'
        b' "evidence": [[[0, 0], [1, 0]]]}',
    ]
    return [parse_plain(Line("rows", n + 1, rows[n % 2])) for n in range(count)]


@pytest.fixture
def table(matcher: Matcher, tmp_path) -> MatchTable:
    with MatchWriter(tmp_path, matcher) as writer:
        for example in examples(5):
            writer.add(example)
    return MatchTable.load(tmp_path)


def alike(one: ClaimMatches, table: MatchTable, row: int) -> None:
    """The claim cut out of the table is the claim matched alone, but for float16."""
    matches, labels = PaddedClaims(table).of(np.array([row]))
    for name in ("cosine", "exact", "pair", "title", "likeness", "length", "follows"):
        assert np.allclose(getattr(matches, name)[0], getattr(one, name), atol=1e-3), name
    assert np.allclose(matches.words.vectors[matches.claim[0]][:, :4].shape, (len(one.claim), 4))
    assert labels.rivals.tolist() == [[1.0] * len(one.length)]
    assert np.isnan(labels.soft).all()


def test_a_table_gives_back_what_was_matched(matcher: Matcher, table: MatchTable) -> None:
    for row, example in enumerate(examples(5)):
        (one,), words = matcher.match([query_of(example)])
        alike(one, table, row)
        matches, labels = PaddedClaims(table).of(np.array([row]))
        ours = matches.words.vectors[matches.matched[0]]
        assert np.allclose(ours, words.vectors[one.matched], atol=1e-3)
        assert labels.gold[0].tolist() == list(example.gold)


def test_joined_and_cut_tables_hold_the_same_claims(table: MatchTable, matcher: Matcher) -> None:
    joined = MatchTable.join([table, table.with_rivals(0.25)])
    cut = joined.of_claims(np.array([6, 1]))
    (one,), _ = matcher.match([query_of(examples(2)[1])])
    alike(one, cut, 1)
    _, labels = PaddedClaims(cut).of(np.array([0, 1]))
    assert labels.rivals[:, 0].tolist() == [0.25, 1.0]


def test_padding_is_zero_and_marked(table: MatchTable) -> None:
    matches, labels = PaddedClaims(table).of(np.array([0, 1]))
    assert matches.mask.tolist() == [[True] * 3, [True] * 3]
    assert matches.real.sum(axis=1).tolist() == table.tokens[:2].tolist()
    hidden = ~matches.real[:, None, :] & np.ones_like(matches.cosine, bool)
    assert not matches.cosine[hidden].any()
    assert labels.gold.sum() == 4


@pytest.mark.usefixtures("table")
def test_soft_labels_of_other_features_are_refused(tmp_path) -> None:
    np.save(tmp_path / "soft_labels.npy", np.zeros(3, np.float32))
    with pytest.raises(BrokenInput, match="dgn teach"):
        MatchTable.load(tmp_path)


def test_batches_are_padded_alike(matcher: Matcher) -> None:
    claims, words = matcher.match([query_of(example) for example in examples(2)])
    batch = as_batch(claims, word_table(words))
    assert batch.cosine.shape[0] == 2
    for row, one in enumerate(claims):
        items, tokens = one.cosine.shape
        assert np.array_equal(batch.cosine[row, :items, :tokens], one.cosine)
