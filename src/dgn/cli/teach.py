"""`dgn teach`: soft labels from a fine-tuned cross-encoder, beside a data set's features."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dgn.errors import InvalidInput, require_extra


def add_parser(commands: Any) -> None:
    """Add `teach`."""
    teach = commands.add_parser(
        "teach",
        help="write soft labels of a fine-tuned cross-encoder beside features (a GPU helps)",
        description="Fine-tunes MiniLM on claims, part by part, and writes what it thinks of the "
        "other parts' sentences into their folders of features (made with --encoder facets).",
    )
    teach.add_argument("--pages", type=Path, help="a page store, or a folder of pages")
    for name, what in (("train", "complete"), ("partial", "incomplete")):
        teach.add_argument(
            f"--{name}",
            nargs=2,
            action="append",
            default=[],
            type=Path,
            metavar=("CLAIMS", "FEATURES"),
            help=f"claims whose gold is {what}, and the folder of their features; may be repeated",
        )
    teach.add_argument("--folds", type=int, default=4, help="parts of the pages (default 4)")
    teach.add_argument("--epochs", type=int, default=2, help="default 2")
    teach.add_argument("--seed", type=int, default=0)
    teach.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    teach.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    for package in ("torch", "safetensors", "tokenizers"):
        require_extra("dgn teach", package=package, extra="teach")
    from dgn.features import ExampleSource
    from dgn.training.devices import find_device
    from dgn.training.minilm import WordPieces, load_minilm
    from dgn.training.teach import Lesson, TeachConfig, teach

    lessons = [
        Lesson(ExampleSource(claims, options.pages), features, complete)
        for pairs, complete in ((options.train, True), (options.partial, False))
        for claims, features in pairs
    ]
    if not lessons:
        raise InvalidInput("train", found="none", allowed="--train CLAIMS FEATURES")
    config = TeachConfig(folds=options.folds, epochs=options.epochs, seed=options.seed)
    teach(
        lessons,
        load_minilm,
        WordPieces(),
        config,
        find_device(options.device),
        lambda fold: print(f"part {fold} of {config.folds}", flush=True),
    )
    for lesson in lessons:
        print(f"soft labels: {lesson.features}")
    return 0
