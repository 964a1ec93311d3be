"""The contract of a set function: what a set is worth, hard or soft, many sets at once."""

from __future__ import annotations

from abc import ABC, abstractmethod

from dgn.arrays import Array, Float
from dgn.objectives.items import Items, State


class SetFunction(ABC):
    """A monotone submodular function f of a set of items, with f(∅) = 0.

    Four methods are enough for every maximizer and for the unfolded network:

        state = f.empty(items)                # the empty set, or what a context already gives
        gains = f.gains(items, state)         # f(v | A) for every item v
        state = f.add(items, state, member)   # a one-hot pick, or a soft one
        value = f.value(state)                # f(A)

    A set function is a frozen value object. It holds no parameter to train: a torch module that
    does builds one, and gradients flow through it. Memberships lie in [0, 1]. The union of a soft
    set s with an item v sets s_v to 1, so that an item inside has no gain.
    """

    @abstractmethod
    def empty(self, items: Items, context: State | None = None) -> State:
        """The state of the empty set; with `context`, f(· | context) is searched instead.

        The context may have come from other items: only its level is taken over.
        """

    @abstractmethod
    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        """f(v | A) of every item, [batch, items]; 0 for padding and for items inside."""

    @abstractmethod
    def contributions(self, items: Items, state: State) -> Float[Array, "batch items width"]:
        """The gains, feature by feature: they sum to `gains` over the last axis."""

    @abstractmethod
    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        """The state of the union with `member`, [batch, items] in [0, 1]."""

    @abstractmethod
    def value(self, state: State) -> Float[Array, " batch"]:
        """f(A) of every set, [batch]."""

    @abstractmethod
    def check(self, items: Items, context: State | None = None) -> None:
        """Raise InvalidInput unless the items, the context and the weights are allowed."""
