"""Draws docs/images/diversity.png from experiments/results/diversity.json, in the root of a clone.

python docs/images/diversity.py
"""

import json
import statistics
from pathlib import Path

from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
SHOWN = {
    "DGN": ("tab:green", "-", "o"),
    "encoder, same loss, ranks": ("tab:red", "-", "s"),
    "DGN, untrained": ("tab:green", ":", "o"),
    "facility location (as apricot)": ("tab:blue", "--", "^"),
    "k-means (scikit-learn)": ("tab:purple", "--", "v"),
    "MMR (pyversity)": ("tab:orange", "--", "D"),
    "mRMR": ("tab:orange", "--", "D"),
    "random": ("0.6", "--", "x"),
}


def main() -> None:
    path = ROOT / "experiments" / "results" / "diversity.json"
    benchmarks = json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
    figure = Figure(figsize=(3.3 * len(benchmarks), 4.2), layout="constrained")
    every = figure.subplots(1, len(benchmarks), squeeze=False)[0]
    handles = {}
    for axes, (name, one) in zip(every, benchmarks.items(), strict=True):
        for method, (color, line, marker) in SHOWN.items():
            if method not in one["methods"]:
                continue
            numbers = one["methods"][method]
            by_k = list(zip(*numbers["by seed"], strict=True))
            spread = [statistics.stdev(row) if len(row) > 1 else 0 for row in by_k]
            handles[method] = axes.errorbar(
                one["ks"],
                numbers["mean"],
                yerr=spread,
                color=color,
                linestyle=line,
                marker=marker,
                markersize=4,
                linewidth=1.4,
                capsize=2,
            )
        axes.set_title(name.replace(" (", "\n("), fontsize=9)
        axes.set_xticks(one["ks"])
        axes.set_xlabel("selected items, k", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(color="0.9", linewidth=0.6)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    every[0].set_ylabel("accuracy, or share found", fontsize=8)
    figure.legend(
        handles.values(), handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False
    )
    figure.savefig(Path(__file__).with_name("diversity.png"), dpi=150)


if __name__ == "__main__":
    main()
