"""Draws docs/images/budget.png: how a token limit is filled. Run it from the root of a clone."""

from pathlib import Path

from matplotlib.figure import Figure

import dgn

QUERY = "Who designed the Corran Bridge, when did the first train cross it, and what damaged it?"
PASSAGES = [
    "The Corran Bridge, which stands on four piers of grey granite at the mouth of the river and "
    "is the longest bridge of the county, was designed by the engineer Clara Voss.",
    "Clara Voss designed the Corran Bridge.",
    "The first train crossed the bridge on 3 May 1911.",
    "Ice damaged one of the piers in 1947, and the bridge was closed for a year.",
    "The bridge is painted red.",
    "The Corran Bridge is a bridge.",
]
LIMIT = 56


def main() -> None:
    selection = dgn.Selector.from_pretrained().select(QUERY, PASSAGES, max_tokens=LIMIT)
    outcomes = {one.index: one for one in selection.receipt().passages}
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    axes = figure.subplots()
    start = 0
    order = [*selection.indices, *(i for i in outcomes if i not in selection.indices)]
    for row, index in enumerate(order):
        one = outcomes[index]
        color = "tab:green" if one.kept else "0.8"
        axes.barh(row, one.tokens, left=start, color=color, height=0.6)
        gain = one.gains[-1] if one.gains else 0.0
        state = f"adds {one.gain:.2f}" if one.kept else f"would add {gain:.2f}: {one.reason}"
        label = f"{one.tokens} tokens; {state.replace('_', ' ')}"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        axes.text(start + one.tokens + 1, row, label, va="center", fontsize=8, bbox=box)
        start += one.tokens if one.kept else 0
    labels = [f"[{i}] {PASSAGES[i][:46]}{'…' if len(PASSAGES[i]) > 46 else ''}" for i in order]
    axes.set_yticks(range(len(order)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(LIMIT, color="tab:red", linewidth=1.2)
    axes.text(LIMIT + 0.5, -0.75, f"max_tokens={LIMIT}", color="tab:red", fontsize=8, va="center")
    axes.set_xlim(0, LIMIT + 62)
    axes.set_xlabel("tokens of the prompt", fontsize=9)
    axes.set_title(
        "Green: selected, in order, each after the tokens before it. Grey: not selected, and why",
        fontsize=9,
        loc="left",
        pad=14,
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(Path(__file__).with_name("budget.png"), dpi=150)


if __name__ == "__main__":
    main()
