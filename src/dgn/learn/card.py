"""What a training on rows tells people: its table, a verdict in words, and the model card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgn.evaluation.metrics import Interval
    from dgn.learn.rows import Measured, RowsResult
    from dgn.text.encoder import Encoder


def rows_table(result: RowsResult) -> list[list[str]]:
    """The recall of all that were measured, and the gains, with their intervals."""
    gains = [row for row in result.table if row.name != "trained"]
    rows = [[row.name, *map(str, row.recalls)] for row in result.table]
    rows += [[f"trained − {row.name}", *map(_signed, row.gains)] for row in gains]
    return [["recall", *(f"at {k}" for k in result.ks)], *rows]


def rows_verdict(result: RowsResult) -> str:
    """What came out of a training on rows, in sentences."""
    if result.best_epoch:
        kept = (
            f"The model has the weights of epoch {result.best_epoch}. Its breadth is "
            f"{result.breadth:g}, which suits these rows best."
        )
    else:
        kept = (
            "Training did not clearly improve the recall on rows that were not learned from; the "
            "model is the start."
        )
    others = [row for row in result.table if row.name != "trained"]
    return " ".join([kept, *(_compared(row, result.ks) for row in others)])


def rows_card(result: RowsResult, training: Mapping[str, Any], encoder: type[Encoder]) -> str:
    """The model card."""
    header, *rows = rows_table(result)
    files = ", ".join(training["rows"])
    left_out = [f"- {count:,} rows were left out: {why}" for why, count in result.left_out.items()]
    settings = {name: training[name] for name in ("layers", "dropout", "fit")}
    lines = [
        *("---", "library_name: dgn", "tags: [sentence-selection, evidence, submodular]", "---"),
        "",
        "# A selector trained on labelled rows",
        "",
        "This model selects, out of many passages, the few that together cover a query. Load it",
        "with `dgn.Selector.from_pretrained(FOLDER)`.",
        "",
        encoder.description,
        "",
        f"Trained on {result.rows:,} rows ({files}) from the start `{training['start']}`, "
        f"{len(result.epochs) - 1} epochs, seed {training['fit']['seed']}. {rows_verdict(result)}",
        "",
        f"| {' | '.join(header)} |",
        f"| --- |{' --: |' * len(result.ks)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        "The recall of gold passages, macro, with 95% bootstrap intervals, by cross-validation: "
        "each row by a network that has not learned from its part, whose epoch it has not "
        f"chosen ({result.division}). The weights of this model were learned from all rows.",
        "",
        *([*left_out, ""] if left_out else []),
        "## Limits",
        "",
        f"{encoder.limits} On kinds of text that the rows do not have, it may be worse than its "
        "start.",
        "",
        "## Settings",
        "",
        "```json",
        json.dumps(settings, indent=2),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _compared(other: Measured, ks: tuple[int, ...]) -> str:
    """What the intervals of the gains over another way to select say, in a sentence."""
    by_word = {
        "better": [k for k, gain in zip(ks, other.gains, strict=True) if gain.low > 0],
        "worse": [k for k, gain in zip(ks, other.gains, strict=True) if gain.high < 0],
    }
    unclear = [k for k in ks if k not in by_word["better"] + by_word["worse"]]
    parts = [f"{word} at {_listed(where)}" for word, where in by_word.items() if where]
    if unclear:
        parts.append(f"no clear difference at {_listed(unclear)}")
    return f"Trained against {other.name}: {', '.join(parts)}."


def _listed(ks: list[int]) -> str:
    *first, last = map(str, ks)
    return f"{', '.join(first)} and {last}" if first else last


def _signed(gain: Interval) -> str:
    return f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
