"""A look at a data set: what it contains, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgn.data.dataset import format_of, make_examples, open_pages, read_claims
from dgn.data.lines import Problems
from dgn.data.records import Claim, Example
from dgn.data.rows import read_rows
from dgn.errors import require_extra
from dgn.files import save_figure

_INK, _BAR = "#1f2933", "#6b9bc8"


@dataclass
class Inspection:
    """Counts over a file of claims.

    Attributes:
        format: The format of the file.
        claims: The number of claims.
        labels: The number of claims with each label.
        evidence_sizes: The number of claims with that many gold sentences.
        group_counts: The number of claims with that many groups of evidence.
        page_counts: The number of claims with evidence on that many pages.
        passages: The number of examples with that many passages, if the pages are known.
        examples: The number of examples.
        missing: Evidence that does not exist, as text.
    """

    format: str
    claims: int = 0
    labels: Counter[str] = field(default_factory=Counter[str])
    evidence_sizes: Counter[int] = field(default_factory=Counter[int])
    group_counts: Counter[int] = field(default_factory=Counter[int])
    page_counts: Counter[int] = field(default_factory=Counter[int])
    passages: Counter[int] = field(default_factory=Counter[int])
    examples: int = 0
    missing: list[str] = field(default_factory=list[str])


def inspect_claims(path: Path, pages: Path | None, problems: Problems) -> Inspection:
    """Read a file once and count; with pages, also count passages and look for the evidence."""
    found = Inspection(format_of(path))
    if found.format == "rows":
        for example in read_rows(path, problems):
            _count_claim(example.claim, found)
            _count_example(example, found)
        return found
    claims = _counted(read_claims(path, problems), found)
    if pages is None:
        for _ in claims:
            pass
    else:
        for example in make_examples(claims, open_pages(pages), problems):
            _count_example(example, found)
    return found


def plot_inspection(found: Inspection, path: Path) -> None:
    """Draw histograms of gold sentences and, if the pages are known, of passages per claim."""
    require_extra("--plot", package="matplotlib", extra="plot")
    from matplotlib.figure import Figure

    panels = [("gold sentences per claim", found.evidence_sizes)]
    if found.passages:
        panels.append(("passages per claim", found.passages))
    figure = Figure(figsize=(5 * len(panels), 3.4), layout="constrained")
    axes: Any = figure.subplots(1, len(panels), squeeze=False)
    for axis, (title, counts) in zip(axes[0], panels, strict=True):
        axis.bar(list(counts), list(counts.values()), width=0.9, color=_BAR)
        axis.set_xlabel(title, color=_INK)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.spines[["top", "right"]].set_visible(False)
        mean = sum(size * count for size, count in counts.items()) / max(1, counts.total())
        axis.set_title(f"mean {mean:.1f}, maximum {max(counts)}", fontsize=10, color=_INK)
    axes[0][0].set_ylabel("claims", color=_INK)
    save_figure(figure, path, dpi=150)


def _counted(claims: Iterable[Claim], found: Inspection) -> Iterator[Claim]:
    for claim in claims:
        _count_claim(claim, found)
        yield claim


def _count_claim(claim: Claim, found: Inspection) -> None:
    found.claims += 1
    found.labels[claim.label or "no label"] += 1
    found.evidence_sizes[len(claim.evidence)] += 1
    found.group_counts[len(claim.groups)] += 1
    found.page_counts[len(claim.evidence_pages)] += 1


def _count_example(example: Example, found: Inspection) -> None:
    found.examples += 1
    found.passages[len(example.query.passages)] += 1
    for piece in example.missing:
        found.missing.append(
            f"claim {example.claim.id}: sentence {piece.sentence} of {piece.page!r}"
        )
