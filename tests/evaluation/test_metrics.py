"""Recall and precision, and intervals."""

import numpy as np
import pytest

from dgn.errors import InvalidInput
from dgn.evaluation.metrics import (
    bootstrap_interval,
    hits_at,
    holm_p_values,
    paired_comparison,
    scores_at,
)

GOLD = np.array([[True, False, True, False], [False, True, False, False], [False] * 4])
SELECTED = np.array([[0, 1, 2], [3, 1, -1], [0, 1, 2]])


@pytest.mark.parametrize(
    ("k", "recall", "precision"),
    [(1, (1 / 2 + 0) / 2, (1 + 0) / 2), (2, (1 / 2 + 1) / 2, 1 / 2), (3, 1.0, (2 / 3 + 1 / 2) / 2)],
)
def test_scores_by_hand(k: int, recall: float, precision: float) -> None:
    scores = scores_at(k, SELECTED, GOLD)
    assert scores.recall == pytest.approx(recall)
    assert scores.precision == pytest.approx(precision)
    assert scores.f1 == pytest.approx(2 * recall * precision / (recall + precision))


def test_f1_without_a_hit_is_zero() -> None:
    assert scores_at(1, np.array([[1]]), np.array([[True, False]])).f1 == 0.0


def test_data_without_gold_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="No set has a gold item; there is nothing to find"):
        scores_at(1, SELECTED[:1], np.zeros((1, 4), dtype=bool))
    with pytest.raises(InvalidInput, match="k must be at least 1; got 0"):
        scores_at(0, SELECTED, GOLD)


def test_micro_counts_sentences_and_macro_counts_queries() -> None:
    hits = hits_at(2, SELECTED, GOLD)
    assert hits.recalls.tolist() == [0.5, 1.0]
    assert hits.micro.recall == pytest.approx(2 / 3)
    assert hits.micro.precision == pytest.approx(2 / 4)
    assert hits.macro.recall == pytest.approx(3 / 4)


def test_hits_are_counted_per_query_with_gold() -> None:
    hits = hits_at(3, SELECTED, GOLD)
    assert hits.hits.tolist() == [2, 1]
    assert hits.wanted.tolist() == [2, 1]
    assert hits.selected.tolist() == [3, 2]


def test_missing_gold_counts_as_not_found() -> None:
    hits = hits_at(3, SELECTED, GOLD, missing=np.array([2, 0, 1]))
    assert hits.wanted.tolist() == [4, 1, 1]
    assert hits.recalls.tolist() == [0.5, 1.0, 0.0]


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for seed in range(200):
        interval = bootstrap_interval(random.exponential(1.0, 80), seed=seed, resamples=400)
        assert interval.low <= interval.mean <= interval.high
        covered += interval.low <= 1.0 <= interval.high
    assert 0.86 <= covered / 200 <= 0.99


def test_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(0).random(50)
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert str(bootstrap_interval(np.ones(5), seed=0)) == "1.000 [1.000, 1.000]"


def test_paired_comparison_sees_a_difference_and_no_difference() -> None:
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


def test_p_values_without_a_difference_are_uniform() -> None:
    random = np.random.default_rng(2)
    small = sum(
        paired_comparison(random.random(40), random.random(40), seed=s, resamples=200).p_value < 0.1
        for s in range(200)
    )
    assert 5 <= small <= 36


def test_one_row_of_seeds_is_the_same_as_none() -> None:
    random = np.random.default_rng(0)
    ours, theirs = random.random(50), random.random(50)
    assert paired_comparison(ours[None], theirs, seed=4) == paired_comparison(ours, theirs, seed=4)


def test_seeds_that_agree_change_nothing_and_seeds_that_differ_do() -> None:
    random = np.random.default_rng(0)
    theirs = random.random(400)
    ours = theirs + 0.05 + 0.1 * random.standard_normal(400)
    alike, apart = (
        paired_comparison(ours + np.array([[-a], [0.0], [a]]), theirs, seed=0) for a in (0.0, 0.2)
    )
    assert alike.p_value < 0.01 < 0.5 < apart.p_value
    assert apart.difference.mean == pytest.approx(alike.difference.mean)
    assert apart.difference.low < 0 < alike.difference.low


def test_error_of_seeds_is_that_of_a_t_test() -> None:
    """Where queries do not differ, only seeds are left: Welch's test for equal numbers of seeds."""
    stats = pytest.importorskip("scipy.stats")
    by_seed = np.random.default_rng(3).normal(0.3, 0.3, size=(6, 1))
    ours, theirs = np.repeat(by_seed, 4, axis=1), np.zeros(4)
    found = paired_comparison(ours, theirs, seed=0, resamples=20_000)
    low, high = stats.t.interval(0.95, 5, by_seed.mean(), stats.sem(by_seed[:, 0]))
    # The interval has no part of the queries here: every resample of them has the same mean.
    assert found.difference.low == pytest.approx(low, abs=0.02)
    assert found.difference.high == pytest.approx(high, abs=0.02)


def null_differences(
    random: np.random.Generator, seeds: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two methods that are equally good, by seed, and one without randomness, on 60 queries."""
    queries = random.random(60)

    def method(rows: int) -> np.ndarray:
        luck = 0.03 * random.standard_normal((rows, 1))
        return queries + luck + 0.1 * random.standard_normal((rows, 60))

    return method(seeds), method(seeds), queries + 0.1 * random.standard_normal(60)


def test_wrong_alarms_over_seeds_and_queries_are_as_rare_as_promised() -> None:
    random = np.random.default_rng(5)
    alarms = np.zeros(3)
    trials = 300
    for trial in range(trials):
        ours, theirs, fixed = null_differences(random, seeds=5)
        pairs = [(ours, theirs), (ours, fixed), (ours.mean(axis=0), theirs.mean(axis=0))]
        alarms += [
            paired_comparison(*pair, seed=trial, resamples=400).p_value < 0.05 for pair in pairs
        ]
    both, one, of_these_models = alarms / trials
    # 300 trials of a test with 5%: fewer than 9% with a probability of .999
    assert both < 0.09
    assert one < 0.09
    # Models that are averaged and taken as they are differ, though their methods do not.
    assert of_these_models > 0.2


def test_a_difference_over_seeds_is_found() -> None:
    random = np.random.default_rng(6)
    ours, theirs, _ = null_differences(random, seeds=5)
    found = paired_comparison(ours + 0.2, theirs, seed=0)
    assert found.p_value < 0.01
    assert found.difference.low < 0.2 < found.difference.high


def test_order_of_seeds_and_of_queries_does_not_matter() -> None:
    random = np.random.default_rng(7)
    ours, theirs, _ = null_differences(random, seeds=4)
    ours += 0.04
    before = paired_comparison(ours, theirs, seed=0, resamples=20_000)
    columns = random.permutation(60)
    after = paired_comparison(
        ours[::-1, columns], theirs[[2, 0, 3, 1]][:, columns], seed=0, resamples=20_000
    )
    assert after.difference.mean == pytest.approx(before.difference.mean)
    assert (after.better, after.worse) == (before.better, before.worse)
    assert after.p_value == pytest.approx(before.p_value, abs=0.015)


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        # As p.adjust(…, "holm") of R and multipletests(…, method="holm") of statsmodels do.
        ([0.01, 0.02, 0.03, 0.04], [0.04, 0.06, 0.06, 0.06]),
        ([0.04, 0.01, 0.03, 0.02], [0.06, 0.04, 0.06, 0.06]),
        ([0.005, 0.011, 0.02, 0.04, 0.13], [0.025, 0.044, 0.06, 0.08, 0.13]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([[0.01], [0.01]], [[0.02], [0.02]]),
        ([], []),
    ],
)
def test_correction_by_hand(p_values: list, corrected: list) -> None:
    np.testing.assert_allclose(holm_p_values(p_values), corrected)


def test_correction_is_that_of_its_definition() -> None:
    """Holm rejects, from the smallest on, while p ≤ level / (tests left)."""
    random = np.random.default_rng(8)
    for _ in range(50):
        p_values = random.random(7) ** 3
        for level in (0.01, 0.05, 0.2):
            rejected = np.zeros(7, dtype=bool)
            for done, place in enumerate(np.argsort(p_values)):
                if p_values[place] > level / (7 - done):
                    break
                rejected[place] = True
            assert ((holm_p_values(p_values) <= level) == rejected).all()


def test_wrong_alarms_in_a_table_are_as_rare_as_promised() -> None:
    random = np.random.default_rng(9)
    tables = random.random((2000, 12))
    plain = (tables < 0.05).any(axis=1).mean()
    corrected = np.array([(holm_p_values(one) < 0.05).any() for one in tables]).mean()
    assert plain > 0.4
    assert corrected < 0.07


def test_p_values_are_shares() -> None:
    with pytest.raises(InvalidInput, match="p_values must be numbers from 0 to 1"):
        holm_p_values([0.5, 1.5])


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ([], [], r"values must be finite numbers, .*; got shape \(0,\)"),
        ([1.0, np.nan], [1.0, 1.0], "values must be finite numbers"),
        ([1.0, 2.0], [1.0], "theirs has 1 values and ours has 2"),
        ([[1.0, 2.0]] * 3, [1.0], "theirs has 1 values and ours has 2"),
        ([[[1.0]]], [1.0], "values must be finite numbers"),
    ],
)
def test_values_that_cannot_be_compared(
    ours: list[float], theirs: list[float], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        paired_comparison(ours, theirs, seed=0)


def test_level_of_an_interval_is_a_share() -> None:
    with pytest.raises(InvalidInput, match="one for each query"):
        bootstrap_interval([[1.0, 2.0]], seed=0)
    with pytest.raises(InvalidInput, match="level must be a number between 0 and 1; got 2"):
        bootstrap_interval([1.0], seed=0, level=2)
