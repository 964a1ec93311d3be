"""The studies of the report, each with its figure, its table and what the numbers show."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from dgn.evaluation.comparison import format_score
from experiments.reproduce.markdown import table
from experiments.reproduce.plan import TEMPERATURES
from experiments.reproduce.reproduce import Searched
from experiments.reproduce.results import KS, StudyPoint
from experiments.reproduce.studies import Studies


def studies_of(studies: Studies, search: Searched) -> Iterator[str]:
    """The lines of all studies of the DGN with the paper's training."""
    yield from (
        "The recall of the following studies is that of the claims that choose (validation), "
        "macro, unless they say otherwise.",
        "",
    )
    if studies.curves:
        yield from (
            *_titled("Loss and recall at 7, epoch by epoch", "epochs"),
            f"Three learning rates: {search.settings['learning_rate']}, which the search found, "
            "ten times as much and a tenth of it; the band is the range over seeds. "
            f"{_epochs_said(studies)}",
            "",
        )
    if studies.temperature:
        yield from (
            *_titled("Temperature", "temperature"),
            *_points("τ", studies.temperature),
            _temperature_said(studies),
            "",
        )
    if studies.imbalance:
        yield from _imbalance(studies)
    if studies.weight:
        yield from (
            *_titled("The weight of gold in the pointwise loss", "weight"),
            *_points("positive weight", studies.weight),
            *table(
                ("positive weight", "sentences that the Encoder calls evidence"),
                [(f"{weight:g}", share) for weight, share in studies.accepted.items()],
            ),
            _weight_said(studies),
            "",
        )
    if studies.ablation:
        yield from (
            *_titled("Ablation: labels, layers, start, regularization"),
            *_points("DGN with", studies.ablation),
        )
    if studies.claims:
        yield from (
            *_titled("How many claims to learn from", "claims"),
            *_points("claims", studies.claims),
        )
    yield from (
        *_titled("Soft against argmax", "soft"),
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
        *_titled("Greedy's true gap, and certificates", "proofs"),
        _proofs_said(studies),
        "",
    )


def _titled(title: str, figure: str = "") -> tuple[str, ...]:
    picture = (f"![{title}]({figure}.png)", "") if figure else ()
    return (f"## {title}", "", *picture)


def _imbalance(studies: Studies) -> Iterator[str]:
    yield from (
        *_titled("Class imbalance in the data", "imbalance"),
        "The claims to learn from, and those that choose the epoch, have one other passage for "
        "each gold one, their own page, or the pages of other claims in addition. The settings are "
        "those that the search found on the claims as they are; `no weight` is the pointwise "
        "Encoder whose loss counts gold once. Micro recall at k = 1 / 3 / 5 / 7 on the reported "
        "claims, which are the same for all rows: as they are, and with six pages.",
        "",
        *table(
            (
                "model",
                "others per gold",
                *(f"k = {k}" for k in KS),
                *(f"6 pages, k = {k}" for k in KS),
                "called evidence",
            ),
            [
                (
                    one.model,
                    f"{one.others_per_gold:.1f}",
                    *(one.recall[k] for k in KS),
                    *(one.harder[k] for k in KS),
                    "" if one.accepted is None else f"{one.accepted.mean:.1%}",
                )
                for one in studies.imbalance
            ],
        ),
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
        "with a lower recall; a higher rate gives a loss that rises again and a higher recall."
    )


def _temperature_said(studies: Studies) -> str:
    means = [point.mean.mean for point in studies.temperature]
    return (
        f"From τ = {TEMPERATURES[0]:g} to {TEMPERATURES[-1]:g}, fixed or annealed by 10% an epoch, "
        f"mean recall stays between {min(means):.3f} and {max(means):.3f}. The paper could not "
        "train at τ = 0.01, because its loss took the logarithm of zeros and ones; ours stays in "
        "logarithms."
    )


def _weight_said(studies: Studies) -> str:
    encoders = [point for point in studies.weight if point.variant.startswith("Encoder")]
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
