"""A look at a data set: what is in it, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dgn.data.examples import make_examples
from dgn.data.lines import Problems
from dgn.data.plain import Splitter, read_plain
from dgn.data.records import Claim, Example
from dgn.data.sources import format_of, open_pages, read_claims


@dataclass
class Inspection:
    """Counts over a file of claims.

    evidence_sizes, group_counts, page_counts: how many claims have that many gold sentences, groups
    of evidence, and pages of evidence. candidates: how many examples have that many (only where
    the pages are known). missing: evidence that is not there, in words.
    """

    format: str
    claims: int = 0
    labels: Counter[str] = field(default_factory=Counter[str])
    evidence_sizes: Counter[int] = field(default_factory=Counter[int])
    group_counts: Counter[int] = field(default_factory=Counter[int])
    page_counts: Counter[int] = field(default_factory=Counter[int])
    candidates: Counter[int] = field(default_factory=Counter[int])
    examples: int = 0
    missing: list[str] = field(default_factory=list[str])


def inspect_claims(
    path: Path, pages: Path | None, problems: Problems, split: Splitter | None = None
) -> Inspection:
    """Read a file once and count; `pages` also count candidates and look for the evidence."""
    found = Inspection(format_of(path))
    if found.format == "plain":
        for example in read_plain(path, problems, split=split):
            count_claim(example.claim, found)
            count_example(example, found)
        return found
    claims = _counted(read_claims(path, problems), found)
    if pages is None:
        for _ in claims:
            pass
    else:
        for example in make_examples(claims, open_pages(pages), problems):
            count_example(example, found)
    return found


def _counted(claims: Iterable[Claim], found: Inspection) -> Iterator[Claim]:
    """The claims as they are, counted on the way."""
    for claim in claims:
        count_claim(claim, found)
        yield claim


def count_claim(claim: Claim, found: Inspection) -> None:
    """Add a claim to the counts."""
    found.claims += 1
    found.labels[claim.label or "no label"] += 1
    found.evidence_sizes[len(claim.evidence)] += 1
    found.group_counts[len(claim.groups)] += 1
    found.page_counts[len(claim.evidence_pages)] += 1


def count_example(example: Example, found: Inspection) -> None:
    """Add an example to the counts."""
    found.examples += 1
    found.candidates[len(example.candidates)] += 1
    for piece in example.missing:
        found.missing.append(
            f"claim {example.claim.id}: sentence {piece.sentence} of {piece.page!r}"
        )
