"""The tables of the results, from the numbers in diversity.json."""

from __future__ import annotations

import statistics
from typing import Any

from dgn.evaluation.comparison import format_difference, format_score

_INTRODUCTION = """# Where diversity is the label

Written by `python -m experiments.diversity`; the page that explains it is docs/diversity.md. Means
over the reported pools, ± standard deviation over seeds where something is random. The columns on
the right say how far the DGN is ahead (behind, if negative), with the p-value of a test over seeds
and pools, corrected by Holm's method for all tests of the table; \\* below .05.
"""


def markdown(found: dict[str, Any]) -> str:
    """All benchmarks, a table each."""
    return "\n".join([_INTRODUCTION, *(_table(n, one) for n, one in found["benchmarks"].items())])


def _table(name: str, one: dict[str, Any]) -> str:
    ks = [str(k) for k in one["ks"]]
    head = ["", *(f"k = {k}" for k in ks), *(f"DGN ahead, k = {k}" for k in ks)]
    lines = [
        f"## {name[0].upper()}{name[1:]}\n",
        f"{one['pools']} reported pools; {one['measure']}. `{one['command']}`; seeds "
        f"{one['seeds']}; {one['machine']}.\n",
        f"| {' | '.join(head)} |",
        f"| --- {'| --: ' * (2 * len(ks))}|",
    ]
    best = [max(method["mean"][at] for method in one["methods"].values()) for at in range(len(ks))]
    for method, numbers in one["methods"].items():
        cells = [_cell(numbers, at, best[at]) for at in range(len(ks))]
        tests = one["DGN minus"].get(method)
        cells += [_ahead(tests[k]) for k in ks] if tests else [""] * len(ks)
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(numbers: dict[str, Any], at: int, best: float) -> str:
    mean = numbers["mean"][at]
    shown = f"**{format_score(mean)}**" if mean == best else format_score(mean)
    by_seed = [row[at] for row in numbers["by seed"]]
    return shown if len(by_seed) < 2 else f"{shown} ±{format_score(statistics.stdev(by_seed))}"


def _ahead(test: dict[str, Any]) -> str:
    p = test["holm_p_value"]
    return format_difference(test["difference"]["mean"], p) + ("\\*" if p < 0.05 else "")
