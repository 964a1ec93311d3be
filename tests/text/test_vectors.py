"""Vectors: every source behind the same interface, and caches that are not trusted blindly."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgn.errors import BrokenInput, InvalidInput
from dgn.text import open_vectors
from dgn.text.matching import best_matches
from dgn.text.vec_file import VecFile
from dgn.text.vectors import TokenVectors, mean_rows

WORDS = {"ship": [1.0, 0.0, 2.0], "harbour": [0.0, 3.0, 0.0], "it's": [1.0, 1.0, 1.0]}


def vec_text(words: dict[str, list[float]]) -> str:
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in words.items()]
    return "\n".join([f"{len(words)} 3", *lines, ""])


@pytest.fixture(params=[".vec", ".vec.gz"])
def vec_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"small{request.param}"
    if path.suffix == ".gz":
        with gzip.open(path, "wt", encoding="utf-8") as stream:
            stream.write(vec_text(WORDS))
    else:
        path.write_text(vec_text(WORDS), encoding="utf-8")
    return path


def opened(path: Path) -> VecFile:
    return VecFile(path, cache=path.parent / "cache")


def test_words_have_their_vectors_and_unknown_ones_are_left_out(vec_path: Path) -> None:
    vectors = opened(vec_path)
    assert vectors.dimension == 3
    assert len(vectors) == 3
    pooled = vectors.pooled(["Ship in the harbour .", "it's", "nothing known", ""])
    np.testing.assert_allclose(pooled, [[0.5, 1.5, 1.0], [1, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert vectors.tokens("A SHIP !") == [("A", -1), ("SHIP", 0)]
    assert vectors.vectors_of([1]).tolist() == [[0.0, 3.0, 0.0]]


def test_the_second_opening_reads_the_cache_only(
    vec_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(vec_path)
    monkeypatch.setattr("dgn.text.vec_file._convert", lambda *_: pytest.fail("converted again"))
    np.testing.assert_allclose(opened(vec_path).pooled(["ship"]), [WORDS["ship"]])


@pytest.mark.parametrize("damage", ["truncate", "remove", "version", "meta", "flip"])
def test_a_cache_that_is_not_whole_is_made_anew(vec_path: Path, damage: str) -> None:
    opened(vec_path)
    (folder,) = (vec_path.parent / "cache").iterdir()
    meta = folder / "meta.json"
    if damage == "truncate":
        (folder / "vectors.npy").write_bytes((folder / "vectors.npy").read_bytes()[:-4])
    elif damage == "remove":
        (folder / "words.bin").unlink()
    elif damage == "version":
        meta.write_text(json.dumps(json.loads(meta.read_text()) | {"version": 0}))
    elif damage == "meta":
        meta.write_text("{")
    else:
        content = bytearray((folder / "vectors.npy").read_bytes())
        content[-2] ^= 0xFF
        (folder / "vectors.npy").write_bytes(content)
    np.testing.assert_allclose(opened(vec_path).pooled(["ship"]), [WORDS["ship"]])


def test_another_file_has_another_cache(vec_path: Path) -> None:
    before = opened(vec_path).fingerprint
    changed = vec_text(WORDS | {"ship": [9.0, 9.0, 9.0]})
    if vec_path.suffix == ".gz":
        vec_path.write_bytes(gzip.compress(changed.encode()))
    else:
        vec_path.write_text(changed)
    after = opened(vec_path)
    assert after.fingerprint != before
    np.testing.assert_allclose(after.pooled(["ship"]), [[9, 9, 9]])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("three words\n", 1),
        ("0 3\n", 1),
        ("2 3\na 1 2 3\nb 1 2\n", 3),
        ("2 3\na 1 2 3\nb 1 2 x\n", 3),
        ("1 3\na 1 2 nan\n", 2),
        ("1 3\na 1 2 3\nb 1 2 3\n", 3),
        ("3 3\na 1 2 3\n", 3),
    ],
)
def test_broken_vector_files_are_named_with_their_line(
    tmp_path: Path, text: str, line: int
) -> None:
    path = tmp_path / "bad.vec"
    path.write_text(text)
    with pytest.raises(BrokenInput, match=rf"bad\.vec, line {line}:"):
        opened(path)
    assert not any((tmp_path / "cache").iterdir())


def test_a_truncated_vector_archive(tmp_path: Path) -> None:
    path = tmp_path / "cut.vec.gz"
    path.write_bytes(gzip.compress(vec_text(WORDS).encode())[:-12])
    with pytest.raises(BrokenInput, match="truncated archive"):
        opened(path)


def test_sources_that_are_none() -> None:
    with pytest.raises(BrokenInput, match="no such file"):
        open_vectors("none.vec")
    with pytest.raises(InvalidInput, match="vectors: found 'glove'; allowed: wordllama"):
        open_vectors("glove")


@pytest.fixture(scope="module")
def wordllama() -> TokenVectors:
    vectors = open_vectors("wordllama")
    assert isinstance(vectors, TokenVectors)
    return vectors


def test_the_default_loads_from_its_wheel_and_knows_every_word(wordllama: TokenVectors) -> None:
    assert wordllama.dimension == 256
    king, queen, bread, odd = wordllama.pooled(["king", "queen", "bread", "xqzzv"])
    assert king @ queen / np.linalg.norm(king) / np.linalg.norm(queen) > (
        king @ bread / np.linalg.norm(king) / np.linalg.norm(bread)
    )
    assert np.linalg.norm(odd) > 0
    assert all(row >= 0 for _, row in wordllama.tokens("Sikkim -LRB- India -RRB-"))


def test_pooled_vectors_agree_with_wordllamas_own(wordllama: TokenVectors) -> None:
    package = pytest.importorskip("wordllama", reason="wordllama is in dgn[text]")
    folder = Path(package.__file__).parent
    theirs = package.WordLlama.load(cache_dir=folder, disable_download=True)
    texts = ["A ship in the harbour.", "She paints."]
    np.testing.assert_allclose(wordllama.pooled(texts), theirs.embed(texts), atol=1e-3)


def test_fasttext_knows_unseen_words_by_their_parts(tmp_path: Path) -> None:
    gensim = pytest.importorskip("gensim.models.fasttext", reason="gensim is in dgn[fasttext]")
    sentences = [["harbour", "ship", "sailor", "harbours"], ["bread", "baker", "flour"]] * 20
    model = gensim.FastText(sentences, vector_size=8, min_count=1, epochs=2, workers=1, seed=1)
    path = tmp_path / "tiny.bin"
    gensim.save_facebook_model(model, str(path))
    vectors = open_vectors(path)
    assert vectors.dimension == 8
    seen, unseen = vectors.pooled(["harbour", "harbourmaster"])
    np.testing.assert_allclose(seen, model.wv["harbour"], atol=1e-5)
    assert np.linalg.norm(unseen) > 0
    both = vectors.pooled(["harbour ship"])[0]
    np.testing.assert_allclose(both, (model.wv["harbour"] + model.wv["ship"]) / 2, atol=1e-5)
    (tmp_path / "bad.bin").write_bytes(b"this is no model")
    with pytest.raises(BrokenInput, match=r"bad\.bin: found no fastText model"):
        open_vectors(tmp_path / "bad.bin")


@given(st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=30), st.integers(0, 99))
def test_mean_rows_is_the_mean_of_rows(rows: list[list[int]], seed: int) -> None:
    table = np.random.default_rng(seed).random((7, 4)).astype(np.float32)
    means = mean_rows(table, rows)
    assert means.shape == (len(rows), 4)
    for mean, of_text in zip(means, rows, strict=True):
        expected = table[of_text].mean(axis=0) if of_text else np.zeros(4)
        np.testing.assert_allclose(mean, expected, rtol=1e-5)


def test_best_matches_by_hand(vec_path: Path) -> None:
    matches = best_matches(
        opened(vec_path), "ship unknown harbour", ["harbour", "nothing", "the ship it's"]
    )
    expected = [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3 / (3 * np.sqrt(3))]]
    np.testing.assert_allclose(matches, expected, atol=1e-6)


def test_best_matches_where_nothing_is_known(vec_path: Path) -> None:
    vectors = opened(vec_path)
    assert best_matches(vectors, "unknown", ["ship"]).tolist() == [[0.0]]
    assert best_matches(vectors, "ship", ["", "unknown"]).tolist() == [[0.0], [0.0]]
