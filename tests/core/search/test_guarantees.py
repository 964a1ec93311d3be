"""The guarantees of greedy and of its certificate, against the truth."""

import math

import numpy as np
import pytest

from dgn.core.functions import FeatureCoverage, Items
from dgn.core import exact, greedy, lazy_greedy, stochastic_greedy
from instances import KINDS, random_instance


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_reaches_its_share_and_the_certificate_holds(kind: str) -> None:
    worst = 1.0
    for seed in range(400):
        size, k = 4 + seed % 5, 1 + seed % 4
        instance = random_instance(kind, seed, size)
        best = instance.best_value(k)
        found = greedy(instance.objective, instance.features, k)
        reached = found.values[-1]
        assert reached >= (1 - 1 / math.e) * best - 1e-12
        assert found.certificate.bound >= best - 1e-9 * (1 + best)
        assert found.certificate.ratio * best <= reached + 1e-9 * (1 + best)
        worst = min(worst, reached / best if best else 1.0)
    assert worst < 1.0, "no instance was hard, so that the test shows nothing"


SEARCHES = {
    "lazy": lambda f, x, k: lazy_greedy(f, x, k),
    "stochastic": lambda f, x, k: stochastic_greedy(f, x, k, seed=k),
    "exact": lambda f, x, k: exact(f, x, k),
}


def check_search(search: str, kind: str, seeds: range) -> None:
    """A search against brute force: the certificate holds, and what it says of itself."""
    for seed in seeds:
        size, k = 2 + seed % 7, 1 + seed % 4
        instance = random_instance(kind, seed, size)
        best = instance.best_value(k)
        found = SEARCHES[search](instance.objective, instance.features, k)
        assert len(set(found.indices)) == min(k, size)
        reached = instance.value(found.indices)
        assert found.values[-1] == pytest.approx(reached, rel=1e-9, abs=1e-12)
        assert found.certificate.ratio * best <= reached + 1e-9 * (1 + best)
        if search == "exact":
            assert reached == pytest.approx(best, rel=1e-9, abs=1e-12)
        if search == "lazy":
            assert found.indices == greedy(instance.objective, instance.features, k).indices


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", SEARCHES)
def test_other_searches_against_brute_force(search: str, kind: str) -> None:
    check_search(search, kind, range(120))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", SEARCHES)
def test_other_searches_against_brute_force_many_times(search: str, kind: str) -> None:
    check_search(search, kind, range(1000, 4000))


def test_certificates_of_a_batch_hold_against_exact_search() -> None:
    features = np.random.default_rng(3).gamma(0.4, size=(50, 14, 8))
    found = greedy(FeatureCoverage(), Items(features), 4)
    best = np.array([exact(FeatureCoverage(), one, 4).values[-1] for one in features])
    reached = found.values[:, -1]
    assert (reached >= (1 - 1 / math.e) * best).all()
    assert (found.ratios <= reached / best + 1e-12).all()
    assert (found.bounds >= best - 1e-12).all()
    assert found.ratios.min() > 1 - 1 / math.e, "the certificate says less than the theory"
