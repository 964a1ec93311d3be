"""A picture of a search: what mattered, and how recall went with each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgn.training.tune import TrialResult


def draw_search(
    path: Path, results: Sequence[TrialResult], shares: Mapping[str, float], logs: set[str]
) -> None:
    """Bars of importance, then recall against each setting. logs: settings on a log axis."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    names = sorted(results[0].settings, key=lambda name: -shares.get(name, 0.0))
    figure = Figure(figsize=(3.2 * (len(names) + 1), 3.2), layout="constrained")
    bars, *others = figure.subplots(1, len(names) + 1)
    bars.barh(names[::-1], [shares.get(name, 0.0) for name in names[::-1]], color="#4c72b0")
    bars.set(title="importance", xlabel="share" if shares else "too few trials to tell")
    best = max(results, key=lambda result: result.recall)
    for axes, name in zip(others, names, strict=True):
        for pruned, colour, label in ((True, "#c0c0c0", "given up"), (False, "#4c72b0", "done")):
            shown = [result for result in results if result.pruned is pruned]
            values: list[Any] = [result.settings[name] for result in shown]
            axes.scatter(values, [r.recall for r in shown], s=16, color=colour, label=label)
        axes.scatter([best.settings[name]], [best.recall], s=60, facecolors="none", edgecolors="r")
        axes.set(title=name, ylabel="mean validation recall" if axes is others[0] else "")
        if name in logs:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
    others[-1].legend(frameon=False, fontsize="small")
    for axes in (bars, *others):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
