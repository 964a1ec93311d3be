"""Draws docs/images/speed.png from the newest results: `python -m benchmarks.plot`."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
RESULTS, IMAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "images" / "speed.png"
OURS, OTHERS = "#1b6ca8", "#b8b8b8"


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    rows = [row for row in _rows("*-searching.txt") if len(row) == 5 and "µs" not in row[1]]
    rows = [row for row in rows if "without" not in row[0] and "facility location of" not in row[0]]
    rows.sort(key=lambda row: -float(row[3]))
    names = [row[0].replace(", facility location, lazy", "") for row in rows]
    names = ["dgn, two cores" if name == "dgn" else name for name in names]
    names = [name.replace("one thread", "one core") for name in names]
    bars = left.barh(
        names,
        [float(row[3]) for row in rows],
        color=[OURS if name.startswith("dgn") else OTHERS for name in names],
    )
    left.bar_label(bars, fmt="%.0f", padding=3)
    left.set_title(
        "µs per query, 7 of 30 items with 256 features\n(4,096 queries; peers: one core)"
    )
    batches = (256, 1024)
    table = [row for row in _rows("*-h200-training.txt") if row[0] != ""]
    kinds = {
        "dgn, whole steps with batches and Adam": ("dgn", OURS),
        "naive unfolding, batched": ("naive unfolding", OTHERS),
    }
    for start, (kind, (label, colour)) in zip((-0.2, 0.2), kinds.items(), strict=True):
        rates = [float(row[1].replace(",", "")) for row in table if row[0] == kind][: len(batches)]
        positions = [number + start for number in range(len(batches))]
        drawn = right.bar(positions, rates, width=0.38, label=label, color=colour)
        right.bar_label(drawn, [f"{rate / 1000:,.0f}k" for rate in rates], padding=2)
    right.set_xticks(range(len(batches)), [f"{batch:,}" for batch in batches])
    right.set_xlabel("claims per batch")
    right.set_yticks([])
    right.margins(y=0.12)
    right.set_title("Training the paper's DGN on an H200, claims/s")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGE, dpi=150)
    print(IMAGE)


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
