"""The theory, against the truth: what greedy promises, and what its certificate promises."""

import math

import numpy as np
import pytest

from dgn.maximizers import exact, greedy
from dgn.objectives import FeatureCoverage, Items
from instances import KINDS, random_instance


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_reaches_its_share_and_the_certificate_never_promises_more(kind: str) -> None:
    worst = 1.0
    for seed in range(400):
        size, k = 4 + seed % 5, 1 + seed % 4
        instance = random_instance(kind, seed, size)
        best = instance.best_value(k)
        picked = greedy(instance.objective, instance.features, k)[0]
        reached = picked.values[-1]
        assert reached >= (1 - 1 / math.e) * best - 1e-12
        assert picked.certificate.bound >= best - 1e-9 * (1 + best)
        assert picked.certificate.ratio * best <= reached + 1e-9 * (1 + best)
        worst = min(worst, reached / best if best else 1.0)
    assert worst < 1.0, "no instance was hard: the test tests nothing"


def test_certificates_of_a_batch_hold_against_the_exact_search() -> None:
    features = np.random.default_rng(3).gamma(0.4, size=(50, 14, 8))
    picked = greedy(FeatureCoverage(), Items(features), 4)
    best = np.array([exact(FeatureCoverage(), one, 4).values[-1] for one in features])
    reached = picked.values[:, -1]
    assert (reached >= (1 - 1 / math.e) * best).all()
    assert (picked.ratios <= reached / best + 1e-12).all()
    assert (picked.bounds >= best - 1e-12).all()
    assert picked.ratios.min() > 1 - 1 / math.e, "the certificate is of no use here"


def test_a_certificate_is_rounded_down_and_says_so() -> None:
    picked = greedy(FeatureCoverage(), np.array([[2.0, 0.0], [1.5, 0.1], [0.0, 1.0]]), 2)[0]
    assert str(picked.certificate) == "at least 84.9% of the best possible set"
    assert picked.certificate.ratio == pytest.approx(0.8491, abs=1e-4)
