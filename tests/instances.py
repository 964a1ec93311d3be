"""Random instances of every set function, and their definitions in plain Python.

The definitions share nothing with the library: the library is checked against them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dgn.core.arrays import cast_like
from dgn.core.functions import (
    DeepSubmodular,
    DisparityMin,
    DisparitySum,
    FacilityLocation,
    FeatureCoverage,
    GraphCut,
    Items,
    LogDeterminant,
    Mixture,
    MutualInformation,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
    Sqrt,
    State,
)

FEATURES = 5


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of set function: how to build it, and what it is by definition."""

    build: Callable[[np.ndarray], SetFunction]
    define: Callable[[np.ndarray, np.ndarray], float]


def _summed(phi: Callable[[float], float]) -> Callable[[np.ndarray, np.ndarray], float]:
    return lambda w, chosen: sum(w[u] * phi(sum(row[u] for row in chosen)) for u in range(len(w)))


def _best(w: np.ndarray, chosen: np.ndarray) -> float:
    return sum(w[u] * max((row[u] for row in chosen), default=0.0) for u in range(len(w)))


def _hit(w: np.ndarray, chosen: np.ndarray) -> float:
    return sum(w[u] * (1 - math.prod(1 - row[u] for row in chosen)) for u in range(len(w)))


def _mixed(w: np.ndarray, chosen: np.ndarray) -> float:
    log_coverage = sum(math.log1p(sum(row[u] for row in chosen)) for u in range(len(w)))
    return w[0] * log_coverage + w[1] * _hit(w, chosen)


def _mixed_by_columns(w: np.ndarray, chosen: np.ndarray) -> float:
    left, right = chosen[:, :2], chosen[:, 2:]
    best = sum(max((row[u] for row in left), default=0.0) for u in range(2))
    return w[0] * best + w[1] * _summed(math.sqrt)(w[2:], right)


MIXED = np.array([[1.0, 2.0, 0.0, 0.5, 0.0], [0.0, 0.3, 1.0, 1.0, 2.0], [0.7, 0.0, 0.0, 0.0, 1.0]])
LAST = np.array([[1.0, 0.0, 0.5], [0.2, 2.0, 1.0]])


def _deep(w: np.ndarray, chosen: np.ndarray) -> float:
    units = [math.sqrt(sum(row[u] for row in chosen)) for u in range(len(w))]
    for layer in (MIXED * w, LAST):
        units = [math.sqrt(sum(a * x for a, x in zip(row, units, strict=True))) for row in layer]
    return sum(units)


ASKED = np.array([[0.5, 0.0, 0.9, 0.3, 1.0]])


def _asked_state() -> State:
    f, query = FeatureCoverage(), Items(ASKED)
    return f.add(query, f.empty(query), np.ones((1, 1)))


def _shared(w: np.ndarray, chosen: np.ndarray) -> float:
    value = _summed(math.log1p)
    both = np.concatenate([chosen, ASKED])
    return value(w, chosen) + value(w, ASKED) - value(w, both)


KINDS = {
    "log1p": Kind(FeatureCoverage, _summed(math.log1p)),
    "sqrt": Kind(lambda w: FeatureCoverage(w, Sqrt()), _summed(math.sqrt)),
    "power": Kind(lambda w: FeatureCoverage(w, Power(0.7)), _summed(lambda x: x**0.7)),
    "one_minus_exp": Kind(
        lambda w: FeatureCoverage(w, OneMinusExp()), _summed(lambda x: 1 - math.exp(-x))
    ),
    "saturated": Kind(lambda w: FeatureCoverage(w, Saturated(1.2)), _summed(lambda x: min(x, 1.2))),
    "facility_location": Kind(FacilityLocation, _best),
    "probabilistic": Kind(ProbabilisticCoverage, _hit),
    "mixture": Kind(
        lambda w: Mixture((FeatureCoverage(), ProbabilisticCoverage(w)), w[:2]), _mixed
    ),
    "mixture_by_columns": Kind(
        lambda w: Mixture(
            (FacilityLocation(), FeatureCoverage(w[2:], Sqrt())),
            w[:2],
            (slice(0, 2), slice(2, None)),
        ),
        _mixed_by_columns,
    ),
    "deep": Kind(
        lambda w: DeepSubmodular((cast_like(MIXED, w) * w, cast_like(LAST, w)), Sqrt()), _deep
    ),
    "mutual_information": Kind(
        lambda w: MutualInformation(FeatureCoverage(w), _asked_state()), _shared
    ),
}


@dataclass(frozen=True, eq=False)
class PairKind:
    """A function of a matrix of all items: how to build it, its definition, and what is true.

    Attributes:
        function: The function.
        define: Its value by definition, of the matrix and the chosen items.
        is_distance: Whether the matrix has distances; otherwise it is a kernel of vectors.
    """

    function: SetFunction
    define: Callable[[np.ndarray, tuple[int, ...]], float]
    is_distance: bool = False


def _cut(redundancy: float) -> Callable[[np.ndarray, tuple[int, ...]], float]:
    return lambda s, chosen: math.fsum(
        [
            *(s[i, a] for i in range(len(s)) for a in chosen),
            *(-redundancy * s[a, b] for a in chosen for b in chosen),
        ]
    )


def _determinant(ridge: float) -> Callable[[np.ndarray, tuple[int, ...]], float]:
    def define(kernel: np.ndarray, chosen: tuple[int, ...]) -> float:
        own = kernel[np.ix_(chosen, chosen)] + ridge * np.eye(len(chosen))
        return float(np.linalg.slogdet(own)[1]) if chosen else 0.0

    return define


def _pair_distances(d: np.ndarray, chosen: tuple[int, ...]) -> list[float]:
    return [d[a, b] for a, b in itertools.combinations(sorted(set(chosen)), 2)]


PAIRS = {
    "cut_monotone": PairKind(GraphCut(0.5), _cut(0.5)),
    "cut": PairKind(GraphCut(1.0), _cut(1.0)),
    "determinant": PairKind(LogDeterminant(), _determinant(1.0)),
    "determinant_ridge": PairKind(LogDeterminant(0.2), _determinant(0.2)),
    "process": PairKind(LogDeterminant(0.0), _determinant(0.0)),
    "disparity_sum": PairKind(DisparitySum(), lambda d, a: sum(_pair_distances(d, a)), True),
    "disparity_min": PairKind(
        DisparityMin(), lambda d, a: min(_pair_distances(d, a), default=0.0), True
    ),
}


def random_matrix(kind: str, seed: int, size: int) -> np.ndarray:
    """Distances of points, or a kernel of full rank of non-negative vectors."""
    random = np.random.default_rng(seed)
    points = random.random((size, 3)) * 2
    if PAIRS[kind].is_distance:
        return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    points[random.random(points.shape) < 0.2] = 0.0
    kernel = points @ points.T + np.diag(random.uniform(0.2, 0.7, size))
    return (kernel + kernel.T) / 2


@dataclass(frozen=True, eq=False)
class Instance:
    """One set function with one ground set."""

    kind: str
    features: np.ndarray
    weights: np.ndarray

    @property
    def objective(self) -> SetFunction:
        return KINDS[self.kind].build(self.weights)

    @property
    def size(self) -> int:
        return len(self.features)

    def value(self, chosen: tuple[int, ...]) -> float:
        """f by definition."""
        return float(KINDS[self.kind].define(self.weights, self.features[list(chosen)]))

    def best_value(self, k: int) -> float:
        """The best f over all sets of k items, by trying them all."""
        sets = itertools.combinations(range(self.size), min(k, self.size))
        return max(self.value(chosen) for chosen in sets)

    def best_within(self, costs: np.ndarray, budget: float, k: int | None = None) -> float:
        """The best f over all sets of at most k items whose costs fit the budget."""
        most = self.size if k is None else min(k, self.size)
        sets = itertools.chain.from_iterable(
            itertools.combinations(range(self.size), count) for count in range(most + 1)
        )
        return max(self.value(s) for s in sets if costs[list(s)].sum() <= budget)


@dataclass(frozen=True, eq=False)
class Constrained:
    """An instance with constraints of every kind; None where there is none of a kind."""

    instance: Instance
    k: int
    given: list[int] | None
    pinned: list[int] | None
    groups: list[int] | None
    max_per_group: int | list[int] | None
    costs: np.ndarray
    budget: float

    @property
    def options(self) -> dict:
        """As the searches take them."""
        return {
            "given": self.given,
            "pinned": self.pinned,
            "groups": self.groups,
            "max_per_group": self.max_per_group,
        }

    def value(self, chosen: tuple[int, ...]) -> float:
        """f(chosen | given) by definition."""
        given = tuple(self.given or ())
        return self.instance.value((*given, *chosen)) - self.instance.value(given)

    def allows(self, chosen: tuple[int, ...], *, budget: bool = False) -> bool:
        """Whether a set satisfies all constraints."""
        quotas, groups = self.max_per_group, self.groups or []
        held = [groups[item] for item in chosen] if groups else []
        return (
            len(chosen) <= self.k
            and len(set(chosen)) == len(chosen)
            and set(self.pinned or ()) <= set(chosen)
            and not set(self.given or ()) & set(chosen)
            and all(
                held.count(group) <= (quotas if isinstance(quotas, int) else quotas[group])
                for group in set(held)
                if group >= 0
            )
            and not (budget and self.costs[list(chosen)].sum() > self.budget)
        )

    def best_value(self, *, budget: bool = False) -> float:
        """The best value of all sets that are allowed, by trying them all."""
        sets = itertools.chain.from_iterable(
            itertools.combinations(range(self.instance.size), count) for count in range(self.k + 1)
        )
        return max(self.value(one) for one in sets if self.allows(one, budget=budget))


def constrained_instance(kind: str, seed: int, size: int, without: str = "") -> Constrained:
    """Constraints that at least one set satisfies; those named in `without` are left out."""
    random = np.random.default_rng(seed)
    instance = random_instance(kind, seed, size)
    order = random.permutation(size).tolist()
    given_count, pinned_count = (int(random.integers(0, 1 + size // 3)) for _ in range(2))
    given, pinned = order[:given_count], order[given_count : given_count + pinned_count]
    groups = random.integers(-1, 3, size).tolist()
    used = [sum(groups[item] == group for item in pinned) for group in range(3)]
    quotas = [max(int(random.integers(0, 3)), used[group]) for group in range(3)]
    costs = random.integers(1, 5, size).astype(float)
    budget = float(costs[pinned].sum() + random.integers(1, 7))
    kept = {name: name not in without for name in ("given", "pinned", "groups")}
    kept = {name: is_kept and random.random() < 0.8 for name, is_kept in kept.items()}
    most = max(1, *quotas)
    return Constrained(
        instance=instance,
        k=max(1, len(pinned) + int(random.integers(0, 4))),
        given=given if kept["given"] else None,
        pinned=pinned if kept["pinned"] else None,
        groups=groups if kept["groups"] else None,
        max_per_group=None if not kept["groups"] else most if seed % 2 else quotas,
        costs=costs,
        budget=budget,
    )


def random_instance(kind: str, seed: int, size: int, features: int = FEATURES) -> Instance:
    """Features in [0, 1], some of them 0 and some 1, sometimes a repeated item."""
    random = np.random.default_rng(seed)
    values = random.random((size, features))
    values[random.random(values.shape) < 0.2] = 0.0
    values[random.random(values.shape) < 0.05] = 1.0
    if size > 1 and seed % 3 == 0:
        values[-1] = values[0]
    weights = random.gamma(1.0, size=features)
    weights[random.random(features) < 0.1] = 0.0
    return Instance(kind, values, weights)


def instances(
    *, kinds: tuple[str, ...] = tuple(KINDS), smallest: int = 1, largest: int = 8
) -> st.SearchStrategy[Instance]:
    """Instances of all kinds."""
    return st.builds(
        random_instance,
        kind=st.sampled_from(kinds),
        seed=st.integers(0, 2**32 - 1),
        size=st.integers(smallest, largest),
    )


def members(chosen: tuple[int, ...], size: int) -> np.ndarray:
    """[1, size], 1 for the chosen."""
    member = np.zeros((1, size))
    member[0, list(chosen)] = 1.0
    return member


class OwnCoverage(SetFunction):
    """A set function as a user writes it, with the four abstract methods alone: Σ_u √(Σ_a h_au)."""

    def empty(self, items: Items, context: State | None = None) -> State:
        shape = (items.batch, items.features.shape[2])
        level = np.zeros(shape) if context is None else np.broadcast_to(context.level, shape)
        return State(level, np.ones((items.batch, items.size)))

    def gains(self, items: Items, state: State) -> np.ndarray:
        level = state.level[:, None, :]
        with_item = np.sqrt(level + state.outside[..., None] * items.features)
        return (with_item - np.sqrt(level)).sum(axis=-1)

    def add(self, items: Items, state: State, member: np.ndarray) -> State:
        joining = state.outside * member
        level = state.level + np.einsum("bi,biu->bu", joining, items.features)
        return State(level, state.outside * (1 - member))

    def value(self, state: State) -> np.ndarray:
        return np.sqrt(state.level).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class MatrixCoverage(SetFunction):
    """A user's function with a matrix of its own, one row per item: Σ_j max_{a∈A} S_aj.

    Its gains cannot be computed for a part of the items. With `cut`, it computes something all
    the same: it takes the first rows of the matrix for the items that are passed.
    """

    similarity: np.ndarray
    cut: bool = False

    def _rows(self, items: Items) -> np.ndarray:
        return self.similarity[: items.size] if self.cut else self.similarity

    def empty(self, items: Items, context: State | None = None) -> State:
        shape = (items.batch, self.similarity.shape[1])
        level = np.zeros(shape) if context is None else np.broadcast_to(context.level, shape)
        return State(level, np.ones((items.batch, items.size)))

    def gains(self, items: Items, state: State) -> np.ndarray:
        better = np.maximum(self._rows(items)[None] - state.level[:, None, :], 0)
        return better.sum(axis=-1) * state.outside * items.mask

    def add(self, items: Items, state: State, member: np.ndarray) -> State:
        served = (member[..., None] * self._rows(items)[None]).max(axis=1)
        return State(np.maximum(state.level, served), state.outside * (1 - member))

    def value(self, state: State) -> np.ndarray:
        return state.level.sum(axis=-1)
