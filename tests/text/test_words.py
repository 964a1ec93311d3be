import unicodedata

import pytest

from dgn.text.words import (
    _BLOCKS_WITH_MARKS,
    FUNCTION_WORDS,
    has_words,
    read_words,
    split_tokens,
    split_words,
    stem,
    stems_of,
    word_spans,
    written_words,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Jarhead -LRB- 2005 -RRB- , a film .", ["Jarhead", "2005", "a", "film"]),
        ("it's twenty-one — o’clock!", ["it's", "twenty-one", "o’clock"]),
        ("Zoë, 北京 and ½", ["Zoë", "北京", "and", "½"]),
        (" , . ; ", []),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_tokens_are_words_and_punctuation_marks() -> None:
    assert split_tokens("Jarhead -LRB- 2005 -RRB-, isn't it?!") == (
        ["Jarhead", "(", "2005", ")", ",", "isn't", "it", "?", "!"]
    )
    assert split_tokens("") == []


@pytest.mark.parametrize(
    ("text", "expected"), [("", False), ("?! …", False), ("½", True), ("北", True), ("a.", True)]
)
def test_has_words(text: str, expected: bool) -> None:
    assert has_words(text) is expected


def test_function_words_are_lower_case_words() -> None:
    assert {"the", "of", "was"} <= FUNCTION_WORDS
    assert all(word.islower() and word.isalpha() for word in FUNCTION_WORDS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The WHO asked who", "the who asked who"),
        ("THE WHO ASKED WHO", "the who asked who"),
        ("A bridge. A road", "a bridge a road"),
        ("Yesterday I went", "yesterday i went"),
        ("1500 soldiers in 1500", "1500 soldiers in 1500"),
        ("-5 mg, .5 mg (-3) 4-5 x-1", "-5 mg .5 mg -3 4 5 x 1"),
        ("10² km² and m2", "10^2 km^2 and m 2"),
        ("लड़की और लड़का", "लड़की और लड़का"),
        ("STRASSE, Straße", "strasse strasse"),
    ],
)  # fmt: skip
def test_words_as_they_are_compared(text: str, words: str) -> None:
    assert read_words(text) == unicodedata.normalize("NFKC", words).split()
    assert len(written_words(text)) == len(read_words(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("12,500", "12500"),
        ("1.5", "1,5"),
        ("1.50", "01.5"),
        ("10^3", "1,000"),
        ("1.234.567,5", "1234567.5"),
        ("-0", "0"),
        ("٤٢", "42"),
    ],
)
def test_numbers_are_the_same_if_their_values_are(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1,911", "1911"), ("10^2", "102"), ("-5", "5"), ("1,5", "15"), ("1.2.3", "1.23"), ("I", "i")],
)
def test_other_numbers_and_names_are_not_the_same(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_stems() -> None:
    assert stems_of("The ships sank") == {"the", "ship", "sank"}
    assert stem("ship's") == stem("shipping") == "ship"


def test_spans_are_those_of_the_words() -> None:
    text = "The WHO's -5 mg, लड़की, 10^2."
    assert [text[start:end] for start, end in word_spans(text)] == written_words(text)


def test_all_marks_that_combine_are_known() -> None:
    known = {code for block in _BLOCKS_WITH_MARKS for code in range(*block)}
    marks = {code for code in range(0x20000) if unicodedata.category(chr(code)) in ("Mn", "Mc")}
    assert marks <= known
