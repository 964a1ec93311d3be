"""Words from sub-word tokens: what is one word, what is the same word."""

import numpy as np
import pytest

from dgn.text.rarity import count_rarity, default_rarity
from dgn.text.word_tokens import WordReader
from dgn.text.wordllama import WordLlamaVectors


@pytest.fixture(scope="module")
def reader() -> WordReader:
    return WordReader(WordLlamaVectors(), default_rarity())


def test_words_are_whole_and_punctuation_is_none(reader: WordReader) -> None:
    words = [word for word, _ in reader.words("It isn't in Sikkim, in 1901 (or so)!")]
    assert words == ["It", "isn", "t", "in", "Sikkim", "in", "1901", "or", "so"]


def test_words_name_the_tokens_that_reading_gives(reader: WordReader) -> None:
    text = "Zyxlonia's 258,000 copies — naïve 東京."
    places = [place for _, tokens in reader.words(text) for place in tokens]
    assert places == list(range(len(reader.read([text]).texts[0])))


def test_the_same_word_is_spelled_the_same_whatever_its_case_and_place(reader: WordReader) -> None:
    read = reader.read(["Film of 1901", "a film. (film)", "1907 19011"])
    spelled = [read.spelling[text].tolist() for text in read.texts]
    film, of_1901 = spelled[0][0], spelled[0][-1]
    assert spelled[1].count(film) == 2
    assert spelled[0][2:] == [of_1901] * 4  # the four digits are one word
    assert of_1901 not in spelled[2]


def test_a_text_reads_the_same_alone_and_among_others(reader: WordReader) -> None:
    texts = ["The ship sank.", "", "?!", "Sikkim is in India."]
    together = reader.read(texts)
    for text, places in zip(texts, together.texts, strict=True):
        alone = reader.read([text])
        assert np.array_equal(alone.vectors[alone.texts[0]], together.vectors[places])
        assert np.array_equal(alone.spelling[alone.texts[0]], together.spelling[places])


def test_facts(reader: WordReader) -> None:
    read = reader.read(["Sikkim 1901 the"])
    facts = read.facts[read.texts[0]]
    assert facts[0].tolist() == [1, 0, 1]
    assert facts[-2].tolist() == [1, 1, 0]
    assert facts[-1].tolist() == [0, 0, 0]


def test_rarity_is_an_idf_of_tokens() -> None:
    vectors = WordLlamaVectors()
    counted = count_rarity(vectors, [["the cat", "the dog"], ["the cow"]])
    (the,), (cat,) = vectors.token_rows(["the", "cat"])
    assert counted[the] == pytest.approx(1)
    assert counted[cat] == pytest.approx(np.log(4 / 2) + 1)
    shipped = default_rarity()
    assert shipped[the] < shipped[cat]


def test_a_word_is_the_same_wherever_the_tokenizer_cuts_it(reader: WordReader) -> None:
    words = ["opened", "writer", "actress", "bridges", "owner", "designed", "crossed", "chemistry"]
    for word in words:
        read = reader.read([f"it {word}", word.capitalize(), word.upper()])
        spelled = {int(read.spelling[text[-1]]) for text in read.texts}
        assert len(spelled) == 1, word
    others = reader.read(["opened owned", "reopened", "openeds", "o pened"])
    assert len({int(spelling) for spelling in others.spelling}) == 6


def test_line_breaks_part_words_and_strange_signs_are_no_numbers(reader: WordReader) -> None:
    text = "The bridge\nopened\tin 1890 \U0001f309."
    assert [word for word, _ in reader.words(text)][:5] == ["The", "bridge", "opened", "in", "1890"]
    read = reader.read(["\U0001f309 \u1200", "<s>"])
    assert not read.facts[:, 1].any()
    assert not len(read.texts[1])
