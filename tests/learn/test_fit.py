"""The trainer: validation, the choice of the best epoch, and one step of learning."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from dgn.errors import InvalidInput
from dgn.evaluation.metrics import scores_at
from dgn.learn.batches import DenseTable
from dgn.learn.fit import EpochReport, FitConfig, Trainer, fit, select_all
from dgn.learn.optimizer import Optimizer
from small_sets import dense_table, identity_network

EVERYTHING = FitConfig(
    epochs=3,
    batch_size=16,
    learning_rate=1e-2,
    schedule="cosine",
    warmup=3,
    weight_decay=0.1,
    decay_to_start=0.5,
    max_grad_norm=1.0,
    ema_decay=0.9,
    temperature=2.0,
    annealing=0.9,
    eval_ks=(1, 3),
)


@pytest.fixture(scope="module")
def sets() -> tuple[DenseTable, DenseTable]:
    return dense_table(400, 1), dense_table(150, 2)


def recall(network: nn.Module, sets: DenseTable) -> float:
    indices, gold = select_all(network, sets, 7)
    return sum(scores_at(k, indices, gold).recall for k in (1, 3, 5, 7)) / 4


def test_fit_improves_on_untrained_greedy_and_is_repeatable(sets: tuple) -> None:
    train, validation = sets
    config = FitConfig(epochs=6, batch_size=64, learning_rate=2e-3, temperature=2.0, annealing=0.9)
    seen: list[EpochReport] = []
    network, same = identity_network(), identity_network()
    untrained = recall(network, validation)
    reports = fit(network, train, config, seen.append, validation=validation)
    assert seen == reports
    assert [report.epoch for report in reports] == list(range(7))
    assert reports[0].loss is None
    assert reports[0].recall == untrained
    assert reports[-1].loss < reports[1].loss
    assert reports[-1].validation_loss < reports[0].validation_loss
    assert recall(network, validation) > untrained + 0.01
    assert recall(network, validation) == pytest.approx(max(r.recall for r in reports))
    assert network.greedy.temperature == pytest.approx(2.0 * 0.9**5)
    assert not network.training
    fit(same, train, config, validation=validation)
    for name, weights in network.state_dict().items():
        assert torch.equal(weights, same.state_dict()[name])


def test_fit_keeps_the_start_if_training_makes_it_worse(sets: tuple) -> None:
    network = identity_network()
    start = copy.deepcopy(network.state_dict())
    wrong = dense_table(400, 1, inverted=True)
    config = FitConfig(epochs=1, batch_size=64, learning_rate=0.01)
    reports = fit(network, wrong, config, validation=sets[1])
    assert reports[1].recall < reports[0].recall
    for name, weights in start.items():
        assert torch.equal(weights, network.state_dict()[name])


def test_without_validation_the_last_weights_are_kept(sets: tuple) -> None:
    network = identity_network()
    reports = fit(network, sets[0], EVERYTHING)
    assert [report.recalls for report in reports] == [()] * 4
    assert math.isnan(reports[-1].recall)
    trained = identity_network()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        trainer = Trainer(trained, sets[0], EVERYTHING)
        losses = [trainer.epoch() for _ in range(3)]
        assert losses == [report.loss for report in reports[1:]]
        with trainer.averaged():
            for name, weights in network.state_dict().items():
                assert torch.equal(weights, trained.state_dict()[name])


def test_a_trainer_continues_from_its_state(sets: tuple) -> None:
    config = replace(EVERYTHING, epochs=4)
    straight, resumed = identity_network(), identity_network()
    for network in (straight, resumed):
        network.encoder.features.dropout.p = 0.0
    whole = Trainer(straight, sets[0], config)
    for _ in range(2):
        whole.epoch()
    state = copy.deepcopy(whole.state_dict())
    other = Trainer(resumed, sets[0], config)
    other.load_state_dict(state)
    assert [whole.epoch() for _ in range(2)] == [other.epoch() for _ in range(2)]
    with whole.averaged(), other.averaged():
        for name, weights in straight.state_dict().items():
            assert torch.equal(weights, resumed.state_dict()[name])


def test_random_numbers_of_the_caller_are_not_used(sets: tuple) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(identity_network(), sets[1], replace(EVERYTHING, epochs=1))
    assert torch.equal(torch.rand(3), expected)


def test_patience_stops_without_an_improvement(sets: tuple) -> None:
    config = FitConfig(epochs=50, batch_size=64, learning_rate=1e-9, patience=2, eval_ks=(1, 3))
    reports = fit(identity_network(), *sets[1:], config, validation=sets[1])
    best = max(reports, key=lambda report: report.recall).epoch
    assert len(reports) - 1 == best + 2


def test_loss_that_is_not_finite_ends_with_the_best_weights(sets: tuple) -> None:
    network = identity_network()
    config = FitConfig(epochs=9, batch_size=16, learning_rate=1e30, eval_ks=(1,))
    reports = fit(network, sets[0], config, validation=sets[1])
    assert len(reports) < 10
    assert all(weight.isfinite().all() for weight in network.parameters())


def test_a_table_without_gold_is_refused() -> None:
    nothing = torch.zeros(3, 4, dtype=torch.bool)
    with pytest.raises(InvalidInput, match="No item of the table is gold"):
        fit(identity_network(), DenseTable(torch.ones(3, 4, 12), nothing), EVERYTHING)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("epochs", 0, "at least 1"),
        ("learning_rate", 0.0, "greater than 0"),
        ("schedule", "step", "one of constant, linear, cosine"),
        ("ema_decay", 1.0, "at least 0 and below 1"),
        ("temperature", math.nan, "greater than 0"),
        ("annealing", 1.5, "greater than 0 and at most 1"),
        ("eval_ks", (), "integers of at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: object, allowed: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be {allowed}"):
        FitConfig(**{name: value})


def test_annealing_ends_at_its_minimum() -> None:
    config = FitConfig(temperature=4.0, annealing=0.5, min_temperature=1.5)
    assert [config.temperature_at(epoch) for epoch in range(4)] == [4.0, 2.0, 1.5, 1.5]


def test_select_all_keeps_the_order_of_the_sets(sets: tuple) -> None:
    network, validation = identity_network().train(), sets[1]
    indices, gold = select_all(network, validation, 3)
    assert network.training
    assert indices.shape == (150, 3)
    batch = validation.batch(np.array([17]))
    network.eval()
    assert indices[17].tolist() == network.select(batch.x, batch.mask, 3).indices[0].tolist()
    assert gold[17].tolist() == batch.gold[0].tolist()


def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(4, 3)


def set_gradients(network: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for weight in network.parameters():
        weight.grad = torch.randn(weight.shape, generator=generator)


def flat(network: nn.Module) -> torch.Tensor:
    return torch.cat([weight.detach().flatten().clone() for weight in network.parameters()])


def test_shape_of_the_learning_rate() -> None:
    for settings, expected in (
        ({"warmup": 4}, [0.25, 0.5, 0.75, 1.0, 1.0]),
        ({"schedule": "linear"}, [1.0, 0.9, 0.8, 0.7, 0.6]),
        ({"schedule": "cosine"}, [0.5 * (1 + math.cos(0.1 * math.pi * n)) for n in range(5)]),
    ):
        network = linear()
        optimizer = Optimizer(network, FitConfig(**settings), total_steps=10)
        shares = []
        for step in range(5):
            shares.append(optimizer.share)
            set_gradients(network, step)
            optimizer.step()
        assert shares == pytest.approx(expected)


def test_groups_have_rates_of_their_own() -> None:
    network = linear()
    groups = [{"params": [network.weight]}, {"params": [network.bias], "lr": 0.0}]
    optimizer = Optimizer(network, FitConfig(learning_rate=0.1), 10, groups)
    weight, bias = network.weight.detach().clone(), network.bias.detach().clone()
    set_gradients(network, 0)
    optimizer.step()
    assert not torch.equal(network.weight, weight)
    assert torch.equal(network.bias, bias)
    assert all(one.grad is None for one in network.parameters())


def test_norm_of_the_gradient_is_limited() -> None:
    network = linear()
    optimizer = Optimizer(network, FitConfig(max_grad_norm=0.5), 10)
    norms: list[float] = []
    optimizer._adam.step = lambda: norms.append(
        float(torch.cat([weight.grad.flatten() for weight in network.parameters()]).norm())
    )
    set_gradients(network, 0)
    optimizer.step()
    assert norms == pytest.approx([0.5], rel=1e-4)


def test_decay_to_start_pulls_the_weights_back() -> None:
    distances = []
    for decay in (0.0, 5.0):
        network = linear()
        start = flat(network)
        config = FitConfig(learning_rate=0.1, decay_to_start=decay)
        optimizer = Optimizer(network, config, 10)
        for step in range(5):
            set_gradients(network, step)
            optimizer.step()
        distances.append(float((flat(network) - start).norm()))
    assert distances[1] < 0.7 * distances[0]


def test_moving_average_is_used_within_its_block() -> None:
    network = linear()
    optimizer = Optimizer(network, FitConfig(learning_rate=0.1, ema_decay=0.5), 10)
    weights = [flat(network)]
    for step in range(2):
        set_gradients(network, step)
        optimizer.step()
        weights.append(flat(network))
    # At first the average is short: its decay is (1 + step) / (10 + step).
    first = weights[1] + 0.1 * (weights[0] - weights[1])
    expected = weights[2] + 2 / 11 * (first - weights[2])
    with optimizer.averaged():
        torch.testing.assert_close(flat(network), expected)
    assert torch.equal(flat(network), weights[2])
