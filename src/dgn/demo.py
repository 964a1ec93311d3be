"""The demonstration: the paper's comparison on a problem that we generate, in under a minute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from dgn.data.batches import DenseBatches
from dgn.data.synthetic import SyntheticClaims, SyntheticProblem, make_problem
from dgn.evaluation import scores_at
from dgn.explanation import Explanation, explain
from dgn.maximizers import Selections, greedy, top_k
from dgn.objectives import FeatureCoverage, Items
from dgn.training import FitConfig, fit, parameter_count, placed_on
from dgn.unfolding import (
    DeepEncoderNetwork,
    DifferentiableGreedyNetwork,
    EncoderNetwork,
    FeedForwardEncoder,
    LayerwiseCrossEntropy,
    LearnedWeights,
    SelectionNetwork,
    UnfoldedGreedy,
)

KS = (1, 3, 5, 7)
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)
LAYERS = 5
TEMPERATURE = 2.0
START_SCALE = 1.0
LEARNING_RATE = 2e-3
POSITIVE_WEIGHT = 3.0
BATCH_SIZE = 128


@dataclass(frozen=True)
class Row:
    """One selector of the table: its name, its size, and its recall at each of KS."""

    name: str
    parameters: int
    recall: tuple[float, ...]


@dataclass(frozen=True)
class Story:
    """One test claim where the DGN finds every facet and the Encoder does not."""

    claims: SyntheticClaims
    claim: int
    dgn_picks: tuple[int, ...]
    encoder_picks: tuple[int, ...]
    explanation: Explanation


@dataclass(frozen=True)
class DemoResult:
    """The table of one seed, and a story to it (None where no claim tells it)."""

    rows: tuple[Row, ...]
    story: Story | None


def run_demo(
    seed: int,
    *,
    epochs: int = 20,
    on_progress: Callable[[str, float], None] = lambda _doing, _share: None,
) -> DemoResult:
    """Make the problem of this seed, train the three networks, score all five selectors.

    on_progress: called with what is being done and the share of all that is done.
    """
    problem = make_problem(seed)
    test = problem.test
    torch.manual_seed(seed)
    encoder = EncoderNetwork((64, 64, 64), POSITIVE_WEIGHT)
    deep = DeepEncoderNetwork((64, 128, 128, 64), POSITIVE_WEIGHT)
    dgn = _identity_dgn()
    config = FitConfig(
        epochs=epochs,
        learning_rate=LEARNING_RATE,
        seed=seed,
        batch_size=BATCH_SIZE,
        temperature=TEMPERATURE,
        judged_at=KS,
    )
    networks = {"Encoder": encoder, "DeepEncoder": deep, "DGN": dgn}
    for number, (name, network) in enumerate(networks.items()):
        _fit(
            name,
            network,
            problem,
            config,
            lambda doing, share, done=number: on_progress(doing, (done + share) / len(networks)),
        )
    picks = {
        "Top-k": _top_k_picks(test),
        "Greedy": _greedy_picks(test, _best_scale(problem.validation)),
        **{name: _network_picks(network, test) for name, network in networks.items()},
    }
    sizes = {name: parameter_count(network) for name, network in networks.items()}
    rows = tuple(
        Row(name, sizes.get(name, 0), tuple(scores_at(k, p.indices, test.gold).recall for k in KS))
        for name, p in picks.items()
    )
    return DemoResult(rows, _tell_story(dgn, picks["DGN"], picks["Encoder"], test))


def _identity_dgn() -> DifferentiableGreedyNetwork:
    """A DGN that starts as the untrained greedy on relu(X), exactly."""
    encoder = FeedForwardEncoder((64, 64, 64))
    encoder.start_as_identity(START_SCALE)
    return DifferentiableGreedyNetwork(
        encoder,
        LearnedWeights(64),
        UnfoldedGreedy(LAYERS, TEMPERATURE),
        LayerwiseCrossEntropy("set"),
    )


def _fit(
    name: str,
    network: SelectionNetwork,
    problem: SyntheticProblem,
    config: FitConfig,
    on_progress: Callable[[str, float], None],
) -> None:
    train, validation = (
        DenseBatches(c.x, c.gold, c.mask, BATCH_SIZE, config.seed, placed_on("cpu"))
        for c in (problem.train, problem.validation)
    )
    on_progress(f"training {name}", 0.0)
    fit(
        network,
        train,
        validation,
        config,
        lambda report: on_progress(
            f"training {name}  recall {report.recall:.3f}", report.epoch / config.epochs
        ),
    )


def _top_k_picks(claims: SyntheticClaims) -> Selections:
    # The sum of claim ⊙ sentence is their inner product, the paper's similarity.
    return top_k(claims.x.sum(axis=2), max(KS), claims.mask)


def _greedy_picks(claims: SyntheticClaims, scale: float) -> Selections:
    items = Items(np.maximum(scale * claims.x, 0), claims.mask)
    return greedy(FeatureCoverage(), items, max(KS))


def _network_picks(network: SelectionNetwork, claims: SyntheticClaims) -> Selections:
    return network.select(torch.from_numpy(claims.x), torch.from_numpy(claims.mask), k=max(KS))


def _best_scale(claims: SyntheticClaims) -> float:
    """The scale of the untrained greedy that does best on the validation claims."""

    def mean_recall(scale: float) -> float:
        picks = _greedy_picks(claims, scale).indices
        return sum(scores_at(k, picks, claims.gold).recall for k in KS)

    return max(SCALES, key=mean_recall)


def _tell_story(
    dgn: DifferentiableGreedyNetwork, ours: Selections, theirs: Selections, test: SyntheticClaims
) -> Story | None:
    """The first claim of three facets or more that the DGN gets right and the Encoder repeats."""
    for claim, facets in enumerate(test.claim_facets):
        wanted = len(facets)
        dgn_picks = ours[claim].indices[:wanted]
        encoder_picks = theirs[claim].indices[:wanted]
        found = {int(test.facet[claim, i]) for i in encoder_picks}
        if wanted >= 3 and all(test.gold[claim, i] for i in dgn_picks) and len(found) < wanted:
            with torch.no_grad():
                x, mask = torch.from_numpy(test.x[[claim]]), torch.from_numpy(test.mask[[claim]])
                explanation = explain(dgn.set_function(), dgn.encode(x, mask), ours[claim])
            return Story(test, claim, dgn_picks, encoder_picks, explanation)
    return None
