"""Spellings that make no difference, and those that do."""

import pytest

from dgn.text.spelling import clean_brackets, normalized, title_text


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("plain text & more; 5 < 6", "plain text & more; 5 < 6"),
        ("it’s AT&amp;T&#8217;s", "it's AT&T's"),
        ("co\u00adoper\u200bate \ufeffnow", "cooperate now"),
        ("cafe\u0301 ﬁlm", "café film"),
        ("10² 10⁻⁶ m² km²", "10^2 10^-6 m^2 km^2"),
        ("the treaty¹ of 1911", "the treaty of 1911"),
        ("5½ ½ 2¾ 3⅓", "5.5 0.5 2.75 3 1⁄3"),
        ("−5 and –3, but 4–5", "-5 and -3, but 4–5"),
        ("-LRB- a -RRB-", "( a )"),
        ("&unknown; &#99999999; &", "&unknown; &#99999999; &"),
    ],
)
def test_one_spelling(text: str, spelling: str) -> None:
    assert normalized(text) == spelling
    assert normalized(spelling) == spelling


def test_brackets_and_titles() -> None:
    assert clean_brackets("-LRB- a -RRB- -LSB- b -RSB- -LCB- c -RCB- B-52") == (
        "( a ) [ b ] { c } B-52"
    )
    assert title_text("Harbour_Lights_-LRB-film-RRB-") == "Harbour Lights (film)"
