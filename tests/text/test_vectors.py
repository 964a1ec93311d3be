import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgn.evaluation.baselines import Idf
from dgn.text import WordLlamaVectors, token_idf
from dgn.text.vectors import mean_rows, unit_rows
from models import wordllama


@given(st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=30), st.integers(0, 99))
def test_mean_rows_is_the_mean_of_rows(rows: list[list[int]], seed: int) -> None:
    table = np.random.default_rng(seed).random((7, 4)).astype(np.float32)
    means = mean_rows(table, rows)
    assert means.shape == (len(rows), 4)
    for mean, of_text in zip(means, rows, strict=True):
        expected = table[of_text].mean(axis=0) if of_text else np.zeros(4)
        np.testing.assert_allclose(mean, expected, rtol=1e-5)


def test_unit_rows_have_length_one_and_zeros_stay_zeros() -> None:
    unit = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0, 0]])


def test_rare_words_have_larger_weights_and_unseen_words_the_largest() -> None:
    idf = Idf.of([["a", "b", "a"], ["a"], ["a", "c"]])
    often, seldom, never = idf.weights(["a", "b", "zzz"]).tolist()
    assert often == pytest.approx(math.log(4 / 4) + 1)
    assert seldom == pytest.approx(math.log(4 / 2) + 1)
    assert never == pytest.approx(math.log(4 / 1) + 1)


def test_counted_documents_are_equal_whatever_the_order() -> None:
    assert Idf.of([["a", "b"], ["a"]]) == Idf.of([["a"], ["b", "a"]])


def test_shipped_idf_has_one_value_per_token() -> None:
    shipped = token_idf()
    assert shipped.shape == (len(wordllama().table),)
    (the,), (cat,) = wordllama().token_rows(["the", "cat"])
    assert 1 <= shipped[the] < shipped[cat]


def test_default_vectors_load_from_the_wheel_and_know_every_word() -> None:
    vectors = WordLlamaVectors()
    assert vectors.dimension == 256
    assert vectors.fingerprint == wordllama().fingerprint
    king, queen, bread, odd = vectors.pooled(["king", "queen", "bread", "xqzzv"])
    assert king @ queen / np.linalg.norm(king) / np.linalg.norm(queen) > (
        king @ bread / np.linalg.norm(king) / np.linalg.norm(bread)
    )
    assert np.linalg.norm(odd) > 0


def test_words_have_the_tokens_that_each_has_alone() -> None:
    vectors = wordllama()
    whole = [piece[1:] for piece in vectors.pieces if piece[0] == "▁" and piece[1:].isalpha()]
    words = [*whole, "1911", "naïve", "zyxlonia", "東京", "it's", "-5", "m^2"]
    rows, counts = vectors.word_rows(words)
    alone = vectors.token_rows(words)
    assert counts.tolist() == [len(tokens) for tokens in alone]
    assert rows.tolist() == [row for tokens in alone for row in tokens]


def test_pieces_are_the_tokens_of_the_table() -> None:
    assert len(wordllama().pieces) == len(wordllama().table)


def test_many_texts_have_the_same_tokens_as_each_alone() -> None:
    texts = [f"Ship number {n} -LRB- lost -RRB-" for n in range(70)]
    together = wordllama().token_rows(texts)
    assert [list(rows) for rows in together] == [
        list(wordllama().token_rows([text])[0]) for text in texts
    ]


def test_pooled_vectors_agree_with_those_of_the_package() -> None:
    package = pytest.importorskip("wordllama")
    folder = Path(package.__file__).parent
    theirs = package.WordLlama.load(cache_dir=folder, disable_download=True)
    texts = ["A ship in the harbour.", "She paints."]
    np.testing.assert_allclose(wordllama().pooled(texts), theirs.embed(texts), atol=1e-3)
