"""The paper's tables, figures and stories: `python -m experiments.paper DATA --out FOLDER`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dgn.errors import DGNError, InvalidInput
from experiments.paper.networks import Settings
from experiments.paper.plan import MODELS, RECIPES, STUDY_MODELS, Effort
from experiments.paper.report import write_report
from experiments.paper.results import Experiment
from experiments.paper.stories import write_stories
from experiments.paper.training import KS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.paper",
        description="Make the tables, figures and stories of the paper from a data folder. After "
        "an interruption the same command continues.",
    )
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="FEVER's folder, ERASER's, or one with our rows")
    add("--vectors", default="wordllama", help="a .vec, .vec.gz or .zip file of word vectors")
    add("--out", type=Path, required=True, metavar="FOLDER")
    add("--recipe", choices=("both", *RECIPES), default="both", help="which features and training")
    add("--trials", type=int, default=20, help="of each search (default 20)")
    add("--seeds", type=int, default=5, help="of the tables (default 5)")
    add("--study-seeds", type=int, default=2, help="of each point of a study (default 2)")
    add("--no-studies", action="store_true", help="the tables alone")
    add(
        "--studies",
        nargs="+",
        metavar="NAME",
        choices=tuple(STUDY_MODELS),
        help="these alone: " + ", ".join(STUDY_MODELS),
    )
    add(
        "--models",
        nargs="+",
        metavar="NAME",
        choices=tuple(MODELS),
        help="these rows alone: " + "; ".join(MODELS),
    )
    add("--settings", type=Path, metavar="FILE", help="settings by row, in place of their search")
    add("--claims", type=int, metavar="N", help="each run learns from N claims, drawn by its seed")
    add("--epochs", type=int, help="in place of each model's own")
    add("--workers", type=int, default=1, help="parallel runs (default 1)")
    add("--device", default="cpu", help="cpu or cuda")
    add(
        "--stories", type=Path, metavar="FILE", help="the LaTeX of the paper: tell its stories, too"
    )
    options = parser.parse_args(arguments)
    try:
        _run(options)
    except DGNError as error:
        print(f"paper: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            f"paper: interrupted; run the same command again to resume {options.out}",
            file=sys.stderr,
        )
        return 130
    return 0


def _run(options: argparse.Namespace) -> None:
    effort, given = _effort(options), _given(options.settings)
    experiment = Experiment(options.data, options.vectors, options.out, effort, given)
    progress = _Progress()
    experiment.make_features(progress)
    results = experiment.train(options.workers, options.device, progress)
    progress("measuring", None)
    report = write_report(results, options.out / "report", _command(options))
    for name in results.picks:
        print(f"{name:<30} " + "  ".join(f"{results.score(name, k)!s:>11}" for k in KS))
    print(f"report: {report}")
    if options.stories is not None:
        print(f"stories: {write_stories(results, options.stories, options.out / 'report')}")


def _effort(options: argparse.Namespace) -> Effort:
    recipe = tuple(MODELS) if options.recipe == "both" else RECIPES[options.recipe]
    models = tuple(name for name in recipe if options.models is None or name in options.models)
    if not models:
        raise InvalidInput("models", message=f"None of them is in the recipe {options.recipe}.")
    studies = tuple(name for name, needed in STUDY_MODELS.items() if set(needed) <= set(models))
    if options.no_studies or options.studies is not None:
        studies = () if options.no_studies else tuple(options.studies)
    return Effort(
        models,
        options.trials,
        options.seeds,
        options.study_seeds,
        studies,
        options.epochs,
        options.claims,
    )


def _given(path: Path | None) -> dict[str, Settings]:
    rows: dict[str, dict[str, Any]] = {} if path is None else json.loads(path.read_text("utf-8"))
    return {name: Settings.of(row) for name, row in rows.items()}


def _command(options: argparse.Namespace) -> str:
    """The command without the paths of this machine."""
    words = ["python", "-m", "experiments.paper", options.data.name]
    words += ["--vectors", Path(options.vectors).name, "--out", "OUT"]
    for name in ("recipe", "trials", "seeds", "study_seeds", "epochs", "claims"):
        if (value := getattr(options, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name in ("models", "studies"):
        if value := getattr(options, name):
            words += [f"--{name}", *value]
    if options.settings is not None:
        words += ["--settings", options.settings.name]
    return shlex.join(words + (["--no-studies"] if options.no_studies else []))


class _Progress:
    """Prints what is done, how much of it, and how long the rest takes, every ten seconds."""

    def __init__(self) -> None:
        self._printed = self._started = time.monotonic()
        self._first: float | None = None

    def __call__(self, doing: str, share: float | None) -> None:
        now = time.monotonic()
        if share is not None and self._first is None:
            self._first, self._started = share, now
        if now - self._printed < 10:
            return
        self._printed, said = now, ""
        if share is not None and self._first is not None:
            left = (now - self._started) * (1 - share) / max(share - self._first, 1e-9)
            rest = f", about {left / 60:.0f} min left" if share > self._first else ""
            said = f" ({share:.0%}{rest})"
        print(f"paper: {doing}{said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
