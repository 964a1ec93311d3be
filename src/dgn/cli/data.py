"""`dgn data`: build a page store, look at a data set, build its features."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgn.cli.arguments import picture, positive
from dgn.errors import require_extra

if TYPE_CHECKING:
    from dgn.data.inspection import Inspection
    from dgn.data.lines import Problems


_CLAIMS = "JSONL of FEVER, ERASER or plain rows; .gz, .xz and .zip too"


def add_parser(commands: Any) -> None:
    """Add `data` and its own commands."""
    data = commands.add_parser("data", help="page stores, data sets and their features")
    actions = data.add_subparsers(required=True, metavar="ACTION")

    build = actions.add_parser("build", help="ingest FEVER's wiki-pages into a page store")
    build.add_argument(
        "wiki_pages", type=Path, metavar="WIKI_PAGES", help="the folder of wiki-*.jsonl files"
    )
    build.add_argument("--store", type=Path, required=True, help="the SQLite file to make")
    build.set_defaults(run=_guarded(_build))

    inspect = actions.add_parser("inspect", help="counts, labels, evidence, and what is wrong")
    inspect.add_argument("claims", type=Path, metavar="CLAIMS", help=_CLAIMS)
    inspect.add_argument("--pages", type=Path, help="a page store, or a folder of pages")
    inspect.add_argument("--plot", type=picture, metavar="PNG", help="draw the histograms")
    inspect.set_defaults(run=_guarded(_inspect))

    features = actions.add_parser("features", help="embed a data set for training")
    features.add_argument("claims", type=Path, metavar="CLAIMS", help=_CLAIMS)
    features.add_argument("--pages", type=Path, help="a page store, or a folder of pages")
    features.add_argument("--retrieved", type=Path, help="JSONL: id, pages; in place of oracle's")
    features.add_argument(
        "--vectors",
        default="wordllama",
        help="wordllama (default), a .vec, .vec.gz or .bin file, or sentence-transformers:MODEL",
    )
    features.add_argument("--unit", action="store_true", help="scale vectors to length 1")
    features.add_argument(
        "--encoder",
        choices=("pooled", "facets"),
        default="pooled",
        help="pooled: one vector a text, as in the paper; facets: the claim's words, matched",
    )
    features.add_argument(
        "--no-titles", action="store_true", help="facets that are not told the pages' titles"
    )
    features.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="where the features go"
    )
    features.add_argument(
        "--workers", type=positive, default=2, help="processes that embed (default 2)"
    )
    features.set_defaults(run=_guarded(_features))

    for parser in (build, inspect, features):
        parser.add_argument(
            "--skip-bad", action="store_true", help="go on after broken lines, count and list them"
        )


def _guarded(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    def guarded(options: argparse.Namespace) -> int:
        for package in ("msgspec", "rich"):
            require_extra("dgn data", package=package, extra="data")
        return run(options)

    return guarded


def _build(options: argparse.Namespace) -> int:
    from dgn.cli.progress import progress_bar
    from dgn.data.lines import Problems
    from dgn.data.store import BuildProgress, build_store

    problems, started = Problems(skip=options.skip_bad), time.perf_counter()
    with progress_bar("reading pages") as update:

        def show(progress: BuildProgress) -> None:
            share = progress.bytes_done / progress.bytes if progress.bytes else 1.0
            update(
                f"{progress.pages:,} pages, file {progress.files_done} of {progress.files}", share
            )

        pages = build_store(options.wiki_pages, options.store, problems, show)
    seconds = time.perf_counter() - started
    print(f"{options.store}: {pages:,} pages in {seconds:.1f} s ({pages / seconds:,.0f} pages/s)")
    list_problems(problems)
    return 0


def _features(options: argparse.Namespace) -> int:
    from dgn.cli.progress import progress_bar
    from dgn.data.lines import Problems
    from dgn.features import ExampleSource, FeatureOptions

    source = ExampleSource(options.claims, options.pages, options.retrieved)
    problems = Problems(skip=options.skip_bad)
    with progress_bar("embedding") as update:
        report = source.build_features(
            options.out,
            FeatureOptions(
                options.vectors, options.unit, options.encoder, titles=not options.no_titles
            ),
            problems,
            workers=options.workers,
            on_progress=lambda claims, sentences: update(
                f"{claims:,} claims, {sentences:,} sentences", None
            ),
        )
    if report.changed:
        print(f"made anew, because of a change in: {', '.join(report.changed)}")
    state = "written" if report.made else "up to date"
    print(f"{options.out}: {state}, {report.claims:,} claims, {report.sentences:,} sentences")
    if report.missing:
        print(f"gold sentences that are no candidate: {report.missing:,} (see dgn data inspect)")
    list_problems(problems)
    return 0


def _inspect(options: argparse.Namespace) -> int:
    from dgn.data.inspection import inspect_claims
    from dgn.data.lines import Problems
    from dgn.text import split_sentences

    # What is wrong with a file is what one inspects it for: nothing is fatal here.
    problems = Problems(skip=True)
    found = inspect_claims(
        options.claims,
        options.pages,
        problems,
        split=lambda text: [span.text for span in split_sentences(text)],
    )
    print(f"{options.claims}: {found.claims:,} claims in the format of {found.format}")
    _print_counts("labels", found.labels, found.claims)
    _print_counts("gold sentences a claim", found.evidence_sizes, found.claims)
    _print_counts("groups of evidence a claim", found.group_counts, found.claims)
    _print_counts("pages of evidence a claim", found.page_counts, found.claims)
    if found.examples:
        total = sum(size * count for size, count in found.candidates.items())
        print(
            f"candidates: {total / found.examples:.1f} a claim on average, "
            f"{min(found.candidates)} to {max(found.candidates)}"
        )
    print(f"evidence that is not there: {len(found.missing):,}")
    for place in found.missing[:10]:
        print(f"  {place}")
    if options.plot and found.claims:
        _plot(found, options.plot)
    list_problems(problems)
    return 1 if (problems.count or found.missing) and not options.skip_bad else 0


def _print_counts(title: str, counts: Counter[Any], total: int) -> None:
    print(f"{title}:")
    rows = sorted(counts.items(), key=lambda item: (isinstance(item[0], str), item[0]))
    for value, count in rows[:12]:
        bar = "█" * max(1, round(40 * count / max(total, 1)))
        print(f"  {value!s:>16} {count:>9,} {bar}")
    if len(rows) > 12:
        print(f"  {'more':>16} {sum(count for _, count in rows[12:]):>9,}")


def list_problems(problems: Problems) -> None:
    """Say on stderr what was skipped, and where."""
    if not problems.count:
        return
    print(f"skipped: {problems.count:,}", file=sys.stderr)
    for problem in problems.kept[:20]:
        print(f"  {problem}", file=sys.stderr)
    if problems.count > 20:
        print(f"  and {problems.count - 20:,} more", file=sys.stderr)


def _plot(found: Inspection, path: Path) -> None:
    require_extra("--plot", package="matplotlib", extra="plot")
    from dgn.data.plots import plot_inspection

    plot_inspection(found, path)
    print(f"histograms: {path}")
