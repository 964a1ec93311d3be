r"""How much should the relevance weigh? `python -m experiments.relevance_weight FOLDER`.

FOLDER is what `python -m experiments.mixture --left-out --out FOLDER` wrote: the model of all
domains, and five models without two domains each. Each domain is selected by the first and by the
model that has not seen it, with several weights of the relevance feature.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from dgn.selector import Selector
from dgn.text.encoders.facets.encoder import FacetEncoder
from dgn.text.encoders.facets.formula import positive
from experiments.domains import DOMAINS, read_domain
from experiments.mixture import FOLDS, print_recalls, recalls


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the recall on every domain for every weight."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.relevance_weight", description=__doc__
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", type=float, nargs="*", default=(0.1, 0.2, 0.3, 0.5, 0.8))
    parser.add_argument("--queries", type=int, default=300, help="of each domain, at most")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    without = {name: folder / f"without-{'-'.join(fold)}" for fold in FOLDS for name in fold}
    dev = {name: read_domain(name).dev[: options.queries] for name in DOMAINS}
    for weight in options.weights:
        for said, folders in (
            ("all domains", dict.fromkeys(DOMAINS, folder)),
            ("left out", without),
        ):
            found = {n: recalls(_weighted(folders[n], weight), dev[n]) for n in DOMAINS}
            print_recalls(f"{said}, weight {weight:g}", found)
    return 0


def _weighted(folder: Path, weight: float) -> Selector:
    encoder = cast("FacetEncoder", Selector.from_pretrained(folder).encoder)
    changed = np.array([positive(weight)], np.float32)
    return Selector(FacetEncoder(replace(encoder.weights, relevance_weight=changed)))


if __name__ == "__main__":
    sys.exit(main())
