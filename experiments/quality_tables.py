"""Tables and figure of docs/quality.md: `python -m experiments.quality_tables`.

Reads what `experiments.quality` wrote.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dgn.files import save_figure

_ROOT = Path(__file__).parents[1]
_RESULTS = _ROOT / "experiments" / "results" / "quality.json"
_FIGURE = _ROOT / "docs" / "images" / "quality.png"
_BY_KIND = (
    *("BM25, stems", "MiniLM + BM25", "untrained", "default, kind left out", "default"),
    *("minilm-words", "minilm"),
)
_AT = 5
_OURS, _PEERS = "#1b6ca8", "#7a7a7a"


def main() -> int:
    """Print both tables, and draw the recall against the time."""
    found = json.loads(_RESULTS.read_text(encoding="utf-8"))
    systems: dict[str, dict[str, Any]] = found["systems"]
    ks: list[int] = found["ks"]
    print("| |" + "".join(f" k = {k} |" for k in ks) + " ms |")
    print("| --- |" + " --: |" * (len(ks) + 1))
    for name, one in systems.items():
        time = one["milliseconds"]
        cells = [_short(interval[0]) for interval in one["mean"]]
        cells.append("" if time is None else f"{time:.1f}")
        print(f"| {name} | {' | '.join(cells)} |")
    place = ks.index(_AT)
    columns = [name for name in _BY_KIND if name in systems]
    print(f"\n| recall at {_AT} | queries | {' | '.join(columns)} |")
    print("| --- |" + " --: |" * (len(columns) + 1))
    for kind, own in systems[columns[0]]["kinds"].items():
        cells = [_short(systems[name]["kinds"][kind]["recall"][place][0]) for name in columns]
        print(f"| {kind} | {own['queries']} | {' | '.join(cells)} |")
    print()
    for name, one in systems.items():
        if name not in _BY_KIND[-4:]:
            print(f"significantly better than ours (p < .05), {name}: {_ahead(one, ks)}")
    _draw(systems, place)
    print(_FIGURE)
    return 0


def _ahead(system: dict[str, Any], ks: list[int]) -> str:
    """Where a system is significantly ahead of each of ours, kind by kind."""
    return "; ".join(
        f"{ours}: "
        + (
            ", ".join(
                f"{kind} at {k}"
                for kind, own in system["kinds"].items()
                for place, k in enumerate(ks)
                if own["is_ahead_of"][ours][place]
            )
            or "nowhere"
        )
        for ours in next(iter(system["kinds"].values()))["is_ahead_of"]
    )


def _draw(systems: dict[str, dict[str, Any]], place: int) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, one in systems.items():
        time, (recall, *_) = one["milliseconds"], one["mean"][place]
        if time is None:
            continue
        colour = _OURS if name in _BY_KIND[2:] else _PEERS
        axes.plot(time, recall, "o", color=colour)
        below = -11 if name == "untrained" else 4
        axes.annotate(
            name, (time, recall), (6, below), textcoords="offset points", color=colour, fontsize=9
        )
    left = systems.get("default, kind left out")
    if left is not None:
        time, (recall, *_) = systems["default"]["milliseconds"], left["mean"][place]
        axes.plot(time, recall, "o", color=_OURS, fillstyle="none")
        axes.annotate(
            "default, kind left out", (time, recall), (6, 4), textcoords="offset points",
            color=_OURS, fontsize=9,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.margins(x=0.25, y=0.1)
    axes.set_xlabel("milliseconds per query with up to 30 passages, text never seen, two cores")
    axes.set_ylabel(f"recall at {_AT}, mean of 35 kinds of text")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, _FIGURE, dpi=150)


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


if __name__ == "__main__":
    sys.exit(main())
