from pathlib import Path

import numpy as np
import pytest

from dgn.text import SubwordVectors, clean_brackets, open_vectors
from models import wordllama


def test_default_vectors_load_from_the_wheel_and_know_every_word() -> None:
    vectors = open_vectors("wordllama")
    assert isinstance(vectors, SubwordVectors)
    assert vectors.dimension == 256
    assert vectors.fingerprint == wordllama().fingerprint
    king, queen, bread, odd = vectors.pooled(["king", "queen", "bread", "xqzzv"])
    assert king @ queen / np.linalg.norm(king) / np.linalg.norm(queen) > (
        king @ bread / np.linalg.norm(king) / np.linalg.norm(bread)
    )
    assert np.linalg.norm(odd) > 0


def test_token_spans_are_rows_and_positions() -> None:
    text = "Sikkim -LRB- India -RRB-"
    spans = wordllama().token_spans(text)
    assert [row for row, _, _ in spans] == list(wordllama().token_rows([text])[0])
    pieces = [clean_brackets(text)[start:end] for _, start, end in spans]
    assert "".join(pieces).replace(" ", "") == "Sikkim(India)"


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
