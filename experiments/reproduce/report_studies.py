"""The studies of the report, each with its figure, its table and what the numbers show."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from dgn.evaluation.comparison import format_score
from experiments.reproduce.markdown import table
from experiments.reproduce.plan import TEMPERATURES
from experiments.reproduce.reproduce import Searched, Studies
from experiments.reproduce.results import StudyPoint


def studies_of(studies: Studies, search: Searched) -> Iterator[str]:
    """The lines of all studies of the DGN with the paper's training."""
    yield from (
        "The recall of the following studies is that of the claims that choose (validation), "
        "macro.",
        "",
        "## Loss and recall at 7, epoch by epoch",
        "",
        "![Loss and recall](epochs.png)",
        "",
        f"Two learning rates, {search.settings['learning_rate']} and a tenth of it; the band is "
        f"the range over seeds. {_epochs_said(studies)}",
        "",
        "## Temperature",
        "",
        "![Temperature](temperature.png)",
        "",
        *_points("τ", studies.temperature),
        _temperature_said(studies),
        "",
        "## Class imbalance",
        "",
        "![Class imbalance](imbalance.png)",
        "",
        *_points("positive weight", studies.imbalance),
        *table(
            ("positive weight", "sentences that the Encoder calls evidence"),
            [(f"{weight:g}", share) for weight, share in studies.accepted.items()],
        ),
        _imbalance_said(studies),
        "",
        "## Ablation: labels, layers, start, regularization",
        "",
        *_points("DGN with", studies.ablation),
        "## How many claims to learn from",
        "",
        "![Claims](claims.png)",
        "",
        *_points("claims", studies.claims),
        "## Soft against argmax",
        "",
        "![Soft against argmax](soft.png)",
        "",
        *table(
            ("τ", "soft recall at 5", "argmax", "layers that agree"),
            [
                (
                    f"{gap.temperature:g}",
                    format_score(gap.soft_recall),
                    format_score(gap.hard_recall),
                    format_score(gap.agreement),
                )
                for gap in studies.soft
            ],
        ),
        "## Greedy's true gap, and certificates",
        "",
        "![Proofs](proofs.png)",
        "",
        _proofs_said(studies),
        "",
    )


def _points(title: str, points: Sequence[StudyPoint]) -> Iterator[str]:
    return table(
        (title, "k = 1", "k = 3", "k = 5", "k = 7", "mean", "seeds"),
        [(point.variant, *point.recalls, point.mean, point.mean.count) for point in points],
    )


def _epochs_said(studies: Studies) -> str:
    parts: list[str] = []
    for curve in studies.curves:
        losses = [[loss or 0.0 for loss in seed[1:]] for seed in curve.validation_loss]
        lowest = statistics.mean(seed.index(min(seed)) + 1 for seed in losses)
        best = statistics.mean(seed.index(max(seed)) for seed in curve.recall_at_7)
        ends = statistics.mean(seed[-1] for seed in losses)
        least = statistics.mean(min(seed) for seed in losses)
        recall = statistics.mean(seed[-1] for seed in curve.recall_at_7)
        parts.append(
            f"With {curve.variant}, the validation loss is lowest ({least:.3f}) after epoch "
            f"{lowest:g} and ends at {ends:.3f}; recall at 7 is highest after epoch {best:g} and "
            f"ends at {recall:.3f}."
        )
    return " ".join(parts) + (
        " In the paper, recall improves while the loss no longer does, and the lower rate ends "
        "with a lower recall."
    )


def _temperature_said(studies: Studies) -> str:
    means = [point.mean.mean for point in studies.temperature]
    return (
        f"From τ = {TEMPERATURES[0]:g} to {TEMPERATURES[-1]:g}, fixed or annealed by 10% an epoch, "
        f"mean recall stays between {min(means):.3f} and {max(means):.3f}. The paper could not "
        "train at τ = 0.01, because its loss took the logarithm of zeros and ones; ours stays in "
        "logarithms."
    )


def _imbalance_said(studies: Studies) -> str:
    encoders = [point for point in studies.imbalance if point.variant.startswith("Encoder")]
    means = [point.mean.mean for point in encoders]
    firsts = [point.recalls[0].mean for point in encoders]
    shares = [share.mean for share in studies.accepted.values()]
    same = "the same" if studies.dgn_weights_equal else "NOT the same"
    return (
        "The paper calls the Encoder very sensitive to this weight. As a classifier, it calls "
        f"{min(shares):.0%} to {max(shares):.0%} of all sentences evidence. As a ranking, which "
        f"decides the selection, its mean recall is {min(means):.3f} to {max(means):.3f}, and at "
        f"k = 1 {min(firsts):.3f} to {max(firsts):.3f}. The DGN has no such weight; trained with "
        f"the two extremes in its configuration, its recalls are {same}."
    )


def _proofs_said(studies: Studies) -> str:
    proofs = studies.proofs
    if not proofs.reached:
        return "No claim was small enough to search exactly."
    optimal = sum(ratio > 1 - 1e-6 for ratio in proofs.reached)
    given_up = f" ({proofs.too_large} more were given up)" if proofs.too_large else ""
    return (
        f"{len(proofs.reached)} claims, k = 5, were searched exactly{given_up}: greedy reaches "
        f"{min(proofs.reached):.4f} of the best f or more, {statistics.mean(proofs.reached):.5f} "
        f"on average, and the best set for {optimal}. Its certificates prove "
        f"{min(proofs.certified):.3f} to {max(proofs.certified):.3f}, "
        f"{statistics.mean(proofs.certified):.3f} on average; 1 − 1/e is .632. All of it is about "
        "f, not about recall."
    )
