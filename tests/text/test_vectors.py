from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgn.errors import BrokenInput, InvalidInput
from dgn.text import open_vectors, split_words, unit_rows
from dgn.text.vectors import WordRows, mean_rows


def test_unknown_sources_are_explained() -> None:
    with pytest.raises(BrokenInput, match="no such file"):
        open_vectors("none.vec")
    with pytest.raises(InvalidInput, match=r"vectors must be wordllama, .*; got 'glove'"):
        open_vectors("glove")


@given(st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=30), st.integers(0, 99))
def test_mean_rows_is_the_mean_of_rows(rows: list[list[int]], seed: int) -> None:
    table = np.random.default_rng(seed).random((7, 4)).astype(np.float32)
    means = mean_rows(table, rows)
    assert means.shape == (len(rows), 4)
    for mean, of_text in zip(means, rows, strict=True):
        expected = table[of_text].mean(axis=0) if of_text else np.zeros(4)
        np.testing.assert_allclose(mean, expected, rtol=1e-5)


def test_all_tokens_count_punctuation(tmp_path: Path) -> None:
    path = tmp_path / "small.vec"
    path.write_text("2 2\nship 1 0\n. 0 1\n", encoding="utf-8")
    words, tokens = open_vectors(path), open_vectors(f"all-tokens:{path}")
    np.testing.assert_allclose(np.asarray(words.pooled(["ship ."])), [[1, 0]])
    np.testing.assert_allclose(np.asarray(tokens.pooled(["ship ."])), [[0.5, 0.5]])
    assert words.fingerprint != tokens.fingerprint


def test_unit_rows_have_length_one_and_zeros_stay_zeros() -> None:
    unit = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0, 0]])


def test_word_rows_are_those_of_the_words_of_the_whole_text() -> None:
    known = {"ship": 0, "it's": 1, "twenty-one": 2}
    asked: list[str] = []

    def row_of(word: str) -> int:
        asked.append(word)
        return known.get(word, -1)

    rows = WordRows(row_of)
    texts = ["The ship (twenty-one), it's", "ship ship", ""]
    expected = [[known[w] for w in split_words(text) if w in known] for text in texts]
    assert [list(found) for found in rows.rows(texts)] == expected
    before = len(asked)
    rows.rows(texts)
    assert len(asked) == before, "pieces are remembered"
