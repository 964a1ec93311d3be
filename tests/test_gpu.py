"""On a GPU the results are those of the CPU, for every objective; skipped where there is none."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dgn.data.batches import ClaimBatches, Position
from dgn.encoders import FacetSizes, Matches, WordTable
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
from dgn.training.facet_network import FacetNetwork
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


def facet_batch() -> Matches:
    """Matches of chance: there is no tokenizer on every machine that has a GPU."""
    random = np.random.default_rng(0)
    pair, item = (3, 6, 5), (3, 6)

    def numbers(*shape: int) -> np.ndarray:
        return random.random(shape, dtype=np.float32)

    arrays = {name: numbers(*pair) for name in ("cosine", "exact", "pair", "title")}
    arrays |= {name: numbers(*item) for name in ("likeness", "page_size", "follows")}
    return Matches(
        WordTable(numbers(20, 8), numbers(20, 4)),
        claim=random.integers(0, 20, (3, 5)),
        real=np.arange(5) < np.array([5, 2, 4])[:, None],
        mask=np.arange(6) < np.array([6, 3, 1])[:, None],
        matched=random.integers(0, 20, pair),
        length=numbers(*item) + 1,
        place=np.tile(np.arange(6, dtype=np.float32), (3, 1)),
        **arrays,
    )


def test_facets_pick_and_learn_as_on_the_cpu() -> None:
    gold = torch.from_numpy(np.arange(6) < np.array([2, 1, 1])[:, None])
    found = []
    for device in ("cpu", "cuda"):
        network = FacetNetwork(FacetSizes(8, 2, 3, 4, 5), UnfoldedGreedy(3, 1.0)).to(device)
        batch = facet_batch().placed(placed_on(device))
        loss = network.loss(batch, gold.to(device), batch.mask)
        loss.backward()
        gradients = [p.grad.cpu() for p in network.parameters() if p.grad is not None]
        found.append((loss.item(), gradients, network.select(batch, k=4).indices.cpu()))
    (cpu_loss, cpu_gradients, cpu_picks), (gpu_loss, gpu_gradients, gpu_picks) = found
    assert gpu_loss == pytest.approx(cpu_loss, rel=1e-4)
    assert torch.equal(cpu_picks, gpu_picks)
    for ours, theirs in zip(cpu_gradients, gpu_gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)
