"""One door to all formats: which one a file has, and its examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from dgn.data.eraser import EraserDocs, read_eraser_claims
from dgn.data.examples import PageSource, make_examples, read_retrieved
from dgn.data.fever import read_fever_claims
from dgn.data.lines import Problems, read_lines
from dgn.data.plain import Splitter, read_plain
from dgn.data.records import Claim, Example
from dgn.data.store import PageStore
from dgn.errors import BrokenInput, InvalidInput

Format = Literal["fever", "eraser", "plain"]
_FORMATS = (
    "plain rows (claim, and sentences or documents), FEVER's (id, claim, label, evidence), or "
    "ERASER's (annotation_id, query, evidences)"
)


def format_of(path: Path) -> Format:
    """The format of a file of claims, by the keys of its first good row."""
    seen = "no row at all"
    for line in read_lines(path, Problems(skip=True)):
        try:
            row = msgspec.json.decode(line.content, type=dict[str, msgspec.Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            seen = f"no row of claims (line {line.number}: {error})"
            continue
        if "query" in row and "evidences" in row:
            return "eraser"
        if {"sentences", "documents", "text"} & row.keys():
            return "plain"
        if "claim" in row:
            return "fever"
        seen = f"no row of claims (line {line.number} has {', '.join(row) or 'no key'})"
    raise BrokenInput(path, None, found=seen, allowed=_FORMATS)


def open_pages(path: Path) -> PageSource:
    """The pages of a store, or of an ERASER `docs/` folder."""
    if path.is_dir() and next(path.glob("wiki-*.jsonl*"), None):
        raise InvalidInput(
            "pages",
            found=f"FEVER's wiki-pages themselves ({path})",
            allowed="a store of them; make it with: dgn data build",
        )
    return EraserDocs(path) if path.is_dir() else PageStore(path)


def read_claims(path: Path, problems: Problems | None = None) -> Iterator[Claim]:
    """The claims of a file of any format."""
    kind = format_of(path)
    if kind == "fever":
        return read_fever_claims(path, problems)
    if kind == "eraser":
        return read_eraser_claims(path, problems)
    return (example.claim for example in read_plain(path, problems))


def read_examples(
    path: Path | str,
    pages: Path | str | None = None,
    problems: Problems | None = None,
    *,
    retrieved: Path | None = None,
    split: Splitter | None = None,
) -> Iterator[Example]:
    """The examples of a file of any format.

    pages: where the text of the pages is, a store or a folder; plain files bring their own.
    retrieved: a file that names the pages for each claim, in place of the oracle's.
    """
    path = Path(path)
    if format_of(path) == "plain":
        if retrieved is not None:
            raise InvalidInput(
                "retrieved", found="pages for a plain file", allowed="none: it brings its own"
            )
        return read_plain(path, problems, split=split)
    if pages is None:
        raise InvalidInput(
            "pages",
            found="none",
            allowed="a page store or a folder of pages for this format (ERASER's is docs/)",
        )
    named = None if retrieved is None else read_retrieved(retrieved, problems)
    source = open_pages(Path(pages))
    return make_examples(read_claims(path, problems), source, problems, retrieved=named)
