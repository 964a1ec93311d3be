"""Lazy and stochastic greedy: the searches for one large ground set."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgn.errors import InvalidInput
from dgn.maximizers import Selection, Selections, exact, greedy, lazy_greedy, stochastic_greedy
from dgn.objectives import FacilityLocation, FeatureCoverage, Items
from instances import Instance, instances, members


@given(instances(largest=12), st.integers(1, 14), st.sampled_from([0.0, 0.3]))
def test_lazy_selects_the_same_as_greedy(instance: Instance, k: int, stop_share: float) -> None:
    lazy = lazy_greedy(instance.objective, instance.features, k, stop_share=stop_share)
    plain = greedy(instance.objective, instance.features, k, stop_share=stop_share)
    assert lazy.values == pytest.approx(plain.values, rel=1e-9, abs=1e-9)
    assert len(set(lazy.indices)) == len(lazy)


def test_lazy_selects_the_same_as_greedy_from_many_items() -> None:
    features = np.random.default_rng(0).gamma(0.3, size=(5000, 16))
    features[2500:] = features[:2500]
    for objective in (FeatureCoverage(), FacilityLocation()):
        lazy = lazy_greedy(objective, features, 40)
        assert lazy.indices == greedy(objective, features, 40).indices


@given(instances(smallest=2), st.integers(1, 4))
def test_lazy_certificate_holds(instance: Instance, k: int) -> None:
    lazy = lazy_greedy(instance.objective, instance.features, k)
    assert lazy.certificate.bound >= instance.best_value(k) - 1e-9


def test_lazy_respects_mask_and_context() -> None:
    features = np.random.default_rng(1).random((20, 4))
    mask = np.arange(20) % 2 == 0
    found = lazy_greedy(FeatureCoverage(), Items(features, mask), 30)
    assert sorted(found.indices) == list(range(0, 20, 2))
    f, items = FeatureCoverage(), Items(features)
    context = f.add(items, f.empty(items), members((3,), 20))
    assert lazy_greedy(f, items, 5, context=context).indices == (
        greedy(f, items, 5, context=context).indices
    )


def test_stochastic_is_repeatable_and_near_greedy() -> None:
    features = np.random.default_rng(0).gamma(0.3, size=(400, 8))
    one = stochastic_greedy(FeatureCoverage(), features, 10, seed=1)
    assert one == stochastic_greedy(FeatureCoverage(), features, 10, seed=1)
    assert one.indices != stochastic_greedy(FeatureCoverage(), features, 10, seed=2).indices
    assert len(set(one.indices)) == 10
    by_greedy = greedy(FeatureCoverage(), features, 10)
    assert one.values[-1] >= 0.8 * by_greedy.values[-1]
    assert one.certificate.bound >= by_greedy.values[-1]


def test_stochastic_with_a_full_sample_is_greedy() -> None:
    features = np.random.default_rng(3).random((15, 4))
    found = stochastic_greedy(FeatureCoverage(), features, 1, seed=0, epsilon=0.01)
    assert found.indices == greedy(FeatureCoverage(), features, 1).indices
    everything = stochastic_greedy(FeatureCoverage(), features, 40, seed=0)
    assert sorted(everything.indices) == list(range(15))


def test_stochastic_certificate_holds_against_the_truth() -> None:
    for seed in range(20):
        features = np.random.default_rng(seed).random((12, 4))
        found = stochastic_greedy(FeatureCoverage(), features, 3, seed=seed, epsilon=0.5)
        best = exact(FeatureCoverage(), features, 3).values[-1]
        assert found.certificate.ratio <= found.values[-1] / best + 1e-12


@pytest.mark.parametrize("search", [lazy_greedy, stochastic_greedy])
def test_torch_selects_the_same_as_numpy(search: object) -> None:
    features = np.random.default_rng(5).random((60, 6))
    options = {"seed": 0} if search is stochastic_greedy else {}
    ours = search(FeatureCoverage(), features, 8, **options)
    assert search(FeatureCoverage(), torch.from_numpy(features), 8, **options).indices == (
        ours.indices
    )


@pytest.mark.parametrize("search", [lazy_greedy, stochastic_greedy])
def test_memory_stays_linear_in_the_items(search: object) -> None:
    features = np.random.default_rng(0).gamma(0.1, size=(20_000, 64)).astype(np.float32)
    options = {"seed": 0} if search is stochastic_greedy else {}
    tracemalloc.start()
    search(FeatureCoverage(), features, 5, **options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sample = 2.5 * features.nbytes / 5 if search is stochastic_greedy else 0
    assert peak < 20e6 + 4 * sample + 100 * len(features)


def test_epsilon_out_of_range() -> None:
    with pytest.raises(InvalidInput, match=r"epsilon must be a number between 0 and 1; got 0\.0"):
        stochastic_greedy(FeatureCoverage(), np.ones((3, 2)), 2, seed=0, epsilon=0.0)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("search", [lazy_greedy, stochastic_greedy])
def test_batch_equals_single_searches(search: object, library: object) -> None:
    random = np.random.default_rng(8)
    features, weights = random.random((4, 9, 5)), random.random((4, 5))
    mask = random.random((4, 9)) < 0.7
    mask[:, 2] = True
    together = search(FeatureCoverage(library(weights)), Items(library(features), library(mask)), 4)
    assert isinstance(together, Selections)
    assert len(together) == 4
    for row, found in enumerate(together):
        one = Items(library(features[row]), library(mask[row]))
        alone = search(FeatureCoverage(library(weights[row])), one, 4)
        assert isinstance(alone, Selection)
        assert found.indices == alone.indices
        assert found.values == pytest.approx(alone.values, rel=1e-12)
        assert found.certificate.ratio == pytest.approx(alone.certificate.ratio, rel=1e-12)


@pytest.mark.parametrize("search", [lazy_greedy, stochastic_greedy, exact])
def test_batch_with_one_context_per_set(search: object) -> None:
    features = np.random.default_rng(9).random((3, 6, 4))
    f, items = FeatureCoverage(), Items(features)
    context = f.add(items, f.empty(items), np.eye(6)[:3])
    together = search(f, items, 2, context=context)
    for row, found in enumerate(together):
        one = Items(features[row])
        own = f.add(one, f.empty(one), np.eye(6)[row : row + 1])
        assert found.indices == search(f, one, 2, context=own).indices
