"""What a user may rely on, whatever the text: one short test per promise.

Every promise is tested with the model that ships with dgn, and with the untrained one.
"""

import itertools
import unicodedata

import numpy as np
import pytest

import dgn
from dgn.core import native as kernels
from dgn.text.explanation import Explanation
from dgn.text.facets.encoder import FacetEncoder
from dgn.text.words import stem, stems_of
from models import shipped, untrained

QUERY = "Marie Curie received the Nobel Prize in Physics in 1903 for research on radioactivity."
PASSAGES = [
    "Curie was born in Warsaw in 1867.",
    "In 1903 the Royal Swedish Academy awarded the Nobel Prize in Physics to Becquerel and Curie.",
    "She shared the prize for joint research on radioactive phenomena.",
    "The Eiffel Tower was finished in 1889.",
    "Radioactivity was discovered by Henri Becquerel.",
    "Her notebooks are kept in boxes lined with lead.",
    "Bread is baked from flour, water and salt.",
]
IRRELEVANT = "Bananas are rich in potassium and grow in bunches."


@pytest.fixture(params=["shipped", "untrained"], scope="module")
def selector(request: pytest.FixtureRequest) -> dgn.Selector:
    return shipped() if request.param == "shipped" else untrained()


def texts(selector: dgn.Selector, query: str, passages: list[str], k: int = 4) -> list[str]:
    return list(selector.select(query, passages, k=k).texts)


# What changes nothing


def test_order_of_loose_passages(selector: dgn.Selector) -> None:
    expected = texts(selector, QUERY, PASSAGES)
    random = np.random.default_rng(0)
    for _ in range(10):
        shuffled = [PASSAGES[place] for place in random.permutation(len(PASSAGES))]
        assert texts(selector, QUERY, shuffled) == expected


@pytest.mark.parametrize("change", [str.upper, str.lower, str.title])
def test_case(selector: dgn.Selector, change) -> None:
    expected = selector.select(QUERY, PASSAGES, k=4)
    changed = selector.select(change(QUERY), [change(text) for text in PASSAGES], k=4)
    assert changed.indices == expected.indices
    assert changed.gains == pytest.approx(expected.gains, rel=1e-5)


def test_white_space(selector: dgn.Selector) -> None:
    spaced = [f"\n  {text.replace(' ', '   ')}\t" for text in PASSAGES]
    assert selector.select(f" {QUERY}\n", spaced, k=4).gains == pytest.approx(
        selector.select(QUERY, PASSAGES, k=4).gains, rel=1e-5
    )


def test_unicode_form(selector: dgn.Selector) -> None:
    query, passages = "The café in Málaga opened.", ["A café opened.", "Málaga is a city.", "No."]
    composed, decomposed = (
        selector.select(
            unicodedata.normalize(form, query),
            [unicodedata.normalize(form, text) for text in passages],
            k=2,
        )
        for form in ("NFC", "NFD")
    )
    assert composed.indices == decomposed.indices
    assert composed.coverage == pytest.approx(decomposed.coverage)


def test_irrelevant_passages(selector: dgn.Selector) -> None:
    expected = texts(selector, QUERY, PASSAGES, 3)
    for place in (0, 3, len(PASSAGES)):
        longer = [*PASSAGES[:place], IRRELEVANT, *PASSAGES[place:]]
        assert texts(selector, QUERY, longer, 3) == expected


def test_a_larger_k_keeps_the_first_selections(selector: dgn.Selector) -> None:
    longest = selector.select(QUERY, PASSAGES, k=len(PASSAGES)).indices
    for k in range(1, len(PASSAGES)):
        assert selector.select(QUERY, PASSAGES, k=k).indices == longest[:k]


def test_selecting_many_at_once(selector: dgn.Selector) -> None:
    rows = [
        {"query": QUERY, "passages": PASSAGES},
        {"query": "Bread", "passages": PASSAGES[::-1]},
        {"query": "When was the tower finished?", "passages": PASSAGES[:3]},
    ]
    for row, one in zip(rows, selector.select_many(rows, k=3), strict=True):
        alone = selector.select(row["query"], row["passages"], k=3)
        assert one.indices == alone.indices
        if kernels.is_available() and isinstance(selector.encoder, FacetEncoder):
            assert (one.gains, one.certificate) == (alone.gains, alone.certificate)
        assert one.gains == pytest.approx(alone.gains, rel=1e-5, abs=1e-7)


# Sets


def test_passages_given_twice_are_selected_once(selector: dgn.Selector) -> None:
    selected = texts(selector, QUERY, PASSAGES + PASSAGES, 5)
    assert len(set(selected)) == 5


def test_near_repeats_are_selected_once(selector: dgn.Selector) -> None:
    shouted = [text.upper().replace(".", " !") for text in PASSAGES]
    selection = selector.select(QUERY, PASSAGES + shouted, k=5)
    assert all(index < len(PASSAGES) for index in selection.indices)
    assert selection.explain().why_not(len(PASSAGES)).like == 0
    assert selection.relevance[len(PASSAGES)] == selection.relevance[0]


def test_gains_do_not_increase(selector: dgn.Selector) -> None:
    gains = selector.select(QUERY, PASSAGES, k=len(PASSAGES)).gains
    assert all(after <= before + 1e-6 for before, after in itertools.pairwise(gains))


def test_certificate_is_a_share(selector: dgn.Selector) -> None:
    assert 0 < selector.select(QUERY, PASSAGES, k=3).certificate.ratio <= 1


# Words


def test_a_year_is_that_year(selector: dgn.Selector) -> None:
    passages = ["The bridge opened in 1980.", "The bridge opened in 1890.", "The bridge opened."]
    selection = selector.select("The bridge opened in 1890.", passages, k=1)
    assert selection.indices == (1,)
    wrong = selector.select("The bridge opened in 1890.", passages[:1], k=1).explain()
    assert covered(wrong, "1890") < 0.2


def test_some_year_is_better_than_none(selector: dgn.Selector) -> None:
    passages = ["The bridge opened again.", "The bridge opened in 1980."]
    assert selector.select("The bridge opened in 1890.", passages, k=1).indices == (1,)


def test_digits_of_a_title_spell_no_other_year(selector: dgn.Selector) -> None:
    page = {"title": "1984 (film)", "sentences": ["It was directed by Michael Radford."]}
    found = selector.select("The film was shown in 1948.", documents=[page], k=1).explain()
    assert covered(found, "1948") < 0.2


def test_forms_of_a_word_cover_it(selector: dgn.Selector) -> None:
    passages = ["Several ships were sinking.", "The lamp was green."]
    found = selector.select("A ship sinks", passages, k=1).explain()
    assert covered(found, "ship") > 0.8


def test_question_words_weigh_nothing(selector: dgn.Selector) -> None:
    passages = ["Doctor Who is a television series.", "The lighthouse was built by Ada Brown."]
    selection = selector.select("Who built the lighthouse?", passages, k=1)
    assert selection.indices == (1,)


def test_negation_does_not_lower_a_passage(selector: dgn.Selector) -> None:
    passages = ["The lamp is green.", "The harbour is not deep.", "Cows eat grass."]
    assert selector.select("The harbour is deep.", passages, k=1).indices == (1,)


# Coverage and explanations


def covered(explanation: Explanation, word: str) -> float:
    return float(explanation.coverage[-1, explanation.words.index(word)])


def test_coverage_is_near_zero_for_something_else(selector: dgn.Selector) -> None:
    assert selector.select(QUERY, [IRRELEVANT, "Bread is baked from flour."], k=2).coverage < 0.15
    assert selector.select(QUERY, PASSAGES, k=4).coverage > 0.7


def test_min_relevance_leaves_out_what_does_not_bear_on_the_query(selector: dgn.Selector) -> None:
    selection = selector.select(QUERY, PASSAGES, k=5, min_relevance=0.3)
    assert 0 < len(selection) < 5
    assert min(selection.relevance[index] for index in selection.indices) >= 0.3
    nothing = selector.select(QUERY, [IRRELEVANT], min_relevance=0.3)
    assert nothing.texts == ()
    assert "nothing was selected" in str(nothing.explain())


def test_a_word_is_said_to_be_in_the_text_only_if_it_is(selector: dgn.Selector) -> None:
    page = {"title": "Marie Curie", "sentences": PASSAGES}
    for report in selector.select(QUERY, documents=[page], k=5).reports:
        for word in report.covers:
            stems = stems_of(PASSAGES[report.index])
            assert (word.source == "text") == (stem(word.word.casefold()) in stems)
            if word.source == "title":
                assert stem(word.word.casefold()) in stems_of("Marie Curie")


def test_a_passage_without_the_words_covers_none_completely(selector: dgn.Selector) -> None:
    found = selector.select("The vessel sank.", ["The boat went down."], k=1).explain()
    assert covered(found, "vessel") < 0.8
    assert "covers vessel" not in str(found)


# Sizes and languages


@pytest.mark.parametrize("count", [1, 2, 100, 10_000])
def test_number_of_passages(selector: dgn.Selector, count: int) -> None:
    passages = [f"Sentence {place} is about nothing." for place in range(count - 1)]
    selection = selector.select(QUERY, [*passages, PASSAGES[1]], k=3)
    assert selection.texts[0] == PASSAGES[1]
    assert len(selection) == min(3, count)


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "   ",
        "?!",
        "x" * 100_000,
        "word " * 20_000,
        "東京は日本の首都です。",
        "Привет, мир!",
        "😀",
    ],
    ids=["empty", "blank", "marks", "one long word", "many words", "Japanese", "Russian", "emoji"],
)
def test_odd_passages_are_never_preferred(selector: dgn.Selector, odd: str) -> None:
    assert selector.select(QUERY, [odd, PASSAGES[1]], k=1).indices == (1,)


def test_other_languages_are_matched_by_their_words(selector: dgn.Selector) -> None:
    passages = ["Der Turm ist hoch.", "Die Brücke wurde 1890 eröffnet."]
    assert selector.select("Wann wurde die Brücke eröffnet?", passages, k=1).indices == (1,)
