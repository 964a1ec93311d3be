"""FEVER's own files: its claims, and the Wikipedia pages that come with them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias, get_args

import msgspec

from dgn.data.lines import Line, Problems, decode_line, is_hidden, read_lines
from dgn.data.records import Claim, Evidence, Label, Page
from dgn.errors import BrokenInput

_Piece: TypeAlias = tuple[int | None, int | None, str | None, int | None]


class _ClaimRow(msgspec.Struct):
    id: int
    claim: str
    label: str | None = None
    verifiable: str | None = None
    evidence: list[list[_Piece]] = []


class _PageRow(msgspec.Struct):
    id: str
    lines: str


_LABELS: tuple[str, ...] = get_args(Label)
_CLAIMS = msgspec.json.Decoder(_ClaimRow)
_PAGES = msgspec.json.Decoder(_PageRow)
_CLAIM_FORMAT = (
    "a claim of FEVER: id, label, claim, evidence [[[annotation, evidence, page, sentence]]]"
)
_PAGE_FORMAT = "a page of FEVER's wiki-pages: id, lines"


def normal_title(title: str) -> str:
    """A title in the form in which titles are compared: FEVER mixes two forms of accents."""
    return unicodedata.normalize("NFC", title)


def read_fever_claims(
    path: Path, problems: Problems | None = None, *, skip_not_enough_info: bool = False
) -> Iterator[Claim]:
    """The claims of an official FEVER file (`train.jsonl`, `paper_dev.jsonl`, …), one at a time."""
    problems = problems or Problems()
    for line in read_lines(path, problems):
        try:
            claim = _claim_of(line)
        except BrokenInput as problem:
            problems.report(problem)
            continue
        if not (skip_not_enough_info and claim.label == "NOT ENOUGH INFO"):
            yield claim


def _claim_of(line: Line) -> Claim:
    row = decode_line(line, _CLAIMS, _CLAIM_FORMAT)
    # FEVER's own scorer does not look at the case of labels.
    label = None if row.label is None else row.label.upper()
    if label is not None and label not in _LABELS:
        raise line.problem(f"the label {row.label!r:.40}", f"one of {', '.join(_LABELS)}")
    if not row.claim.strip():
        raise line.error("the claim is empty.")
    groups = tuple(
        tuple(piece for piece in (_piece_of(line, piece) for piece in group) if piece)
        for group in row.evidence
    )
    groups = tuple(group for group in groups if group)
    if label in {"SUPPORTS", "REFUTES"} and not groups:
        raise line.error(f"the claim is labelled {label} and has no evidence.")
    if label == "NOT ENOUGH INFO" and groups:
        raise line.error("the claim is labelled NOT ENOUGH INFO and has evidence.")
    return Claim(id=str(row.id), text=row.claim, label=label, groups=groups)


def _piece_of(line: Line, piece: _Piece) -> Evidence | None:
    _, _, page, sentence = piece
    if page is None and sentence is None:
        return None
    if not page or sentence is None or sentence < 0:
        raise line.problem(
            f"evidence with page {page!r} and sentence {sentence!r}",
            "a page with a sentence of at least 0, or null for both",
        )
    return Evidence(normal_title(page), sentence)


def wiki_files(folder: Path) -> list[Path]:
    """The files of a `wiki-pages` folder, in their order."""
    if not folder.is_dir():
        raise BrokenInput(folder, None, message="the folder does not exist.")
    endings = (".jsonl", ".jsonl.gz", ".jsonl.xz", ".zip")
    found = (path for path in folder.glob("*") if path.name.endswith(endings))
    files = sorted(path for path in found if not is_hidden(path.name))
    if not files:
        raise BrokenInput(folder, None, message="the folder contains no wiki-*.jsonl file.")
    return files


def read_wiki_pages(path: Path, problems: Problems | None = None) -> Iterator[Page]:
    """The pages of one file of `wiki-pages`; FEVER's empty first row is not a page."""
    problems = problems or Problems()
    for line in read_lines(path, problems):
        try:
            row = decode_line(line, _PAGES, _PAGE_FORMAT)
            if row.id:
                yield Page(normal_title(row.id), _sentences_of(line, row.lines))
            elif row.lines:
                raise line.error("the page has sentences and no id.")
        except BrokenInput as problem:
            problems.report(problem)


def _sentences_of(line: Line, lines: str) -> tuple[str, ...]:
    """The sentences by their ids; a line is the id, the text and links, separated by tabs."""
    sentences: list[str] = []
    for part in lines.split("\n"):
        number, _, rest = part.partition("\t")
        if number == str(len(sentences)):
            sentences.append(rest.partition("\t")[0])
        elif part and sentences and not number.isdecimal():
            # A line break inside a sentence: the rest belongs to the sentence before.
            sentences[-1] = f"{sentences[-1]} {part.partition(chr(9))[0]}".strip()
        elif part:
            raise line.problem(
                f"sentence {number!r} in place of {len(sentences)}",
                "sentences numbered from 0 in order",
            )
    return tuple(sentences)
