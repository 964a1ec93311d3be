import pytest

from dgn.text.words import (
    FUNCTION_WORDS,
    clean_brackets,
    has_words,
    split_tokens,
    split_words,
    title_text,
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


def test_brackets_and_titles() -> None:
    assert clean_brackets("-LRB- a -RRB- -LSB- b -RSB- -LCB- c -RCB- B-52") == (
        "( a ) [ b ] { c } B-52"
    )
    assert title_text("Harbour_Lights_-LRB-film-RRB-") == "Harbour Lights (film)"


@pytest.mark.parametrize(
    ("text", "expected"), [("", False), ("?! …", False), ("½", True), ("北", True), ("a.", True)]
)
def test_has_words(text: str, expected: bool) -> None:
    assert has_words(text) is expected


def test_function_words_are_lower_case_words() -> None:
    assert {"the", "of", "was"} <= FUNCTION_WORDS
    assert all(word.islower() and word.isalpha() for word in FUNCTION_WORDS)
