"""The studies of a reproduction: the paper's models with one thing varied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from dgn.evaluation.metrics import hits_at
from dgn.learn.families.pooled_table import PooledTable
from experiments.reproduce.analysis import Proofs, SoftGap, gold_of, prove, soft_gap
from experiments.reproduce.candidates import ONE_PAGE, harder_sets
from experiments.reproduce.plan import (
    IMBALANCE_MODELS,
    IMBALANCES,
    POSITIVE_WEIGHTS,
    TEMPERATURES,
)
from experiments.reproduce.regime import load_dgn
from experiments.reproduce.results import (
    KS,
    EpochCurve,
    Spread,
    StudyPoint,
    epoch_curve,
    study_point,
)
from experiments.reproduce.training import Trained

_PROOF_CLAIMS, _PROOF_LONGEST, _PROOF_K = 200, 20, 5
_MOST_PAGES = "6 pages"


@dataclass(frozen=True)
class Imbalanced:
    """A model trained with other candidates, on the reported claims as they are and with 6 pages.

    Attributes:
        model: Its name.
        others_per_gold: In the claims that it learned from.
        recall: By k, micro, on the claims as they are.
        harder: The same on the claims with 6 pages.
        accepted: The share of passages that a pointwise encoder calls evidence; None for others.
    """

    model: str
    others_per_gold: float
    recall: dict[int, Spread]
    harder: dict[int, Spread]
    accepted: Spread | None


@dataclass(frozen=True)
class Studies:
    """Everything beyond the tables; a study that was not asked for is empty."""

    curves: tuple[EpochCurve, ...]
    temperature: tuple[StudyPoint, ...]
    weight: tuple[StudyPoint, ...]
    accepted: dict[float, Spread]
    dgn_weights_equal: bool
    imbalance: tuple[Imbalanced, ...]
    ablation: tuple[StudyPoint, ...]
    claims: tuple[StudyPoint, ...]
    soft: tuple[SoftGap, ...]
    proofs: Proofs


def studies_of_runs(trained: Trained, table: PooledTable) -> Studies:
    """What the studies of a reproduction found; the claims of the table are the reported ones."""
    network = load_dgn(trained.records("table", "DGN")[0])

    def points(study: str) -> tuple[StudyPoint, ...]:
        variants = trained.variants(study)
        return tuple(study_point(one, trained.records(study, one)) for one in variants)

    weight, ablation, claims = points("weight"), points("ablation"), points("claims")
    whole = study_point("DGN", trained.records("table", "DGN"))
    accepted: dict[float, Spread] = {}
    for value in POSITIVE_WEIGHTS if weight else ():
        records = trained.records("weight", f"Encoder {value}")
        accepted[value] = Spread.of([one.accepted or 0.0 for one in records])
    extremes = [point for point in weight if point.variant.startswith("DGN")]
    return Studies(
        curves=tuple(
            epoch_curve(one, trained.records("epochs", one)) for one in trained.variants("epochs")
        ),
        temperature=points("temperature"),
        weight=weight,
        accepted=accepted,
        dgn_weights_equal=len({tuple(s.mean for s in one.recalls) for one in extremes}) == 1,
        imbalance=tuple(_imbalance(trained, table)),
        ablation=(whole, *ablation) if ablation else (),
        claims=(*claims, whole) if claims else (),
        soft=tuple(soft_gap(network, table, 5, TEMPERATURES)),
        proofs=prove(network, table, _PROOF_K, _PROOF_CLAIMS, _PROOF_LONGEST),
    )


def _imbalance(trained: Trained, table: PooledTable) -> Iterator[Imbalanced]:
    sets = harder_sets(table)
    for model, candidates in itertools.product(IMBALANCE_MODELS, IMBALANCES):
        if records := trained.records("imbalance", f"{model}: {candidates}"):
            picks = [record.picks() for record in records]
            easy, hard = (
                {
                    k: Spread.of(
                        [hits_at(k, of[name], gold_of(sets[name])).micro.recall for of in picks]
                    )
                    for k in KS
                }
                for name in (ONE_PAGE, _MOST_PAGES)
            )
            shares = [one.accepted for one in records if one.accepted is not None]
            accepted = Spread.of(shares) if shares else None
            yield Imbalanced(model, records[0].others_per_gold, easy, hard, accepted)
