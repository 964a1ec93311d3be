"""Claims whose evidence is on several pages, as far as the pages at hand allow; what K covers.

    python -m experiments.several_pages RUN… --claims FILE --data DATA --vectors FILE --out FILE

FEVER's own claims name their pages; DATA is ERASER's FEVER, which has some of those pages. ERASER
left out blank lines, so that a sentence of FEVER is found on a page only where its line is certain:
the first one, one that a claim of both data sets names, and those before one whose line is known to
be unchanged. Claims with any other evidence are left out, and counted.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dgn.core import greedy
from dgn.data.eraser import EraserDocs, read_eraser_claims
from dgn.data.fever import read_fever_claims
from dgn.data.records import Claim, Example, example_of, passages_of
from dgn.errors import DGNError
from dgn.evaluation.metrics import hits_at
from dgn.files import write_atomically
from dgn.selector import Selector
from dgn.text import open_vectors
from dgn.text.pooled import PooledEncoder
from experiments.reproduce.markdown import percent, table
from experiments.reproduce.paper import COVERED, LARGEST_K
from experiments.reproduce.results import KS, Spread

_FEWEST = 20
"""Recall on fewer claims says nothing."""

Lines = dict[str, dict[int, int]]
"""By page, the line of each sentence of FEVER that is known."""


@dataclass(frozen=True)
class Found:
    """The claims with evidence on several pages.

    Attributes:
        claims: The number of claims with evidence.
        covered: The share of them with at most K gold sentences.
        several: The share of them with evidence on several pages.
        needed: The share of them that have no group of evidence on one page alone.
        complete: The claims on several pages whose pages are all at hand.
        examples: Those of them whose evidence is found on the pages.
        unseen: Those of these whose pages no training claim uses.
    """

    claims: int
    covered: float
    several: float
    needed: float
    complete: int
    examples: tuple[Example, ...]
    unseen: tuple[Example, ...]


def find(official: Path, data: Path) -> Found:
    """Count, and build the examples."""
    docs = EraserDocs(data / "docs")
    claims = [claim for claim in read_fever_claims(official) if claim.groups]
    known = _known_lines(claims, data)
    several = [claim for claim in claims if len(claim.evidence_pages) > 1]
    complete = [claim for claim in several if all(map(docs.get, claim.evidence_pages))]
    examples = [one for claim in complete if (one := _example(claim, docs, known)) is not None]
    learned = {
        page
        for path in sorted(data.glob("train*.jsonl"))
        for claim in read_eraser_claims(path)
        for page in claim.pages or claim.evidence_pages
    }
    sizes = [len(_sentences(claim)) for claim in claims]
    needed = [all(len({one.page for one in of}) > 1 for of in claim.groups) for claim in several]
    return Found(
        len(claims),
        sum(size <= LARGEST_K for size in sizes) / len(claims),
        len(several) / len(claims),
        sum(needed) / len(claims),
        len(complete),
        tuple(examples),
        tuple(one for one in examples if not learned.intersection(one.claim.evidence_pages)),
    )


def _sentences(claim: Claim) -> set[tuple[str, int]]:
    return {(one.page, one.sentence) for group in claim.groups for one in group}


def _known_lines(claims: Sequence[Claim], data: Path) -> Lines:
    """Where a claim of both data sets has as many sentences on a page, they are the same ones."""
    official = {claim.id: claim for claim in claims}
    known: Lines = {}
    for path in sorted(data.glob("*.jsonl")):
        for claim in read_eraser_claims(path):
            if claim.id in official:
                for page in claim.evidence_pages:
                    lines = sorted(line for of, line in _sentences(claim) if of == page)
                    ids = sorted(one for of, one in _sentences(official[claim.id]) if of == page)
                    if len(lines) == len(ids):
                        known.setdefault(page, {}).update(zip(ids, lines, strict=True))
    return known


def _line(sentence: int, known: dict[int, int]) -> int | None:
    if sentence in known:
        return known[sentence]
    unchanged = [one for one, line in known.items() if one == line]
    return sentence if sentence <= max(unchanged, default=0) else None


def _example(claim: Claim, docs: EraserDocs, known: Lines) -> Example | None:
    groups = [
        [(one, _line(one.sentence, known.get(one.page, {}))) for one in group]
        for group in claim.groups
    ]
    if any(line is None for group in groups for _, line in group):
        return None
    moved = tuple(
        tuple(type(one)(one.page, line) for one, line in group if line is not None)
        for group in groups
    )
    pages = [page for name in claim.evidence_pages if (page := docs.get(name)) is not None]
    example = example_of(Claim(claim.id, claim.text, claim.label, moved), passages_of(pages))
    return None if example.missing else example


def picks_of(encoder: PooledEncoder, examples: Sequence[Example]) -> NDArray[np.int64]:
    """What greedy selects for every example, [examples, 7], −1 for none."""
    picks = np.full((len(examples), LARGEST_K), -1, np.int64)
    for row, example in enumerate(examples):
        f, items = encoder.encode([example.query])
        found = np.asarray(greedy(f, items, LARGEST_K).indices)[0]
        picks[row, : len(found)] = found
    return picks


def report(found: Found, runs: Sequence[Path], vectors: str, official: str) -> Iterator[str]:
    """The lines of the output."""
    yield from (
        f"# Claims on several pages, and what K = {LARGEST_K} covers",
        "",
        f"{official}: {found.claims:,} claims with evidence; {found.covered:.1%} of them have at "
        f"most {LARGEST_K} gold sentences ({percent(COVERED)} in the paper, of all its claims). "
        f"{found.several:.1%} have evidence on several pages, and {found.needed:.1%} have no group "
        "of evidence on one page alone.",
        "",
        f"All pages of {found.complete} claims on several pages are at hand; in "
        f"{len(found.examples)} of them every gold sentence is found, with "
        f"{np.mean([len(one.gold) for one in found.examples]):.1f} candidates and "
        f"{np.mean([sum(one.gold) for one in found.examples]):.2f} gold sentences on average. No "
        f"training claim uses the pages of {len(found.unseen)} of these.",
        "",
    )
    encoders: dict[str, list[PooledEncoder]] = {
        "Greedy": [PooledEncoder(open_vectors(f"all-tokens:{vectors}"), 1.0, unit=False)]
    }
    for run in runs:
        encoder = Selector.from_pretrained(run).encoder
        assert isinstance(encoder, PooledEncoder)  # noqa: S101
        encoders.setdefault(re.sub(r"-seed\d+$", "", run.name), []).append(encoder)
    for title, examples in (("all of them", found.examples), ("unseen pages", found.unseen)):
        if len(examples) >= _FEWEST:
            yield from table(
                [f"micro recall, {title} ({len(examples)})", *(f"k = {k}" for k in KS)],
                [(name, *_recalls(of, examples)) for name, of in encoders.items()],
            )


def _recalls(encoders: Sequence[PooledEncoder], examples: Sequence[Example]) -> list[Spread]:
    gold = np.zeros((len(examples), max(len(one.gold) for one in examples)), np.bool_)
    for row, example in enumerate(examples):
        gold[row, : len(example.gold)] = example.gold
    picks = [picks_of(encoder, examples) for encoder in encoders]
    return [Spread.of([hits_at(k, of, gold).micro.recall for of in picks]) for k in KS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and measure, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.several_pages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN", help="model folders of a DGN")
    parser.add_argument("--claims", type=Path, required=True, metavar="FILE")
    parser.add_argument("--data", type=Path, required=True, metavar="DATA")
    parser.add_argument("--vectors", required=True, metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        found = find(options.claims, options.data)
        lines = list(report(found, options.runs, options.vectors, options.claims.name))
    except DGNError as error:
        print(f"several_pages: {error}", file=sys.stderr)
        return 1
    write_atomically(options.out, "\n".join(lines).rstrip() + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
