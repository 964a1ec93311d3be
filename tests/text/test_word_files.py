"""Word vectors in text files, and caches that are checked before they are used."""

import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dgn.errors import BrokenInput
from dgn.text import open_vectors
from dgn.text.word_files import VecFile

WORDS = {"ship": [1.0, 0.0, 2.0], "harbour": [0.0, 3.0, 0.0], "it's": [1.0, 1.0, 1.0]}


def vec_text(words: dict[str, list[float]]) -> str:
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in words.items()]
    return "\n".join([f"{len(words)} 3", *lines, ""])


def write_text(path: Path, text: str) -> None:
    if path.suffix == ".zip":
        write_zip(path, {path.stem: text, "__MACOSX/._small.vec": "", "README.txt": ""})
    else:
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def write_zip(path: Path, members: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)


@pytest.fixture(params=[".vec", ".vec.gz", ".vec.zip"])
def vec_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"small{request.param}"
    write_text(path, vec_text(WORDS))
    return path


def opened(path: Path) -> VecFile:
    return VecFile(path, cache=path.parent / "cache")


def test_known_words_have_vectors_and_unknown_words_are_left_out(vec_path: Path) -> None:
    vectors = opened(vec_path)
    assert vectors.dimension == 3
    assert len(vectors) == 3
    pooled = vectors.pooled(["Ship in the harbour .", "it's", "nothing known", ""])
    np.testing.assert_allclose(pooled, [[0.5, 1.5, 1.0], [1, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert [vectors.row_of(word) for word in ("A", "SHIP", "ship")] == [-1, 0, 0]
    assert vectors.token_rows(["A SHIP !", "harbour"]) == [[0], [1]]
    assert vectors.table[1].tolist() == [0.0, 3.0, 0.0]


def test_second_opening_reads_the_cache_only(
    vec_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(vec_path)
    monkeypatch.setattr("dgn.text.word_files._convert", lambda *_: pytest.fail("converted again"))
    np.testing.assert_allclose(opened(vec_path).pooled(["ship"]), [WORDS["ship"]])


@pytest.mark.parametrize("damage", ["truncate", "remove", "version", "meta", "flip"])
def test_damaged_cache_is_made_again(vec_path: Path, damage: str) -> None:
    opened(vec_path)
    (folder,) = (vec_path.parent / "cache").glob("vec-*")
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
    write_text(vec_path, vec_text(WORDS | {"ship": [9.0, 9.0, 9.0]}))
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
def test_broken_files_are_named_with_the_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "bad.vec"
    path.write_text(text)
    with pytest.raises(BrokenInput, match=rf"bad\.vec, line {line}: expected"):
        opened(path)
    assert not any((tmp_path / "cache").iterdir())


def test_a_line_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.vec.gz"
    write_text(path, "1 3\nship " + "1 " * 10_000_000)
    with pytest.raises(BrokenInput, match=r"long\.vec\.gz, line 2: the line is longer than 1 MiB"):
        opened(path)


def test_truncated_archive_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "cut.vec.gz"
    path.write_bytes(gzip.compress(vec_text(WORDS).encode())[:-12])
    with pytest.raises(BrokenInput, match="truncated"):
        opened(path)


def test_a_damaged_zip_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "cut.vec.zip"
    write_text(path, vec_text(WORDS))
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with pytest.raises(BrokenInput, match="truncated"):
        opened(path)
    flipped = bytearray(whole)
    flipped[45] ^= 0xFF  # inside the compressed text
    path.write_bytes(flipped)
    with pytest.raises(BrokenInput, match="damaged"):
        opened(path)


@pytest.mark.parametrize("members", [{}, {"a.vec": "1 1", "b.vec": "1 1"}])
def test_a_zip_must_have_one_file_of_vectors(tmp_path: Path, members: dict[str, str]) -> None:
    path = tmp_path / "two.zip"
    write_zip(path, members)
    with pytest.raises(BrokenInput, match=r"one \.vec file in the archive"):
        opened(path)


def test_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match="no such file"):
        opened(tmp_path / "none.vec")


gensim = pytest.importorskip("gensim.models.fasttext", reason="gensim is in dgn[fasttext]")


def test_unseen_words_have_the_vectors_of_their_parts(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ["bad.bin", "none.bin"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.bin").write_bytes(b"not a model")
    with pytest.raises(BrokenInput, match=rf"{name}: expected a fastText \.bin file"):
        open_vectors(tmp_path / name)
