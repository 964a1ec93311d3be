"""Random instances of every set function, and their definitions in plain NumPy.

The definitions share nothing with the library: the library is checked against them. Each is the
value of many sets at once, so that the best set is found by trying all of them in one batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from hypothesis import strategies as st

from dgn.core.functions import (
    FacilityLocation,
    FeatureCoverage,
    GraphCut,
    Items,
    LogDeterminant,
    Mixture,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
    State,
)

FEATURES = 5

Define = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""[features] weights, [items, features] and [sets, items] booleans to [sets] values."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of set function: how to build it, and what it is by definition."""

    build: Callable[[np.ndarray], SetFunction]
    define: Define


def _summed(phi: Callable[[np.ndarray], np.ndarray]) -> Define:
    return lambda w, features, sets: phi(sets @ features) @ w


def _best(w: np.ndarray, features: np.ndarray, sets: np.ndarray) -> np.ndarray:
    return np.where(sets[:, :, None], features, 0.0).max(axis=1) @ w


def _hit(w: np.ndarray, features: np.ndarray, sets: np.ndarray) -> np.ndarray:
    return (1 - np.where(sets[:, :, None], 1 - features, 1.0).prod(axis=1)) @ w


def _split(left: Define, right: Define, w: np.ndarray, weighs: bool) -> Define:
    """A weighted sum: the first two features by one definition, the others by another."""
    ones = np.ones(2)
    return lambda _, features, sets: (
        w[0] * left(w[:2] if weighs else ones, features[:, :2], sets)
        + w[1] * right(w[2:], features[:, 2:], sets)
    )


def _mixed(w: np.ndarray, features: np.ndarray, sets: np.ndarray) -> np.ndarray:
    logarithms = _summed(np.log1p)(np.ones(len(w)), features, sets)
    return w[0] * logarithms + w[1] * _hit(w, features, sets)


def _mixed_by_columns(w: np.ndarray, features: np.ndarray, sets: np.ndarray) -> np.ndarray:
    return _split(_best, _summed(np.sqrt), w, weighs=False)(w, features, sets)


def _mixed_by_slices(w: np.ndarray, features: np.ndarray, sets: np.ndarray) -> np.ndarray:
    return _split(_summed(np.log1p), _best, w, weighs=True)(w, features, sets)


KINDS = {
    "log1p": Kind(FeatureCoverage, _summed(np.log1p)),
    "sqrt": Kind(lambda w: FeatureCoverage(w, Power(0.5)), _summed(np.sqrt)),
    "power": Kind(lambda w: FeatureCoverage(w, Power(0.7)), _summed(lambda x: x**0.7)),
    "one_minus_exp": Kind(
        lambda w: FeatureCoverage(w, OneMinusExp()), _summed(lambda x: -np.expm1(-x))
    ),
    "saturated": Kind(
        lambda w: FeatureCoverage(w, Saturated(1.2)), _summed(lambda x: np.minimum(x, 1.2))
    ),
    "facility_location": Kind(FacilityLocation, _best),
    "probabilistic": Kind(ProbabilisticCoverage, _hit),
    "mixture": Kind(
        lambda w: Mixture((FeatureCoverage(), ProbabilisticCoverage(w)), w[:2]), _mixed
    ),
    "mixture_by_columns": Kind(
        lambda w: Mixture(
            (FacilityLocation(), FeatureCoverage(w[2:], Power(0.5))),
            w[:2],
            (slice(0, 2), slice(2, None)),
        ),
        _mixed_by_columns,
    ),
    # The sum of two functions that the kernels know.
    "mixture_by_slices": Kind(
        lambda w: Mixture(
            (FeatureCoverage(w[:2]), FacilityLocation(w[2:])),
            w[:2],
            (slice(0, 2), slice(2, None)),
        ),
        _mixed_by_slices,
    ),
}


@dataclass(frozen=True, eq=False)
class PairKind:
    """A function of a matrix of all items: the function, and its values by definition.

    The definition takes the matrix and booleans, [sets, items].
    """

    function: SetFunction
    define: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _cut(redundancy: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def define(s: np.ndarray, sets: np.ndarray) -> np.ndarray:
        inside = sets.astype(float)
        return inside @ s.sum(axis=0) - redundancy * ((inside @ s) * inside).sum(axis=1)

    return define


def _determinant(kernel: np.ndarray, sets: np.ndarray) -> np.ndarray:
    inside = sets.astype(float)
    chosen = inside[:, :, None] * kernel * inside[:, None, :]
    return np.linalg.slogdet(np.eye(len(kernel)) + chosen)[1]


PAIRS = {
    "cut": PairKind(GraphCut(0.5), _cut(0.5)),
    "cut_loose": PairKind(GraphCut(0.2), _cut(0.2)),
    "determinant": PairKind(LogDeterminant(), _determinant),
}


def random_matrix(seed: int, size: int) -> np.ndarray:
    """A kernel of full rank of non-negative vectors."""
    random = np.random.default_rng(seed)
    points = random.random((size, 3)) * 2
    points[random.random(points.shape) < 0.2] = 0.0
    kernel = points @ points.T + np.diag(random.uniform(0.2, 0.7, size))
    return (kernel + kernel.T) / 2


@cache
def subsets(size: int, most: int | None = None) -> np.ndarray:
    """[sets, size] booleans: every set of at most so many items."""
    numbers = np.arange(1 << size)
    sets = (numbers[:, None] >> np.arange(size) & 1).astype(bool)
    return sets if most is None else sets[sets.sum(axis=1) <= most]


def as_sets(chosen: tuple[int, ...], size: int) -> np.ndarray:
    """[1, size] booleans: one set of items."""
    return np.isin(np.arange(size), chosen)[None]


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

    def values(self, sets: np.ndarray) -> np.ndarray:
        """f of many sets by definition."""
        return KINDS[self.kind].define(self.weights, self.features, sets)

    def value(self, chosen: tuple[int, ...]) -> float:
        """f of one set by definition."""
        return float(self.values(as_sets(chosen, self.size))[0])

    def best_value(self, k: int) -> float:
        """The best f over all sets of k items, by trying them all."""
        return float(self.values(subsets(self.size, min(k, self.size))).max())

    def best_within(self, costs: np.ndarray, budget: float, k: int | None = None) -> float:
        """The best f over all sets of at most k items whose costs fit the budget."""
        sets = subsets(self.size, k)
        return float(self.values(sets[sets @ costs <= budget]).max())


@dataclass(frozen=True, eq=False)
class Constrained:
    """An instance with constraints of every kind; None where there is none of a kind."""

    instance: Instance
    k: int
    context: list[int] | None
    pinned: list[int] | None
    groups: list[int] | None
    max_per_group: int | list[int] | None
    costs: np.ndarray
    budget: float

    @property
    def options(self) -> dict:
        """As the searches take them."""
        return {
            "context": self.context,
            "pinned": self.pinned,
            "groups": self.groups,
            "max_per_group": self.max_per_group,
        }

    def values(self, sets: np.ndarray) -> np.ndarray:
        """f(chosen | context) of many sets by definition."""
        there = as_sets(tuple(self.context or ()), self.instance.size)
        return self.instance.values(sets | there) - self.instance.values(there)

    def value(self, chosen: tuple[int, ...]) -> float:
        """f(chosen | context) by definition."""
        return float(self.values(as_sets(chosen, self.instance.size))[0])

    def allowed(self, sets: np.ndarray, *, budget: bool = False) -> np.ndarray:
        """[sets], which of these satisfy all constraints."""
        size = self.instance.size
        good = sets.sum(axis=1) <= self.k
        good &= sets[:, self.pinned or []].all(axis=1)
        good &= ~sets[:, self.context or []].any(axis=1)
        if self.groups is not None:
            quotas = self.max_per_group
            for group in range(max(0, *self.groups) + 1):
                held = sets[:, np.asarray(self.groups) == group].sum(axis=1)
                good &= held <= (quotas if isinstance(quotas, int) else quotas[group])
        assert self.costs.shape == (size,)
        return good & (sets @ self.costs <= self.budget) if budget else good

    def allows(self, chosen: tuple[int, ...], *, budget: bool = False) -> bool:
        """Whether a set satisfies all constraints."""
        is_set = len(set(chosen)) == len(chosen)
        sets = as_sets(chosen, self.instance.size)
        return is_set and bool(self.allowed(sets, budget=budget)[0])

    def best_value(self, *, budget: bool = False) -> float:
        """The best value of all sets that are allowed, by trying them all."""
        sets = subsets(self.instance.size)
        return float(self.values(sets[self.allowed(sets, budget=budget)]).max())


def constrained_instance(kind: str, seed: int, size: int) -> Constrained:
    """Constraints that at least one set satisfies."""
    random = np.random.default_rng(seed)
    instance = random_instance(kind, seed, size)
    order = random.permutation(size).tolist()
    there_count, pinned_count = (int(random.integers(0, 1 + size // 3)) for _ in range(2))
    there, pinned = order[:there_count], order[there_count : there_count + pinned_count]
    groups = random.integers(-1, 3, size).tolist()
    used = [sum(groups[item] == group for item in pinned) for group in range(3)]
    quotas = [max(int(random.integers(0, 3)), used[group]) for group in range(3)]
    costs = random.integers(1, 5, size).astype(float)
    budget = float(costs[pinned].sum() + random.integers(1, 7))
    has_context, has_pinned, has_groups = (random.random(3) < 0.8).tolist()
    return Constrained(
        instance=instance,
        k=max(1, len(pinned) + int(random.integers(0, 4))),
        context=there if has_context else None,
        pinned=pinned if has_pinned else None,
        groups=groups if has_groups else None,
        max_per_group=None if not has_groups else max(1, *quotas) if seed % 2 else quotas,
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
