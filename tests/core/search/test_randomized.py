"""Random greedy and double greedy: their guarantees on average, their certificates, and seeds."""

import itertools
import math

import numpy as np
import pytest
import torch

from dgn.core.functions import DisparityMin, FeatureCoverage, GraphCut, Items, LogDeterminant
from dgn.core import double_greedy, greedy, random_greedy
from dgn.errors import InvalidInput

SIZE, DRAWS = 7, 60


def random_graph(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    graph = np.triu(random.random((SIZE, SIZE)) * (random.random((SIZE, SIZE)) < 0.5), 1)
    return graph + graph.T


def cut_of(graph: np.ndarray, chosen: tuple[int, ...]) -> float:
    inside = np.isin(np.arange(len(graph)), chosen)
    return float(graph[inside][:, ~inside].sum())


def best_cut(graph: np.ndarray, k: int = SIZE) -> float:
    sets = (itertools.combinations(range(len(graph)), count) for count in range(k + 1))
    return max(cut_of(graph, one) for one in itertools.chain.from_iterable(sets))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_random_greedy_reaches_its_share_on_average(k: int) -> None:
    worst = 1.0
    for seed in range(6):
        graph = random_graph(seed)
        best, reached = best_cut(graph, k), []
        for draw in range(DRAWS):
            found = random_greedy(GraphCut(1.0), graph, k, seed=draw)
            value = cut_of(graph, found.indices)
            assert found.certificate.value == pytest.approx(value, abs=1e-12)
            assert found.certificate.ratio * best <= value + 1e-9
            assert len(found) <= k
            assert all(gain > 0 for gain in found.gains)
            reached.append(value)
        assert np.mean(reached) >= best / math.e
        worst = min(worst, np.min(reached) / best)
    assert worst < 1.0 or k == 1, "no instance was hard, so that the test shows nothing"


def test_random_greedy_on_a_monotone_function() -> None:
    for seed in range(5):
        features = np.random.default_rng(seed).gamma(0.4, size=(8, 4))
        f = FeatureCoverage()
        sets = itertools.combinations(range(8), 3)
        best = max(np.log1p(features[list(one)].sum(axis=0)).sum() for one in sets)
        found = [random_greedy(f, features, 3, seed=draw) for draw in range(DRAWS)]
        assert np.mean([one.values[-1] for one in found]) >= (1 - 1 / math.e) * best
        for one in found:
            assert one.certificate.ratio * best <= one.values[-1] + 1e-9


def test_double_greedy_reaches_half_on_average() -> None:
    for seed in range(8):
        graph = random_graph(seed)
        best, reached = best_cut(graph), []
        for draw in range(DRAWS):
            found = double_greedy(GraphCut(1.0), graph, seed=draw)
            value = cut_of(graph, found.indices)
            assert found.certificate.value == pytest.approx(value, abs=1e-12)
            assert found.certificate.bound >= best - 1e-9
            assert found.certificate.ratio * best <= value + 1e-9
            reached.append(value)
        assert np.mean(reached) >= best / 2


def test_double_greedy_on_other_functions() -> None:
    modular = np.array([[3.0], [1.0], [0.0]])
    assert double_greedy(FeatureCoverage(), modular).indices == (0, 1)
    kernel = np.array([[3.0, 2.9, 0.0], [2.9, 3.0, 0.0], [0.0, 0.0, 0.5]])
    for seed in range(20):
        found = double_greedy(LogDeterminant(0.0), kernel, seed=seed)
        assert found.indices in {(0,), (1,)}


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_a_batch_has_the_results_of_its_sets(library: object) -> None:
    graphs = np.stack([random_graph(seed) for seed in range(4)])
    for search in (lambda f, x: random_greedy(f, x, 3, seed=5), lambda f, x: double_greedy(f, x)):
        together = search(GraphCut(1.0), library(graphs))
        for row, graph in enumerate(graphs):
            alone = search(GraphCut(1.0), graph)
            assert together[row].indices == alone.indices
            assert together[row].certificate.bound == pytest.approx(alone.certificate.bound)


def test_seeds_decide() -> None:
    graph = random_graph(3)
    found = [random_greedy(GraphCut(1.0), graph, 3, seed=seed).indices for seed in range(20)]
    again = [random_greedy(GraphCut(1.0), graph, 3, seed=seed).indices for seed in range(20)]
    assert found == again
    assert len(set(found)) > 3


def test_given_pinned_padding_and_context() -> None:
    graph = random_graph(4)
    for seed in range(20):
        found = random_greedy(GraphCut(1.0), graph, 3, seed=seed, given=[0], pinned=[2])
        assert found.indices[0] == 2
        assert 0 not in found.indices
        assert len(found) <= 3
        total = cut_of(graph, (0, *found.indices)) - cut_of(graph, (0,))
        assert found.certificate.value == pytest.approx(total)
        unlimited = double_greedy(GraphCut(1.0), graph, seed=seed, given=[0])
        assert 0 not in unlimited.indices
        total = cut_of(graph, (0, *unlimited.indices)) - cut_of(graph, (0,))
        assert unlimited.certificate.value == pytest.approx(total)
    features = np.zeros((2, SIZE + 1, SIZE + 1))
    features[0, :SIZE, :SIZE] = graph
    features[1, :2, :2] = graph[:2, :2] + [[0, 1], [1, 0]]
    mask = np.arange(SIZE + 1)[None] < np.array([[SIZE], [2]])
    padded = Items(features, mask)
    assert random_greedy(GraphCut(1.0), padded, 3)[0].indices == (
        random_greedy(GraphCut(1.0), graph, 3).indices
    )
    assert double_greedy(GraphCut(1.0), padded)[0].indices == (
        double_greedy(GraphCut(1.0), graph).indices
    )
    assert set(double_greedy(GraphCut(1.0), padded)[1].indices) < {0, 1}
    f, first = GraphCut(1.0), Items(graph)
    context = f.add(first, f.empty(first), np.eye(SIZE)[:1])
    assert set(random_greedy(f, graph, 3, context=context, given=[0]).indices) <= set(
        range(1, SIZE)
    )


def test_what_they_refuse() -> None:
    with pytest.raises(InvalidInput, match="DisparityMin is not submodular"):
        double_greedy(DisparityMin(), 1 - np.eye(3))
    with pytest.raises(InvalidInput, match="k must be an integer of at least 1"):
        random_greedy(GraphCut(), np.eye(3), 0)
    with pytest.raises(InvalidInput, match="seed must be an integer of at least 0"):
        double_greedy(GraphCut(), np.eye(3), seed=-1)


def test_greedy_is_as_good_where_nothing_falls() -> None:
    features = np.random.default_rng(0).gamma(0.4, size=(30, 6))
    best = greedy(FeatureCoverage(), features, 5).values[-1]
    values = [random_greedy(FeatureCoverage(), features, 5, seed=s).values[-1] for s in range(30)]
    assert np.mean(values) <= best
