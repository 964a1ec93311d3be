"""`dgn tune`: search for settings, in a study that can be resumed and shared."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dgn.apps.cli.options import positive
from dgn.apps.cli.train import add_settings, config_from, require_training
from dgn.errors import require_extra
from dgn.learn.config import import_named
from dgn.learn.search_space import PAPER_SEARCH, parse_dimension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dgn.learn.tune import TrialResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn tune`."""
    parser.description = "Search for settings. Run the same command again to resume a search."
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="results folder")
    parser.add_argument(
        "--search",
        nargs="+",
        default=list(PAPER_SEARCH),
        metavar="NAME=VALUES",
        help=f"LOW:HIGH, LOW:HIGH:log or ONE,TWO (default: {' '.join(PAPER_SEARCH)})",
    )
    parser.add_argument("--trials", type=positive, default=20, help="finished trials (default 20)")
    parser.add_argument("--workers", type=positive, default=1, help="processes (default 1)")
    parser.add_argument(
        "--storage", default="", metavar="URL", help="Optuna storage; default SQLite"
    )
    parser.add_argument("--study", default="dgn", help="name of the study (default dgn)")
    parser.add_argument("--sampler", choices=("random", "tpe"), default="random")
    parser.add_argument("--no-prune", action="store_true", help="run every trial to its end")
    parser.add_argument("--config", type=Path, metavar="TOML", help="settings of every trial")
    parser.add_argument("--quiet", action="store_true", help="print no line for every trial")
    add_settings(parser)
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    base = config_from(options)
    dimensions = tuple(parse_dimension(text) for text in options.search)
    for dimension in dimensions:
        for choice in dimension.choices:
            import_named({dimension.name: choice})
    require_training("dgn tune")
    require_extra("dgn tune", package="optuna", extra="tune")
    from dgn.learn.tune import TuneConfig, draw_search, importances, tune

    config = TuneConfig(
        options.out,
        dimensions,
        options.trials,
        options.workers,
        options.storage,
        options.study,
        options.sampler,
        not options.no_prune,
    )

    def show(result: TrialResult, finished: int) -> None:
        if not options.quiet:
            print(f"{finished}/{options.trials}  {_line(result)}", file=sys.stderr, flush=True)

    try:
        results = tune(base, config, show)
    except KeyboardInterrupt:
        print(
            f"dgn: interrupted; run the same command again to resume {config.url}", file=sys.stderr
        )
        return 130
    shares = importances(config, base.fit.seed)
    logs = {dimension.name for dimension in dimensions if dimension.log}
    figure = options.out / "search.png"
    draw_search(figure, results, shares, logs)
    _print_best(results)
    if shares:
        listed = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
        print(f"importance: {listed}")
    print(f"figure: {figure}")
    print(f"best settings, for dgn train --config: {options.out / 'best.toml'}")
    return 0


def _print_best(results: Sequence[TrialResult]) -> None:
    print(f"best of {len(results)} trials:")
    for result in results[:10]:
        print(f"  {_line(result)}")


def _line(result: TrialResult) -> str:
    recalls = " / ".join(f"{recall:.3f}" for recall in result.recalls)
    settings = "  ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in result.settings.items()
    )
    pruned = "  (stopped early)" if result.pruned else ""
    return f"trial {result.number:>3}  recall {result.recall:.4f} ({recalls})  {settings}{pruned}"
