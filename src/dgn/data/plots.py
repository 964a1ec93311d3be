"""Histograms of a data set."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

from dgn.data.inspection import Inspection

_INK, _BAR = "#1f2933", "#6b9bc8"


def plot_inspection(found: Inspection, path: Path) -> None:
    """Draw gold sentences a claim and, where pages are known, candidates a claim."""
    importlib.import_module("matplotlib").use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    panels = [("gold sentences a claim", found.evidence_sizes)]
    if found.candidates:
        panels.append(("candidates a claim", found.candidates))
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(5 * len(panels), 3.4), squeeze=False, layout="constrained"
    )
    for axis, (title, counts) in zip(axes[0], panels, strict=True):
        _draw(axis, title, counts)
    axes[0][0].set_ylabel("claims", color=_INK)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _draw(axis: Any, title: str, counts: Counter[int]) -> None:
    axis.bar(list(counts), list(counts.values()), width=0.9, color=_BAR)
    axis.set_xlabel(title, color=_INK)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.spines[["top", "right"]].set_visible(False)
    average = sum(size * count for size, count in counts.items()) / max(1, counts.total())
    axis.set_title(f"{average:.1f} on average, {max(counts)} at most", fontsize=10, color=_INK)
