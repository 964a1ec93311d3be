"""`dgn tune`: search for settings, in a study that can be stopped and shared."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgn.cli.arguments import positive
from dgn.cli.train import add_settings, config_from
from dgn.errors import require_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dgn.training.tune import TrialResult


def add_parser(commands: Any) -> None:
    """Add `tune`; its settings are those of `train`."""
    tune = commands.add_parser("tune", help="search for good settings", add_help=False)
    tune.set_defaults(run=_run, more=[])


def _run(options: argparse.Namespace) -> int:
    for package, extra in (("torch", "train"), ("rich", "train"), ("optuna", "tune")):
        require_extra("dgn tune", package=package, extra=extra)
    from dgn.training.search_space import PAPERS_SEARCH, parse_dimension
    from dgn.training.tune import TuneConfig, importances, tune
    from dgn.training.tune_plot import draw_search

    options = _parser(PAPERS_SEARCH).parse_args(options.more)
    base = config_from(options)
    dimensions = tuple(parse_dimension(text) for text in options.search)
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
        print(f"dgn: stopped; the same command goes on with {config.url}", file=sys.stderr)
        return 130
    shares = importances(config, base.fit.seed)
    logs = {dimension.name for dimension in dimensions if dimension.log}
    picture = options.out / "search.png"
    draw_search(picture, results, shares, logs)
    _print_best(results)
    if shares:
        told = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
        print(f"importance: {told}")
    print(f"picture: {picture}")
    print(f"the best, for dgn train --config: {options.out / 'best.toml'}")
    return 0


def _parser(papers_search: tuple[str, ...]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dgn tune",
        description="Search for settings. A search that was stopped goes on: same command.",
    )
    parser.add_argument("--out", type=Path, required=True, help="the search's folder")
    parser.add_argument(
        "--search",
        nargs="+",
        default=list(papers_search),
        metavar="NAME=VALUES",
        help=f"LOW:HIGH, LOW:HIGH:log or ONE,TWO (default: {' '.join(papers_search)})",
    )
    parser.add_argument("--trials", type=positive, default=20, help="finished ones (default 20)")
    parser.add_argument("--workers", type=positive, default=1, help="processes (default 1)")
    parser.add_argument("--storage", default="", metavar="URL", help="Optuna's; default SQLite")
    parser.add_argument("--study", default="dgn", help="its name in the storage")
    parser.add_argument("--sampler", choices=("random", "tpe"), default="random")
    parser.add_argument("--no-prune", action="store_true", help="let every trial run to its end")
    parser.add_argument("--config", type=Path, metavar="TOML", help="settings of every trial")
    parser.add_argument("--quiet", action="store_true", help="no line for every trial")
    add_settings(parser)
    return parser


def _print_best(results: Sequence[TrialResult]) -> None:
    print(f"the best of {len(results)} trials:")
    for result in results[:10]:
        print(f"  {_line(result)}")


def _line(result: TrialResult) -> str:
    recalls = " / ".join(f"{recall:.3f}" for recall in result.recalls)
    settings = "  ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in result.settings.items()
    )
    pruned = "  (given up)" if result.pruned else ""
    return f"trial {result.number:>3}  recall {result.recall:.4f} ({recalls})  {settings}{pruned}"
