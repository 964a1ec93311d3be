"""A data set: a file of claims in any of our formats, joined with the pages to search."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable

from dgn.data.lines import Line, Problems, read_lines
from dgn.data.records import Claim, Example, Page, example_of, passages_of
from dgn.data.rows import read_rows
from dgn.errors import BrokenInput, InvalidInput, require_extra
from dgn.files import fingerprint_of

Format = Literal["fever", "eraser", "rows"]
_FORMATS = (
    "our rows (query, and passages, documents or sentences), FEVER's rows (id, claim, label, "
    "evidence) or ERASER's rows (annotation_id, query, evidences)"
)


@runtime_checkable
class PageSource(Protocol):
    """Anything that finds a page by its title: a PageStore, an ERASER folder, a dictionary."""

    def get(self, title: str, /) -> Page | None:
        """The page with this title, or None."""
        ...


@dataclass(frozen=True)
class Dataset:
    """The files of a data set.

    Args:
        queries: A JSONL file in any of our formats.
        pages: A page store or a folder of pages; None for our own rows, which include them.
        retrieved: A JSONL file that names the pages of each claim, in place of the pages of its
            evidence.
        part: From and to, as shares of all pages: leave out claims that have passages on other
            pages. Parts that do not overlap have no page in common, and they are always the same.
    """

    queries: Path
    pages: Path | None = None
    retrieved: Path | None = None
    part: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for path in self._files().values():
            if not path.exists():
                raise BrokenInput(path, None, message="the file does not exist.")

    def examples(self, problems: Problems | None = None) -> Iterator[Example]:
        """The examples, including those without a passage."""
        found = read_examples(self.queries, self.pages, problems, retrieved=self.retrieved)
        if self.part is None:
            return found
        low, high = self.part
        return (one for one in found if all(low <= index < high for index in _places_of(one)))

    def without_pages(self) -> Iterator[Example]:
        """Claims with evidence for which nothing was retrieved; `examples` does not have them."""
        if self.retrieved is None:
            return
        quiet = Problems(skip=True)
        named = read_retrieved(self.retrieved, quiet)
        for claim in read_claims(self.queries, quiet):
            if claim.evidence and claim.id in named and not named[claim.id]:
                yield example_of(claim, [])

    def fingerprints(self) -> dict[str, str]:
        """What identifies the content of each input, by name."""
        found = {name: fingerprint_of(path) for name, path in self._files().items()}
        if self.part is not None:
            found["part"] = f"{self.part[0]:g}-{self.part[1]:g}"
        return found

    def _files(self) -> dict[str, Path]:
        named = {"queries": self.queries, "pages": self.pages, "retrieved": self.retrieved}
        return {name: path for name, path in named.items() if path is not None}


def _places_of(example: Example) -> Iterator[float]:
    """A number from 0 to 1 for every page: the same for the same page, and spread evenly.

    A page is known by its id; one without an id is known by its text.
    """
    for _, passages in itertools.groupby(example.query.passages, lambda p: (p.document, p.id)):
        of_page = list(passages)
        key = of_page[0].id or "\n".join(sorted(passage.text for passage in of_page))
        yield zlib.crc32(key.encode()) / 2**32


def format_of(path: Path) -> Format:
    """The format of a file, by the keys of its first valid row."""
    seen, skipped = "", Problems(skip=True)
    for line in read_lines(path, skipped):
        try:
            row: Any = json.loads(line.content)
        except (ValueError, RecursionError) as error:
            seen = seen or f"invalid JSON in line {line.number} ({error})"
            continue
        keys = set(cast("dict[str, Any]", row)) if type(row) is dict else set[str]()
        if {"query", "evidences"} <= keys:
            return "eraser"
        if keys & {"passages", "sentences", "documents"}:
            return "rows"
        if "claim" in keys:
            return "fever"
        seen = seen or f"line {line.number} with {', '.join(sorted(keys)) or 'no keys'}"
    if skipped.kept and not seen:
        raise skipped.kept[0]
    raise BrokenInput(path, None, found=seen or "no row at all", allowed=_FORMATS)


def open_pages(path: Path) -> PageSource:
    """The pages of a store, or of an ERASER `docs/` folder."""
    if path.is_dir() and next(path.glob("wiki-*.jsonl*"), None):
        raise InvalidInput(
            "pages",
            message=f"{path} contains FEVER's wiki-pages; make a page store of them first: "
            f"dgn data build {path} --out pages.db",
        )
    require_extra("Reading page folders and page stores", package="msgspec", extra="data")
    from dgn.data.eraser import EraserDocs
    from dgn.data.store import PageStore

    return EraserDocs(path) if path.is_dir() else PageStore(path)


def read_claims(path: Path, problems: Problems | None = None) -> Iterator[Claim]:
    """The claims of a file in any format."""
    kind = format_of(path)
    if kind == "rows":
        return (example.claim for example in read_rows(path, problems))
    require_extra(f"Reading {kind.upper()} files", package="msgspec", extra="data")
    if kind == "fever":
        from dgn.data.fever import read_fever_claims

        return read_fever_claims(path, problems)
    from dgn.data.eraser import read_eraser_claims

    return read_eraser_claims(path, problems)


def read_examples(
    path: Path | str,
    pages: Path | str | None = None,
    problems: Problems | None = None,
    *,
    retrieved: Path | None = None,
) -> Iterator[Example]:
    """The examples of a file in any format.

    Args:
        path: The JSONL file.
        pages: A page store or a folder of pages; our own rows include their passages.
        problems: What to do about broken input; by default, the first problem is raised.
        retrieved: A file that names the pages of each claim, in place of those of its evidence.
    """
    path = Path(path)
    if format_of(path) == "rows":
        if retrieved is not None:
            raise InvalidInput(
                "retrieved",
                message=f"retrieved cannot be combined with {path}, whose rows include their "
                "passages.",
            )
        return read_rows(path, problems)
    if pages is None:
        raise InvalidInput(
            "pages",
            message=f"{path} does not contain the text of the pages; pass pages, a page store or "
            "a folder of pages (docs/ in ERASER's layout).",
        )
    named = None if retrieved is None else read_retrieved(retrieved, problems)
    source = open_pages(Path(pages))
    return make_examples(read_claims(path, problems), source, problems, retrieved=named)


def make_examples(
    claims: Iterable[Claim],
    pages: PageSource,
    problems: Problems | None = None,
    *,
    retrieved: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Example]:
    """Join claims with their pages.

    The pages of a claim are those that `retrieved` names for its id; without it, as in the paper,
    all pages that the evidence names (the oracle's pages). All their sentences that are not blank
    are passages. A page that does not exist is a problem; a claim without any page (NOT ENOUGH
    INFO, with the oracle's pages) gives no example.
    """
    problems = problems or Problems()
    for claim in claims:
        try:
            found = _pages_of(claim, pages, retrieved)
        except BrokenInput as problem:
            problems.report(problem)
            continue
        if found:
            yield example_of(claim, passages_of(found))


def read_retrieved(path: Path, problems: Problems | None = None) -> dict[str, tuple[str, ...]]:
    """The pages that a retriever found for each claim, from JSONL: {"id": …, "pages": ["…"]}."""
    problems = problems or Problems()
    retrieved: dict[str, tuple[str, ...]] = {}
    for line in read_lines(path, problems):
        try:
            name, pages = _retrieved_row(line)
        except BrokenInput as problem:
            problems.report(problem)
            continue
        retrieved[name] = pages
    return retrieved


def _retrieved_row(line: Line) -> tuple[str, tuple[str, ...]]:
    allowed = 'an object with id and pages: {"id": "7", "pages": ["Title"]}'
    try:
        row: Any = json.loads(line.content)
        name, pages = row["id"], row["pages"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise line.problem(f"another row ({error!r:.60})", allowed) from None
    if type(name) not in (str, int) or type(pages) is not list:
        raise line.problem(f"{row!r:.60}", allowed)
    titles = cast("list[Any]", pages)
    if not all(type(title) is str for title in titles):
        raise line.problem("a page that is not a string", allowed)
    return str(name), tuple(titles)


def _pages_of(
    claim: Claim, pages: PageSource, retrieved: Mapping[str, Sequence[str]] | None
) -> list[Page]:
    if retrieved is None:
        titles: Sequence[str] = claim.pages or claim.evidence_pages
    elif claim.id in retrieved:
        titles = retrieved[claim.id]
    else:
        raise BrokenInput(
            f"claim {claim.id}", None, message="the file of retrieved pages has no row for it."
        )
    unique: dict[str, Page] = {}
    for title in titles:
        page = pages.get(title)
        if page is None:
            raise BrokenInput(
                f"claim {claim.id}", None, message=f"the page {title!r} does not exist."
            )
        unique[page.title] = page  # a page named twice, or in two spellings, is one page
    return list(unique.values())
