"""Query-focused forms of every set function: what is new next to P, and what is shared with Q.

    private = f.add(p, f.empty(p), member)     # the state of a set of other items
    ConditionalGain(f, private)                # f(A | P) = f(A ∪ P) − f(P): away from P
    MutualInformation(f, query)                # f(A) + f(Q) − f(A ∪ Q): towards Q
    g = ConditionalGain(f, private)            # both: f(A | P) − f(A | P ∪ Q)
    MutualInformation(g, g.add(q, g.empty(q), member))

For one search, `context=` or `given=` is a ConditionalGain; the class is for mixtures and for
combinations with MutualInformation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from dgn.core.arrays import Array, Float, device_of, namespace
from dgn.core.functions.base import Items, SetFunction, State, check_maker


@final
@dataclass(frozen=True, eq=False)
class ConditionalGain(SetFunction):
    """f(A | P) = f(A ∪ P) − f(P), for a fixed set P of other items.

    Choose it to keep away from what is known, private or unwanted. It has the guarantees of f.
    `greedy(f, items, k, context=private)` is the same search.

    Args:
        function: f.
        private: The state of P, made by f from items with the same features.
    """

    function: SetFunction
    private: State

    def empty(self, items: Items, context: State | None = None) -> State:
        start, inner = (self.private,) * 2 if context is None else self._parts(context)
        return self._joined(self.function.empty(items, start), self.function.empty(items, inner))

    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        return self.function.gains(items, self._parts(state)[1])

    def contributions(self, items: Items, state: State) -> Float[Array, "batch items width"]:
        return self.function.contributions(items, self._parts(state)[1])

    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        start, inner = self._parts(state)
        return self._joined(start, self.function.add(items, inner, member))

    def value(self, state: State) -> Float[Array, " batch"]:
        start, inner = self._parts(state)
        return self.function.value(inner) - self.function.value(start)

    @property
    def monotone(self) -> bool | None:
        return self.function.monotone

    @property
    def submodular(self) -> bool:
        return self.function.submodular

    @property
    def information_submodular(self) -> bool:
        return self.function.information_submodular

    def check(self, items: Items, context: State | None = None) -> None:
        self.function.check(items, self.private if context is None else self._parts(context)[1])

    def of_set(self, row: int) -> ConditionalGain:
        return ConditionalGain(self.function.of_set(row), _of_row(self.private, row))

    def _parts(self, state: State) -> tuple[State, ...]:
        """P, and A ∪ P."""
        check_maker(state, "ConditionalGain")
        return state.parts

    def _joined(self, start: State, inner: State) -> State:
        return State(None, inner.outside, (start, inner), "ConditionalGain")


@final
@dataclass(frozen=True, eq=False)
class MutualInformation(SetFunction):
    """I_f(A; Q) = f(A) + f(Q) − f(A ∪ Q), for a fixed set Q of other items.

    Choose it to select what answers a query: only what A and Q have in common counts, and each part
    of it once. It is monotone for every submodular f. It is submodular for FacilityLocation,
    ProbabilisticCoverage, GraphCut and FeatureCoverage with log(1 + x), √x, powers or 1 − exp(−x);
    `greedy` then has its guarantee, 1 − 1/e. For others, `greedy` searches without a certificate.
    Gains are differences of gains of f, and as precise as those.

    Args:
        function: f.
        query: The state of Q, made by f from items with the same features.

    Examples:
        >>> import numpy as np
        >>> from dgn.core.functions import FacilityLocation
        >>> from dgn.core.search import greedy
        >>> f, query = FacilityLocation(), Items(np.array([[0.0, 0.9, 0.0]]))
        >>> wanted = f.add(query, f.empty(query), np.ones((1, 1)))
        >>> items = np.array([[1.0, 0.0, 0.0], [0.0, 0.8, 0.0], [0.0, 0.1, 0.9]])
        >>> greedy(MutualInformation(f, wanted), items, k=1).indices
        (1,)
    """

    function: SetFunction
    query: State

    def empty(self, items: Items, context: State | None = None) -> State:
        given = (self.query, None, self.query) if context is None else self._parts(context)
        return self._joined(*(self.function.empty(items, one) for one in given))

    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        _, alone, joint = self._parts(state)
        return self._shared(self.function.gains(items, alone), self.function.gains(items, joint))

    def contributions(self, items: Items, state: State) -> Float[Array, "batch items width"]:
        _, alone, joint = self._parts(state)
        by_feature = self.function.contributions
        return self._shared(by_feature(items, alone), by_feature(items, joint))

    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        query, alone, joint = self._parts(state)
        add = self.function.add
        return self._joined(query, add(items, alone, member), add(items, joint, member))

    def value(self, state: State) -> Float[Array, " batch"]:
        query, alone, joint = map(self.function.value, self._parts(state))
        return alone - (joint - query)

    @property
    def monotone(self) -> bool | None:
        return True if self.function.submodular else None

    @property
    def submodular(self) -> bool:
        return self.function.information_submodular

    def check(self, items: Items, context: State | None = None) -> None:
        _, alone, joint = (None, None, self.query) if context is None else self._parts(context)
        self.function.check(items, alone)
        self.function.check(items, joint)

    def of_set(self, row: int) -> MutualInformation:
        return MutualInformation(self.function.of_set(row), _of_row(self.query, row))

    def _shared(self, alone: Array, joint: Array) -> Array:
        """What an item adds, less what it adds next to Q: never negative if f is submodular."""
        xp, shared = namespace(alone), alone - joint
        return xp.maximum(shared, xp.zeros_like(shared)) if self.function.submodular else shared

    def _parts(self, state: State) -> tuple[State, ...]:
        """Q, A, and A ∪ Q."""
        check_maker(state, "MutualInformation")
        return state.parts

    def _joined(self, query: State, alone: State, joint: State) -> State:
        return State(None, alone.outside, (query, alone, joint), "MutualInformation")


def _of_row(state: State, row: int) -> State:
    """The state of one set of the batch; one that all sets share stays as it is."""
    if state.outside.shape[0] == 1:
        return state
    return state.rows(namespace(state.outside).asarray([row], device=device_of(state.outside)))
