import numpy as np
import pytest

from dgn.errors import InvalidInput
from dgn.evaluation import bootstrap_interval, paired_comparison


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for seed in range(200):
        interval = bootstrap_interval(random.exponential(1.0, 80), seed=seed, resamples=400)
        assert interval.low <= interval.mean <= interval.high
        covered += interval.low <= 1.0 <= interval.high
    assert 0.86 <= covered / 200 <= 0.99


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(0).random(50)
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert str(bootstrap_interval(np.ones(5), seed=0)) == "1.000 [1.000, 1.000]"


def test_a_real_difference_is_seen_and_none_is_not() -> None:
    random = np.random.default_rng(1)
    base = random.random(300)
    better = paired_comparison(base + 0.1 + 0.2 * random.standard_normal(300), base, seed=0)
    assert better.difference.low > 0
    assert better.p_value < 0.01
    assert better.better > better.worse
    same = paired_comparison(base + 0.2 * random.standard_normal(300), base, seed=0)
    assert same.difference.low < 0 < same.difference.high
    assert same.p_value > 0.05
    equal = paired_comparison(base, base, seed=0)
    assert (equal.better, equal.worse, equal.p_value) == (0, 0, 1.0)


def test_p_values_under_no_difference_are_uniform() -> None:
    random = np.random.default_rng(2)
    small = sum(
        paired_comparison(random.random(40), random.random(40), seed=s, resamples=200).p_value < 0.1
        for s in range(200)
    )
    assert 5 <= small <= 36


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ([], [], "values: found shape"),
        ([1.0, np.nan], [1.0, 1.0], "values: found"),
        ([1.0, 2.0], [1.0], "theirs: found 1 values; allowed: 2"),
    ],
)
def test_bad_input_is_named(ours: list[float], theirs: list[float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        paired_comparison(ours, theirs, seed=0)
    with pytest.raises(InvalidInput, match="level: found 2"):
        bootstrap_interval([1.0], seed=0, level=2)
