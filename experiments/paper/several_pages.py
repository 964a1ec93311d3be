"""Claims whose evidence is on several pages, as far as the pages at hand allow; what K covers.

    python -m experiments.paper.several_pages OUT --claims FILE --data DATA --vectors FILE

OUT is the folder of an experiment with DGNs. FEVER's own claims name their pages; DATA is ERASER's
FEVER, which has some of those pages. ERASER left out blank lines, so that a sentence of FEVER is
found on a page only where its line is certain: the first one, one that a claim of both data sets
names, and those before one whose line is known to be unchanged. Claims with any other evidence are
left out, and counted.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from dgn.evaluation.metrics import hits_at
from dgn.files import write_atomically
from dgn.learn import select_all
from experiments.made import made_by
from experiments.paper.data import Claim, Example, example_of, read_claims, read_pages
from experiments.paper.features import PAPER, ClaimTable, embedder, make_table
from experiments.paper.measures import Spread, greedy_picks
from experiments.paper.published import COVERED, LARGEST_K
from experiments.paper.report import percent, table
from experiments.paper.training import KS, Picks, read_run

_FEWEST = 20
"""Recall on fewer claims says nothing."""

Lines = dict[str, dict[int, int]]
"""By page, the line of each sentence of FEVER that is known."""


def report(runs: Sequence[Path], official: Path, data: Path, vectors: str) -> Iterator[str]:
    """The lines of the output."""
    claims = [claim for claim in read_claims(official) if claim.groups]
    several = [claim for claim in claims if len(claim.pages) > 1]
    needed = [all(len(set(dict(group))) > 1 for group in claim.groups) for claim in several]
    pages = read_pages(data, {title for claim in several for title in claim.pages})
    complete = [claim for claim in several if all(title in pages for title in claim.pages)]
    known = _known_lines(claims, data)
    examples = [one for claim in complete if (one := _example(claim, pages, known)) is not None]
    learned = {
        title
        for path in sorted(data.glob("train*.jsonl"))
        for claim in read_claims(path)
        for title in claim.pages
    }
    unseen = [one for one in examples if not learned.intersection(dict(one.pages))]
    three, most = (
        sum(len(claim.evidence) <= k for claim in claims) / len(claims) for k in (3, LARGEST_K)
    )
    yield from (
        f"# Claims on several pages, and what K = {LARGEST_K} covers",
        "",
        f"{made_by('experiments/paper')}.",
        "",
        f"{official.name}: {len(claims):,} claims with evidence; {percent(most)} of them have at "
        f"most {LARGEST_K} gold sentences ({percent(COVERED)} in the paper, of all its claims); "
        f"{percent(three)} have at most three. {percent(len(several) / len(claims))} have evidence "
        f"on several pages, and {percent(sum(needed) / len(claims))} have no group of evidence on "
        "one page alone.",
        "",
        f"All pages of {len(complete)} claims on several pages are at hand; in {len(examples)} of "
        f"them every gold sentence is found. No training claim uses the pages of {len(unseen)} of "
        "these.",
        "",
    )
    for title, some in (("all of them", examples), ("unseen pages", unseen)):
        if len(some) >= _FEWEST:
            texts = [text for one in some for text in (one.text, *one.sentences)]
            features = make_table(some, embedder(vectors, PAPER, texts), unit=False)
            rows = {"Greedy": [greedy_picks(features, 1.0)]}
            for run in runs:
                network = read_run(run).network(features.claims.shape[1])
                name = re.sub(r"-seed\d+$", "", run.name)
                rows.setdefault(name, []).append(select_all(network, features, LARGEST_K)[0])
            yield from table(
                [f"micro recall, {title} ({len(some)})", *(f"k = {k}" for k in KS)],
                [(name, *_recalls(picks, features)) for name, picks in rows.items()],
            )


def _recalls(picks: Sequence[Picks], features: ClaimTable) -> list[Spread]:
    gold = features.wanted
    return [Spread.of([hits_at(k, of, gold).micro.recall for of in picks]) for k in KS]


def _known_lines(claims: Sequence[Claim], data: Path) -> Lines:
    """Where a claim of both data sets has as many sentences on a page, they are the same ones."""
    official = {claim.id: claim for claim in claims}
    known: Lines = {}
    for path in sorted(data.glob("*.jsonl")):
        for claim in read_claims(path):
            if claim.id in official:
                for page in claim.pages:
                    ours, theirs = (
                        sorted(line for title, line in of.evidence if title == page)
                        for of in (claim, official[claim.id])
                    )
                    if len(ours) == len(theirs):
                        known.setdefault(page, {}).update(zip(theirs, ours, strict=True))
    return known


def _line(sentence: int, known: dict[int, int]) -> int | None:
    if sentence in known:
        return known[sentence]
    unchanged = [one for one, line in known.items() if one == line]
    return sentence if sentence <= max(unchanged, default=0) else None


def _example(claim: Claim, pages: dict[str, Sequence[str]], known: Lines) -> Example | None:
    """The example with its gold on the lines of ERASER; None where a line is not known."""
    moved: list[tuple[tuple[str, int], ...]] = []
    for group in claim.groups:
        lines = [(page, _line(sentence, known.get(page, {}))) for page, sentence in group]
        moved.append(tuple((page, line) for page, line in lines if line is not None))
        if len(moved[-1]) < len(group):
            return None
    example = example_of(Claim(claim.id, claim.text, tuple(moved), claim.pages), pages)
    wanted = len({piece for group in moved for piece in group})
    return example if example is not None and sum(example.gold) == wanted else None


def main() -> None:
    """Count, measure, and write the output."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.paper.several_pages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path, metavar="OUT")
    for name in ("claims", "data"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--vectors", required=True, metavar="FILE")
    options = parser.parse_args()
    runs = sorted((options.out / "runs" / "table").glob("DGN-seed*"))
    lines = list(report(runs, options.claims, options.data, options.vectors))
    target = options.out / "report" / "several-pages.md"
    write_atomically(target, "\n".join(lines).rstrip() + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
