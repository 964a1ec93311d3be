"""On a GPU the results are those of the CPU, for every objective; skipped where there is none."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dgn.data.batches import ClaimBatches, Position
from dgn.maximizers import budgeted_greedy, exact, greedy, lazy_greedy, stochastic_greedy
from dgn.objectives import Items
from dgn.training import (
    FitConfig,
    NetworkConfig,
    Trainer,
    build_network,
    find_device,
    placed_on,
)
from dgn.unfolding import (
    DifferentiableGreedyNetwork,
    FeedForwardEncoder,
    LayerwiseCrossEntropy,
    LearnedWeights,
    StraightThrough,
    UnfoldedGreedy,
)
from instances import KINDS, random_instance
from small_features import make_table

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")


def ragged(kind: str, device: str) -> tuple[object, Items]:
    features = np.stack([random_instance(kind, seed, 9).features for seed in range(1, 5)])
    mask = np.arange(9) < np.array([9, 4, 7, 1])[:, None]
    weights = torch.from_numpy(random_instance(kind, 1, 1).weights).to(device)
    items = Items(torch.from_numpy(features).to(device), torch.from_numpy(mask).to(device))
    return KINDS[kind].build(weights), items


@pytest.mark.parametrize("kind", KINDS)
def test_searches_pick_the_same(kind: str) -> None:
    results = []
    for device in ("cpu", "cuda"):
        f, items = ragged(kind, device)
        one = Items(items.features[0])
        batch = greedy(f, items, 4)
        assert batch.indices.device.type == device
        costs = torch.linspace(0.5, 1.5, 9, dtype=torch.float64, device=device)
        results.append(
            [
                *[selection.indices for selection in batch],
                exact(f, one, 4).indices,
                lazy_greedy(f, one, 4).indices,
                stochastic_greedy(f, one, 4, seed=0).indices,
                budgeted_greedy(f, one, costs, 2.0)[0].indices,
            ]
        )
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0.01, 1.0, 100.0])
def test_layers_and_gradients_agree(kind: str, temperature: float) -> None:
    results: list[tuple[Tensor, ...]] = []
    for device in ("cpu", "cuda"):
        f, items = ragged(kind, device)
        features = items.features.clone().requires_grad_()
        unfolded = UnfoldedGreedy(3, temperature)(f, Items(features, items.mask))
        (unfolded.membership.sum() + unfolded.value.sum()).backward()
        assert features.grad is not None
        results.append(tuple(t.cpu() for t in (unfolded.membership, unfolded.value, features.grad)))
    for cpu, gpu in zip(*results, strict=True):
        torch.testing.assert_close(cpu, gpu, rtol=1e-7, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("assignment", ["ordered", "matched", "set"])
def test_a_training_step_waits_for_nothing(assignment: str) -> None:
    network = DifferentiableGreedyNetwork(
        FeedForwardEncoder((16, 16, 16)),
        LearnedWeights(16),
        UnfoldedGreedy(3, 1.0, StraightThrough()),
        LayerwiseCrossEntropy(assignment),
    ).cuda()
    x = torch.randn(8, 9, 16, device="cuda")
    mask = torch.rand(8, 9, device="cuda") < 0.9
    gold = torch.rand(8, 9, device="cuda") < 0.3
    network.loss(x, gold, mask).backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        network.loss(x, gold, mask).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def gpu_trainer(model: str = "dgn", **settings: object) -> Trainer:
    config = FitConfig(**{"epochs": 3, "batch_size": 16, "learning_rate": 1e-2, **settings})
    train, validation = (
        ClaimBatches(make_table(claims, seed), 16, 0, placed_on("cuda"))
        for claims, seed in ((70, 1), (40, 2))
    )
    network = NetworkConfig(model=model, layers=3, dropout=0.1)
    return Trainer(build_network(network, 12, 0).to("cuda"), train, validation, config)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_learns(precision: str) -> None:
    trainer = gpu_trainer(precision=precision, optimizer="adamw", average=0.9, clip=1.0)
    trainer.run()
    assert trainer.reports[-1].loss < trainer.reports[1].loss
    state, values = trainer.state()
    again = gpu_trainer(precision=precision, optimizer="adamw", average=0.9, clip=1.0)
    again.restore(state, values)
    assert again.reports == trainer.reports


def test_devices_by_name() -> None:
    for name in ("auto", "cuda", "cuda:0"):
        assert find_device(name).type == "cuda"


@pytest.mark.parametrize("model", ["dgn", "encoder", "deep-encoder"])
def test_no_step_waits_for_the_gpu(model: str) -> None:
    trainer = gpu_trainer(model, average=0.9, decay_to_start=0.1)
    order = [rows for _, rows in trainer._train.rows_from(Position())]
    for rows in order:
        trainer._step(rows)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for rows in order:
            trainer._step(rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")
