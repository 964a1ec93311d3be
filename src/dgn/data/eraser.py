"""The ERASER layout: a `docs/` folder with one sentence per line, claims with evidence spans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dgn.data.lines import Line, Problems, decode_line, read_lines
from dgn.data.records import Claim, Evidence, Page
from dgn.errors import BrokenInput


class _Span(msgspec.Struct):
    docid: str
    start_sentence: int
    end_sentence: int
    text: str | None = None


class _Row(msgspec.Struct):
    annotation_id: str
    query: str
    evidences: list[list[_Span]]
    classification: str | None = None
    docids: list[str] | None = None


_MOST_KEPT = 4096
_LARGEST_PAGE = 64 * 2**20
_LONGEST_NAME = 255  # of a file, in bytes
_ROWS = msgspec.json.Decoder(_Row)
_FORMAT = "a row of ERASER: annotation_id, query, evidences [[docid, start_sentence, end_sentence]]"


def read_eraser_claims(path: Path, problems: Problems | None = None) -> Iterator[Claim]:
    """The claims of one ERASER file (`train.jsonl`, `val.jsonl`, …), one at a time."""
    problems = problems or Problems()
    for line in read_lines(path, problems):
        try:
            yield _claim_of(line)
        except BrokenInput as problem:
            problems.report(problem)


def _claim_of(line: Line) -> Claim:
    row = decode_line(line, _ROWS, _FORMAT)
    if not row.query.strip():
        raise line.error("the query is empty.")
    groups = tuple(
        tuple(piece for span in group for piece in _pieces_of(line, span))
        for group in row.evidences
    )
    return Claim(
        id=row.annotation_id,
        text=row.query,
        label=row.classification,
        groups=tuple(group for group in groups if group),
        pages=tuple(row.docids) if row.docids else None,
    )


def _pieces_of(line: Line, span: _Span) -> list[Evidence]:
    if not 0 <= span.start_sentence < span.end_sentence:
        raise line.problem(
            f"a span from {span.start_sentence} to {span.end_sentence}",
            "0 ≤ start_sentence < end_sentence",
        )
    sentences = range(span.start_sentence, span.end_sentence)
    return [Evidence(span.docid, sentence) for sentence in sentences]


@dataclass(frozen=True)
class EraserDocs:
    """The `docs/` folder: one file per page, one sentence per line."""

    folder: Path
    _read: dict[str, Page | None] = field(default_factory=dict[str, "Page | None"], repr=False)

    def get(self, title: str) -> Page | None:
        """The page with this title, or None."""
        if title not in self._read:
            if len(self._read) >= _MOST_KEPT:
                self._read.clear()
            self._read[title] = _read_document(self.folder, title)
        return self._read[title]


def _read_document(folder: Path, title: str) -> Page | None:
    path = folder / title
    # A title comes from a data file: it must not lead out of the folder.
    if (
        path.parent != folder
        or len(title.encode(errors="replace")) > _LONGEST_NAME
        or not path.is_file()
    ):
        return None
    with path.open("rb") as stream:
        content = stream.read(_LARGEST_PAGE + 1)
    if len(content) > _LARGEST_PAGE:
        raise BrokenInput(path, None, message="the page is larger than 64 MiB.")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BrokenInput(path, line, message="the file is not UTF-8.") from error
    return Page(title, tuple(text.removesuffix("\n").split("\n")) if text else ())
