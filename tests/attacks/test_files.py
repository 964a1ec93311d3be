"""Attacks on files: mutated ones are read or explained in one sentence, full disks name the file.

`python tests/attacks/test_files.py COUNT SEED` tries as many mutations as you like.
"""

import contextlib
import gzip
import io
import json
import lzma
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dgn import Selector, files
from dgn.apps.cli.main import main
from dgn.data import Problems, read_rows
from dgn.data.lines import read_lines
from dgn.errors import BrokenInput, InvalidInput
from dgn.files import (
    only_writer,
    open_atomically,
    save_figure,
    write_atomically,
)

ROWS = [
    {"query": "Who swims in 1911?", "passages": ["Bo runs.", "Ada swims."], "scores": [1, 2]},
    {"claim": "It sank.", "sentences": ["It left.", "It sank."], "evidence": [[1]], "id": "é"},
    {"query": "A?", "documents": [{"title": "T", "text": "One. Two."}], "label": "SUPPORTS"},
]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
ALLOWED = (BrokenInput, InvalidInput)


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The content with one to four changes: bytes flipped, cut out, repeated, or replaced."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        if not data:
            break
        at = chance.randrange(len(data))
        length = min(chance.choice((1, 2, 4, 30, 300)), len(data) - at)
        match chance.randrange(7):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at : at + length] = chance.randbytes(length)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length]
            case 4:
                del data[at:]
            case 5:
                data[at : at + length] = chance.choice((b"\0", b"\xff", b"9")) * length
            case _:
                data[at:at] = chance.choice((b"[" * 3000, b"1e999", b"-1", b"null", b'"', b"\n"))
    return bytes(data)


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", content)
        archive.writestr("b.jsonl", content)
    return stream.getvalue()


def select_rows(path: Path) -> None:
    for more in ((), ("--skip-bad",)):
        with tempfile.TemporaryDirectory() as out:
            command = ["select", "--queries", str(path), "--out", f"{out}/out.jsonl", *more]
            with contextlib.redirect_stderr(io.StringIO()) as printed:
                code = main(command)
            if code:
                raise InvalidInput("queries", message=printed.getvalue())


def read_all(path: Path) -> None:
    for skip in (True, False):
        for _ in read_rows(path, Problems(skip=skip)):
            pass


FILES: dict[str, tuple[bytes, Callable[[Path], object]]] = {
    "a.jsonl": (LINES, read_all),
    "b.jsonl.gz": (gzip.compress(LINES), read_all),
    "c.jsonl.xz": (lzma.compress(LINES), read_all),
    "d.zip": (zipped(LINES), read_all),
    "e.jsonl": (LINES, select_rows),
    "f.jsonl.gz": (gzip.compress(LINES * 3), select_rows),
}
"""Files that are read alone, and what reads them."""


def made_folders(base: Path) -> dict[str, tuple[Path, Callable[[Path], object]]]:
    """Folders of which one file is mutated, and what reads them."""
    selector = base / "selector"
    Selector.from_pretrained().save_pretrained(selector)
    return {
        "model": (selector, lambda path: Selector.from_pretrained(path).select("A b", ["a", "b"]))
    }


def attacks(count: int, seed: int, base: Path) -> Iterator[tuple[str, str]]:
    """Mutate and read `count` files; what was mutated, and how it ended."""
    chance = random.Random(seed)
    folders = made_folders(base / "made")
    for number in range(count):
        name = chance.choice([*FILES, *folders])
        if name in FILES:
            content, read = FILES[name]
            path = base / name
            path.write_bytes(mutated(content, chance))
        else:
            folder, read = folders[name]
            path = base / "mutated"
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(folder, path)
            every = [file for file in path.iterdir() if file.suffix not in {".png", ".md"}]
            victim = chance.choice(sorted(file for file in every if file.is_file()))
            victim.write_bytes(mutated(victim.read_bytes(), chance))
        try:
            read(path)
        except ALLOWED as error:
            is_sentence = "\n" not in str(error).strip()
            yield name, "explained" if is_sentence else f"several lines: {error}"
        except Exception as error:
            kept = path.with_name(f"failed-{seed}-{number}-{name}")
            (shutil.copytree if path.is_dir() else shutil.copy)(path, kept)
            yield name, f"{error!r:.300} ({kept})"
        else:
            yield name, "read"


def test_mutated_files_are_read_or_explained(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    ends = Counter(end for _, end in attacks(150, 0, tmp_path))
    assert set(ends) == {"explained", "read"}
    assert min(ends.values()) > 5


def test_a_line_of_gigabytes_in_every_reader(tmp_path: Path) -> None:
    """The limit holds in archives of all kinds."""
    long = b" " * (64 * 2**20 + 5) + b"\n" + LINES
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(long, 1))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a.jsonl", long)
    for name in ("a.jsonl.gz", "a.zip"):
        with pytest.raises(BrokenInput, match="line 1: the line is longer than 64 MiB"):
            list(read_lines(tmp_path / name, Problems()))
        problems = Problems(skip=True)
        assert len(list(read_lines(tmp_path / name, problems))) == 3
        assert problems.count == 1


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may have more than 4,000 bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    def open_and_write(path: Path) -> None:
        with open_atomically(path) as stream:
            stream.write(bytes(100_000))

    writers: dict[str, Callable[[Path], object]] = {
        "a.txt": lambda path: write_atomically(path, bytes(5000)),
        "b.bin": open_and_write,
        "d.png": lambda path: save_figure(Figure(), path, dpi=200),
        "model.safetensors": lambda path: Selector.from_pretrained().save_pretrained(path.parent),
    }
    for name, write in writers.items():
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        with pytest.raises(OSError, match=rf"File too large: '.*{name}'"):
            write(folder / name)
        assert not list(folder.glob(".*")), "a part was left"


@pytest.mark.usefixtures("small_files")
def test_commands_name_what_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    for _ in range(8):
        with rows.open("ab") as stream:
            stream.write(LINES)
    commands = {
        "out.jsonl": ["select", "--queries", str(rows), "--out", f"{tmp_path}/out.jsonl"],
    }
    for name, command in commands.items():
        assert main(command) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert f"{name}: File too large.\n" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(LINES)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dgn", "select", "--queries", str(tmp_path / "rows.jsonl")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "dgn: standard output: No space left on device.\n")


def test_a_lock_on_a_file_that_was_removed_is_none(tmp_path: Path) -> None:
    """The owner removes its lock at the end, perhaps after the next process has opened it."""
    path = tmp_path / ".lock"
    with path.open("w") as lock:
        path.unlink()
        assert not files._is_locked(lock, path)
        path.touch()
        assert not files._is_locked(lock, path)
    with only_writer(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="dgn-attacks-")
    Path(folder, "made").mkdir()
    found = Counter(attacks(int(sys.argv[1]), int(sys.argv[2]), Path(folder)))
    for (name, end), number in sorted(found.items()):
        print(f"{name:20} {end:10} {number:6,}")
