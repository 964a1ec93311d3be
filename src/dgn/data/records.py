"""What the data files contain: claims, pages, and both joined as examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dgn.text.query import Passage, Query

Label: TypeAlias = Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sentence of one page, by its position on the page, blank sentences included.

    The page of loose passages is the empty string.
    """

    page: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim or a question, and what is known about it.

    Attributes:
        id: Its identifier.
        text: Its text.
        label: Its label, if any.
        groups: Alternative sets of evidence; each one alone is sufficient.
        pages: The pages to search, if the data name them; otherwise those of the evidence.
    """

    id: str
    text: str
    label: str | None = None
    groups: tuple[tuple[Evidence, ...], ...] = ()
    pages: tuple[str, ...] | None = None

    @property
    def evidence(self) -> frozenset[Evidence]:
        """All sentences that any group names."""
        return frozenset(piece for group in self.groups for piece in group)

    @property
    def evidence_pages(self) -> tuple[str, ...]:
        """The pages of the evidence, in the order in which they are first named."""
        return tuple(dict.fromkeys(piece.page for group in self.groups for piece in group))


@dataclass(frozen=True, slots=True)
class Page:
    """A page; a sentence is identified by its position, and blank sentences are empty strings."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A claim with the passages to select from, and which of them are gold.

    Attributes:
        claim: The claim as the data give it.
        query: The same claim with its passages.
        gold: For each passage, whether some group of evidence names it.
        missing: Evidence that is not among the passages: its page or sentence does not exist, or
            the sentence is blank.
        source: The file and the line that it was read from, if any.
        unknown_keys: Keys of the row that have no meaning.
    """

    claim: Claim
    query: Query
    gold: tuple[bool, ...]
    missing: tuple[Evidence, ...] = ()
    source: str = ""
    unknown_keys: tuple[str, ...] = ()


def evidence_of(passage: Passage, index: int) -> Evidence:
    """The evidence that a passage would be; a loose passage is identified by its index."""
    if passage.position is None:
        return Evidence("", index)
    return Evidence(passage.id or "", passage.position)


def example_of(claim: Claim, passages: Sequence[Passage]) -> Example:
    """The example of a claim with these passages; blank sentences of documents are left out."""
    wanted = claim.evidence
    kept: list[Passage] = []
    gold: list[bool] = []
    found: set[Evidence] = set()
    for index, passage in enumerate(passages):
        # Loose passages are identified by their index, so that none of them may be left out.
        if passage.text.strip() or passage.position is None:
            evidence = evidence_of(passage, index)
            kept.append(passage)
            gold.append(evidence in wanted)
            found.add(evidence)
    missing = sorted(wanted - found, key=lambda piece: (piece.page, piece.sentence))
    return Example(claim, Query(claim.text, tuple(kept), claim.id), tuple(gold), tuple(missing))


def passages_of(pages: Sequence[Page]) -> list[Passage]:
    """All sentences of some pages, in order; the title of a page is also its identifier."""
    return [
        Passage(text, page.title, number, position, id=page.title)
        for number, page in enumerate(pages)
        for position, text in enumerate(page.sentences)
    ]
