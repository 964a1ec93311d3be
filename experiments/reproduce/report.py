"""The report of a reproduction: Markdown to read, JSON to compute with, figures to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from dgn.files import write_atomically
from experiments.reproduce.figures import draw_figures
from experiments.reproduce.paper import TABLE_1
from experiments.reproduce.plan import MODELS, NEAR_THE_START
from experiments.reproduce.report_studies import studies_of
from experiments.reproduce.report_tables import (
    diversity,
    missed_recall,
    second_vectors,
    table_1,
    table_2,
)
from experiments.reproduce.reproduce import Reproduction
from experiments.reproduce.stories import describe

REPORT, NUMBERS, STORIES = "report.md", "report.json", "stories.md"


def write_report(found: Reproduction, folder: Path, command: str) -> Path:
    """Write everything into a folder; stories.md quotes the data, and the report does not."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_figures(found, folder)
    write_atomically(folder / NUMBERS, json.dumps(_numbers(found, command), indent=1) + "\n")
    write_atomically(folder / REPORT, "\n".join(_report(found, command)) + "\n")
    quoted = [line for story in found.stories for line in (*describe(story, with_text=True), "")]
    write_atomically(folder / STORIES, "\n".join(quoted) + "\n")
    return folder / REPORT


def _report(found: Reproduction, command: str) -> Iterator[str]:
    seeds = found.request.effort.seeds
    yield from (
        f"# The paper's experiment on {found.layout.name}",
        "",
        f"`{command}`",
        "",
        f"{found.training_claims:,} training claims, {found.reported_claims:,} reported claims, "
        f"{found.candidates:.1f} passages per claim; {found.layout.description}. Vectors: "
        f"{Path(found.request.vectors).name}, mean-pooled, of length 1; X = claim ⊙ sentence. "
        f"{seeds} seeds; scores are macro; ± is the standard deviation over seeds.",
        "",
        *(f"- {machine}" for machine in found.machines),
        "",
    )
    if found.layout.reports_what_chose:
        yield from (
            "The reported claims also chose the epochs and the settings: all trained rows are "
            "slightly optimistic, all in the same way.",
            "",
        )
    yield from table_1(found)
    yield from missed_recall(found)
    yield from table_2(found)
    yield from second_vectors(found)
    if found.studies is not None:
        yield from studies_of(found.studies)
    yield from diversity(found)
    yield from _stories(found)
    yield from _settings()


def _stories(found: Reproduction) -> Iterator[str]:
    if not found.stories:
        return
    yield from ("## Where the DGN and the Encoder differ", "")
    yield f"By reference (seed 0); `{STORIES}`, which the command also writes, has their texts."
    for story in found.stories:
        yield from ("", *describe(story, with_text=False))
    yield ""


def _settings() -> Iterator[str]:
    yield from ("## Settings", "", "What differs from the defaults of `dgn train`:", "")
    for name, settings in (*MODELS.items(), ("DGN on second vectors", NEAR_THE_START)):
        yield f"- {name}: " + ", ".join(f"{key} {value}" for key, value in settings.items())


def _numbers(found: Reproduction, command: str) -> dict[str, object]:
    return {
        "command": command,
        "data": found.layout.name,
        "description": found.layout.description,
        "training_claims": found.training_claims,
        "reported_claims": found.reported_claims,
        "machines": found.machines,
        "rows": [asdict(row) for row in found.rows],
        "second_vectors": [asdict(row) for row in found.second],
        "compared": {
            name: {k: asdict(one) for k, one in by_k.items()}
            for name, by_k in found.compared.items()
        },
        "studies": None if found.studies is None else asdict(found.studies),
        "paper": TABLE_1,
    }
