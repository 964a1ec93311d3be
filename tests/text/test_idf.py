import math

import pytest

from dgn.text import Idf, token_idf
from models import wordllama


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
