"""Claims and pages put together: the candidates of each claim, and which of them are gold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from dgn.data.lines import Problems, decode_line, read_lines
from dgn.data.records import Candidate, Claim, Example, Page
from dgn.errors import BrokenInput


@runtime_checkable
class PageSource(Protocol):
    """Anything that finds a page by its title: a PageStore, an ERASER folder, a dictionary."""

    def get(self, title: str, /) -> Page | None:
        """The page of this title, or None."""
        ...


def make_examples(
    claims: Iterable[Claim],
    pages: PageSource,
    problems: Problems | None = None,
    *,
    retrieved: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Example]:
    """An example for every claim that has somewhere to look.

    The pages to look at are those that `retrieved` names for the claim's id; without it the
    oracle's, as in the paper: all pages that the evidence names. All their sentences that are not
    blank are candidates. A page that does not exist is a problem; a claim without any page (NOT
    ENOUGH INFO, in the oracle setting) gives no example.
    """
    problems = problems or Problems()
    for claim in claims:
        try:
            if retrieved is None:
                titles = claim.pages or claim.evidence_pages
            else:
                titles = _retrieved_titles(claim, retrieved)
            found = [(title, pages.get(title)) for title in titles]
            lost = [title for title, page in found if page is None]
            if lost:
                raise BrokenInput(
                    f"claim {claim.id}",
                    None,
                    found=f"the page {lost[0]!r}, which is not there",
                    allowed="pages that the page source holds",
                )
        except BrokenInput as problem:
            problems.report(problem)
            continue
        # A page named twice, or in two spellings, is one page.
        unique = {page.title: page for _, page in found if page is not None}
        if unique:
            yield example_of(claim, list(unique.values()))


def example_of(claim: Claim, pages: Sequence[Page]) -> Example:
    """The example of a claim on these pages."""
    candidates = tuple(
        Candidate(page.title, number, text)
        for page in pages
        for number, text in enumerate(page.sentences)
        if text.strip()
    )
    evidence = {(piece.page, piece.sentence): piece for piece in claim.evidence}
    gold = tuple((candidate.page, candidate.sentence) in evidence for candidate in candidates)
    there = {(candidate.page, candidate.sentence) for candidate in candidates}
    missing = sorted(place for place in evidence if place not in there)
    return Example(claim, candidates, gold, tuple(evidence[place] for place in missing))


class _RetrievedRow(msgspec.Struct):
    id: str | int
    pages: list[str]


_RETRIEVED = msgspec.json.Decoder(_RetrievedRow)


def read_retrieved(path: Path, problems: Problems | None = None) -> dict[str, tuple[str, ...]]:
    """Which pages a retriever found for each claim: a JSONL of {"id": …, "pages": ["…"]}."""
    problems = problems or Problems()
    retrieved: dict[str, tuple[str, ...]] = {}
    for line in read_lines(path, problems):
        try:
            row = decode_line(line, _RETRIEVED, "id and pages")
        except BrokenInput as problem:
            problems.report(problem)
            continue
        retrieved[str(row.id)] = tuple(row.pages)
    return retrieved


def _retrieved_titles(claim: Claim, retrieved: Mapping[str, Sequence[str]]) -> Sequence[str]:
    if claim.id not in retrieved:
        raise BrokenInput(
            f"claim {claim.id}",
            None,
            found="no retrieved pages for it",
            allowed="a row for every claim in the file of retrieved pages",
        )
    return retrieved[claim.id]
