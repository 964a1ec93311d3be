"""Words made of subword tokens: what is one word, and when two words are the same."""

import numpy as np
import pytest

from dgn.text import WordTokens
from models import reader


def test_words_are_whole_and_punctuation_is_left_out() -> None:
    words = [word for word, _ in reader().words("It isn't in Sikkim, in 1901 (or so)!")]
    assert words == ["It", "isn", "t", "in", "Sikkim", "in", "1901", "or", "so"]


def test_words_name_the_tokens_that_read_returns() -> None:
    text = "Zyxlonia's 258,000 copies — naïve 東京."
    places = [place for _, tokens in reader().words(text) for place in tokens]
    assert places == list(range(len(reader().read([text]).texts[0])))


def test_spelling_does_not_depend_on_case_and_position() -> None:
    read = reader().read(["Film of 1901", "a film. (film)", "1907 19011"])
    spelled = [read.spelling[text].tolist() for text in read.texts]
    film, of_1901 = spelled[0][0], spelled[0][-1]
    assert spelled[1].count(film) == 2
    assert spelled[0][2:] == [of_1901] * 4  # the four digits are one word
    assert of_1901 not in spelled[2]


def described(read: WordTokens, number: int) -> list[np.ndarray]:
    places = read.texts[number]
    return [read.vectors[places], read.spelling[places], read.idf[places], read.flags[places]]


@pytest.mark.parametrize(
    "texts",
    [
        ["The ship sank.", "", "?!", "Sikkim is in India."],
        ["the bank of the river", "The Bank of England", "THE BANK"],
        ["may the film", "May 1901", "Film", "1901st"],
        ["a tamsett of sikkim", "Tamsett Of Sikkim", "SIKKIM"],
    ],
)
def test_text_reads_the_same_alone_and_among_others(texts: list[str]) -> None:
    # The later tokens of a word once had the capital flag of the first text that contained them.
    for order in (texts, texts[::-1]):
        together = reader().read(order)
        for number, text in enumerate(order):
            alone = described(reader().read([text]), 0)
            for one, other in zip(alone, described(together, number), strict=True):
                np.testing.assert_array_equal(one, other)


def test_flags_are_several_tokens_digit_and_capital() -> None:
    read = reader().read(["Sikkim 1901 the"])
    flags = read.flags[read.texts[0]]
    assert flags[0].tolist() == [1, 0, 1]
    assert flags[-2].tolist() == [1, 1, 0]
    assert flags[-1].tolist() == [0, 0, 0]


def test_idf_is_that_of_the_token() -> None:
    read = reader().read(["the cat"])
    rows = reader().vectors.token_rows(["the cat"])[0]
    np.testing.assert_array_equal(read.idf[read.texts[0]], reader().idf[rows])


def test_vectors_have_length_one() -> None:
    read = reader().read(["The ship sank in 1901."])
    np.testing.assert_allclose(np.linalg.norm(read.vectors, axis=1), 1, rtol=1e-5)


def test_word_is_the_same_however_it_is_divided_into_tokens() -> None:
    words = ["opened", "writer", "actress", "bridges", "owner", "designed", "crossed", "chemistry"]
    for word in words:
        read = reader().read([f"it {word}", word.capitalize(), word.upper()])
        spelled = {int(read.spelling[text[-1]]) for text in read.texts}
        assert len(spelled) == 1, word
    others = reader().read(["opened owned", "reopened", "openeds", "o pened"])
    assert len({int(spelling) for spelling in others.spelling}) == 6


def test_line_breaks_separate_words_and_strange_signs_are_not_numbers() -> None:
    text = "The bridge\nopened\tin 1890 \U0001f309."
    words = [word for word, _ in reader().words(text)]
    assert words[:5] == ["The", "bridge", "opened", "in", "1890"]
    read = reader().read(["\U0001f309 \u1200", "<s>"])
    assert not read.flags[:, 1].any()
    assert not len(read.texts[1])
