"""Fit the shipped calibration, and draw its reliability: `python -m experiments.calibration`.

It is fitted on the training parts of 32 English sets, which count alike. What is reported are the
dev parts, each with a calibration that was fitted without its set.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dgn.evaluation.calibration import Facts, Reliability, facts_of, fit, probabilities
from dgn.files import save_figure
from dgn.selector import Limits, Selector
from dgn.selector.calibration import Calibration
from dgn.selector.model_folder import CONFIG, SHIPPED, read_config, write_config
from experiments.domains import english_sets, read_domain

_ROWS = 100
_FIGURE = Path(__file__).parents[1] / "docs" / "images" / "sufficiency.png"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the reliability by set; with --ship, write config.json and the figure of the docs."""
    parser = argparse.ArgumentParser(prog="python -m experiments.calibration", description=__doc__)
    parser.add_argument("--ship", action="store_true", help="write the shipped model's config.json")
    options = parser.parse_args(arguments)
    selector = Selector.from_pretrained()
    limits = Limits(k=5)
    train: dict[str, Facts] = {}
    dev: dict[str, Facts] = {}
    for name in english_sets():
        domain = read_domain(name)
        train[name] = facts_of(selector, domain.train[:_ROWS], limits)
        dev[name] = facts_of(selector, domain.dev[:_ROWS], limits)
    left_out = {
        name: probabilities(_fitted({n: own for n, own in train.items() if n != name}), dev[name])
        for name in train
    }
    print(f"{'set':<16}{'selections':>11}{'answer selected':>17}{'probability':>13}{'AUROC':>8}")
    for name, found in left_out.items():
        own = Reliability.of(found, dev[name].labels)
        print(
            f"{name:<16}{len(found):>11}{dev[name].labels.mean():>17.3f}{found.mean():>13.3f}"
            f"{own.auroc:>8.3f}"
        )
    everything = Reliability.of(
        np.concatenate(list(left_out.values())), np.concatenate([dev[n].labels for n in left_out])
    )
    print(f"all: error {everything.error:.3f}, AUROC {everything.auroc:.3f}")
    for row in zip(everything.predicted, everything.observed, everything.counts, strict=True):
        if row[2]:
            print("probability {:.2f}: the answer was selected in {:.2f} of {:,}".format(*row))
    shipped = _fitted(train)
    print(shipped)
    if options.ship:
        write_config(SHIPPED, replace(read_config(SHIPPED), calibration=shipped))
        _draw(everything, _FIGURE)
        print(f"written: {CONFIG} of the shipped model, and {_FIGURE.name}")
    return 0


def _fitted(sets: Mapping[str, Facts]) -> Calibration:
    """Fitted on several sets, which count alike."""
    joined = Facts(
        np.concatenate([own.facts for own in sets.values()]),
        np.concatenate([own.labels for own in sets.values()]),
        np.concatenate([1000 * n + own.rows for n, own in enumerate(sets.values())]),
    )
    weights = np.concatenate(
        [np.full(len(own.labels), _ROWS / len(own.labels)) for own in sets.values()]
    )
    return fit(joined, weights=weights)


def _draw(reliability: Reliability, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes: Any = figure.subplots()
    axes.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1, label="perfectly calibrated")
    real = reliability.counts > 0
    sizes = 20 + 400 * reliability.counts[real] / reliability.counts.max()
    axes.plot(reliability.predicted[real], reliability.observed[real], color="tab:green", zorder=2)
    axes.scatter(
        reliability.predicted[real],
        reliability.observed[real],
        s=sizes,
        color="tab:green",
        alpha=0.7,
        zorder=3,
        label="32 sets, each left out (area: selections)",
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("sufficiency")
    axes.set_ylabel("share whose answer was selected")
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    save_figure(figure, path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
