"""What a run leaves for people: metrics, TensorBoard events, curves and a model card.

All of it is written from the reports that the checkpoint holds, so that a run which was killed and
gone on with leaves the same as one that was not, but for the speeds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dgn.errors import BrokenInput, require_extra
from dgn.files import write_atomically
from dgn.training.model_folder import ModelDescription
from dgn.training.trainer import EpochReport

METRICS, CURVES, CARD, EVENTS = "metrics.jsonl", "curves.png", "README.md", "tensorboard"
SUMMARY = "summary.json"


@dataclass(frozen=True)
class RunSummary:
    """How a run ended. machine: where its last part ran."""

    best_epoch: int
    stopped: str
    parameters: int
    machine: str


def write_summary(folder: Path, summary: RunSummary) -> None:
    """Write `summary.json`."""
    write_atomically(folder / SUMMARY, json.dumps(asdict(summary), indent=2) + "\n")


def read_summary(folder: Path) -> RunSummary:
    """What `write_summary` wrote."""
    path = folder / SUMMARY
    try:
        return RunSummary(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise BrokenInput(
            path, None, found=f"no summary ({error})", allowed="a finished run of dgn train"
        ) from None


def write_metrics(folder: Path, reports: Sequence[EpochReport]) -> None:
    """One JSON row an epoch, the start first."""
    rows = [json.dumps(asdict(report)) for report in reports]
    write_atomically(folder / METRICS, "\n".join(rows) + "\n")


def read_metrics(folder: Path) -> list[EpochReport]:
    """What `write_metrics` wrote."""
    lines = (folder / METRICS).read_text(encoding="utf-8").splitlines()
    return [EpochReport.from_row(json.loads(line)) for line in lines]


class Events:
    """TensorBoard's event files; of a run that goes on, the old ones are replaced."""

    def __init__(
        self, folder: Path, judged_at: Sequence[int], reports: Sequence[EpochReport]
    ) -> None:
        require_extra("dgn train", package="tensorboardX", extra="train")
        from tensorboardX import SummaryWriter

        for old in (folder / EVENTS).glob("events.out.tfevents.*"):
            old.unlink()
        self._judged_at = judged_at
        self._writer = SummaryWriter(str(folder / EVENTS))
        for report in reports:
            self.add(report)

    def add(self, report: EpochReport) -> None:
        """Write one epoch, and flush it: somebody may be watching."""
        numbers = {
            f"validation/recall at {k}": recall
            for k, recall in zip(self._judged_at, report.recalls, strict=True)
        }
        if report.loss is not None:
            numbers["train/loss"] = report.loss
            numbers["train/learning rate"] = report.learning_rate
            numbers["train/claims a second"] = report.claims_per_second
        for name, number in numbers.items():
            self._writer.add_scalar(name, number, report.epoch)
        self._writer.flush()

    def close(self) -> None:
        """The last call."""
        self._writer.close()


def draw_curves(
    folder: Path, judged_at: Sequence[int], reports: Sequence[EpochReport], best_epoch: int
) -> None:
    """Loss and validation recall over the epochs, as a PNG."""
    require_extra("dgn train", package="matplotlib", extra="train")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    learned = [report for report in reports if report.loss is not None]
    left.plot([r.epoch for r in learned], [r.loss or 0.0 for r in learned], marker=".")
    left.set(xlabel="epoch", ylabel="training loss")
    for place, k in enumerate(judged_at):
        recalls = [report.recalls[place] for report in reports]
        right.plot([report.epoch for report in reports], recalls, marker=".", label=f"{k}")
    right.axvline(best_epoch, color="grey", linewidth=1, linestyle=":")
    right.set(xlabel="epoch (dotted: the best)", ylabel="validation recall")
    right.legend(title="at k", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(folder / CURVES, dpi=150)


def write_card(
    folder: Path,
    description: ModelDescription,
    reports: Sequence[EpochReport],
    best_epoch: int,
    parameters: int,
) -> None:
    """The model card: data, seed, scores, limits, and the command that trains it again."""
    config = description.config
    best, start = reports[best_epoch], reports[0]
    rows = [
        f"| {k} | {at_start:.4f} | {at_best:.4f} |"
        for k, at_start, at_best in zip(
            config.fit.judged_at, start.recalls, best.recalls, strict=True
        )
    ]
    sources = [f"- {name}: {made_from}" for name, made_from in description.features.items()]
    text = [
        f"# A {config.network.model} that picks evidence",
        "",
        f"{parameters:,} parameters on pooled vectors of {description.inputs} dimensions. "
        f"Trained with dgn, seed {config.fit.seed}, {len(reports) - 1} epochs, of which epoch "
        f"{best_epoch} was the best.",
        "",
        "| k | validation recall at the start | trained |",
        "| --: | --: | --: |",
        *rows,
        "",
        "Recall counts gold sentences, mean over claims (macro). The validation claims chose the "
        "epoch: a score on claims that chose nothing may be lower.",
        "",
        "## Data",
        "",
        *sources,
        "",
        "## Limits",
        "",
        "It knows X = claim ⊙ sentence of the vectors named above and nothing else: no word order, "
        "no title, no other vectors. The guarantee of greedy is about the learned function, not "
        "about recall.",
        "",
        "## Again",
        "",
        "`dgn train --config config.toml --out FOLDER`, with this `config.toml`:",
        "",
        "```toml",
        *as_toml(config.as_tables()),
        "```",
    ]
    write_atomically(folder / CARD, "\n".join(text) + "\n")


def as_toml(tables: dict[str, dict[str, object]]) -> list[str]:
    """The lines of a TOML file. JSON writes our kinds of values as TOML does."""
    lines: list[str] = []
    for section, settings in tables.items():
        lines.append(f"[{section}]")
        lines += [
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items()
        ]
    return lines
