"""Word vectors in files: word2vec's text format (`.vec`, `.vec.gz`, `.zip`), and fastText's `.bin`.

A text file is read once and kept as a memory-mapped cache: opening takes milliseconds, and memory
grows with the words that are used, not with the file. The cache is used only if it has this
version, was made from the same file, and is complete.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
import os
import shutil
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.errors import BrokenInput, require_extra
from dgn.files import fingerprint_of, sampled_fingerprint_of, write_atomically
from dgn.text.vectors import TokenVectors, WordLookup, fingerprint_with
from dgn.text.words import split_words

_VERSION = 1
_FILES = ("vectors.npy", "hashes.npy", "rows.npy", "offsets.npy", "words.bin")
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)
_LONGEST_LINE = 1 << 20
_BUFFER = 1 << 16


@final
class VecFile(TokenVectors):
    """Whole words; a missing word is looked up in lower case, and dropped if that fails too.

    Args:
        path: The .vec or .vec.gz file, or a .zip with one .vec, as fastText publishes them.
        cache: The folder of the cache; by default $DGN_CACHE or the user's cache folder.
        on_progress: Called with the number of words read so far and their total.
        split: The words of a text.
    """

    def __init__(
        self,
        path: Path,
        cache: Path | None = None,
        on_progress: Callable[[int, int], None] = lambda _done, _all: None,
        split: Callable[[str], list[str]] = split_words,
    ) -> None:
        if not path.is_file():
            raise BrokenInput(
                path, None, found="no such file", allowed="a .vec, .vec.gz or .zip file"
            )
        cache = cache or _default_cache()
        note = _note_of(path, cache)
        known = note.read_text(encoding="ascii") if note.is_file() else fingerprint_of(path)
        content, folder = f"vec:{known}", cache / f"vec-{known}"
        if not _is_complete(folder, content):
            _convert(path, folder, content, on_progress)
        if not note.is_file():
            write_atomically(note, known)
        self.fingerprint = fingerprint_with(content, split)
        self._table: NDArray[np.float32] = np.load(folder / "vectors.npy", mmap_mode="r")
        self._hashes: NDArray[np.uint64] = np.load(folder / "hashes.npy", mmap_mode="r")
        self._rows: NDArray[np.int64] = np.load(folder / "rows.npy", mmap_mode="r")
        self._offsets: NDArray[np.int64] = np.load(folder / "offsets.npy", mmap_mode="r")
        self._words = np.memmap(folder / "words.bin", dtype=np.uint8, mode="r")
        self._lookup = WordLookup(self.row_of, split)
        self.dimension = int(self._table.shape[1])

    @property
    def table(self) -> NDArray[Any]:
        return self._table

    def __len__(self) -> int:
        return len(self._table)

    def token_rows(self, texts: Sequence[str]) -> list[Sequence[int]]:
        return self._lookup.rows(texts)

    def row_of(self, word: str) -> int:
        """The row of a word, else of the word in lower case, else −1."""
        row = self._find(word)
        return self._find(word.lower()) if row < 0 and not word.islower() else row

    def _find(self, word: str) -> int:
        written = word.encode()
        wanted = np.uint64(_hash(written))
        index = int(np.searchsorted(self._hashes, wanted))
        # Words with the same hash are adjacent; there is rarely more than one.
        while index < len(self._hashes) and self._hashes[index] == wanted:
            row = int(self._rows[index])
            if self._words[self._offsets[row] : self._offsets[row + 1]].tobytes() == written:
                return row
            index += 1
        return -1


def _hash(word: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(word, digest_size=8).digest(), "little")


def _default_cache() -> Path:
    base = os.environ.get("DGN_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "dgn"


def _note_of(path: Path, cache: Path) -> Path:
    """Where the fingerprint of a file is noted, for its path, size and modification time.

    To read gigabytes for a fingerprint takes longer than everything else.
    """
    status = path.stat()
    state = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}"
    return cache / f"source-{hashlib.blake2b(state.encode(), digest_size=16).hexdigest()}"


def _is_complete(folder: Path, fingerprint: str) -> bool:
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return meta == _meta_of(folder, fingerprint)


def _meta_of(folder: Path, fingerprint: str) -> dict[str, object]:
    """The description of a complete cache: its version, its source, its files' fingerprints."""
    present = (name for name in _FILES if (folder / name).is_file())
    files = {name: sampled_fingerprint_of(folder / name) for name in present}
    return {"version": _VERSION, "source": fingerprint, "files": files}


def _convert(
    path: Path, folder: Path, fingerprint: str, on_progress: Callable[[int, int], None]
) -> None:
    """Write the cache to a temporary folder, then move it: nobody sees an incomplete one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix="making-", dir=folder.parent))
    try:
        words = _write_vectors(path, making / "vectors.npy", on_progress)
        _write_index(words, making)
        meta = json.dumps(_meta_of(making, fingerprint))
        (making / "meta.json").write_text(meta, encoding="utf-8")
        if _is_complete(folder, fingerprint):
            return  # another process was faster, and may already be reading it
        shutil.rmtree(folder, ignore_errors=True)
        try:
            making.rename(folder)
        except OSError:
            # Another process was faster; its cache is as good if it is complete.
            if not _is_complete(folder, fingerprint):
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _write_vectors(
    path: Path, target: Path, on_progress: Callable[[int, int], None]
) -> list[bytes]:
    """Write the table row by row, so that memory stays constant, and return the words."""
    lines = _lines_of(path)
    count, dimension = _header_of(path, next(lines, b""))
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, dimension)}
    words: list[bytes] = []
    with target.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for number, line in enumerate(lines, start=2):
            if len(words) == count:
                raise BrokenInput(
                    path, number, found="more", allowed=f"{count:,} words, as line 1 says"
                )
            word, vector = _parsed(path, number, line, dimension)
            stream.write(vector.tobytes())
            words.append(word)
            if number % 10_000 == 0:
                on_progress(len(words), count)
    if len(words) != count:
        raise BrokenInput(
            path,
            len(words) + 2,
            found="the end of the file",
            allowed=f"{count:,} words, as line 1 says",
        )
    return words


def _parsed(
    path: Path, number: int, line: bytes, dimension: int
) -> tuple[bytes, NDArray[np.float32]]:
    word, _, numbers = line.rstrip(b" \r\n").partition(b" ")
    try:
        vector = np.array(numbers.split(b" "), dtype="<f4")
    except ValueError:
        vector = np.empty(0, dtype="<f4")
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        raise BrokenInput(
            path,
            number,
            found=f"{word.decode(errors='replace')!r} without them",
            allowed=f"a word and {dimension} finite numbers",
        )
    return word, vector


def _lines_of(path: Path) -> Iterator[bytes]:
    number = 0
    try:
        with _opened(path) as stream:
            while line := stream.readline(_LONGEST_LINE + 1):
                number += 1
                if len(line) > _LONGEST_LINE:
                    raise BrokenInput(
                        path, number, message="the line is longer than 1 MiB; it is not a vector."
                    )
                yield line
    except _DAMAGED as error:
        raise BrokenInput(
            path,
            number + 1,
            found=f"a damaged or truncated one ({error})",
            allowed="a complete archive (download it again)",
        ) from error


@contextmanager
def _opened(path: Path) -> Generator[IO[bytes]]:
    if path.suffix == ".gz":
        with gzip.open(path, "rb") as unpacked:
            yield cast("IO[bytes]", unpacked)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if _is_vec(name)]
            if len(names) != 1:
                found = ", ".join(names) or "none"
                raise BrokenInput(path, None, found=found, allowed="one .vec file in the archive")
            try:
                member = archive.open(names[0])
            except (RuntimeError, NotImplementedError) as error:  # a password, a new compression
                raise BrokenInput(
                    path, None, message=f"the archive cannot be opened ({error}); unpack it first."
                ) from None
            # Buffered: zipfile reads lines of a limited length byte by byte.
            with member, io.BufferedReader(cast("io.RawIOBase", member), _BUFFER) as stream:
                yield stream
    else:
        with path.open("rb") as stream:
            yield stream


def _is_vec(name: str) -> bool:
    # macOS leaves files of its own next to the real ones.
    return name.endswith(".vec") and not name.startswith("__MACOSX/")


def _header_of(path: Path, line: bytes) -> tuple[int, int]:
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and int(field) > 0 for field in fields):
        raise BrokenInput(
            path,
            1,
            found=repr(line[:40].decode(errors="replace")),
            allowed="the number of words and the dimension",
        )
    return int(fields[0]), int(fields[1])


def _write_index(words: list[bytes], folder: Path) -> None:
    hashes = np.array([_hash(word) for word in words], dtype=np.uint64)
    # A stable sort keeps the first of two equal words first, where searchsorted finds it.
    order = np.argsort(hashes, kind="stable")
    lengths = np.array([len(word) for word in words], dtype=np.int64)
    np.save(folder / "hashes.npy", hashes[order])
    np.save(folder / "rows.npy", order)
    np.save(folder / "offsets.npy", np.concatenate([[0], np.cumsum(lengths)]))
    (folder / "words.bin").write_bytes(b"".join(words))


@final
class FastTextBin(TokenVectors):
    """No word is unknown. The table holds the words that were met so far."""

    def __init__(self, path: Path, split: Callable[[str], list[str]] = split_words) -> None:
        require_extra("Reading fastText .bin files", package="gensim", extra="fasttext")
        if not path.is_file():
            raise BrokenInput(path, None, found="no such file", allowed="a fastText .bin file")
        self.fingerprint = fingerprint_with(f"fasttext:{fingerprint_of(path)}", split)
        gensim: Any = importlib.import_module("gensim.models.fasttext")
        try:
            self._model: Any = gensim.load_facebook_vectors(str(path))
        except Exception as error:  # gensim raises whatever the bytes make it stumble over
            raise BrokenInput(
                path, None, found=f"something else ({error})", allowed="a fastText .bin file"
            ) from error
        self.dimension = int(self._model.vector_size)
        self._met: dict[str, int] = {}
        self._vectors: list[NDArray[np.float32]] = []
        self._stacked = np.empty((0, self.dimension), dtype=np.float32)
        self._lock = threading.Lock()
        self._lookup = WordLookup(self.row_of, split)

    @property
    def table(self) -> NDArray[Any]:
        if len(self._stacked) < len(self._vectors):
            self._stacked = np.stack(self._vectors)
        return self._stacked

    def token_rows(self, texts: Sequence[str]) -> list[Sequence[int]]:
        return self._lookup.rows(texts)

    def row_of(self, word: str) -> int:
        """The row of a word; a word that was not met before gets a new one."""
        with self._lock:
            if word not in self._met:
                self._vectors.append(np.asarray(self._model.get_vector(word), dtype=np.float32))
                self._met[word] = len(self._vectors) - 1
            return self._met[word]
