"""The losses against the equation of the paper, computed in plain Python."""

import math

import pytest
import torch
from torch import Tensor

from dgn.core.functions import FeatureCoverage, Items
from dgn.errors import InvalidInput
from dgn.learn.layers import Unfolded, UnfoldedGreedy
from dgn.learn.losses import (
    LayerwiseCrossEntropy,
    relevance_loss,
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


def test_matched_takes_the_most_probable_remaining_gold() -> None:
    # Layer 1 prefers item 3 (0.2 to 0.1), so item 2 is left for layer 2.
    expected = cross_entropy(LAYERS[0], 3) + cross_entropy(LAYERS[1], 2)
    assert float(loss_of("matched", gold_of([2, 3]))) == pytest.approx(expected)


def test_set_takes_the_probability_of_all_remaining_gold() -> None:
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
def test_ragged_batch_equals_single_sets_and_is_finite(assignment: str, temperature: float) -> None:
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


def test_relevance_with_a_teacher_by_hand() -> None:
    logits = torch.tensor([[1.0, -0.5, 0.2, 9.0]], dtype=torch.float64)
    teacher = torch.tensor([[2.0, torch.nan, -1.0, 0.0]], dtype=torch.float64)
    gold, mask = gold_of([0]), torch.tensor([[True, True, True, False]])

    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    listwise = -math.log(sigmoid(1.0 - math.log(math.exp(-0.5) + math.exp(0.2))))
    for share in (0.0, 0.4):
        wanted = [
            (1 - share) * 0.95 + share * sigmoid(2.0),
            0.05,
            (1 - share) * 0.05 + share * sigmoid(-1.0),
        ]
        pointwise = (
            -sum(
                w * math.log(sigmoid(x)) + (1 - w) * math.log(1 - sigmoid(x))
                for w, x in zip(wanted, logits[0, :3].tolist(), strict=True)
            )
            / 3
        )
        expected = (1 - share) * listwise + (0.3 + share) * pointwise
        found = relevance_loss(logits, gold, mask, teacher, share)
        assert float(found) == pytest.approx(expected)
    plain = relevance_loss(logits, gold, mask)
    assert float(plain) == pytest.approx(float(relevance_loss(logits, gold, mask, teacher, 0.0)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: LayerwiseCrossEntropy("sorted"),
            "assignment must be one of ordered.*; got 'sorted'",
        ),
        (lambda: LayerwiseCrossEntropy("set", "max"), "reduction must be one of mean.*; got 'max'"),
        (
            lambda: loss_of("set", torch.ones(1, 4)),
            "gold must be a tensor of booleans; got dtype torch.float32",
        ),
        (
            lambda: LayerwiseCrossEntropy()(unfolded_of([LAYERS]), torch.ones(2, 4) > 0),
            r"gold must be a tensor of shape \(1, 4\); got shape \(2, 4\)",
        ),
    ],
)
def test_arguments_that_are_not_allowed(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()
