"""The training loop: resuming, validation and the choice of the best epoch."""

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from dgn.data import DenseBatches, Position
from dgn.evaluation.metrics import scores_at
from dgn.learn import EpochReport, FitConfig, RunConfig, Trainer, build_network, fit, select_all
from dgn.learn.families.pooled_table import PooledBatches
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.networks import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    LearnedWeights,
)
from dgn.learn.run import read_checkpoint, write_checkpoint
from dgn.learn.trainer import best_epoch_of
from small_features import dense_batches, make_table

EVERYTHING = FitConfig(
    epochs=3,
    batch_size=16,
    optimizer="adamw",
    learning_rate=1e-2,
    schedule="cosine",
    warmup=3,
    weight_decay=0.1,
    decay_to_start=0.5,
    max_grad_norm=1.0,
    ema_decay=0.9,
    annealing="geometric",
    eval_ks=(1, 3),
)


def make_trainer(config: FitConfig, architecture: str = "dgn", **settings: object) -> Trainer:
    network = {
        "architecture": architecture,
        "dropout": 0.2,
        "layers": 3,
        "seed": config.seed,
        **settings,
    }
    return Trainer(
        build_network(RunConfig().with_settings(network), 12),
        PooledBatches(make_table(70, 1), config.batch_size, config.seed, torch.from_numpy),
        PooledBatches(make_table(40, 2), config.batch_size, config.seed, torch.from_numpy),
        config,
    )


class Stopped(Exception):
    pass


@pytest.mark.parametrize("relaxation", ["softmax", "gumbel"])
def test_run_resumed_at_any_step_is_the_same_bit_for_bit(relaxation: str, tmp_path: Path) -> None:
    undisturbed = make_trainer(EVERYTHING, relaxation=relaxation)
    undisturbed.run()
    steps = EVERYTHING.epochs * undisturbed.steps_per_epoch
    for last in range(1, steps + 1):
        first = make_trainer(EVERYTHING, relaxation=relaxation)
        left = last

        def stop_at_last(trainer: Trainer = first) -> None:
            nonlocal left
            left -= 1
            if not left:
                write_checkpoint(tmp_path / "state", *trainer.state())
                raise Stopped

        with pytest.raises(Stopped):
            first.run(stop_at_last)
        second = make_trainer(EVERYTHING, relaxation=relaxation)
        second.restore(*read_checkpoint(tmp_path / "state"))
        second.run()
        for name, weight in undisturbed.network.state_dict().items():
            assert torch.equal(weight, second.network.state_dict()[name]), (last, name)
        assert [r.loss for r in second.reports] == [r.loss for r in undisturbed.reports]
        assert second.best_epoch == undisturbed.best_epoch


def test_random_numbers_of_the_caller_are_not_used() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    make_trainer(dataclasses.replace(EVERYTHING, epochs=1)).run()
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("architecture", ["dgn", "encoder", "deep-encoder"])
def test_every_architecture_learns_from_either_start(architecture: str) -> None:
    for start in ("random", "identity"):
        config = FitConfig(epochs=6, batch_size=16, learning_rate=1e-2, eval_ks=(1, 3))
        trainer = make_trainer(config, architecture, start=start, dropout=0.0)
        trainer.run()
        first, best = trainer.reports[0], trainer.reports[trainer.best_epoch]
        assert best.recall > first.recall
        assert trainer.reports[-1].loss < trainer.reports[1].loss
        assert not trainer.network.training


def report(epoch: int, *recalls: float) -> EpochReport:
    return EpochReport(epoch, None if epoch == 0 else 1.0, recalls, 0.1, 4.0, 1.0)


@pytest.mark.parametrize(
    ("later", "by_mean", "by_every_k"),
    [
        ([(0.4, 0.9)], 1, 0),
        ([(0.4, 0.9), (0.5, 0.7)], 1, 2),
        ([(0.5, 0.7), (0.5, 0.7)], 1, 1),
        ([(0.5, 0.6)], 0, 0),
        ([(0.4, 0.6)], 0, 0),
    ],
)
def test_best_epoch(later: list[tuple[float, float]], by_mean: int, by_every_k: int) -> None:
    reports = [report(0, 0.5, 0.6), *(report(n, *r) for n, r in enumerate(later, start=1))]
    assert best_epoch_of(reports, "mean") == by_mean
    assert best_epoch_of(reports, "every-k") == by_every_k


def test_patience_stops_a_run_without_an_improvement() -> None:
    config = FitConfig(epochs=50, batch_size=16, learning_rate=1e-9, patience=2, eval_ks=(1, 3))
    trainer = make_trainer(config)
    trainer.run()
    assert trainer.stopped == "no improvement in 2 epochs"
    assert len(trainer.reports) - 1 == trainer.best_epoch + 2


def test_loss_that_is_not_finite_stops_a_run_with_the_best_weights() -> None:
    trainer = make_trainer(FitConfig(epochs=9, batch_size=16, learning_rate=1e30, eval_ks=(1,)))
    trainer.run()
    assert trainer.stopped == "the network is not finite any more; try a lower learning rate"
    assert all(weight.isfinite().all() for weight in trainer.network.parameters())


def test_decay_to_start_keeps_the_weights_near_the_start() -> None:
    free = make_trainer(FitConfig(epochs=2, batch_size=16, eval_ks=(1,)), dropout=0.0)
    held = make_trainer(
        FitConfig(epochs=2, batch_size=16, eval_ks=(1,), decay_to_start=100.0), dropout=0.0
    )
    start = torch.cat([weight.detach().flatten().clone() for weight in free.network.parameters()])

    def distance(trainer: Trainer) -> float:
        trainer.run()
        state, _ = trainer.state()
        now = torch.cat(
            [state[f"network.{name}"].flatten() for name, _ in trainer.network.named_parameters()]
        )
        return float((now - start).norm())

    assert distance(held) < 0.7 * distance(free)


def test_mixed_precision_learns_with_weights_in_float32() -> None:
    config = FitConfig(epochs=4, batch_size=16, precision="bfloat16", learning_rate=1e-2)
    trainer = make_trainer(config, dropout=0.0)
    trainer.run()
    assert trainer.reports[-1].loss < trainer.reports[1].loss
    assert {weight.dtype for weight in trainer.network.parameters()} == {torch.float32}


def test_position_is_the_next_batch() -> None:
    trainer = make_trainer(dataclasses.replace(EVERYTHING, epochs=1))
    seen: list[Position] = []
    trainer.run(lambda: seen.append(trainer.position))
    assert seen == [Position(0, n) for n in range(1, trainer.steps_per_epoch + 1)]
    assert trainer.position == Position(1, 0)


def test_state_contains_the_number_of_threads() -> None:
    trainer = make_trainer(dataclasses.replace(EVERYTHING, epochs=1))
    assert trainer.state()[1]["threads"] == torch.get_num_threads()


def test_report_is_read_as_it_was_written() -> None:
    first = report(1, 0.5, 0.7)
    assert first.recall == pytest.approx(0.6)
    assert EpochReport.from_row(dataclasses.asdict(first) | {"recalls": [0.5, 0.7]}) == first


def identity_dgn() -> DifferentiableGreedyNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = FeatureEncoder(FeedForward((12, 24, 12)), LearnedWeights(12))
    encoder.start_as_identity()
    return DifferentiableGreedyNetwork(encoder, UnfoldedGreedy(4, 2.0))


def recall(network: torch.nn.Module, sets: DenseBatches) -> float:
    indices, gold = select_all(network, sets, 7)
    return sum(scores_at(k, indices, gold).recall for k in (1, 3, 5, 7)) / 4


@pytest.fixture(scope="module")
def sets() -> tuple[DenseBatches, DenseBatches]:
    return tuple(dense_batches(n, seed, 64, torch.from_numpy) for n, seed in ((400, 1), (150, 2)))


def test_fit_improves_on_untrained_greedy_and_is_repeatable(sets: tuple) -> None:
    train, validation = sets
    config = FitConfig(epochs=6, learning_rate=2e-3, temperature=2.0, annealing="geometric")
    seen: list[EpochReport] = []
    one, same = identity_dgn(), identity_dgn()
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


def test_fit_keeps_the_start_if_training_makes_it_worse(sets: tuple) -> None:
    network = identity_dgn()
    start = copy.deepcopy(network.state_dict())
    wrong = dense_batches(400, 1, 64, torch.from_numpy, inverted=True)
    reports = fit(network, wrong, sets[1], FitConfig(epochs=1, learning_rate=0.01))
    assert reports[1].recall < reports[0].recall
    for name, weights in start.items():
        assert torch.equal(weights, network.state_dict()[name])


def test_select_all_keeps_the_order_of_the_queries(sets: tuple) -> None:
    network, validation = identity_dgn().train(), sets[1]
    indices, gold = select_all(network, validation, 3)
    assert network.training
    assert indices.shape == (150, 3)
    row = 17
    batch = validation.batch(np.array([row]))
    assert indices[row].tolist() == network.select(batch.x, batch.mask, 3).indices[0].tolist()
    assert gold[row].tolist() == batch.gold[0].tolist()
