"""The losses against the paper's equation, worked out slowly in plain Python."""

import math

import pytest
import torch
from torch import Tensor

from dgn.errors import InvalidInput
from dgn.objectives import FeatureCoverage, Items
from dgn.unfolding import (
    LayerwiseCrossEntropy,
    Unfolded,
    UnfoldedGreedy,
    weighted_binary_cross_entropy,
)


def unfolded_of(probabilities: list[list[list[float]]]) -> Unfolded:
    """[batch, layers, items]."""
    p = torch.tensor(probabilities, dtype=torch.float64)
    nothing = torch.zeros(p.shape[0], p.shape[2], dtype=torch.float64)
    return Unfolded(p.log(), torch.log1p(-p), nothing, nothing[:, 0])


LAYERS = [[0.2, 0.5, 0.1, 0.2], [0.4, 0.1, 0.3, 0.2], [0.1, 0.2, 0.6, 0.1]]


def cross_entropy(p: list[float], label: int) -> float:
    return -sum(math.log(q if i == label else 1 - q) for i, q in enumerate(p))


def gold_of(*rows: list[int]) -> Tensor:
    gold = torch.zeros(len(rows), 4, dtype=torch.bool)
    for row, items in enumerate(rows):
        gold[row, items] = True
    return gold


def loss_of(assignment: str, gold: Tensor, reduction: str = "mean") -> Tensor:
    batch = unfolded_of([LAYERS] * len(gold))
    return LayerwiseCrossEntropy(assignment, reduction)(batch, gold)


def test_ordered_takes_the_gold_by_position() -> None:
    expected = cross_entropy(LAYERS[0], 0) + cross_entropy(LAYERS[1], 2)
    assert float(loss_of("ordered", gold_of([0, 2]))) == pytest.approx(expected)


def test_matched_takes_the_most_probable_gold_that_is_left() -> None:
    # Layer 1 prefers item 3 (.2 against .1), so item 2 is left for layer 2.
    expected = cross_entropy(LAYERS[0], 3) + cross_entropy(LAYERS[1], 2)
    assert float(loss_of("matched", gold_of([2, 3]))) == pytest.approx(expected)


def test_set_takes_the_probability_of_all_that_is_left() -> None:
    expected = -math.log(0.1 + 0.2) - math.log(0.3)
    assert float(loss_of("set", gold_of([2, 3]))) == pytest.approx(expected)


@pytest.mark.parametrize("assignment", ["ordered", "matched", "set"])
def test_one_gold_item_counts_at_the_first_layer_only(assignment: str) -> None:
    expected = -math.log(0.5) if assignment == "set" else cross_entropy(LAYERS[0], 1)
    assert float(loss_of(assignment, gold_of([1]))) == pytest.approx(expected)


@pytest.mark.parametrize("assignment", ["ordered", "matched", "set"])
def test_more_gold_than_layers_counts_every_layer_once(assignment: str) -> None:
    gold = gold_of([0, 1, 2, 3])
    if assignment == "ordered":
        expected = sum(cross_entropy(LAYERS[j], j) for j in range(3))
    elif assignment == "matched":
        expected = sum(cross_entropy(LAYERS[j], label) for j, label in enumerate((1, 0, 2)))
    else:
        expected = -math.log(1.0) - math.log(0.9) - math.log(0.7)
    assert float(loss_of(assignment, gold)) == pytest.approx(expected)


@pytest.mark.parametrize("assignment", ["ordered", "matched", "set"])
def test_reductions_and_sets_without_gold(assignment: str) -> None:
    gold = gold_of([0, 2], [], [1])
    by_set = loss_of(assignment, gold, "none")
    assert by_set.shape == (3,)
    assert float(by_set[1]) == 0
    assert float(loss_of(assignment, gold, "sum")) == pytest.approx(float(by_set.sum()))
    assert float(loss_of(assignment, gold, "mean")) == pytest.approx(float(by_set.sum() / 2))
    assert float(loss_of(assignment, gold_of([]))) == 0


@pytest.mark.parametrize("assignment", ["ordered", "matched", "set"])
@pytest.mark.parametrize("temperature", [0.01, 0.5, 100.0])
def test_ragged_batches_give_what_their_sets_give_alone_and_stay_finite(
    assignment: str, temperature: float
) -> None:
    generator = torch.Generator().manual_seed(1)
    sizes = (5, 1, 3)
    features = torch.rand(3, 5, 4, generator=generator, dtype=torch.float64) * 20
    mask = torch.arange(5) < torch.tensor(sizes)[:, None]
    gold = (torch.rand(3, 5, generator=generator) < 0.6) & mask
    gold[:, 0] = True
    features.requires_grad_()
    layers = UnfoldedGreedy(4, temperature)
    criterion = LayerwiseCrossEntropy(assignment, "none")
    losses = criterion(layers(FeatureCoverage(), Items(features, mask)), gold)
    losses.sum().backward()
    losses = losses.detach()
    assert features.grad is not None
    assert torch.isfinite(losses).all()
    assert torch.isfinite(features.grad).all()
    assert (features.grad[~mask] == 0).all()
    for row, size in enumerate(sizes):
        alone = layers(FeatureCoverage(), Items(features[row, :size].detach()))
        assert float(criterion(alone, gold[row : row + 1, :size])) == pytest.approx(
            float(losses[row]), rel=1e-9, abs=1e-9
        )


def test_matched_is_never_worse_than_ordered_for_two_gold_items_at_the_first_layer() -> None:
    generator = torch.Generator().manual_seed(0)
    items = Items(torch.rand(50, 4, 3, generator=generator))
    unfolded = UnfoldedGreedy(1, 0.5)(FeatureCoverage(), items)
    gold = gold_of(*[[0, 3]] * 50)
    ordered = LayerwiseCrossEntropy("ordered", "none")(unfolded, gold)
    matched = LayerwiseCrossEntropy("matched", "none")(unfolded, gold)
    assert (matched <= ordered + 1e-6).all()
    assert (matched < ordered - 1e-3).any()


def test_weighted_binary_cross_entropy_by_hand() -> None:
    scores = torch.tensor([[0.0, 2.0, 5.0]])
    gold = torch.tensor([[True, False, False]])
    mask = torch.tensor([[True, True, False]])
    negative = math.log(1 + math.exp(2.0))
    expected = (3.0 * math.log(2.0) + negative) / 2
    assert float(weighted_binary_cross_entropy(scores, gold, mask, 3.0)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LayerwiseCrossEntropy("sorted"), "assignment: found 'sorted'; allowed: ordered"),
        (lambda: LayerwiseCrossEntropy("set", "max"), "reduction: found 'max'; allowed: mean"),
        (lambda: loss_of("set", torch.ones(1, 4)), "gold: found dtype torch.float32"),
        (
            lambda: LayerwiseCrossEntropy()(unfolded_of([LAYERS]), torch.ones(2, 4) > 0),
            r"gold: found shape \(2, 4\); allowed: \(1, 4\)",
        ),
    ],
)
def test_bad_input_is_named(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()
