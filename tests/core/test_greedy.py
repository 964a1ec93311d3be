"""Greedy and top-k: what is selected, and the guarantees of greedy and of its certificate."""

import math

import numpy as np
import pytest
import torch

from compiled import needs_kernels
from dgn.core import greedy, lazy_greedy, top_k
from dgn.core.functions import FeatureCoverage, Items
from dgn.errors import InvalidInput
from instances import KINDS, PAIRS, Instance, random_instance, random_matrix, subsets


def greedy_by_definition(instance: Instance, k: int) -> list[int]:
    chosen: list[int] = []
    while len(chosen) < min(k, instance.size):
        values = {
            item: instance.value((*chosen, item))
            for item in range(instance.size)
            if item not in chosen
        }
        best = max(values.values())
        chosen.append(min(item for item, value in values.items() if value >= best - 1e-12))
    return chosen


def check_guarantees(kind: str, seeds: range) -> float:
    """Greedy and lazy greedy against brute force; returns the smallest share that was reached."""
    worst = 1.0
    for seed in seeds:
        size, k = 2 + seed % 7, 1 + seed % 4
        instance = random_instance(kind, seed, size)
        best = instance.best_value(k)
        slack = 1e-9 * (1 + best)
        found = greedy(instance.objective, instance.features, k)
        lazy = lazy_greedy(instance.objective, instance.features, k)
        assert found.indices == lazy.indices == tuple(greedy_by_definition(instance, k))
        for one in (found, lazy):
            assert one.values[-1] == pytest.approx(instance.value(one.indices), abs=slack)
            assert one.values[-1] >= (1 - 1 / math.e) * best - 1e-12
            assert one.certificate.bound >= best - slack
            assert one.certificate.ratio * best <= one.values[-1] + slack
        worst = min(worst, found.values[-1] / best if best else 1.0)
    return worst


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_reaches_its_share_and_the_certificate_holds(kind: str) -> None:
    assert check_guarantees(kind, range(100)) < 1.0, "no instance was hard"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_reaches_its_share_many_times(kind: str) -> None:
    check_guarantees(kind, range(1000, 4000))


@pytest.mark.parametrize("kind", PAIRS)
def test_functions_of_a_matrix_reach_their_share(kind: str) -> None:
    f, sets = PAIRS[kind].function, subsets(7)
    for seed in range(40):
        matrix, k = random_matrix(seed, 7), 1 + seed % 4
        values = PAIRS[kind].define(matrix, sets)
        best = values[sets.sum(axis=1) == k].max()
        found = greedy(f, matrix, k)
        reached = values[(sets == np.isin(np.arange(7), found.indices)).all(axis=1)].item()
        assert found.values[-1] == pytest.approx(reached)
        assert reached >= (1 - 1 / math.e) * best
        assert found.certificate.ratio * best <= reached * (1 + 1e-12)
        assert lazy_greedy(f, matrix, k).indices == found.indices


def test_certificates_of_a_batch_hold_against_the_best_sets() -> None:
    features = np.random.default_rng(3).gamma(0.4, size=(50, 12, 8))
    found = greedy(FeatureCoverage(), Items(features), 4)
    best = np.array([Instance("log1p", one, np.ones(8)).best_value(4) for one in features])
    reached = found.values[:, -1]
    assert (reached >= (1 - 1 / math.e) * best).all()
    assert (found.ratios <= reached / best + 1e-12).all()
    assert (found.bounds >= best - 1e-12).all()
    assert found.ratios.min() > 1 - 1 / math.e, "the certificate says less than the theory"


def test_torch_selects_the_same_as_numpy() -> None:
    features = np.random.default_rng(1).random((4, 12, 6)).astype(np.float32)
    ours = greedy(FeatureCoverage(), features, 5)
    theirs = greedy(FeatureCoverage(), torch.from_numpy(features), 5)
    assert ours.indices.tolist() == theirs.indices.tolist()
    np.testing.assert_allclose(ours.gains, theirs.gains, rtol=1e-5)
    np.testing.assert_allclose(ours.bounds, theirs.bounds, rtol=1e-5)


def test_k_or_a_budget_is_needed() -> None:
    with pytest.raises(InvalidInput, match="Pass k, or costs and a budget"):
        greedy(FeatureCoverage(), np.ones((3, 2)))


@needs_kernels
def test_a_sparse_matrix_belongs_to_lazy_greedy() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rows = sparse.csr_array(np.eye(3))
    with pytest.raises(InvalidInput, match="a sparse matrix, which lazy_greedy searches"):
        greedy(FeatureCoverage(), rows, 2)
    assert lazy_greedy(FeatureCoverage(), rows, 2).indices == (0, 1)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_top_k_selects_the_largest_scores_and_the_lowest_index_first(library: object) -> None:
    scores = library(np.array([[0.1, 0.9, -0.5, 0.9], [3.0, 1.0, 2.0, 9.0]]))
    mask = library(np.array([[True] * 4, [True, True, False, False]]))
    found = top_k(scores, 3, mask)
    assert found[0].indices == (1, 3, 0)
    assert found[1].indices == (0, 1)
    assert found[0].gains == pytest.approx([0.9, 0.9, 0.1])
    assert found[0].certificate.ratio == 1.0


def test_top_k_of_a_single_set_with_a_large_k() -> None:
    assert top_k(np.array([1.0, 2.0]), 5).indices == (1, 0)


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InvalidInput, match="scores must be finite numbers; got a NaN"):
        top_k(np.array([1.0, np.nan]), 1)
