"""A look at a data set: what is in it, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dgn.data.lines import Problems
from dgn.data.records import Claim, Example
from dgn.data.sources import format_of, read_claims, read_examples


@dataclass
class Inspection:
    """Counts over a file of claims.

    evidence_sizes: how many claims have that many gold sentences. page_sizes: how many examples
    have that many candidates (only with pages). missing: claims whose evidence is not there.
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
    problems: Problems = field(default_factory=Problems)


def inspect_claims(path: Path, pages: Path | None, problems: Problems) -> Inspection:
    """Read a file once (twice with pages) and count."""
    kind = format_of(path)
    found = Inspection(kind, problems=problems)
    if kind == "plain":
        examples = list_counting_claims(read_examples(path, None, problems), found)
        count_examples(examples, found)
        return found
    count_claims(read_claims(path, problems), found)
    if pages is not None:
        # What the first reading reported is not reported again.
        again = Problems(skip=True)
        count_examples(read_examples(path, pages, again), found)
        for problem in again.kept:
            if problem.line is None:
                problems.report(problem)
    return found


def list_counting_claims(examples: Iterable[Example], found: Inspection) -> Iterable[Example]:
    """The examples as they are, their claims counted on the way."""
    for example in examples:
        count_claims([example.claim], found)
        yield example


def count_claims(claims: Iterable[Claim], found: Inspection) -> None:
    """Add claims to the counts."""
    for claim in claims:
        found.claims += 1
        found.labels[claim.label or "no label"] += 1
        found.evidence_sizes[len(claim.evidence)] += 1
        found.group_counts[len(claim.groups)] += 1
        found.page_counts[len(claim.evidence_pages)] += 1


def count_examples(examples: Iterable[Example], found: Inspection) -> None:
    """Add examples to the counts."""
    for example in examples:
        found.examples += 1
        found.candidates[len(example.candidates)] += 1
        for piece in example.missing:
            found.missing.append(
                f"claim {example.claim.id}: sentence {piece.sentence} of {piece.page!r}"
            )
