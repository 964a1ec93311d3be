"""The studies of the report, each with its figure, its table and what the numbers show."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from dgn.evaluation.comparison import format_score
from experiments.reproduce.markdown import table
from experiments.reproduce.plan import DGN, TEMPERATURES
from experiments.reproduce.reproduce import Studies
from experiments.reproduce.results import StudyPoint


def studies_of(studies: Studies) -> Iterator[str]:
    """The lines of all studies."""
    yield from (
        "The recall of the following studies is that of the claims that choose (validation).",
        "",
        "## Recall at 7, epoch by epoch",
        "",
        "![Recall at 7](epochs.png)",
        "",
        f"Two learning rates, {DGN['learning_rate']:g} and a tenth of it; the band is the range "
        f"over seeds. They end at {_last(studies, 0):.3f} and {_last(studies, 1):.3f}; in the "
        "paper the lower rate ends lower.",
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
        "## Ablation: labels, layers, start, regularisation",
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


def _last(studies: Studies, curve: int) -> float:
    return statistics.mean(seed[-1] for seed in studies.curves[curve].by_seed)


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
