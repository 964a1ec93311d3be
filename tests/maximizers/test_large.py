"""Lazy and stochastic greedy: the searches of one large ground set."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgn.errors import InvalidInput
from dgn.maximizers import exact, greedy, lazy_greedy, stochastic_greedy
from dgn.objectives import FacilityLocation, FeatureCoverage, Items
from instances import Instance, instances, members


@given(instances(largest=12), st.integers(1, 14), st.sampled_from([0.0, 0.3]))
def test_lazy_picks_what_greedy_picks(instance: Instance, k: int, stop_share: float) -> None:
    lazy = lazy_greedy(instance.objective, instance.features, k, stop_share=stop_share)
    plain = greedy(instance.objective, instance.features, k, stop_share=stop_share)[0]
    assert lazy.values == pytest.approx(plain.values, rel=1e-9, abs=1e-9)
    assert len(set(lazy.indices)) == len(lazy)


def test_lazy_picks_the_same_items_of_many() -> None:
    features = np.random.default_rng(0).gamma(0.3, size=(5000, 16))
    features[2500:] = features[:2500]
    for objective in (FeatureCoverage(), FacilityLocation()):
        lazy = lazy_greedy(objective, features, 40)
        assert lazy.indices == greedy(objective, features, 40)[0].indices


@given(instances(smallest=2), st.integers(1, 4))
def test_the_lazy_certificate_holds(instance: Instance, k: int) -> None:
    lazy = lazy_greedy(instance.objective, instance.features, k)
    assert lazy.certificate.bound >= instance.best_value(k) - 1e-9


def test_lazy_keeps_to_mask_and_context() -> None:
    features = np.random.default_rng(1).random((20, 4))
    mask = np.arange(20) % 2 == 0
    picked = lazy_greedy(FeatureCoverage(), Items(features, mask), 30)
    assert sorted(picked.indices) == list(range(0, 20, 2))
    f, items = FeatureCoverage(), Items(features)
    context = f.add(items, f.empty(items), members((3,), 20))
    assert lazy_greedy(f, items, 5, context=context).indices == (
        greedy(f, items, 5, context=context)[0].indices
    )


def test_stochastic_is_repeatable_and_honest() -> None:
    features = np.random.default_rng(0).gamma(0.3, size=(400, 8))
    one = stochastic_greedy(FeatureCoverage(), features, 10, seed=1)
    assert one == stochastic_greedy(FeatureCoverage(), features, 10, seed=1)
    assert one.indices != stochastic_greedy(FeatureCoverage(), features, 10, seed=2).indices
    assert len(set(one.indices)) == 10
    by_greedy = greedy(FeatureCoverage(), features, 10)[0]
    assert one.values[-1] >= 0.8 * by_greedy.values[-1]
    assert one.certificate.bound >= by_greedy.values[-1]


def test_stochastic_with_the_whole_set_as_its_sample_is_greedy() -> None:
    features = np.random.default_rng(3).random((15, 4))
    picked = stochastic_greedy(FeatureCoverage(), features, 1, seed=0, epsilon=0.01)
    assert picked.indices == greedy(FeatureCoverage(), features, 1)[0].indices
    everything = stochastic_greedy(FeatureCoverage(), features, 40, seed=0)
    assert sorted(everything.indices) == list(range(15))


def test_the_stochastic_certificate_holds_against_the_truth() -> None:
    for seed in range(20):
        features = np.random.default_rng(seed).random((12, 4))
        picked = stochastic_greedy(FeatureCoverage(), features, 3, seed=seed, epsilon=0.5)
        best = exact(FeatureCoverage(), features, 3).values[-1]
        assert picked.certificate.ratio <= picked.values[-1] / best + 1e-12


@pytest.mark.parametrize("search", [lazy_greedy, stochastic_greedy])
def test_torch_picks_what_numpy_picks(search: object) -> None:
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


def test_epsilon_is_a_share() -> None:
    with pytest.raises(InvalidInput, match=r"epsilon: found 0\.0"):
        stochastic_greedy(FeatureCoverage(), np.ones((3, 2)), 2, seed=0, epsilon=0.0)
