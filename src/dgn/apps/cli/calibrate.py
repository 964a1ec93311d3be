"""`dgn calibrate`: fit "is the answer in here at all?" on labelled rows."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dgn.apps.cli.options import PAGES_HELP, QUERIES_HELP, positive, print_problems, show_progress
from dgn.errors import InvalidInput

if TYPE_CHECKING:
    from dgn.evaluation.calibration import Reliability


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn calibrate`."""
    parser.description = (
        "Fit on labelled rows how probable it is that the answer is among the selected passages, "
        "and what the scores or embeddings of the rows are worth; write a model folder with it."
    )
    parser.epilog = "example: dgn calibrate rows.jsonl --out my-model"
    parser.add_argument("rows", type=Path, metavar="ROWS", help=QUERIES_HELP)
    parser.add_argument("--pages", type=Path, help=PAGES_HELP)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="model folder to write")
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="model folder, name on the hub, default, untrained, minilm, or minilm-words",
    )
    parser.add_argument(
        "-k", "--k", type=positive, default=5, metavar="N", help="passages to select (default 5)"
    )
    parser.add_argument("--skip-bad", action="store_true", help="skip broken rows and list them")
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    from dgn.data import Dataset, Problems
    from dgn.evaluation import calibration as fitting
    from dgn.selector import Limits, Selector

    if options.out is not None and options.out.exists() and not options.out.is_dir():
        raise InvalidInput("out", message=f"{options.out} is a file; choose a folder.")
    selector = Selector.from_pretrained(options.model)
    problems = Problems(skip=options.skip_bad)
    examples = list(Dataset(options.rows, options.pages).examples(problems))
    print_problems(problems)
    limits = Limits(k=options.k)
    with show_progress("calibrating") as update:
        update("selecting", None)
        facts = fitting.facts_of(selector, examples, limits)
        weight, recalls = fitting.best_score_weight(selector, examples, limits)
    start = selector.calibration
    before = None
    if start is not None and len(start.coefficients) == facts.facts.shape[1]:
        before = fitting.Reliability.of(fitting.probabilities(start, facts), facts.labels)
    after = fitting.cross_validated(facts, start)
    found = fitting.fit(facts, start)
    print(f"{found.rows:,} rows with evidence, each also without it; k = {options.k}")
    if before is not None:
        print(f"before: {_described(before)}")
    print(f"now, on rows that were not fitted on: {_described(after)}")
    print(f"{'probability':>14} {'answer selected':>16} {'selections':>11}")
    for predicted, observed, count in zip(
        after.predicted, after.observed, after.counts, strict=True
    ):
        if count:
            print(f"{predicted:>14.2f} {observed:>16.2f} {count:>11,}")
    if recalls:
        listed = ", ".join(f"{name} {recall:.3f}" for name, recall in recalls.items())
        print(f"recall by score_weight: {listed}; chosen: {'auto' if weight is None else weight}")
    if options.out is None:
        print("nothing was written; --out FOLDER writes the model", file=sys.stderr)
        return 0
    from dataclasses import replace

    selector.calibration = replace(found, score_weight=weight)
    selector.save_pretrained(options.out)
    print(f"model: {options.out}", file=sys.stderr)
    return 0


def _described(reliability: Reliability) -> str:
    return f"error {reliability.error:.3f}, AUROC {reliability.auroc:.3f}"
