import pytest

from dgn.text.sentences import split_sentences
from dgn.text.tokens import clean_brackets, split_words, title_words


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


def test_brackets_and_titles() -> None:
    assert clean_brackets("-LRB- a -RRB- -LSB- b -RSB- -LCB- c -RCB- B-52") == (
        "( a ) [ b ] { c } B-52"
    )
    assert title_words("Harbour_Lights_-LRB-film-RRB-") == "Harbour Lights (film)"


def test_sentences_know_their_places() -> None:
    text = "Dr. Moreau lives in Zürich.  She paints.\n\nA heading\n\nReally? Yes!  "
    spans = split_sentences(text)
    assert [span.text for span in spans] == [
        "Dr. Moreau lives in Zürich.",
        "She paints.",
        "A heading",
        "Really?",
        "Yes!",
    ]
    for span in spans:
        assert text[span.start : span.end] == span.text


@pytest.mark.parametrize("text", ["", "   ", "\n\n\n"])
def test_a_text_of_nothing_has_no_sentence(text: str) -> None:
    assert split_sentences(text) == []


def test_repeated_sentences_have_different_places() -> None:
    spans = split_sentences("Yes. Yes. Yes.")
    assert [span.start for span in spans] == [0, 5, 10]
