"""On a GPU the results are those of the CPU; skipped where there is no GPU."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dgn.core.functions import (
    Concave,
    FacilityLocation,
    FeatureCoverage,
    Items,
    Log1p,
    Mixture,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    Sqrt,
)
from dgn.core import budgeted_greedy, exact, greedy, lazy_greedy, stochastic_greedy
from dgn.data import Position
from dgn.errors import InvalidInput
from dgn.learn import FitConfig, RunConfig, Trainer, build_network, find_device, to_device
from dgn.learn.families.modules import FacetModule
from dgn.learn.families.pooled_table import PooledBatches
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.learn.networks import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    LearnedWeights,
)
from dgn.learn.relaxations import Relaxation, Softmax, StraightThrough
from dgn.text.facets.formula import FacetSizes
from dgn.text.facets.matching import AXES, Matches
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
def test_searches_select_the_same(kind: str) -> None:
    results = []
    for device in ("cpu", "cuda"):
        f, items = ragged(kind, device)
        one = Items(items.features[0])
        batch = greedy(f, items, 4)
        lazy, best = lazy_greedy(f, items, 4), exact(f, items, 3)
        assert lazy.indices.device.type == best.bounds.device.type == device
        assert batch.indices.device.type == device
        costs = torch.linspace(0.5, 1.5, 9, dtype=torch.float64, device=device)
        results.append(
            [
                *[selection.indices for selection in (*batch, *lazy, *best)],
                exact(f, one, 4).indices,
                lazy_greedy(f, one, 4).indices,
                stochastic_greedy(f, one, 4, seed=0).indices,
                budgeted_greedy(f, one, costs, 2.0, k=2).indices,
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


CONCAVE = [Log1p(), Sqrt(), Power(1.0), Power(0.7), Saturated(0.8), OneMinusExp()]
RELAXATIONS = [Softmax(), StraightThrough()]


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
@pytest.mark.parametrize("concave", CONCAVE, ids=str)
@pytest.mark.parametrize("items", [1, 9, 40, 100])
def test_fused_layers_agree_with_plain_ones(
    concave: Concave, relaxation: Relaxation, items: int
) -> None:
    torch.manual_seed(items)
    features = torch.rand(4, items, 37) * (torch.rand(4, items, 37) > 0.3)
    mask = torch.rand(4, items) > 0.2
    mask[:, 0] = True
    weights, prior = torch.rand(37), torch.rand(4, items)
    results: list[tuple[Tensor, ...]] = []
    for fused in (False, True):
        x, w, p = (one.cuda().requires_grad_() for one in (features, weights, prior))
        layers = UnfoldedGreedy(4, 1.0, relaxation, fused=fused)
        unfolded = layers(FeatureCoverage(w, concave), Items(x, mask.cuda()), prior=p)
        gold = (torch.arange(items) < 2).expand(4, items).cuda() & mask.cuda()
        loss = LayerwiseCrossEntropy()(unfolded, gold) + unfolded.value.sum()
        loss.backward()
        parts = (loss, unfolded.membership, x.grad, w.grad, p.grad)
        results.append(tuple(part.detach().cpu() for part in parts if part is not None))
    for plain, fused in zip(*results, strict=True):
        torch.testing.assert_close(plain, fused, rtol=2e-4, atol=2e-5)


FUNCTIONS = [*(lambda w, c=c: FeatureCoverage(w, c) for c in CONCAVE), FacilityLocation]


@pytest.mark.parametrize("build", [*FUNCTIONS, ProbabilisticCoverage])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_kernel_selects_as_the_cpu_does(build: object, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    features = torch.rand(64, 11, 70).to(dtype)
    features[:, -1] = features[:, 0]
    weights = torch.rand(70)
    ours = greedy(build(weights.cuda()), features.cuda(), 5)
    wanted = greedy(build(weights), features.float(), 5)
    assert (ours.indices.cpu() == wanted.indices).float().mean() > 0.99
    torch.testing.assert_close(ours.values.cpu(), wanted.values, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours.bounds.cpu(), wanted.bounds, rtol=1e-4, atol=1e-4)
    context = build(weights).empty(Items(features.float()))
    mask = torch.rand(64, 11) > 0.3
    mask[:, 0] = True
    f = build(weights.cuda())
    items = Items(features.cuda(), mask.cuda())
    given = greedy(f, items, 5, context=f.empty(items.widened()))
    same = greedy(build(weights), Items(features.float(), mask), 5, context=context)
    assert (given.indices.cpu() == same.indices).float().mean() > 0.98


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_bad_features_are_refused_on_a_gpu(value: float) -> None:
    features = torch.ones(3, 4, 5, device="cuda")
    features[1, 2, 3] = value
    with pytest.raises(InvalidInput, match="features"):
        greedy(FeatureCoverage(), features, 2)


def test_recorded_steps_are_the_steps() -> None:
    losses = []
    for records in (False, True):
        trainer = gpu_trainer(records=records, epochs=6)
        trainer.run()
        losses.append([report.loss for report in trainer.reports[1:]])
    assert losses[0] == pytest.approx(losses[1], rel=2e-2)
    assert losses[1][-1] < losses[1][0]


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("assignment", ["ordered", "matched", "set"])
def test_loss_does_not_wait_for_the_gpu(assignment: str) -> None:
    network = DifferentiableGreedyNetwork(
        FeatureEncoder(FeedForward((16, 16, 16)), LearnedWeights(16)),
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


def gpu_trainer(
    architecture: str = "dgn", *, records: bool | None = None, **settings: object
) -> Trainer:
    config = FitConfig(**{"epochs": 3, "batch_size": 16, "learning_rate": 1e-2, **settings})
    train, validation = (
        PooledBatches(make_table(queries, seed), 16, 0, to_device("cuda"))
        for queries, seed in ((70, 1), (40, 2))
    )
    dropout = 0.1 if records is None else 0.0
    network = RunConfig().with_settings(
        {"architecture": architecture, "layers": 3, "dropout": dropout}
    )
    built = build_network(network, 12).to("cuda")
    return Trainer(built, train, validation, config, records=bool(records))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_learns(precision: str) -> None:
    trainer = gpu_trainer(precision=precision, optimizer="adamw", ema_decay=0.9, max_grad_norm=1.0)
    trainer.run()
    assert trainer.reports[-1].loss < trainer.reports[1].loss
    state, values = trainer.state()
    again = gpu_trainer(precision=precision, optimizer="adamw", ema_decay=0.9, max_grad_norm=1.0)
    again.restore(state, values)
    assert again.reports == trainer.reports


def test_devices_by_name() -> None:
    for name in ("auto", "cuda", "cuda:0"):
        assert find_device(name).type == "cuda"


@pytest.mark.parametrize("architecture", ["dgn", "encoder", "deep-encoder"])
def test_training_step_does_not_wait_for_the_gpu(architecture: str) -> None:
    trainer = gpu_trainer(architecture, ema_decay=0.9, decay_to_start=0.1)
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


def test_coverage_of_a_mixture_is_computed_on_the_gpu() -> None:
    weights, target = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])
    f = FeatureCoverage(weights.cuda(), target=target.cuda())
    mixture = Mixture((f, FacilityLocation()), torch.ones(2).cuda(), (slice(0, 2), slice(2, 3)))
    items = Items(torch.rand(2, 4, 3).cuda())
    state = mixture.add(items, mixture.empty(items), torch.ones(2, 4).cuda())
    shares, counted = mixture.coverage(state)
    assert shares.is_cuda
    assert counted.tolist() == [[1.0, 0.0, 0.0]] * 2
    assert mixture.counted().weights.tolist() == [1.0]


def facet_batch() -> Matches:
    """Random matches: not every machine that has a GPU has a tokenizer."""
    random = np.random.default_rng(0)
    sizes = {"items": 6, "tokens": 5, "dimension": 8}

    def numbers(*shape: int) -> np.ndarray:
        return random.random(shape, dtype=np.float32)

    arrays = {name: numbers(3, *(sizes[axis] for axis in axes)) for name, axes in AXES.items()}
    arrays["query"] = random.integers(0, 20, (3, 5))
    arrays["length"] += 1
    arrays["position"] = np.tile(np.arange(6, dtype=np.float32), (3, 1))
    return Matches(
        vectors=numbers(20, 8),
        facts=numbers(20, 5),
        real=np.arange(5) < np.array([5, 2, 4])[:, None],
        mask=np.arange(6) < np.array([6, 3, 1])[:, None],
        **arrays,
    )


def test_facets_select_and_learn_as_on_the_cpu() -> None:
    gold = torch.from_numpy(np.arange(6) < np.array([2, 1, 1])[:, None])
    found = []
    for device in ("cpu", "cuda"):
        module = FacetModule(FacetSizes(8, 2, 5))
        network = DifferentiableGreedyNetwork(
            module, UnfoldedGreedy(3, 1.0), LayerwiseCrossEntropy("set")
        ).to(device)
        batch = facet_batch().moved(to_device(device))
        loss = network.loss(batch, gold.to(device), batch.mask)
        loss.backward()
        gradients = [p.grad.cpu() for p in network.parameters() if p.grad is not None]
        found.append((loss.item(), gradients, network.select(batch, k=4).indices.cpu()))
    (cpu_loss, cpu_gradients, cpu_chosen), (gpu_loss, gpu_gradients, gpu_chosen) = found
    assert gpu_loss == pytest.approx(cpu_loss, rel=1e-4)
    assert torch.equal(cpu_chosen, gpu_chosen)
    for ours, theirs in zip(cpu_gradients, gpu_gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)


def test_a_negative_zero_does_not_hide_large_features() -> None:
    features = torch.rand(3, 5, 12, generator=torch.Generator().manual_seed(0)) * 40
    features[:, 2, 3] = -0.0
    f = FeatureCoverage(np.ones(12, np.float32))
    wanted, found = greedy(f, features, 3), greedy(f, features.cuda(), 3)
    assert torch.equal(found.indices.cpu(), wanted.indices)
    torch.testing.assert_close(found.gains.cpu(), wanted.gains)
