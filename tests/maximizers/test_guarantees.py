"""The guarantees of greedy and of its certificate, against the truth."""

import math

import numpy as np
import pytest

from dgn.maximizers import exact, greedy
from dgn.objectives import FeatureCoverage, Items
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


def test_certificates_of_a_batch_hold_against_exact_search() -> None:
    features = np.random.default_rng(3).gamma(0.4, size=(50, 14, 8))
    found = greedy(FeatureCoverage(), Items(features), 4)
    best = np.array([exact(FeatureCoverage(), one, 4).values[-1] for one in features])
    reached = found.values[:, -1]
    assert (reached >= (1 - 1 / math.e) * best).all()
    assert (found.ratios <= reached / best + 1e-12).all()
    assert (found.bounds >= best - 1e-12).all()
    assert found.ratios.min() > 1 - 1 / math.e, "the certificate says less than the theory"
