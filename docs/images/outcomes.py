"""Draws docs/images/outcomes.png: recall by the number of outcomes, and by their noise.

python docs/images/outcomes.py

The numbers are in experiments/results/outcomes.json: `python -m experiments.outcomes counts`.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

ROOT = Path(__file__).parents[2]
OUTCOMES, LABELS, START = "#2166ac", "#b2782a", "#52606d"


def line(axes: Axes, points: dict[str, Any], name: str, colour: str) -> None:
    """The mean of recall at the largest k, and the range of the seeds."""
    places = sorted(points, key=float)
    recalls = [[seed["recall"][-1] for seed in points[place]] for place in places]
    x = [float(place) for place in places]
    axes.plot(x, [statistics.mean(some) for some in recalls], "o-", color=colour, label=name)
    lowest, highest = [min(some) for some in recalls], [max(some) for some in recalls]
    axes.fill_between(x, lowest, highest, color=colour, alpha=0.18, linewidth=0)


def main() -> None:
    """Write the figure."""
    results = json.loads((ROOT / "experiments" / "results" / "outcomes.json").read_text())
    counts, generated = results["counts"], results["generated"]
    untrained = generated["methods"]["greedy, untrained"]["seeds"]
    labels = generated["methods"]["evidence labels"]["seeds"]
    start = statistics.mean(seed["recall"][-1] for seed in untrained)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    line(left, counts["DGN, by count"], "from outcomes", OUTCOMES)
    line(left, {str(counts["usual"]): labels}, "from evidence labels", LABELS)
    left.set_xscale("log")
    left.set_xticks([int(n) for n in counts["DGN, by count"]], [*counts["DGN, by count"]])
    left.minorticks_off()
    left.set_xlabel("training claims")
    left.set_ylabel(f"recall of facets at {generated['ks'][-1]}")
    usual = counts["DGN, by count"][str(counts["usual"])]
    noisy = {"0": usual, **counts["DGN, by noise"]}
    line(right, noisy, f"from {counts['usual']:,} outcomes", OUTCOMES)
    right.set_xticks([float(share) for share in noisy])
    right.set_xlabel("share of wrong outcomes")
    for axes in (left, right):
        axes.axhline(start, color=START, linestyle="--", label="untrained greedy")
        axes.set_ylim(0.3, 1.0)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, loc="upper left" if axes is left else "upper right")
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "images" / "outcomes.png", dpi=110)


if __name__ == "__main__":
    main()
