"""Words: what is one word, when two words are the same, and what is known about each."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dgn.text import WordReader, token_idf, vocabulary
from dgn.text.vocabulary import WordTable
from dgn.text.words import stems_of, written_words
from models import reader, wordllama


def test_words_are_whole_and_punctuation_is_left_out() -> None:
    text = "It isn't in Sikkim, in 1901 (or so)! 258,000 copies — naïve 東京."
    expected = "It isn't in Sikkim in 1901 or so 258,000 copies naïve 東京"
    assert written_words(text) == expected.split()


def test_words_are_those_that_the_reader_reads() -> None:
    text = "Zyxlonia's 258,000 copies — naïve 東京 B12."
    assert len(reader().read([text])[0][0]) == len(written_words(text)) == 7


def test_case_and_unicode_form_make_no_difference() -> None:
    rows, _ = reader().read(["Film of café", "FILM OF CAFÉ", "film of cafe\u0301"])
    assert rows[0] == rows[1] == rows[2]


def test_forms_of_a_word_have_the_same_stem() -> None:
    (rows,), table = reader().read(["ship ships shipping ship's bridge"])
    stems = table.stem[rows].tolist()
    assert len(set(stems[:4])) == 1
    assert stems[4] != stems[0]
    assert stems_of("The ships sank") == {"the", "ship", "sank"}


def test_kinds_are_number_year_function_word_question_word() -> None:
    (rows,), table = reader().read(["1901 17 the who ship"])
    assert table.facts[rows, 1:].tolist() == [
        [1, 1, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 1],
        [0, 0, 0, 0],
    ]


def described(read: tuple[list[list[int]], WordTable], number: int) -> list[np.ndarray]:
    rows, table = read
    return [table.vectors[rows[number]], table.facts[rows[number]]]


@pytest.mark.parametrize(
    "texts",
    [
        ["The ship sank.", "", "?!", "Sikkim is in India."],
        ["the bank of the river", "The Bank of England", "THE BANK"],
        ["may the film", "May 1901", "Film", "1901st"],
    ],
)
def test_text_reads_the_same_alone_and_among_others(texts: list[str]) -> None:
    for order in (texts, texts[::-1]):
        together = reader().read(order)
        for number, text in enumerate(order):
            alone = described(reader().read([text]), 0)
            for one, other in zip(alone, described(together, number), strict=True):
                np.testing.assert_array_equal(one, other)


def test_vectors_have_length_one_and_rare_words_a_larger_idf() -> None:
    (rows,), table = reader().read(["the ship sank in 1901 zyxlonia"])
    np.testing.assert_allclose(np.linalg.norm(table.vectors[rows], axis=1), 1, rtol=1e-5)
    idf = table.facts[rows, 0]
    assert idf[0] < idf[1] < idf[-1]


def test_memory_is_emptied_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_MOST_WORDS", 10)
    own = WordReader(wordllama(), token_idf())
    texts = [f"word number{n} again" for n in range(50)]
    for text in texts:
        expected = described(reader().read([text]), 0)
        for one, other in zip(described(own.read([text]), 0), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_threads_may_share_a_reader() -> None:
    own = WordReader(wordllama(), token_idf())
    texts = [" ".join(f"w{a}x{b}" for b in range(30)) for a in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: described(own.read([text]), 0), texts))
    for text, one in zip(texts, found, strict=True):
        for ours, theirs in zip(one, described(own.read([text]), 0), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_long_words_are_cut() -> None:
    assert len(reader().read(["x" * 100_000])[0][0]) == 1


def test_a_piece_is_another_word_in_another_language() -> None:
    texts, codes = ["die Taste", "die Taste", "die"], ["de", "en", "nl"]
    first = WordReader(wordllama(), token_idf())
    expected = [first.read([text], [code]) for text, code in zip(texts, codes, strict=True)]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        other = WordReader(wordllama(), token_idf())
        rows, table = other.read([texts[n] for n in order], [codes[n] for n in order])
        for own, number in zip(rows, order, strict=True):
            ((before,), known) = expected[number]
            np.testing.assert_array_equal(table.facts[own], known.facts[before])
            np.testing.assert_array_equal(table.vectors[own], known.vectors[before])
    assert len({*rows[0], *rows[1], *rows[2]}) == 5
    german, english = first.read(["die", "die"], ["de", "en"])[0]
    table = first.read(["die"])[1]
    assert table.facts[german, 3].tolist() == [1]
    assert table.facts[english, 3].tolist() == [0]


def test_long_pieces_of_other_languages_are_not_remembered() -> None:
    own = WordReader(wordllama(), token_idf())
    text = "桥" * 3000
    (rows,), _ = own.read([text], ["zh"])
    assert len(rows) == 3000
    assert len(set(rows)) == 1
    assert not own._memory._pieces_in["zh"]


def test_many_pieces_of_other_languages_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_MOST_WORDS", 4)
    own = WordReader(wordllama(), token_idf())
    own.read(["eins zwei drei vier fünf sechs"], ["de"])
    assert not own._memory._pieces_in
