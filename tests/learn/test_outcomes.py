"""Learning from outcomes: the whole path is differentiable, and nothing else reaches the reader."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from dgn.core.functions import FeatureCoverage, Items, SetFunction
from dgn.errors import InvalidInput
from dgn.learn import (
    DifferentiableGreedyNetwork,
    EvidenceReader,
    Fixed,
    OutcomeConfig,
    OutcomeNetwork,
    Outcomes,
    StraightThrough,
    UnfoldedGreedy,
    fit_outcomes,
    measure_outcomes,
    outcome_losses,
)


class Smooth(nn.Module):
    """An encoder without corners, for derivatives by differences."""

    def __init__(self, inputs: int = 3, features: int = 4) -> None:
        super().__init__()
        self.map = nn.Linear(inputs, features)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[SetFunction, Items]:
        features = nn.functional.softplus(self.map(x))
        return FeatureCoverage(torch.ones(features.shape[2], dtype=x.dtype)), Items(features, mask)


def network_of(classes: int = 2, k: int = 2, whole: float = 1.0) -> OutcomeNetwork:
    torch.manual_seed(0)
    selector = DifferentiableGreedyNetwork(Smooth(), UnfoldedGreedy(k, 0.3))
    network = OutcomeNetwork(selector, EvidenceReader(5, 2, classes, hidden=8), k, whole=whole)
    return network.double()


def outcomes_of(queries: int = 6, items: int = 7, seed: int = 1) -> Outcomes:
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, items + 1, (queries, 1), generator=random)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    return Outcomes(
        x=normal(queries, items, 3),
        passages=normal(queries, items, 5),
        query=normal(queries, 2),
        mask=torch.arange(items) < lengths,
        outcome=torch.randint(0, 2, (queries,), generator=random),
    )


@pytest.mark.parametrize("classes", [1, 2])
def test_gradient_of_the_whole_path(classes: int) -> None:
    network, data = network_of(classes, whole=0.0), outcomes_of(2, 4)
    if classes == 1:
        data = replace(data, outcome=torch.tensor([0.3, 1.0], dtype=torch.float64))
    weight = network.get_parameter("selector.encoder.map.weight")

    def loss(x: Tensor, changed: Tensor) -> Tensor:
        names = {"selector.encoder.map.weight": changed}
        return torch.func.functional_call(
            Loss(network), {f"network.{n}": w for n, w in names.items()}, (replace(data, x=x),)
        )

    assert torch.autograd.gradcheck(loss, (data.x.requires_grad_(), weight))


class Loss(nn.Module):
    def __init__(self, network: OutcomeNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, data: Outcomes) -> Tensor:
        return self.network.loss(data)


def test_the_gradient_reaches_the_features_of_every_passage() -> None:
    network, data = network_of(), outcomes_of()
    data.x.requires_grad_()
    network.loss(data).backward()
    assert ((data.x.grad.abs().sum(dim=2) > 0) == data.mask).all()


def test_the_reader_learns_from_whole_passages_without_a_gradient_to_the_selector() -> None:
    network, data = network_of(), outcomes_of()
    outcome_losses(network.predict(data), data.outcome).mean().backward()
    assert network.get_parameter("selector.encoder.map.weight").grad is None
    assert network.get_parameter("reader.read.0.weight").grad is not None


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_prediction_depends_on_selected_passages_alone(k: int) -> None:
    network, data = network_of().eval(), outcomes_of()
    selected = network.select(data.x, data.mask, k)
    inside = torch.zeros_like(data.mask)
    for row, own in enumerate(selected.indices):
        inside[row, own[own >= 0]] = True
    changed = torch.where(inside[..., None], data.passages, torch.nan)
    other = network.predict(replace(data, passages=changed), k)
    assert torch.equal(other, network.predict(data, k))
    seen = torch.where(inside[..., None], data.passages + 1, data.passages)
    assert not torch.allclose(network.predict(replace(data, passages=seen), k), other)


def test_straight_through_layers_show_the_reader_whole_passages_only() -> None:
    network, data = network_of(), outcomes_of()
    network.selector.greedy.layer.relaxation = StraightThrough()  # pyright: ignore
    soft = network.selector.membership(data.x, data.mask)
    torch.testing.assert_close(network.read(data, soft), network.predict(data))
    network.loss(data).backward()
    assert network.get_parameter("selector.encoder.map.weight").grad.abs().sum() > 0


def test_padding_does_not_change_the_loss() -> None:
    network, data = network_of(), outcomes_of()

    def padded(values: Tensor) -> Tensor:
        room = torch.full((len(values), 3, *values.shape[2:]), torch.nan, dtype=values.dtype)
        return torch.cat([values, room], dim=1)

    mask = torch.cat([data.mask, torch.zeros(len(data), 3, dtype=torch.bool)], dim=1)
    x = torch.cat([data.x, torch.zeros(len(data), 3, 3, dtype=data.x.dtype)], dim=1)
    wide = replace(data, x=x, passages=padded(data.passages), mask=mask)
    torch.testing.assert_close(network.loss(wide), network.loss(data))
    network.loss(wide).backward()
    assert all(bool(w.grad.isfinite().all()) for w in network.parameters() if w.grad is not None)
    torch.testing.assert_close(network.predict(wide.rows(torch.arange(6))), network.predict(data))


def test_the_batch_and_the_order_of_passages_do_not_change_the_loss() -> None:
    network, data = network_of(), outcomes_of()
    alone = [network.loss(data.rows(torch.tensor([row]))) for row in range(len(data))]
    torch.testing.assert_close(torch.stack(alone).mean(), network.loss(data))
    order = torch.stack([torch.randperm(7) for _ in range(len(data))])

    def turned(values: Tensor) -> Tensor:
        return values[torch.arange(len(data))[:, None], order]

    other = replace(data, x=turned(data.x), passages=turned(data.passages), mask=turned(data.mask))
    torch.testing.assert_close(network.loss(other), network.loss(data))


def test_batches_have_every_query_once() -> None:
    data = outcomes_of(23)
    for random in (None, torch.Generator().manual_seed(0)):
        rows = torch.cat([rows for rows, _ in data.batches(4, random)])
        assert sorted(rows.tolist()) == list(range(23))
    (first, batch), *_ = data.batches(4)
    assert batch.mask.shape[1] == int(data.mask[first].sum(dim=1).max())


def easy_outcomes(queries: int, seed: int) -> Outcomes:
    """One of six passages knows the outcome; its first input says which, among loud others."""
    random = torch.Generator().manual_seed(seed)
    outcome = torch.randint(0, 2, (queries,), generator=random)
    knows = torch.randint(0, 6, (queries,), generator=random)
    x = torch.rand(queries, 6, 3, generator=random)
    side = torch.randint(0, 2, (queries, 6), generator=random) * 2.0 - 1
    rows = torch.arange(queries)
    x[..., 0] = 0
    x[rows, knows, 0] = 1.0
    side[rows, knows] = outcome * 2.0 - 1
    mask = torch.ones(queries, 6, dtype=torch.bool)
    gold = torch.zeros_like(mask)
    gold[rows, knows] = True
    return Outcomes(x, side[..., None], torch.zeros(queries, 0), mask, outcome, gold)


def test_outcomes_teach_which_passage_knows() -> None:
    torch.manual_seed(0)
    train, validation = easy_outcomes(400, 1), easy_outcomes(200, 2)
    network = OutcomeNetwork(
        DifferentiableGreedyNetwork(Smooth(), UnfoldedGreedy(1)), EvidenceReader(1, hidden=8), 1
    )

    def found() -> float:
        chosen = network.select(validation.x, validation.mask).indices[:, 0]
        return float(validation.gold[torch.arange(200), chosen].float().mean())

    before = found()
    config = OutcomeConfig(
        10, 1, 0.03, 0.01, temperatures=Fixed(0.3), batch_size=50, stay_near=1e-4
    )
    reports = fit_outcomes(network, train, validation, config)
    assert before < 0.5 < 0.95 < found()
    assert reports[-1].loss < 0.5 * reports[0].loss
    best = min(report.validation_loss for report in reports)
    assert measure_outcomes(network, validation)[0] == pytest.approx(best)
    assert [report.learns_to_select for report in reports] == [False] + [True] * 10


def test_the_reader_alone_and_a_heavy_anchor_leave_the_selector_where_it_is() -> None:
    data = easy_outcomes(60, 3)
    for config in (
        OutcomeConfig(0, 2, 0.1),
        OutcomeConfig(3, 0, 1e-3, stay_near=1e6, temperatures=Fixed(1.0)),
    ):
        torch.manual_seed(0)
        network = OutcomeNetwork(
            DifferentiableGreedyNetwork(Smooth(), UnfoldedGreedy(1)), EvidenceReader(1), 1
        )
        start = [weight.detach().clone() for weight in network.selector.parameters()]
        fit_outcomes(network, data, data, config)
        for now, then in zip(network.selector.parameters(), start, strict=True):
            torch.testing.assert_close(now, then, atol=2e-3, rtol=0)


def test_something_else_may_choose_the_best_epoch() -> None:
    data, states = easy_outcomes(60, 3), list[Tensor]()
    network = network_of(k=1).float()
    network = OutcomeNetwork(network.selector, EvidenceReader(1), 1)

    def third_epoch_is_best() -> float:
        states.append(network.get_parameter("reader.read.0.weight").detach().clone())
        return 0.0 if len(states) == 3 else 1.0

    fit_outcomes(network, data, data, OutcomeConfig(4, 1), validate=third_epoch_is_best)
    assert torch.equal(network.get_parameter("reader.read.0.weight"), states[2])


def test_training_is_repeatable_and_leaves_the_random_numbers_of_the_caller_alone() -> None:
    data = easy_outcomes(60, 3)
    states: list[Tensor] = []
    torch.manual_seed(5)
    before = torch.get_rng_state()
    for _ in range(2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = OutcomeNetwork(
                DifferentiableGreedyNetwork(Smooth(), UnfoldedGreedy(1)),
                EvidenceReader(1, dropout=0.3),
                1,
            )
        fit_outcomes(network, data, data, OutcomeConfig(2, 1))
        states.append(network.get_parameter("selector.encoder.map.weight").detach().clone())
    assert torch.equal(*states)
    assert torch.equal(before, torch.get_rng_state())


def test_shapes_that_do_not_fit_are_refused() -> None:
    data = outcomes_of()
    with pytest.raises(InvalidInput, match="passages must be of shape"):
        replace(data, passages=data.passages[:, :3])
    with pytest.raises(InvalidInput, match="outcome must be one for each of the 6 queries"):
        replace(data, outcome=data.outcome[:2])
    with pytest.raises(InvalidInput, match="batch_size"):
        OutcomeConfig(batch_size=0)
