"""The report of a reproduction: Markdown to read, JSON to compute with, figures to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from dgn.files import write_atomically
from experiments.reproduce.figures import draw_figures
from experiments.reproduce.markdown import percent
from experiments.reproduce.paper import COVERED, LARGEST_K, TABLE_1
from experiments.reproduce.report_studies import studies_of
from experiments.reproduce.report_tables import (
    diversity,
    missed_recall,
    more_candidates,
    searches,
    table_1,
    table_2,
    what_layers_add,
    which_features,
)
from experiments.reproduce.reproduce import Reproduction

REPORT, NUMBERS = "report.md", "report.json"


def write_report(found: Reproduction, folder: Path, command: str) -> Path:
    """Write everything into a folder; nothing in it quotes the data."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_figures(found, folder)
    write_atomically(folder / NUMBERS, json.dumps(_numbers(found, command), indent=1) + "\n")
    write_atomically(folder / REPORT, "\n".join(_report(found, command)) + "\n")
    return folder / REPORT


def _report(found: Reproduction, command: str) -> Iterator[str]:
    effort = found.request.effort
    yield from (
        f"# The paper's experiment on {found.layout.name}",
        "",
        f"`{command}`",
        "",
        f"{found.training_claims:,} training claims, {found.reported_claims:,} reported claims "
        f"with {found.gold_per_claim:.2f} gold passages each; {found.layout.description}. What is "
        f"reported chose nothing. Vectors: {Path(found.request.vectors).name}, mean-pooled; "
        f"X = claim ⊙ sentence. {effort.trials} trials and {effort.seeds} seeds per model; ± is "
        "the standard deviation over seeds.",
        "",
        *_shortened(found),
        f"K = {LARGEST_K} covers {percent(found.covered[0])} of the training claims and "
        f"{percent(found.covered[1])} of the reported ones: they have at most {LARGEST_K} gold "
        f"passages ({percent(COVERED)} in the paper).",
        "",
        *(f"- {machine}" for machine in found.machines),
        "",
    )
    yield from which_features(found)
    yield from table_1(found)
    yield from missed_recall(found)
    yield from table_2(found)
    yield from what_layers_add(found)
    yield from more_candidates(found)
    if found.studies is not None:
        yield from studies_of(found.studies, found.searched["DGN"])
    yield from diversity(found)
    yield from searches(found)


def _shortened(found: Reproduction) -> Iterator[str]:
    """What differs from a whole reproduction: claims that were left out."""
    claims = found.request.effort.claims
    if claims is not None and claims < found.training_claims:
        yield f"Every run learns from {claims:,} of the training claims, drawn by its seed."
        yield ""
    if found.skipped:
        yield f"{len(found.skipped):,} broken rows of the data were skipped."
        yield ""


def _numbers(found: Reproduction, command: str) -> dict[str, object]:
    return {
        "command": command,
        "data": found.layout.name,
        "description": found.layout.description,
        "training_claims": found.training_claims,
        "reported_claims": found.reported_claims,
        "gold_per_claim": found.gold_per_claim,
        "covered_by_k": found.covered,
        "skipped_rows": len(found.skipped),
        "machines": found.machines,
        "rows": [asdict(row) for row in found.rows],
        "compared": {
            kind: {
                name: {k: asdict(one) for k, one in by_k.items()} for name, by_k in others.items()
            }
            for kind, others in found.compared.items()
        },
        "exchanges": {
            kind: {k: asdict(one) for k, one in by_k.items()}
            for kind, by_k in found.exchanges.items()
        },
        "layers": {kind: asdict(layers) for kind, layers in found.layers.items()},
        "harder": [asdict(one) for one in found.harder],
        "searched": {name: asdict(one) for name, one in found.searched.items()},
        "studies": None if found.studies is None else asdict(found.studies),
        "paper": TABLE_1,
    }
