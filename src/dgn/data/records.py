"""What we are asked and what is right: claims, pages, and both put together as examples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Label: TypeAlias = Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sentence of one page, by its id: its place on the page, blank sentences counted."""

    page: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and what is known of it.

    groups: alternative sets of evidence; each one alone proves or refutes the claim.
    pages: where to look, when the data says so; else the pages of the evidence are meant.
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
    """A page; the place of a sentence in the tuple is its id, and a blank one is ''."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be picked, and where it stands."""

    page: str
    sentence: int
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """A claim with the sentences to pick from.

    gold: for each candidate, whether some group names it.
    missing: evidence that no candidate is: its page or its sentence does not exist, or is blank.
    """

    claim: Claim
    candidates: tuple[Candidate, ...]
    gold: tuple[bool, ...]
    missing: tuple[Evidence, ...] = field(default=())
