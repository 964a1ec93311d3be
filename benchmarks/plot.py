"""Draws docs/images/speed.png from the newest results: `python -m benchmarks.plot`."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

ROOT = Path(__file__).parents[1]
RESULTS, IMAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "images" / "speed.png"
OURS, OTHERS = "#1b6ca8", "#b8b8b8"


COLOURS = {
    "dgn, text never seen": "#1b6ca8",
    "dgn, known text": "#6fb1e0",
    "bm25s with stems": "#7a7a7a",
    "MiniLM cosine + MMR": "#c98a2b",
    "MiniLM cross-encoder": "#b0413e",
}


RAISED = {"dgn, known text": 7, "bm25s with stems": -7}
"""Labels that would overlap, in points."""


def main() -> None:
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.5, 4.2), width_ratios=(3, 2), layout="constrained"
    )
    _draw_passages(left)
    _draw_search(right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGE, dpi=150)
    print(IMAGE)


def _draw_passages(axes: Axes) -> None:
    header, *rows = _rows("*-passages.txt")
    counts = [int(cell.split()[0].replace(",", "")) for cell in header[1:]]
    for name, *cells in rows:
        times = [float(cell) for cell in cells if cell]
        drawn = counts[: len(times)]
        axes.loglog(drawn, times, "o-", color=COLOURS[name], lw=2, ms=4)
        axes.annotate(
            name, (drawn[-1], times[-1]), (6, RAISED.get(name, 0)), va="center",
            textcoords="offset points",
            color=COLOURS[name], fontsize=9,
        )  # fmt: skip
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.minorticks_off()
    axes.set_xlim(counts[0] * 0.85, counts[-1] * 7)
    axes.set_xlabel("passages")
    axes.grid(alpha=0.25)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title("From text to selection, ms per query")


def _draw_search(axes: Axes) -> None:
    rows = [row for row in _rows("*-searching.txt") if len(row) == 5 and "µs" not in row[1]]
    rows = [row for row in rows if "without" not in row[0] and "acility location" not in row[0]]
    rows.sort(key=lambda row: -float(row[3]))
    names = ["dgn, two cores" if row[0] == "dgn" else row[0] for row in rows]
    names = [name.replace("one thread", "one core") for name in names]
    bars = axes.barh(
        names,
        [float(row[3]) for row in rows],
        color=[OURS if name.startswith("dgn") else OTHERS for name in names],
    )
    axes.bar_label(bars, fmt="%.0f", padding=3)
    axes.margins(x=0.12)
    axes.set_title("The search alone, µs per query:\n7 of 30 items, 256 features")


def _rows(pattern: str) -> list[list[str]]:
    """The rows of the tables of the newest result."""
    dashes = pattern.count("-") + 2  # those of the date, and no other result with a longer name
    newest = max(path for path in RESULTS.glob(pattern) if path.name.count("-") == dashes)
    lines = newest.read_text(encoding="utf-8").splitlines()
    cells = (
        [cell.strip() for cell in one.strip("|").split("|")] for one in lines if one[:1] == "|"
    )
    return [row for row in cells if row[0] and not row[0].startswith("---")]


if __name__ == "__main__":
    main()
