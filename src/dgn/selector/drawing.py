"""Reasons as a picture: which pick covers which word of the claim, and how the gains fall."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from dgn.errors import require_extra
from dgn.selector.reasons import Reasons


def draw_reasons(reasons: Reasons, path: Path) -> None:
    """A heat map of claim words against picks, and the gains step by step."""
    require_extra("drawing", package="matplotlib", extra="plot")
    from matplotlib.figure import Figure

    count = len(reasons.picks)
    words = len(reasons.words)
    figure = Figure(figsize=(max(7.0, 2.2 + 0.55 * words), 1.7 + 0.62 * count + 2.1))
    figure.set_layout_engine("constrained")
    axes: Any = figure.subplots(2, 1, height_ratios=[max(count, 1) * 0.62, 1.9])
    claim = "\n".join(textwrap.wrap(_plain(reasons.claim), 90))
    figure.suptitle(claim, fontsize=11, x=0.01, ha="left")
    _draw_cover(axes[0], reasons)
    _draw_gains(axes[1], reasons)
    figure.savefig(path, dpi=150)


def _draw_cover(axes: Any, reasons: Reasons) -> None:
    cover = reasons.cover[1:]
    new = np.diff(reasons.cover, axis=0)
    axes.imshow(cover, cmap="Greens", vmin=0, vmax=1.3, aspect="auto")
    for row, column in np.argwhere(new >= 0.02).tolist():
        axes.text(
            column,
            row,
            f"{cover[row, column]:.0%}",
            ha="center",
            va="center",
            fontsize=8,
            color="black" if cover[row, column] < 0.75 else "white",
        )
    labels = [
        _plain(textwrap.shorten(pick.sentence.text, 42, placeholder=" …")) for pick in reasons.picks
    ]
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    words = [_plain(word) for word in reasons.words]
    axes.set_xticks(range(len(words)), words, rotation=40, ha="right", fontsize=9)
    axes.set_title(
        "How far each word of the claim is covered; a number where a pick says more of it",
        fontsize=9,
        loc="left",
    )
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _plain(text: str) -> str:
    """A text with its dollar signs as such: two of them would be mathematics."""
    return text.replace("$", r"\$")


def _draw_gains(axes: Any, reasons: Reasons) -> None:
    steps = range(1, len(reasons.picks) + 1)
    for one in reasons.passed:
        axes.plot(steps, one.gains, color="0.82", linewidth=0.8, zorder=1)
    runner_up = [pick.runner_up_gain for pick in reasons.picks]
    axes.plot(steps, runner_up, "o--", color="0.45", markersize=4, label="runner-up")
    gains = [pick.gain for pick in reasons.picks]
    axes.plot(steps, gains, "o-", color="tab:green", markersize=6, label="picked")
    for step, pick in zip(steps, reasons.picks, strict=True):
        axes.annotate(
            f"{pick.covered:.0%}",
            (step, pick.gain),
            xytext=(6, 5),
            textcoords="offset points",
            fontsize=8,
            color="tab:green",
        )
    axes.set_xticks(list(steps))
    axes.set_xlabel("step", fontsize=9)
    axes.set_ylabel("gain", fontsize=9)
    axes.margins(x=0.08)
    axes.set_ylim(0, 1.2 * max([*gains, 1e-9]))
    axes.set_title(
        "What each sentence would add (grey: those not picked); %: of the claim covered so far",
        fontsize=9,
        loc="left",
    )
    axes.legend(fontsize=8, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
