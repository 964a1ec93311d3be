"""`dgn data`: build a page store, inspect a data set, make its features."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

from dgn.apps.cli.options import (
    PAGES_HELP,
    QUERIES_HELP,
    figure_file,
    positive,
    print_problems,
    show_progress,
)
from dgn.errors import require_extra


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn data`, and its own commands."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    build = actions.add_parser("build", help="build a page store of FEVER's wiki-pages")
    build.add_argument(
        "wiki_pages", type=Path, metavar="WIKI_PAGES", help="folder of wiki-*.jsonl files"
    )
    build.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="page store to write, an SQLite file",
    )
    build.set_defaults(run=_build, parser=build)

    inspect = actions.add_parser("inspect", help="show counts, labels, evidence, and what is wrong")
    inspect.add_argument("--queries", type=Path, required=True, metavar="FILE", help=QUERIES_HELP)
    inspect.add_argument("--pages", type=Path, help=PAGES_HELP)
    inspect.add_argument("--plot", type=figure_file, metavar="FIGURE", help="draw the histograms")
    inspect.set_defaults(run=_inspect, parser=inspect)

    features = actions.add_parser("features", help="make the features of a data set, for training")
    features.add_argument("--queries", type=Path, required=True, metavar="FILE", help=QUERIES_HELP)
    features.add_argument("--pages", type=Path, help=PAGES_HELP)
    features.add_argument(
        "--retrieved",
        type=Path,
        metavar="FILE",
        help="JSONL file with id and pages, in place of the pages of the evidence",
    )
    features.add_argument(
        "--vectors",
        default="wordllama",
        help="wordllama (default), a .vec, .vec.gz, .zip or .bin file (all-tokens:FILE counts "
        "punctuation, too), or sentence-transformers:MODEL",
    )
    features.add_argument("--unit", action="store_true", help="scale pooled vectors to length 1")
    features.add_argument(
        "--encoder",
        default="pooled",
        help="pooled (default): one vector per text, as in the paper; facets: the query's words; "
        "or module:Class of your own",
    )
    features.add_argument("--no-titles", action="store_true", help="do not use titles (facets)")
    features.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="folder for the features"
    )
    features.add_argument(
        "--workers", type=positive, default=2, metavar="N", help="processes (default 2)"
    )
    features.set_defaults(run=_features, parser=features)

    for action in (build, inspect, features):
        action.add_argument(
            "--skip-bad", action="store_true", help="skip broken rows, count and list them"
        )


def _build(options: argparse.Namespace) -> int:
    require_extra("dgn data build", package="msgspec", extra="data")
    from dgn.data import Problems
    from dgn.data.store import BuildProgress, build_store

    problems, started = Problems(skip=options.skip_bad), time.perf_counter()
    with show_progress("reading pages") as update:

        def show(progress: BuildProgress) -> None:
            share = progress.bytes_done / progress.bytes if progress.bytes else 1.0
            update(
                f"{progress.pages:,} pages, file {progress.files_done} of {progress.files}", share
            )

        pages = build_store(options.wiki_pages, options.out, problems, show)
    seconds = time.perf_counter() - started
    speed = pages / seconds
    print(f"{options.out}: {pages:,} pages in {seconds:.1f} s ({speed:,.0f} pages per second)")
    print_problems(problems)
    return 0


def _features(options: argparse.Namespace) -> int:
    from dgn.data import Dataset, Problems
    from dgn.learn.families import FeatureOptions
    from dgn.learn.features import build_features
    from dgn.parts import import_parts

    import_parts([options.encoder])
    dataset = Dataset(options.queries, options.pages, options.retrieved)
    problems = Problems(skip=options.skip_bad)
    with show_progress("features") as update:
        report = build_features(
            dataset,
            options.out,
            FeatureOptions(
                options.vectors, options.unit, options.encoder, titles=not options.no_titles
            ),
            problems,
            workers=options.workers,
            on_progress=lambda queries, passages: update(
                f"{queries:,} queries, {passages:,} passages", None
            ),
        )
    if report.changed:
        print(f"made again, because these have changed: {', '.join(report.changed)}")
    state = "written" if report.made else "up to date"
    print(f"{options.out}: {state}, {report.queries:,} queries, {report.passages:,} passages")
    if report.missing:
        print(
            f"gold sentences that are not among the passages: {report.missing:,} "
            "(see dgn data inspect)"
        )
    print_problems(problems)
    return 0


def _inspect(options: argparse.Namespace) -> int:
    from dgn.data import Problems
    from dgn.data.inspection import inspect_claims, plot_inspection

    # The purpose of an inspection is to show what is wrong: nothing is fatal here.
    problems = Problems(skip=True)
    found = inspect_claims(options.queries, options.pages, problems)
    print(f"{options.queries}: {found.claims:,} claims in the format {found.format}")
    _print_counts("labels", found.labels, found.claims)
    _print_counts("gold sentences per claim", found.evidence_sizes, found.claims)
    _print_counts("groups of evidence per claim", found.group_counts, found.claims)
    _print_counts("pages of evidence per claim", found.page_counts, found.claims)
    if found.examples:
        total = sum(size * count for size, count in found.passages.items())
        print(
            f"passages per claim: {total / found.examples:.1f} on average, "
            f"{min(found.passages)} to {max(found.passages)}"
        )
    print(f"evidence that does not exist: {len(found.missing):,}")
    for missing in found.missing[:10]:
        print(f"  {missing}")
    if options.plot and found.claims:
        plot_inspection(found, options.plot)
        print(f"histograms: {options.plot}")
    print_problems(problems)
    return 1 if (problems.count or found.missing) and not options.skip_bad else 0


def _print_counts(title: str, counts: Counter[Any], total: int) -> None:
    print(f"{title}:")
    rows = sorted(counts.items(), key=lambda item: (isinstance(item[0], str), item[0]))
    for value, count in rows[:12]:
        bar = "█" * max(1, round(40 * count / max(total, 1)))
        print(f"  {value!s:>16} {count:>9,} {bar}")
    if len(rows) > 12:
        print(f"  {'more':>16} {sum(count for _, count in rows[12:]):>9,}")
