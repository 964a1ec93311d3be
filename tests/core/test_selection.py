"""The results of a search: Certificate, Selection and Selections."""

import math

import numpy as np
import pytest
import torch

from dgn.core import Certificate, Selection, Selections, greedy
from dgn.core.functions import FeatureCoverage
from dgn.core.selection import fractional_knapsack, largest_sum

FEATURES = np.array([[2.0, 0.0], [1.5, 0.1], [0.0, 1.0]])


def selection(indices: tuple[int, ...], gains: tuple[float, ...], bound: float) -> Selection:
    values = tuple(np.cumsum(gains).tolist())
    return Selection(indices, gains, values, Certificate(values[-1] if values else 0.0, bound))


def test_certificate_is_rounded_down() -> None:
    found = greedy(FeatureCoverage(), FEATURES, 2)
    assert str(found.certificate) == "at least 84.9% of the best possible set"
    assert found.certificate.ratio == pytest.approx(0.8491, abs=1e-4)
    assert str(Certificate(0.9999, 1.0)) == "at least 99.9% of the best possible set"


@pytest.mark.parametrize(
    ("value", "bound", "ratio"),
    [(1.0, 2.0, 0.5), (2.0, 2.0, 1.0), (0.0, 0.0, 1.0), (2.0, 1.0, 1.0), (1.0, math.nan, 0.0)],
)
def test_ratio_of_a_certificate(value: float, bound: float, ratio: float) -> None:
    assert Certificate(value, bound).ratio == ratio


def test_selection_as_text() -> None:
    text = str(greedy(FeatureCoverage(), FEATURES, 2))
    assert text == "selected 0 (+1.1), 2 (+0.693): at least 84.9% of the best possible set"


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_stack_pads_and_gives_the_selections_back(library: object) -> None:
    alone = [
        selection((4, 1), (2.0, 1.0), 4.0),
        selection((), (), 0.0),
        selection((3,), (5.0,), 5.0),
    ]
    stacked = Selections.stack(alone, library(np.zeros(1)))
    assert stacked.indices.tolist() == [[4, 1], [-1, -1], [3, -1]]
    assert stacked.gains.tolist() == [[2.0, 1.0], [0.0, 0.0], [5.0, 0.0]]
    assert stacked.values.tolist() == [[2.0, 3.0], [0.0, 0.0], [5.0, 5.0]]
    assert stacked.counts.tolist() == [2, 0, 1]
    assert stacked.ratios.tolist() == [0.75, 1.0, 1.0]
    assert list(stacked) == alone


def test_largest_sum() -> None:
    gains = np.array([[1.0, 5.0, 3.0], [2.0, 0.0, 2.0]])
    assert largest_sum(gains, 2).tolist() == [8.0, 4.0]
    assert largest_sum(gains, 9).tolist() == [9.0, 4.0]


def test_fractional_knapsack_divides_the_last_item() -> None:
    gains, costs = np.array([6.0, 5.0, 1.0]), np.array([2.0, 2.0, 4.0])
    assert fractional_knapsack(gains, costs, 3.0) == 8.5
    assert fractional_knapsack(gains, costs, 100.0) == 12.0


def test_a_bound_that_is_not_a_number_proves_nothing() -> None:
    selections = Selections.of(
        np.array([[0], [0], [0]]),
        np.array([[1.0], [1.0], [0.0]]),
        np.array([[1.0], [1.0], [0.0]]),
        np.array([np.nan, 2.0, 0.0]),
    )
    assert selections.ratios.tolist() == [0.0, 0.5, 1.0]
    assert [one.certificate.ratio for one in selections] == [0.0, 0.5, 1.0]
