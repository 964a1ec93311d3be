"""experiments.diversity: what is drawn, measured, learned and compared."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeClassifier

from dgn.learn import UnfoldedGreedy
from experiments.diversity import (
    DGN,
    TRAINED,
    UNTRAINED,
    Benchmark,
    Collections,
    Coresets,
    Facilities,
    FeatureChoice,
    FeatureSums,
    Pool,
    Setting,
    choices,
    digits,
    markdown,
    memberships,
    peers_of,
    ridge_accuracy,
    stack,
    study,
    train,
    untrained,
)


def small(benchmark: Benchmark, learn: int, others: int) -> Benchmark:
    benchmark.counts = {"learn": learn, "choose": others, "report": others}
    return benchmark


@pytest.fixture(scope="module")
def collections() -> Benchmark:
    return small(Collections(), 60, 30)


@pytest.fixture(scope="module")
def pools(collections: Benchmark) -> list[Pool]:
    return collections.pools("learn")


def test_parts_have_no_image_in_common_and_reported_classes_are_new() -> None:
    parts = {part: digits(part) for part in ("learn", "choose", "report")}
    assert set(parts["learn"].labels) == set(parts["choose"].labels) == {1, 3, 5, 7, 9}
    assert set(parts["report"].labels) == {0, 2, 4, 6, 8}
    rows = [{row.tobytes() for row in one.vectors} for one in parts.values()]
    assert sum(map(len, rows)) == len(set().union(*rows))


@pytest.mark.parametrize(
    "benchmark", [Coresets("digits", 5), Collections(), FeatureChoice()], ids=lambda one: one.name
)
def test_pools_are_always_the_same_and_test_examples_are_not_items(benchmark: Benchmark) -> None:
    first, again = (small(benchmark, 3, 3).pools("report") for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert (one.vectors == other.vectors).all()
        assert one.facts.shape == (one.size, len(benchmark.facts))
        assert np.isfinite(one.facts).all()
        assert (one.worth > 0).all()
        assert benchmark.score(one, range(5)) == benchmark.score(other, range(5))
    if isinstance(benchmark, Coresets):
        items = {row.tobytes() for row in first[0].vectors}
        assert not items & {row.tobytes() for row in first[0].target.test.vectors}


def test_classifier_is_that_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    for classes in (3, 5):
        rows, others = (random.normal(size=(n, 6)).astype(np.float32) for n in (20, 50))
        labels, wanted = (random.integers(classes, size=n) for n in (20, 50))
        theirs = RidgeClassifier(alpha=0.5).fit(rows, labels).predict(others)
        found = ridge_accuracy(rows, labels, others, wanted, 0.5)
        assert found == pytest.approx((theirs == wanted).mean())
    assert ridge_accuracy(rows[:1], labels[:1], others, wanted, 1.0) == (wanted == labels[0]).mean()


def test_share_of_motifs_by_hand(collections: Benchmark, pools: Sequence[Pool]) -> None:
    pool = pools[0]
    of_one = np.flatnonzero(pool.target[:, 0])
    failed = np.flatnonzero(pool.target.sum(axis=1) == 0)
    assert collections.score(pool, failed) == 0
    assert collections.score(pool, [*of_one, *failed]) == pytest.approx(1 / 5)
    assert collections.score(pool, range(pool.size)) == 1


def test_soft_outcome_of_certain_choices_is_the_measure(
    collections: Benchmark, pools: Sequence[Pool]
) -> None:
    setting = Setting("facility", scale=10.0, temperature=1e-4)
    network = untrained(collections, pools, setting)
    with torch.no_grad():
        unfolded = UnfoldedGreedy(5, 1e-4)(*network(stack(pools[:4])))
        loss = float(collections.loss(pools[:4], unfolded, [5]))
    chosen = choices(network, pools[:4], 5)
    measured = np.mean([collections.score(p, c) for p, c in zip(pools[:4], chosen, strict=True)])
    assert 1 - loss == pytest.approx(measured, abs=0.01)
    assert memberships(unfolded, 5)[0].sum(dim=1).tolist() == pytest.approx([5] * 4, abs=0.01)


def test_training_through_the_layers_finds_more(
    collections: Benchmark, pools: Sequence[Pool]
) -> None:
    torch.set_num_threads(1)
    setting = Setting(scale=10.0, sharpness=4.0, rate=0.02, temperature=0.05)
    others = collections.pools("choose")  # other images of the same classes

    def found(network: object) -> float:
        chosen = choices(network, others, 5)
        return float(
            np.mean([collections.score(p, c) for p, c in zip(others, chosen, strict=True)])
        )

    start = found(untrained(collections, pools, setting))
    learned = train(collections, pools, setting, layers=5, steps=60, seed=0)
    assert found(learned) > start + 0.03


def test_padding_changes_nothing() -> None:
    benchmark = small(FeatureChoice(), 2, 3)
    mixed = benchmark.pools("report")
    assert len({pool.size for pool in mixed}) == 3
    network = untrained(benchmark, mixed, Setting(sharpness=8.0))
    together = choices(network, mixed, 4)
    assert together == [choices(network, [pool], 4)[0] for pool in mixed]


@pytest.mark.parametrize("name", ["images", "features"])
def test_peers_select_k_different_items(name: str, pools: Sequence[Pool]) -> None:
    random = np.random.default_rng(0)
    for peer in peers_of(name):
        for one in (peer, peer.try_one(random) or peer):
            found = one.select(pools[0], 7, random)
            assert len(set(found)) == 7, peer.name
            assert all(0 <= item < pools[0].size for item in found)


@pytest.mark.slow
def test_peers_select_what_apricot_selects(pools: Sequence[Pool]) -> None:
    apricot = pytest.importorskip("apricot")
    facilities, features = Facilities(3.0), FeatureSums("sqrt", 2.0)
    similarity, rows = facilities.similarity(pools[0]), features.features(pools[0])
    theirs = apricot.FacilityLocationSelection(8, metric="precomputed", optimizer="naive")
    random = np.random.default_rng(0)
    assert theirs.fit(similarity).ranking.tolist() == facilities.select(pools[0], 8, random)
    theirs = apricot.FeatureBasedSelection(8, concave_func="sqrt", optimizer="naive")
    assert theirs.fit(rows).ranking.tolist() == features.select(pools[0], 8, random)


def test_a_study_from_settings_to_corrected_p_values() -> None:
    benchmark = small(Collections(), 16, 12)
    result = study(benchmark, seeds=2, starts=2, tries=2, steps=3)
    names = [one.name for one in result.methods]
    assert {*TRAINED, UNTRAINED, "random", "k-center (farthest first)"} <= set(names)
    by_name = {one.name: one for one in result.methods}
    assert by_name[DGN].scores.shape == (2, 12, 3)
    assert by_name["k-center (farthest first)"].scores.shape == (1, 12, 3)
    assert len(by_name[DGN].tries) == len(by_name["MMR (pyversity)"].tries) == 4
    assert set(result.against) == set(names) - {DGN}
    for by_k in result.against.values():
        for one in by_k.values():
            assert one.p_value <= one.holm_p_value <= 1
    row = json.loads(json.dumps(result.to_dict()))
    row |= {"command": "c", "seeds": "s", "machine": "m"}
    table = markdown({"benchmarks": {benchmark.name: row}})
    assert "| DGN, untrained |" in table
    assert "12 reported pools" in table
