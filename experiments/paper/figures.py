"""The figures of the report, each as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from dgn.files import save_figure
from experiments.paper.measures import Spread
from experiments.paper.plan import MODELS
from experiments.paper.published import CLAIMS, TABLE_1
from experiments.paper.results import Results
from experiments.paper.training import KS, Epoch, Record

# The type of its settings is too large for a type checker.
_matplotlib: Any = matplotlib

COLOURS = {
    "Top-k": "#8c8c8c",
    "Greedy": "#4c72b0",
    "Encoder": "#dd8452",
    "DeepEncoder": "#c44e52",
    "Encoder, listwise": "#9467bd",
    "DGN": "#2ca02c",
}
_PAPERS = ("Top-k", "Greedy", "Encoder", "DGN")
Line = tuple[str, str, Sequence[float], Sequence[Spread]]
"""A label, a colour, and the x and y of every point."""


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure; the same numbers give the same files."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, folder / f"{name}.png", dpi=140)
    with _matplotlib.rc_context({"svg.hashsalt": "dgn"}):
        save_figure(figure, folder / f"{name}.svg", metadata={"Date": None})


def recall(results: Results) -> Figure:
    """The rows with the training of the paper, those with ours, and the numbers of the paper."""
    figure, panels = _new(3, width=4.4, height=3.8)
    for panel, title, addition in (
        (panels[0], "the paper's features and training", ""),
        (panels[1], "unit vectors, our training", ", tuned"),
    ):
        untrained = ", unit" if addition else ""
        lines: list[Line] = []
        for base, colour in COLOURS.items():
            name = base + (addition if base + addition in MODELS else untrained)
            if name in results.picks:
                lines.append((base, colour, KS, [results.score(name, k) for k in KS]))
        _draw(panel, lines)
        panel.set(title=title)
    for name in _PAPERS:
        recalls = [TABLE_1[name][k][0] for k in KS]
        panels[2].plot(KS, recalls, marker="o", color=COLOURS[name], label=name)
    panels[2].set(title="in the paper")
    for panel in panels:
        panel.set(xlabel="k", xticks=KS, ylim=(0.15, 0.95))
        _legend(panel)
    panels[0].set_ylabel("recall (micro)")
    return figure


def candidates(harder: Mapping[str, tuple[float, dict[str, dict[int, Spread]]]]) -> Figure:
    """Recall by the number of candidates per claim."""
    figure, panels = _new(2, width=5.0)
    pages = [one for name, one in harder.items() if "page" in name]
    for panel, k in zip(panels, (1, 5), strict=True):
        for name in pages[0][1]:
            base = name.removesuffix(", unit").removesuffix(", tuned")
            if base in COLOURS and "Deep" not in base:
                panel.plot(
                    [count for count, _ in pages],
                    [rows[name][k].mean for _, rows in pages],
                    marker="o",
                    markersize=3,
                    color=COLOURS[base],
                    linestyle="-" if name == base else "--",
                    label=name,
                )
        panel.set(xlabel="candidates per claim", title=f"k = {k}")
    panels[0].set_ylabel("recall (micro)")
    panels[1].legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def epochs(curves: Mapping[str, Sequence[Record]]) -> Figure:
    """The paper's figure: losses on the left, recall on the right, a colour for each rate."""
    figure, (losses, recalls) = _new(2, width=5.0)
    for (name, runs), colour in zip(curves.items(), ("#c44e52", "#2ca02c", "#9467bd"), strict=True):
        of_loss: tuple[tuple[Any, str, str, Callable[[Epoch], float | None]], ...] = (
            (losses, "-", f"training, {name}", lambda epoch: epoch.loss),
            (losses, "--", f"validation, {name}", lambda epoch: epoch.validation_loss),
            (recalls, "-", name, lambda epoch: epoch.recalls[-1]),
        )
        for axes, style, label, of in of_loss:
            # A seed whose loss was not finite ended early: only epochs that all seeds have.
            shortest = min(len(run.epochs) for run in runs)
            values = np.array(
                [[of(epoch) for epoch in run.epochs[1:shortest]] for run in runs], np.float64
            )
            x = np.arange(1, shortest)
            axes.plot(x, values.mean(axis=0), color=colour, linestyle=style, label=label)
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    losses.set(xlabel="epoch", ylabel="loss", title="Cross-entropy")
    recalls.set(xlabel="epoch", ylabel="validation recall at 7 (macro)", title="Recall at 7")
    for axes in (losses, recalls):
        axes.xaxis.get_major_locator().set_params(integer=True)
        _legend(axes)
    return figure


def panels_of_lines(
    titled: Mapping[str, Sequence[Line]], x: str, y: str, *, least_height: float = 0.1
) -> Figure:
    """A panel for each title, with lines over a logarithmic axis."""
    figure, panels = _new(len(titled), width=5.0)
    for panel, (title, lines) in zip(panels, titled.items(), strict=True):
        _draw(panel, lines)
        panel.set_xscale("log")
        panel.set(xlabel=x, title=title)
        low, high = panel.get_ylim()
        if high - low < least_height:  # a flat line looks flat
            middle = (low + high) / 2
            panel.set_ylim(middle - least_height / 2, middle + least_height / 2)
        _legend(panel)
    panels[0].set_ylabel(y)
    return figure


def claims(counts: Sequence[float], spreads: Sequence[Sequence[Spread]]) -> Figure:
    """Recall by the number of training claims; one line for each k."""
    lines = [
        (f"k = {k}", f"C{place}", counts, [of[place] for of in spreads])
        for place, k in enumerate(KS)
    ]
    figure = panels_of_lines({"Recall by training claims": lines}, "training claims", "recall")
    [axes] = figure.axes
    axes.axvline(CLAIMS["training"], color="grey", linestyle=":")
    axes.annotate("the paper", (CLAIMS["training"], axes.get_ylim()[0]), ha="right", va="bottom")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    return figure


def soft(temperatures: Sequence[float], gaps: Sequence[tuple[float, float, float]]) -> Figure:
    """The soft search against the argmax, by temperature."""
    figure, (axes,) = _new(width=6.4)
    labels = ("soft set", "argmax", "layers that agree")
    for place, (label, colour) in enumerate(
        zip(labels, ("#9467bd", "#2ca02c", "grey"), strict=True)
    ):
        axes.plot(temperatures, [gap[place] for gap in gaps], ".-", color=colour, label=label)
    axes.set_xscale("log")
    axes.set(xlabel="temperature τ of the soft search", ylabel="recall at 5, or share", ylim=(0, 1))
    axes.set_title("Soft against argmax, one trained DGN")
    _legend(axes)
    return figure


def proofs(reached: Sequence[float], certified: Sequence[float]) -> Figure:
    """Greedy's true share of the best, and what its certificates prove."""
    figure, (axes,) = _new(width=6.4)
    bins = np.linspace(0.5, 1.0, 51)
    axes.hist(certified, bins=bins, color="#4c72b0", label="certified")
    axes.hist(reached, bins=bins, color="#2ca02c", alpha=0.7, label="true")
    axes.axvline(1 - 1 / np.e, color="grey", linestyle=":")
    axes.annotate("1 − 1/e", (1 - 1 / np.e, axes.get_ylim()[1]), va="top")
    axes.set(xlabel="share of the best possible f, k = 5", ylabel="claims")
    axes.set_title("Greedy's true share of the best, and what its certificate proves")
    _legend(axes)
    return figure


def mean_and_first(
    records: Mapping[str, Sequence[Record]],
) -> tuple[Callable[[str], Spread], Callable[[str], Spread]]:
    """For each variant, validation recall: the mean over k, and at k = 1."""

    def mean(name: str) -> Spread:
        return Spread.of([run.best.recall for run in records[name]])

    def first(name: str) -> Spread:
        return Spread.of([run.best.recalls[0] for run in records[name]])

    return mean, first


def _new(columns: int = 1, width: float = 5.4, height: float = 3.6) -> tuple[Figure, list[Any]]:
    figure = Figure(figsize=(width * columns, height), layout="constrained")
    panels: Any = figure.subplots(1, columns, squeeze=False)
    return figure, list(panels[0])


def _draw(axes: Any, lines: Sequence[Line]) -> None:
    for label, colour, x, spreads in lines:
        means, errors = [one.mean for one in spreads], [one.sd for one in spreads]
        axes.errorbar(
            x, means, errors, marker="o", markersize=4, color=colour, label=label, capsize=2
        )


def _legend(axes: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)
