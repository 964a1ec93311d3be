import dataclasses

import pytest
import torch

from dgn.data.batches import ClaimBatches, Position
from dgn.training import EpochReport, FitConfig, NetworkConfig, Trainer, build_network
from dgn.training.checkpoint import read_checkpoint, write_checkpoint
from dgn.training.optimization import learning_rate_share
from dgn.training.trainer import best_epoch_of
from small_features import make_table

EVERYTHING = FitConfig(
    epochs=3,
    batch_size=16,
    optimizer="adamw",
    learning_rate=1e-2,
    schedule="cosine",
    warmup=3,
    weight_decay=0.1,
    decay_to_start=0.5,
    clip=1.0,
    average=0.9,
    annealing="geometric",
    judged_at=(1, 3),
)


def make_trainer(config: FitConfig, model: str = "dgn", **settings: object) -> Trainer:
    network = NetworkConfig(**{"model": model, "dropout": 0.2, "layers": 3, **settings})
    return Trainer(
        build_network(network, 12, config.seed),
        ClaimBatches(make_table(70, 1), config.batch_size, config.seed, torch.from_numpy),
        ClaimBatches(make_table(40, 2), config.batch_size, config.seed, torch.from_numpy),
        config,
    )


class Stopped(Exception):
    pass


@pytest.mark.parametrize("relaxation", ["softmax", "gumbel"])
def test_a_run_stopped_at_any_step_goes_on_bit_for_bit(relaxation: str, tmp_path: object) -> None:
    undisturbed = make_trainer(EVERYTHING, relaxation=relaxation)
    undisturbed.run()
    steps = EVERYTHING.epochs * undisturbed.batches_in_an_epoch
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


def test_the_callers_random_numbers_are_left_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    make_trainer(dataclasses.replace(EVERYTHING, epochs=1)).run()
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("model", ["dgn", "encoder", "deep-encoder"])
def test_every_model_learns_from_either_start(model: str) -> None:
    for start in ("random", "identity"):
        config = FitConfig(epochs=6, batch_size=16, learning_rate=1e-2, judged_at=(1, 3))
        trainer = make_trainer(config, model, start=start, dropout=0.0)
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
def test_the_best_epoch(later: list[tuple[float, float]], by_mean: int, by_every_k: int) -> None:
    reports = [report(0, 0.5, 0.6), *(report(n, *r) for n, r in enumerate(later, start=1))]
    assert best_epoch_of(reports, "mean") == by_mean
    assert best_epoch_of(reports, "every-k") == by_every_k


def test_patience_ends_a_run_that_gets_no_better() -> None:
    config = FitConfig(epochs=50, batch_size=16, learning_rate=1e-9, patience=2, judged_at=(1, 3))
    trainer = make_trainer(config)
    trainer.run()
    assert trainer.stopped == "no better epoch in 2"
    assert len(trainer.reports) - 1 == trainer.best_epoch + 2


def test_a_loss_that_is_no_number_ends_a_run_with_the_best_kept() -> None:
    trainer = make_trainer(FitConfig(epochs=9, batch_size=16, learning_rate=1e30, judged_at=(1,)))
    trainer.run()
    assert "lower learning rate" in trainer.stopped
    assert all(weight.isfinite().all() for weight in trainer.network.parameters())


def test_the_learning_rates_shape() -> None:
    constant = FitConfig(warmup=4)
    assert [learning_rate_share(constant, step, 10) for step in (0, 1, 3, 9)] == [0.25, 0.5, 1, 1]
    linear = FitConfig(schedule="linear")
    assert learning_rate_share(linear, 5, 10) == pytest.approx(0.5)
    cosine = FitConfig(schedule="cosine")
    assert learning_rate_share(cosine, 5, 10) == pytest.approx(0.5)
    assert learning_rate_share(cosine, 10, 10) == pytest.approx(0.0)


def test_decay_to_the_start_holds_the_weights_there() -> None:
    free = make_trainer(FitConfig(epochs=2, batch_size=16, judged_at=(1,)), dropout=0.0)
    held = make_trainer(
        FitConfig(epochs=2, batch_size=16, judged_at=(1,), decay_to_start=100.0), dropout=0.0
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


def test_mixed_precision_learns_and_keeps_its_features_in_float32() -> None:
    config = FitConfig(epochs=4, batch_size=16, precision="bfloat16", learning_rate=1e-2)
    trainer = make_trainer(config, dropout=0.0)
    trainer.run()
    assert trainer.reports[-1].loss < trainer.reports[1].loss
    assert {weight.dtype for weight in trainer.network.parameters()} == {torch.float32}


def test_the_position_is_the_next_batch() -> None:
    trainer = make_trainer(dataclasses.replace(EVERYTHING, epochs=1))
    seen: list[Position] = []
    trainer.run(lambda: seen.append(trainer.position))
    assert seen == [Position(0, n) for n in range(1, trainer.batches_in_an_epoch + 1)]
    assert trainer.position == Position(1, 0)
