import copy

import pytest
import torch

from dgn.data.batches import DenseBatches
from dgn.data.synthetic import SyntheticClaims, make_problem
from dgn.evaluation import scores_at
from dgn.training import EpochReport, FitConfig, fit, pick_all
from dgn.unfolding import (
    DifferentiableGreedyNetwork,
    FeedForwardEncoder,
    LearnedWeights,
    UnfoldedGreedy,
)


def batches(claims: SyntheticClaims) -> DenseBatches:
    return DenseBatches(claims.x, claims.gold, claims.mask, 128, 0, torch.from_numpy)


def small_dgn() -> DifferentiableGreedyNetwork:
    encoder = FeedForwardEncoder((64, 64, 64))
    encoder.start_as_identity()
    return DifferentiableGreedyNetwork(encoder, LearnedWeights(64), UnfoldedGreedy(4, 2.0))


def recall(network: torch.nn.Module, sets: DenseBatches) -> float:
    picks, gold = pick_all(network, sets, 7)
    return sum(scores_at(k, picks, gold).recall for k in (1, 3, 5, 7)) / 4


@pytest.fixture(scope="module")
def sets() -> tuple[DenseBatches, DenseBatches]:
    problem = make_problem(0, train=400, validation=150, test=1)
    return batches(problem.train), batches(problem.validation)


def test_training_improves_on_untrained_greedy_and_repeats_itself(sets: tuple) -> None:
    train, validation = sets
    config = FitConfig(epochs=6, learning_rate=2e-3, temperature=2.0, annealing="geometric")
    seen: list[EpochReport] = []
    one, same = small_dgn(), small_dgn()
    untrained = recall(one, validation)
    reports = fit(one, train, validation, config, seen.append)
    assert seen == reports
    assert [report.epoch for report in reports] == list(range(7))
    assert reports[0].loss is None
    assert reports[0].recall == untrained
    assert reports[-1].loss < reports[1].loss
    assert recall(one, validation) > untrained + 0.01
    assert recall(one, validation) == pytest.approx(max(report.recall for report in reports))
    assert one.greedy.temperature == pytest.approx(2.0 * 0.9**5)
    assert [r.temperature for r in reports[1:4]] == pytest.approx([2.0, 1.8, 1.62])
    fit(same, train, validation, config)
    for name, weights in one.state_dict().items():
        assert torch.equal(weights, same.state_dict()[name])


def test_what_training_makes_worse_is_not_kept(sets: tuple) -> None:
    network = small_dgn()
    start = copy.deepcopy(network.state_dict())
    reports = fit(network, *sets, FitConfig(epochs=1, learning_rate=5.0))
    assert reports[1].recall < reports[0].recall
    for name, weights in start.items():
        assert torch.equal(weights, network.state_dict()[name])
