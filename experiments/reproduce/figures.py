"""The figures of the report, each as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from dgn.files import save_figure
from experiments.reproduce.paper import CLAIMS, TABLE_1
from experiments.reproduce.reproduce import Harder, Reproduction
from experiments.reproduce.results import KS, EpochCurve, Row, Spread, StudyPoint
from experiments.reproduce.studies import Studies

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


def draw_figures(found: Reproduction, folder: Path) -> list[str]:
    """Draw every figure for which there are numbers, and return their names without suffix."""
    figures: dict[str, Callable[[], Figure]] = {
        "recall": lambda: _recall(found.rows),
        "candidates": lambda: _candidates(found.harder),
    }
    studies = found.studies
    if studies is not None:
        drawn: tuple[tuple[str, object, Callable[[], Figure]], ...] = (
            ("epochs", studies.curves, lambda: _epochs(studies.curves)),
            ("temperature", studies.temperature, lambda: _temperature(studies.temperature)),
            ("imbalance", studies.imbalance, lambda: _imbalance(studies)),
            ("weight", studies.weight, lambda: _weight(studies)),
            ("claims", studies.claims, lambda: _claims(studies.claims, found)),
            ("soft", studies.soft, lambda: _soft(studies)),
            ("proofs", studies.proofs.certified, lambda: _proofs(studies)),
        )
        figures |= {name: draw for name, numbers, draw in drawn if numbers}
    for name, draw in figures.items():
        figure = draw()
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
        save_figure(figure, folder / f"{name}.png", dpi=140)
        # Without a date and random names, the same numbers give the same file.
        with _matplotlib.rc_context({"svg.hashsalt": "dgn"}):
            save_figure(figure, folder / f"{name}.svg", metadata={"Date": None})
    return list(figures)


def _new(columns: int = 1, width: float = 5.4, height: float = 3.6) -> tuple[Figure, list[Any]]:
    figure = Figure(figsize=(width * columns, height), layout="constrained")
    panels: Any = figure.subplots(1, columns, squeeze=False)
    return figure, list(panels[0])


def _recall(rows: Sequence[Row]) -> Figure:
    """The paper's models with its training, ours, and the numbers of the paper."""
    figure, panels = _new(3, width=4.4, height=3.8)
    for panel, title, addition in (
        (panels[0], "the paper's features and training", ""),
        (panels[1], "unit vectors, our training", "tuned"),
    ):
        for row in rows:
            base, _, rest = row.name.removesuffix(", unit").partition(", tuned")
            mine = row.name.endswith(("tuned", "unit")) == bool(addition)
            colour = COLOURS.get(base)
            if colour is not None and mine and not rest:
                means = [row.micro_recall[k].mean for k in KS]
                errors = [row.micro_recall[k].sd for k in KS]
                panel.errorbar(KS, means, errors, marker="o", color=colour, label=base, capsize=3)
        panel.set(title=title)
    for name in _PAPERS:
        recalls = [TABLE_1[name][k][0] for k in KS]
        panels[2].plot(KS, recalls, marker="o", color=COLOURS[name], label=name)
    panels[2].set(title="in the paper")
    for panel in panels:
        panel.set(xlabel="k", xticks=KS, ylim=(0.15, 0.95))
        if panel.get_legend_handles_labels()[0]:
            panel.legend(frameon=False, fontsize=8)
    panels[0].set_ylabel("recall (micro)")
    return figure


def _candidates(harder: Sequence[Harder]) -> Figure:
    figure, panels = _new(2, width=5.0)
    pages = [one for one in harder if "page" in one.name]
    for panel, k in zip(panels, (1, 5), strict=True):
        for name in pages[0].recall:
            base = name.removesuffix(", unit").removesuffix(", tuned")
            if base in COLOURS and "Deep" not in base:
                tuned = name != base
                panel.plot(
                    [one.candidates for one in pages],
                    [one.recall[name][k].mean for one in pages],
                    marker="o",
                    markersize=3,
                    color=COLOURS[base],
                    linestyle="--" if tuned else "-",
                    label=name,
                )
        panel.set(xlabel="candidates per claim", title=f"k = {k}")
    panels[0].set_ylabel("recall (micro)")
    panels[1].legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _epochs(curves: Sequence[EpochCurve]) -> Figure:
    """Losses on the left, recall on the right; one colour for each learning rate."""
    figure, (losses, recalls) = _new(2, width=5.0)
    for curve, colour in zip(curves, ("#c44e52", "#2ca02c", "#9467bd"), strict=True):
        _band(losses, curve.loss, colour, "-", f"training, {curve.variant}")
        _band(losses, curve.validation_loss, colour, "--", f"validation, {curve.variant}")
        _band(recalls, curve.recall_at_7, colour, "-", curve.variant)
    losses.set(xlabel="epoch", ylabel="loss", title="Cross-entropy")
    recalls.set(xlabel="epoch", ylabel="validation recall at 7 (macro)", title="Recall at 7")
    for axes in (losses, recalls):
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=False, fontsize=7)
    return figure


def _band(
    axes: Any, by_seed: Sequence[Sequence[float | None]], colour: str, style: str, label: str
) -> None:
    """The mean over seeds and their range, from the first epoch that all have."""
    # A seed whose loss was not finite ended early: only epochs that all seeds have are drawn.
    shortest = min(len(seed) for seed in by_seed)
    values = np.array([[np.nan if v is None else v for v in seed[1:shortest]] for seed in by_seed])
    epochs = list(range(1, shortest))
    axes.plot(epochs, values.mean(axis=0), color=colour, linestyle=style, label=label)
    axes.fill_between(
        epochs, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, linewidth=0
    )


def _temperature(points: Sequence[StudyPoint]) -> Figure:
    figure, panels = _new(2)
    for panel, (title, of) in zip(panels, _MEAN_AND_FIRST, strict=True):
        for kind, colour in (("fixed", "#2ca02c"), ("annealed", "#9467bd")):
            chosen = [point for point in points if point.variant.startswith(kind)]
            taus = [float(point.variant.partition(" ")[2]) for point in chosen]
            _line(panel, taus, [of(point) for point in chosen], colour, kind)
        panel.set_xscale("log")
        panel.set(xlabel="temperature τ", title=title)
        panel.legend(frameon=False)
        _at_least_this_high(panel, 0.05)
    panels[0].set_ylabel("validation recall")
    return figure


def _imbalance(studies: Studies) -> Figure:
    figure, panels = _new(2)
    for panel, k in zip(panels, (1, 5), strict=True):
        for model in dict.fromkeys(one.model for one in studies.imbalance):
            own = [one for one in studies.imbalance if one.model == model]
            colour = COLOURS.get(model, "#e6ab02")
            x = [one.others_per_gold for one in own]
            _line(panel, x, [one.recall[k] for one in own], colour, model)
        panel.set_xscale("log")
        panel.set(xlabel="other passages per gold passage, in training", title=f"k = {k}")
        _at_least_this_high(panel, 0.1)
    panels[0].set_ylabel("recall (micro), claims as they are")
    panels[1].legend(frameon=False, fontsize=8)
    return figure


def _weight(studies: Studies) -> Figure:
    figure, panels = _new(3, width=4.4)
    encoders = [point for point in studies.weight if point.variant.startswith("Encoder")]
    weights = [float(point.variant.partition(" ")[2]) for point in encoders]
    dgn = next(point for point in studies.weight if point.variant.startswith("DGN"))
    level = {"mean": dgn.mean.mean, "first": dgn.recalls[0].mean}
    for panel, (title, of), key in zip(panels, _MEAN_AND_FIRST, level, strict=False):
        _line(panel, weights, [of(point) for point in encoders], COLOURS["Encoder"], "Encoder")
        panel.axhline(level[key], color=COLOURS["DGN"], label="DGN, which has no such weight")
        panel.set(xlabel="positive weight", title=title, ylabel="validation recall")
        panel.legend(frameon=False, fontsize=8)
        _at_least_this_high(panel, 0.1)
    shares = list(studies.accepted.values())
    _line(panels[2], list(studies.accepted), shares, COLOURS["Encoder"], "Encoder")
    panels[2].set(xlabel="positive weight", ylabel="share", ylim=(0, 1))
    panels[2].set_title("Sentences called evidence (p > ½)")
    for panel in panels:
        panel.set_xscale("log")
    return figure


def _claims(points: Sequence[StudyPoint], found: Reproduction) -> Figure:
    figure, (axes,) = _new(width=6.4, height=4.0)
    counts = [_claims_of(point, found) for point in points]
    for place, k in enumerate(KS):
        spreads = [point.recalls[place] for point in points]
        _line(axes, counts, spreads, f"C{place}", f"k = {k}")
    axes.axvline(CLAIMS["training"], color="grey", linestyle=":")
    axes.annotate("the paper", (CLAIMS["training"], axes.get_ylim()[0]), ha="right", va="bottom")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="training claims", ylabel="validation recall")
    axes.set_title("Recall by the number of training claims")
    axes.legend(frameon=False)
    return figure


def _soft(studies: Studies) -> Figure:
    figure, (axes,) = _new(width=6.4)
    taus = [gap.temperature for gap in studies.soft]
    axes.plot(taus, [gap.hard_recall for gap in studies.soft], color="#2ca02c", label="argmax")
    soft = [gap.soft_recall for gap in studies.soft]
    axes.plot(taus, soft, marker="o", color="#9467bd", label="soft set")
    agreement = [gap.agreement for gap in studies.soft]
    axes.plot(taus, agreement, marker=".", color="grey", label="layers that agree")
    axes.set_xscale("log")
    axes.set(xlabel="temperature τ of the soft search", ylabel="recall at 5, or share", ylim=(0, 1))
    axes.set_title("Soft against argmax, one trained DGN")
    axes.legend(frameon=False)
    return figure


def _proofs(studies: Studies) -> Figure:
    figure, (axes,) = _new(width=6.4)
    bins = np.linspace(0.5, 1.0, 51)
    axes.hist(studies.proofs.certified, bins=bins, color="#4c72b0", label="certified")
    axes.hist(studies.proofs.reached, bins=bins, color="#2ca02c", alpha=0.7, label="true")
    axes.axvline(1 - 1 / np.e, color="grey", linestyle=":")
    axes.annotate("1 − 1/e", (1 - 1 / np.e, axes.get_ylim()[1]), va="top")
    axes.set(xlabel="share of the best possible f, k = 5", ylabel="claims")
    axes.set_title("Greedy's true share of the best, and what its certificate proves")
    axes.legend(frameon=False)
    return figure


_MEAN_AND_FIRST: tuple[tuple[str, Callable[[StudyPoint], Spread]], ...] = (
    ("mean over k = 1, 3, 5, 7", lambda point: point.mean),
    ("k = 1", lambda point: point.recalls[0]),
)


def _line(
    axes: Any, x: Sequence[float], spreads: Sequence[Spread], colour: str, label: str
) -> None:
    means, errors = [spread.mean for spread in spreads], [spread.sd for spread in spreads]
    axes.errorbar(x, means, errors, marker="o", markersize=4, color=colour, label=label, capsize=2)


def _at_least_this_high(axes: Any, height: float) -> None:
    """Keep a minimum range, so that a flat line looks flat."""
    low, high = axes.get_ylim()
    middle = (low + high) / 2
    if high - low < height:
        axes.set_ylim(middle - height / 2, middle + height / 2)


def _claims_of(point: StudyPoint, found: Reproduction) -> float:
    return float(found.training_claims if point.variant == "DGN" else point.variant)
