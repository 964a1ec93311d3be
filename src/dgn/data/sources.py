"""One door to all formats: which one a file has, and its examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

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


def format_of(path: Path) -> Format:
    """The format of a file of claims, by the keys of its first good row."""
    for line in read_lines(path, Problems(skip=True)):
        try:
            row = msgspec.json.decode(line.content, type=dict[str, msgspec.Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if "query" in row and "evidences" in row:
            return "eraser"
        if "sentences" in row or "documents" in row:
            return "plain"
        if "claim" in row:
            return "fever"
    raise BrokenInput(
        path, None, found="no row of claims", allowed=f"claims as {', '.join(get_args(Format))}"
    )


def open_pages(path: Path) -> PageSource:
    """The pages of a store, or of an ERASER `docs/` folder."""
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
    path: Path,
    pages: Path | None = None,
    problems: Problems | None = None,
    *,
    retrieved: Path | None = None,
    split: Splitter | None = None,
) -> Iterator[Example]:
    """The examples of a file of any format.

    pages: where the text of the pages is, a store or a folder; plain files bring their own.
    retrieved: a file that names the pages for each claim, in place of the oracle's.
    """
    if format_of(path) == "plain":
        return read_plain(path, problems, split=split)
    if pages is None:
        raise InvalidInput(
            "pages", found="none", allowed="a page store or a folder of pages, for this format"
        )
    named = None if retrieved is None else read_retrieved(retrieved, problems)
    return make_examples(read_claims(path, problems), open_pages(pages), problems, retrieved=named)
