"""Lines of all kinds of files: every line is read or reported, and never lost."""

import gzip
import io
import json
import lzma
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgn.data import Problems, read_rows
from dgn.data.lines import read_lines, stream_lines
from dgn.errors import BrokenInput
from small_rows import write_jsonl


@pytest.mark.parametrize("ending", [".jsonl.gz", ".jsonl.xz", ".zip"])
def test_compressed_files_are_read_directly(tmp_path: Path, ending: str) -> None:
    plain = write_jsonl(tmp_path / "dev.jsonl", [{"query": "Who?", "passages": ["x", "y"]}] * 3)
    packed = tmp_path / f"dev{ending}"
    if ending == ".zip":
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(plain, "data/dev.jsonl")
            archive.writestr("readme.txt", "not a claim")
            archive.writestr("__MACOSX/data/._dev.jsonl", "not a claim")
    else:
        packing = gzip.open if ending.endswith("gz") else lzma.open
        with packing(packed, "wb") as stream:
            stream.write(plain.read_bytes())
    assert [example.query for example in read_rows(packed)] == [
        example.query for example in read_rows(plain)
    ]


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_bytes(b'{"query": "\xff\xfe", "passages": ["x"]}\n')
    with pytest.raises(BrokenInput, match=r"line 1: expected .*; found invalid JSON"):
        list(read_rows(path))


@pytest.mark.parametrize("skip", [False, True])
def test_truncated_archive_gives_what_it_contains_and_then_an_error(
    tmp_path: Path, skip: bool
) -> None:
    path = tmp_path / "dev.jsonl.gz"
    rows = [{"query": f"Claim {n} is {hash(str(n))}.", "passages": ["x"]} for n in range(5000)]
    with gzip.open(path, "wb") as stream:
        stream.write("\n".join(json.dumps(row) for row in rows).encode())
    path.write_bytes(path.read_bytes()[:-4000])
    read = []

    def read_all() -> None:
        read.extend(example for example in read_rows(path, Problems(skip=skip)))

    with pytest.raises(
        BrokenInput, match=r"the archive is damaged or truncated.*download it again"
    ):
        read_all()
    assert 0 < len(read) < 5000


@pytest.mark.parametrize("name", ["dev.zip", "dev.jsonl.gz", "dev.jsonl.xz"])
def test_file_that_is_not_an_archive_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not an archive")
    with pytest.raises(BrokenInput, match=name):
        list(read_rows(tmp_path / name))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match=r"none\.jsonl: .*No such file"):
        list(read_rows(tmp_path / "none.jsonl"))


def test_blank_lines_are_counted_and_not_returned() -> None:
    stream = io.BytesIO(b"\xef\xbb\xbfa\r\n\n  \nb")
    lines = list(stream_lines(stream, "input", Problems()))
    assert [(line.number, line.content) for line in lines] == [(1, b"a"), (4, b"b")]
    assert {line.file for line in lines} == {"input"}


def test_a_line_that_is_too_long_is_refused_or_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dgn.data.lines.LONGEST_LINE", 8)
    content = b"1234567\n" + b"x" * 30 + b"\n12345678\nlast"
    with pytest.raises(BrokenInput, match="input, line 2: the line is longer than"):
        list(stream_lines(io.BytesIO(content), "input", Problems()))
    skipped: list[BrokenInput] = []
    problems = Problems(skip=True, on_skip=skipped.append)
    lines = list(stream_lines(io.BytesIO(content), "input", problems))
    assert [(line.number, line.content) for line in lines] == [(1, b"1234567"), (4, b"last")]
    assert [problem.line for problem in skipped] == [2, 3]


def test_a_file_of_one_line_that_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dgn.data.lines.LONGEST_LINE", 8)
    (tmp_path / "a.jsonl").write_bytes(b"x" * 30)
    with pytest.raises(BrokenInput, match="line 1: the line is longer than"):
        list(read_rows(tmp_path / "a.jsonl"))


def test_only_the_first_thousand_problems_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"{\n" * 1200)
    problems = Problems(skip=True)
    assert list(read_rows(path, problems)) == []
    assert problems.count == 1200
    assert len(problems.kept) == 1000


def test_members_of_a_zip_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.jsonl", "x\n")
    (line,) = read_lines(path, Problems())
    assert line.file == f"{path}/a.jsonl"


ROWS: dict[str, dict[str, object]] = {
    "sentences": {"claim": "c", "sentences": ["x", "y"], "evidence": [[1]]},
    "documents": {
        "query": "q",
        "documents": [{"title": "t", "sentences": ["x"]}],
        "evidence": [[[0, 0]]],
    },
    "passages": {
        "query": "q",
        "passages": ["x", "y"],
        "titles": ["t", ""],
        "scores": [1, 2.5],
        "id": 3,
        "evidence": [0, 1],
    },
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@st.composite
def broken_lines(draw: st.DrawFn, row: dict[str, object]) -> bytes:
    """A good row, the row with something changed or removed, a part of it, or other bytes."""
    how = draw(st.sampled_from(["good", "change", "remove", "cut", "bytes", "other"]))
    if how == "bytes":
        return draw(st.binary(max_size=30)).replace(b"\n", b" ")
    if how == "other":
        return json.dumps(draw(anything)).encode()
    key = draw(st.sampled_from(sorted(row)))
    changed = dict(row)
    if how == "change":
        changed[key] = draw(anything)
    elif how == "remove":
        del changed[key]
    line = json.dumps(changed).encode()
    return line[: draw(st.integers(1, len(line)))] if how == "cut" else line


@settings(max_examples=200)
@given(st.sampled_from(sorted(ROWS)), st.data())
def test_any_line_is_read_or_reported(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    row = ROWS[name]
    lines = data.draw(st.lists(broken_lines(row), max_size=5))
    path = tmp_path_factory.mktemp("fuzz") / "rows.jsonl"
    path.write_bytes(b"\n".join(lines))
    rows = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    problems = Problems(skip=True)
    assert len(list(read_rows(path, problems))) + problems.count == len(rows)
    for problem in problems.kept:
        assert "rows.jsonl, line" in str(problem)
    if problems.count:
        with pytest.raises(BrokenInput, match=r"rows\.jsonl, line"):
            list(read_rows(path))


def test_encrypted_archive_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "wiki.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("wiki-001.jsonl", "{}")
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x03\x04") + 6] |= 1  # the flag of encryption, in both headers
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(content))
    with pytest.raises(BrokenInput, match=r"encrypted.*unpack it first"):
        list(read_lines(path, Problems()))
