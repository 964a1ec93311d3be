"""Files that are written completely or not at all, and their fingerprints."""

import os
from pathlib import Path

import pytest

from dgn.errors import InvalidInput
from dgn.files import (
    fingerprint_of,
    only_writer,
    open_atomically,
    sampled_fingerprint_of,
    save_figure,
    temporary_sibling,
    write_atomically,
)


def test_write_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_atomically(path, "first, and longer")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail() -> None:
        with open_atomically(path) as stream:
            stream.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_symbolic_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_devices_are_written_directly() -> None:
    with open_atomically(Path(os.devnull)) as stream:
        stream.write(b"gone")


def test_temporary_sibling_is_removed(tmp_path: Path) -> None:
    with temporary_sibling(tmp_path / "file.txt") as partial:
        assert partial.parent == tmp_path
        assert partial.name.startswith(".file.txt.")
        partial.write_text("x")
    assert not list(tmp_path.iterdir())


def test_figure_has_the_format_of_its_suffix(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    save_figure(Figure(), tmp_path / "one.png")
    save_figure(Figure(), tmp_path / "two.SVG")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "two.SVG").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_only_one_writer_per_folder(tmp_path: Path) -> None:
    (tmp_path / ".config.json.77.partial").write_text("{")
    with only_writer(tmp_path):
        assert not list(tmp_path.glob(".*.partial"))
        with (
            pytest.raises(InvalidInput, match="Another process is writing to") as error,
            only_writer(tmp_path),
        ):
            pass
        assert error.value.argument == "out"
    with only_writer(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_fingerprint_of_a_file_changes_with_its_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    first = fingerprint_of(path)
    os.utime(path, (0, 0))
    assert fingerprint_of(path) == first
    path.write_bytes(b"two")
    assert fingerprint_of(path) != first


@pytest.mark.parametrize("changed", [0, 1_500_000, 2_500_000, 4_999_999])
def test_fingerprint_of_a_large_file_sees_every_byte(tmp_path: Path, changed: int) -> None:
    path = tmp_path / "file"
    content = bytearray(5_000_000)
    path.write_bytes(content)
    first, sampled = fingerprint_of(path), sampled_fingerprint_of(path)
    content[changed] = 1
    path.write_bytes(content)
    assert fingerprint_of(path) != first
    assert (sampled_fingerprint_of(path) == sampled) == (changed == 1_500_000)


def test_fingerprint_of_a_folder_changes_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    first = fingerprint_of(tmp_path)
    assert fingerprint_of(tmp_path) == first
    (tmp_path / "b").write_text("two")
    assert fingerprint_of(tmp_path) != first
