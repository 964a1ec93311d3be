"""What a run leaves for people: metrics, TensorBoard events, curves, a summary and a model card.

Everything is written from the reports in the checkpoint, so that a run that was killed and resumed
leaves the same files as one that was not, apart from the speeds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dgn.errors import BrokenInput, require_extra
from dgn.files import save_figure, write_atomically
from dgn.learn.config import RunConfig
from dgn.learn.families import find_family
from dgn.learn.trainer import EpochReport
from dgn.selector.model_folder import CARD

METRICS, CURVES, EVENTS, SUMMARY = "metrics.jsonl", "curves.png", "tensorboard", "summary.json"


@dataclass(frozen=True)
class RunSummary:
    """How a run ended.

    Attributes:
        best_epoch: The epoch whose weights were kept.
        stopped: Why training stopped.
        parameters: The number of learned parameters.
        machine: Where the last part of the run took place.
    """

    best_epoch: int
    stopped: str
    parameters: int
    machine: str


def write_summary(folder: Path, summary: RunSummary) -> None:
    """Write summary.json."""
    write_atomically(folder / SUMMARY, json.dumps(asdict(summary), indent=2) + "\n")


def read_summary(folder: Path) -> RunSummary:
    """Read summary.json."""
    path = folder / SUMMARY
    try:
        return RunSummary(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise BrokenInput(
            path,
            None,
            found=f"something else ({error!s:.200})",
            allowed="the summary of a finished run",
        ) from None


def write_metrics(folder: Path, reports: Sequence[EpochReport]) -> None:
    """Write one JSON row per epoch, the start first."""
    rows = [json.dumps(asdict(report)) for report in reports]
    write_atomically(folder / METRICS, "\n".join(rows) + "\n")


def read_metrics(folder: Path) -> list[EpochReport]:
    """Read metrics.jsonl."""
    path = folder / METRICS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [EpochReport.from_row(json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BrokenInput(
            path, None, found=f"something else ({error!s:.200})", allowed="the metrics of a run"
        ) from None


class Events:
    """TensorBoard's event files; a resumed run replaces the old ones."""

    def __init__(
        self, folder: Path, eval_ks: Sequence[int], reports: Sequence[EpochReport]
    ) -> None:
        require_extra("dgn train", package="tensorboardX", extra="train")
        from tensorboardX import SummaryWriter

        for old in (folder / EVENTS).glob("events.out.tfevents.*"):
            old.unlink()
        self._eval_ks = eval_ks
        self._writer = SummaryWriter(str(folder / EVENTS))
        for report in reports:
            self.add(report)

    def add(self, report: EpochReport) -> None:
        """Write one epoch, and flush it: somebody may be watching."""
        numbers = {
            f"validation/recall at {k}": recall
            for k, recall in zip(self._eval_ks, report.recalls, strict=True)
        }
        if report.loss is not None:
            numbers["train/loss"] = report.loss
            numbers["train/learning rate"] = report.learning_rate
            numbers["train/queries per second"] = report.queries_per_second
        if report.validation_loss is not None:
            numbers["validation/loss"] = report.validation_loss
        for name, number in numbers.items():
            self._writer.add_scalar(name, number, report.epoch)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def draw_curves(
    folder: Path, eval_ks: Sequence[int], reports: Sequence[EpochReport], best_epoch: int
) -> None:
    """Draw the loss and the validation recall over the epochs as a PNG."""
    require_extra("dgn train", package="matplotlib", extra="train")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    learned = [report for report in reports if report.loss is not None]
    left.plot([r.epoch for r in learned], [r.loss for r in learned], marker=".", label="training")
    validated = [report for report in learned if report.validation_loss is not None]
    losses = [report.validation_loss for report in validated]
    left.plot([r.epoch for r in validated], losses, marker=".", linestyle="--", label="validation")
    left.set(xlabel="epoch", ylabel="loss")
    left.legend(frameon=False)
    for index, k in enumerate(eval_ks):
        recalls = [report.recalls[index] for report in reports]
        right.plot([report.epoch for report in reports], recalls, marker=".", label=f"{k}")
    right.axvline(best_epoch, color="grey", linewidth=1, linestyle=":")
    right.set(xlabel="epoch (dotted: the best)", ylabel="validation recall")
    right.legend(title="at k", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
    save_figure(figure, folder / CURVES, dpi=150)


def write_card(
    folder: Path,
    config: RunConfig,
    features: Mapping[str, Any],
    reports: Sequence[EpochReport],
    best_epoch: int,
    parameters: int,
) -> None:
    """Write the model card: what the model is, its data, seed, scores and limits."""
    family, ks = find_family(config.network.encoder), config.fit.eval_ks
    best, start = reports[best_epoch], reports[0]
    rows = [
        f"| {k} | {at_start:.4f} | {at_best:.4f} |"
        for k, at_start, at_best in zip(ks, start.recalls, best.recalls, strict=True)
    ]
    kind = {"dgn": "differentiable greedy network", "encoder": "pointwise encoder"}
    name = kind.get(config.network.architecture, "deep pointwise encoder")
    lines = [
        "---",
        "library_name: dgn",
        "tags: [sentence-selection, evidence, submodular]",
        "---",
        "",
        f"# A {name} on {family.name} features",
        "",
        "This model selects, out of many passages, the few that together cover a query. Load it",
        "with `dgn.Selector.from_pretrained(FOLDER)`.",
        "",
        f"{family.encoder.description} It has {parameters:,} learned parameters.",
        "",
        f"Trained with dgn, seed {config.fit.seed}, {len(reports) - 1} epochs; the weights are "
        f"those of epoch {best_epoch}, the best one on the validation queries.",
        "",
        "| k | validation recall at the start | after training |",
        "| --: | --: | --: |",
        *rows,
        "",
        "Recall counts gold sentences and is a mean over queries (macro). The validation queries "
        "chose the epoch: a score on queries that chose nothing may be lower.",
        "",
        "## Data",
        "",
        *(f"- {folder}: {json.dumps(key)}" for folder, key in features.items()),
        "",
        "## Limits",
        "",
        f"{family.encoder.limits} The guarantee of greedy is about the learned function, not about "
        "recall.",
        "",
        "## Train it again",
        "",
        "`dgn train --config config.toml --out FOLDER`, with this `config.toml`:",
        "",
        "```toml",
        config.to_toml(),
        "```",
    ]
    write_atomically(folder / CARD, "\n".join(lines) + "\n")
