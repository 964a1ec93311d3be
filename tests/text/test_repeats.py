"""When does a passage repeat another one?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgn.text.repeats import letters_of, same_text_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The ship sank, in 1901!", "  the SHIP sank in 1901 "),
        ("It’s a café", "it's a cafe\u0301"),
        ("Die Straße", "DIE STRASSE"),
        ("co\u00adoperation", "cooperation"),
        ("AT&amp;T won", "AT&T won"),
        ("**Bold** text — here", "bold text here"),
        ("pages 4–5", "pages 4-5"),
        ("COVID-19", "Covid 19"),
    ],
)
def test_spelling_makes_no_difference(one: str, other: str) -> None:
    assert same_text_key(one) == same_text_key(other)
    assert letters_of(one) == letters_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p > 0.05 for mortality", "p < 0.05 for mortality"),
        ("It costs $5", "It costs €5"),
        ("-5 degrees", "5 degrees"),
        ("−5 degrees", "5 degrees"),
        ("5% of them", "5 of them"),
        ("C++", "C#"),
        ("C++", "C"),
        ("Hepatitis A", "Hepatitis"),
        ("10² cells", "102 cells"),
        ("a = b", "a != b"),
        ("1/2 cup", "1-2 cup"),
        ("10:30", "10 30"),
        ("The ship sank in 1907.", "The ship sank in 1901."),
        ("👍", "👎"),
        ("?", "!"),
        ("लड़की", "लड़का"),
    ],
)
def test_what_changes_the_meaning_is_not_a_repeat(one: str, other: str) -> None:
    assert same_text_key(one) != same_text_key(other)


@given(st.text(max_size=60), st.text(max_size=60))
def test_equal_texts_have_equal_letters(one: str, other: str) -> None:
    for first, second in ((one, other), (one, one.swapcase()), (one, f" {one} ")):
        if same_text_key(first) == same_text_key(second):
            assert letters_of(first) == letters_of(second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It is 5e-8.", "It is 5e8."),
        ("It is 1e5.", "It is 1e-5."),
        ("It is 5' long.", 'It is 5" long.'),
        ("It has \u20105 degrees.", "It has 5 degrees."),
        ("It has \u20115 degrees.", "It has 5 degrees."),
        ("It has \u20155 degrees.", "It has 5 degrees."),
        ("It is 5 - 3.", "It is 5 3."),
    ],
)
def test_signs_of_numbers_are_no_punctuation(one: str, other: str) -> None:
    assert same_text_key(one) != same_text_key(other)
