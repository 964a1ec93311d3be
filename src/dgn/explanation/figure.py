"""An explanation as a figure: which passage covers which word, and how the gains decrease."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from dgn.errors import InvalidInput, require_extra
from dgn.explanation.reasons import Explanation
from dgn.files import save_figure


def draw_explanation(explanation: Explanation, path: Path) -> None:
    """A heat map of the words of the query against the selected passages, and the gains."""
    if path.suffix.lower() not in {".png", ".svg", ".pdf"}:
        raise InvalidInput("path", found=repr(str(path)), allowed="a .png, .svg or .pdf file")
    require_extra("Drawing an explanation", package="matplotlib", extra="plot")
    from matplotlib.figure import Figure

    count, words = len(explanation.selected), len(explanation.content_words)
    width = max(9.5, 3.2 + 0.6 * words)
    figure = Figure(figsize=(width, 1.7 + 0.62 * count + 2.3), layout="constrained")
    ratios = [max(count, 1) * 0.62, 2.0]
    axes: Any = figure.subplots(2, 1, height_ratios=ratios) if words else [None, figure.subplots()]
    query = "\n".join(textwrap.wrap(_escaped(explanation.query), int(13 * width)))
    figure.suptitle(query, fontsize=11, x=0.01, ha="left")
    if words:
        _draw_coverage(axes[0], explanation)
    _draw_gains(axes[1], explanation)
    save_figure(figure, path, dpi=150)


def _draw_coverage(axes: Any, explanation: Explanation) -> None:
    shown = list(explanation.content_words)
    coverage = explanation.coverage[1:, shown]
    increase = np.diff(explanation.coverage[:, shown], axis=0)
    axes.imshow(coverage, cmap="Greens", vmin=0, vmax=1.3, aspect="auto")
    for row, column in np.argwhere(increase >= 0.02).tolist():
        axes.text(
            column,
            row,
            f"{coverage[row, column]:.0%}",
            ha="center",
            va="center",
            fontsize=8,
            color="black" if coverage[row, column] < 0.75 else "white",
        )
    labels = [
        _escaped(f"[{one.index}] " + textwrap.shorten(one.passage.text, 42, placeholder=" …"))
        for one in explanation.selected
    ]
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    words = [_escaped(explanation.words[place]) for place in shown]
    axes.set_xticks(range(len(words)), words, rotation=40, ha="right", fontsize=9)
    axes.set_title(
        "How far each content word is covered; a number where a passage covers it further",
        fontsize=9,
        loc="left",
    )
    axes.set_xticks(np.arange(len(words) - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(len(labels) - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _draw_gains(axes: Any, explanation: Explanation) -> None:
    steps = range(len(explanation.selected))
    for one in explanation.passed:
        axes.plot(steps, one.gains, color="0.82", linewidth=0.8, zorder=1)
    runner_up = [one.runner_up_gain for one in explanation.selected]
    axes.plot(steps, runner_up, "o--", color="0.45", markersize=4, label="next best")
    gains = [one.gain for one in explanation.selected]
    axes.plot(steps, gains, "o-", color="tab:green", markersize=6, label="selected")
    if explanation.words:
        for step, one in zip(steps, explanation.selected, strict=True):
            axes.annotate(
                f"{one.covered:.0%}",
                (step, one.gain),
                xytext=(6, 5),
                textcoords="offset points",
                fontsize=8,
                color="tab:green",
            )
    axes.set_xticks(list(steps), [f"[{one.index}]" for one in explanation.selected])
    axes.set_xlabel("selected passage, in order", fontsize=9)
    axes.set_ylabel("gain", fontsize=9)
    axes.margins(x=0.08)
    axes.set_ylim(0, 1.2 * max([*gains, 1e-9]))
    percent = "; %: query covered so far" if explanation.words else ""
    axes.set_title(f"Gain of each passage (grey: not selected){percent}", fontsize=9, loc="left")
    axes.legend(fontsize=8, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _escaped(text: str) -> str:
    """A text whose dollar signs are not the beginning of a formula."""
    return text.replace("$", r"\$")
