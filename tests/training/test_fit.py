import copy

import pytest
import torch

from dgn.data.synthetic import SyntheticClaims, make_problem
from dgn.evaluation import scores_at
from dgn.training import EpochReport, FitConfig, LabelledSets, fit
from dgn.unfolding import (
    DifferentiableGreedyNetwork,
    EncoderNetwork,
    FeedForwardEncoder,
    Geometric,
    LearnedWeights,
    UnfoldedGreedy,
)


def labelled(claims: SyntheticClaims) -> LabelledSets:
    return LabelledSets.of(claims.x, claims.gold, claims.mask)


@pytest.fixture(scope="module")
def sets() -> tuple[LabelledSets, LabelledSets]:
    problem = make_problem(0, train=400, validation=150, test=1)
    return labelled(problem.train), labelled(problem.validation)


def small_dgn() -> DifferentiableGreedyNetwork:
    encoder = FeedForwardEncoder((64, 64, 64))
    encoder.start_as_identity()
    return DifferentiableGreedyNetwork(encoder, LearnedWeights(64), UnfoldedGreedy(4, 2.0))


def recall(network: torch.nn.Module, sets: LabelledSets) -> float:
    picked = network.select(sets.x, sets.mask, k=7).indices
    return sum(scores_at(k, picked, sets.gold).recall for k in (1, 3, 5, 7)) / 4


def test_training_improves_on_untrained_greedy_and_repeats_itself(sets: tuple) -> None:
    train, validation = sets
    config = FitConfig(epochs=3, learning_rate=2e-3, temperature=Geometric(2.0))
    seen: list[EpochReport] = []
    one, same = small_dgn(), small_dgn()
    untrained = recall(one, validation)
    reports = fit(one, train, validation, config, seen.append)
    assert seen == reports
    assert [report.epoch for report in reports] == [0, 1, 2]
    assert reports[-1].loss < reports[0].loss
    assert recall(one, validation) > untrained + 0.01
    assert recall(one, validation) == pytest.approx(max(r.validation_recall for r in reports))
    assert one.greedy.temperature == pytest.approx(2.0 * 0.81)
    fit(same, train, validation, config)
    for name, weights in one.state_dict().items():
        assert torch.equal(weights, same.state_dict()[name])


def test_what_training_makes_worse_is_not_kept(sets: tuple) -> None:
    train, validation = sets
    network = small_dgn()
    start = copy.deepcopy(network.state_dict())
    reports = fit(network, train, validation, FitConfig(epochs=1, learning_rate=5.0))
    assert reports[0].validation_recall < recall(network, validation)
    for name, weights in start.items():
        assert torch.equal(weights, network.state_dict()[name])


def test_the_baselines_train_with_the_same_loop(sets: tuple) -> None:
    torch.manual_seed(0)
    network = EncoderNetwork((64, 32, 32))
    reports = fit(network, *sets, FitConfig(epochs=3, learning_rate=2e-3))
    assert reports[-1].loss < reports[0].loss
    assert not network.training
