import pytest

from dgn.text import split_sentences


def test_sentences_have_their_positions() -> None:
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
def test_blank_text_has_no_sentence(text: str) -> None:
    assert split_sentences(text) == []


def test_repeated_sentences_have_different_positions() -> None:
    spans = split_sentences("Yes. Yes. Yes.")
    assert [span.start for span in spans] == [0, 5, 10]


@pytest.mark.parametrize("space", ["\u2003", "\u00a0", "\u2028", "\x0b", "\x1c", "\u3000"])
def test_rare_spaces_do_not_shift_positions(space: str) -> None:
    text = f"The{space}ship left.{space}It sank.{space}"
    spans = split_sentences(text)
    assert spans[-1].text.endswith("It sank.")
    for span in spans:
        assert text[span.start : span.end] == span.text
