"""Our own plain JSONL: easy to write by hand or with three lines of any language.

    {"claim": "…", "sentences": ["…", "…"]}
    {"claim": "…", "documents": [{"title": "…", "sentences": ["…"]}], "evidence": [[[0, 3]]]}

`sentences` is a shorthand for one document without a title (`title` may stand beside it).
`evidence` is a list of alternative groups; a piece is [document, sentence], or just the number of
the sentence where there is one document. `id` and `label` are optional. A document may have `text`
instead of `sentences`; it is split into sentences when a splitter is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

from dgn.data.examples import example_of
from dgn.data.lines import Line, Problems, decode_line, read_lines
from dgn.data.records import Claim, Evidence, Example, Page
from dgn.errors import BrokenInput

Splitter = Callable[[str], Sequence[str]]


class _Document(msgspec.Struct):
    title: str = ""
    sentences: list[str] | None = None
    text: str | None = None


class _Row(msgspec.Struct):
    claim: str
    sentences: list[str] | None = None
    documents: list[_Document] | None = None
    title: str = ""
    evidence: list[list[int | tuple[int, int]]] | None = None
    id: str | int | None = None
    label: str | None = None


_ROWS = msgspec.json.Decoder(_Row)
_FORMAT = "claim, and sentences or documents; optional evidence, id, label, title"


def read_plain(
    path: Path, problems: Problems | None = None, *, split: Splitter | None = None
) -> Iterator[Example]:
    """The examples of a plain JSONL file, one at a time."""
    problems = problems or Problems()
    for line in read_lines(path, problems):
        try:
            yield parse_plain(line, split)
        except BrokenInput as problem:
            problems.report(problem)


def parse_plain(line: Line, split: Splitter | None = None) -> Example:
    """The example that one line holds."""
    row = decode_line(line, _ROWS, _FORMAT)
    if not row.claim.strip():
        raise line.problem("an empty claim", "some text")
    pages = _pages_of(line, row, split)
    groups = _groups_of(line, row, pages)
    claim = Claim(
        id=str(line.number if row.id is None else row.id),
        text=row.claim,
        label=row.label,
        groups=groups,
        pages=tuple(page.title for page in pages),
    )
    return example_of(claim, pages)


def write_plain(examples: Iterable[Example], stream: IO[bytes]) -> None:
    """Write examples as plain JSONL, one a line."""
    for example in examples:
        stream.write(msgspec.json.encode(_row_of(example)) + b"\n")


def _pages_of(line: Line, row: _Row, split: Splitter | None) -> list[Page]:
    if (row.sentences is None) == (row.documents is None):
        both = "both sentences and documents" if row.sentences is not None else "neither of them"
        raise line.problem(both, "either sentences or documents")
    if row.documents is None:
        documents = [_Document(row.title, row.sentences)]
    elif not row.documents:
        raise line.problem("an empty list of documents", "at least one document")
    else:
        documents = row.documents
    pages: dict[str, Page] = {}
    for document in documents:
        title, number = document.title, 2
        while title in pages:  # two documents of one title are two documents still
            title, number = f"{document.title} #{number}", number + 1
        pages[title] = Page(title, _sentences_of(line, document, split))
    return list(pages.values())


def _sentences_of(line: Line, document: _Document, split: Splitter | None) -> tuple[str, ...]:
    if (document.sentences is None) == (document.text is None):
        raise line.problem("a document with both or neither", "either its sentences or its text")
    if document.sentences is not None:
        return tuple(document.sentences)
    if split is None:
        raise line.problem("a document with text", "sentences, or a splitter for the text")
    return tuple(split(document.text or ""))


def _groups_of(line: Line, row: _Row, pages: list[Page]) -> tuple[tuple[Evidence, ...], ...]:
    groups: list[tuple[Evidence, ...]] = []
    for group in row.evidence or []:
        pieces: list[Evidence] = []
        for piece in group:
            document, sentence = (0, piece) if isinstance(piece, int) else piece
            if isinstance(piece, int) and len(pages) > 1:
                raise line.problem(
                    f"evidence {piece} among {len(pages)} documents", "[document, sentence]"
                )
            if not 0 <= document < len(pages) or sentence < 0:
                raise line.problem(
                    f"evidence [{document}, {sentence}]", f"a document below {len(pages)}"
                )
            pieces.append(Evidence(pages[document].title, sentence))
        groups.append(tuple(pieces))
    return tuple(group for group in groups if group)


def _row_of(example: Example) -> dict[str, object]:
    """A row with one document a page; blank sentences keep their places."""
    titles = list(dict.fromkeys(candidate.page for candidate in example.candidates))
    sentences: dict[str, list[str]] = {title: [] for title in titles}
    for candidate in example.candidates:
        on_page = sentences[candidate.page]
        on_page += [""] * (candidate.sentence - len(on_page))
        on_page.append(candidate.text)
    kept = [
        [[titles.index(piece.page), piece.sentence] for piece in group]
        for group in example.claim.groups
        if all(piece.page in sentences for piece in group)
    ]
    row: dict[str, object] = {"id": example.claim.id, "claim": example.claim.text}
    if example.claim.label is not None:
        row["label"] = example.claim.label
    row["documents"] = [{"title": title, "sentences": sentences[title]} for title in titles]
    row["evidence"] = kept
    return row
