"""The paper's tables and figures: `python -m experiments.reproduce DATA --out FOLDER`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from dgn.apps.cli.options import positive, show_progress
from dgn.errors import DGNError, InvalidInput, require_extra
from experiments.reproduce.plan import MODELS, RECIPES, STUDIES, STUDY_MODELS, Effort


def main(arguments: Sequence[str] | None = None) -> int:
    """Reproduce the paper, and return the exit code."""
    try:
        from experiments.reproduce.own import take_own_parts

        arguments = take_own_parts(arguments)
    except DGNError as error:
        print(f"reproduce: {error}", file=sys.stderr)
        return 1
    parser = argparse.ArgumentParser(
        prog="python -m experiments.reproduce",
        description="Reproduce the tables and figures of the paper from a data folder. "
        "--own NAME=VALUE ... adds a row: the DGN of the paper with these settings, which may name "
        "parts of your own (relaxation=my_parts:Sharp).",
    )
    parser.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help="folder with train*.jsonl and dev.jsonl (FEVER's, ERASER's or our rows), and pages",
    )
    parser.add_argument("--vectors", default="wordllama", help="as for dgn data features")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--recipe",
        choices=("both", "paper", "tuned"),
        default="both",
        help="the paper's training on its features, ours on unit vectors, or both (default)",
    )
    parser.add_argument("--trials", type=positive, default=20, help="per model (default 20)")
    parser.add_argument("--seeds", type=positive, default=5, help="of the tables (default 5)")
    parser.add_argument(
        "--study-seeds", type=positive, default=2, help="of each point of a study (default 2)"
    )
    parser.add_argument("--no-studies", action="store_true", help="the tables alone")
    parser.add_argument(
        "--studies",
        nargs="+",
        metavar="NAME",
        choices=STUDIES,
        help=f"these studies alone: {', '.join(STUDIES)}",
    )
    parser.add_argument(
        "--models",
        nargs="+",
        metavar="NAME",
        choices=tuple(MODELS),
        help="these trained rows of the tables alone, for example: DGN 'Encoder, listwise'; the "
        f"names are: {'; '.join(MODELS)}",
    )
    parser.add_argument(
        "--claims", type=positive, metavar="N", help="each run learns from N claims, drawn by seed"
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="skip broken rows, count and list them"
    )
    parser.add_argument("--epochs", type=positive, help="in place of each model's own")
    parser.add_argument("--workers", type=positive, default=1, help="parallel runs (default 1)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument(
        "--only",
        choices=("features", "train"),
        help="make the features, or train on features that are there: for another machine",
    )
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except DGNError as error:
        print(f"reproduce: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            f"reproduce: interrupted; run the same command again to resume {options.out}",
            file=sys.stderr,
        )
        return 130


def _run(options: argparse.Namespace) -> int:
    require_extra("The reproduction", package="torch", extra="train")
    from experiments.reproduce.estimate import estimated_time
    from experiments.reproduce.reproduce import Request, features, reproduce
    from experiments.reproduce.training import train_everything

    effort = _effort(options)
    request = Request(
        options.data,
        options.vectors,
        options.out,
        effort,
        options.workers,
        options.device,
        options.skip_bad,
    )

    def estimate() -> None:
        print(estimated_time(effort, options.out, options.workers, options.device), flush=True)

    found = None
    with show_progress("reproducing") as update:
        if options.only != "train":
            features(request, update)
        if options.only != "features":
            estimate()
        if options.only == "train":
            train_everything(
                effort,
                options.out,
                workers=options.workers,
                device=options.device,
                on_progress=update,
            )
        elif options.only is None:
            found = reproduce(request, update)
    if found is None:
        print(f"{options.only}: {options.out}")
        return 0
    from experiments.reproduce.report import write_report

    report = write_report(found, options.out / "report", _command(options))
    for row in found.rows:
        recalls = "  ".join(f"{row.micro_recall[k]!s:>11}" for k in (1, 3, 5, 7))
        print(f"{row.name:<30} {recalls}")
    print(f"report: {report}")
    for message in found.skipped[:20]:
        print(f"skipped: {message}", file=sys.stderr)
    if found.skipped:
        print(f"skipped {len(found.skipped):,} broken rows in all", file=sys.stderr)
    return 0


def _effort(options: argparse.Namespace) -> Effort:
    recipe = tuple(MODELS) if options.recipe == "both" else RECIPES[options.recipe]
    models = tuple(name for name in recipe if options.models is None or name in options.models)
    if not models:
        raise InvalidInput(
            "models", message=f"None of the models is in the recipe {options.recipe}."
        )
    if options.no_studies:
        studies = ()
    elif options.studies is not None:
        studies = tuple(options.studies)
    else:
        studies = tuple(name for name, needed in STUDY_MODELS.items() if set(needed) <= set(models))
    return Effort(
        models,
        options.trials,
        options.seeds,
        options.study_seeds,
        studies,
        options.epochs,
        options.claims,
    )


def _command(options: argparse.Namespace) -> str:
    """The command without the paths of this machine."""
    words = ["python", "-m", "experiments.reproduce", options.data.name]
    words += ["--vectors", Path(options.vectors).name, "--out", "OUT", "--recipe", options.recipe]
    words += ["--trials", str(options.trials), "--seeds", str(options.seeds)]
    if options.models:
        words += ["--models", *options.models]
    if options.no_studies:
        words.append("--no-studies")
    elif options.studies:
        words += ["--studies", *options.studies]
    if options.recipe != "tuned" and not options.no_studies:
        words += ["--study-seeds", str(options.study_seeds)]
    if options.epochs:
        words += ["--epochs", str(options.epochs)]
    if options.claims:
        words += ["--claims", str(options.claims)]
    if options.skip_bad:
        words.append("--skip-bad")
    return shlex.join(words)


if __name__ == "__main__":
    sys.exit(main())
