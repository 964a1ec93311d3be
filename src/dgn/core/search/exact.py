"""Exact search by branch and bound, for small sets: the reference for greedy.

A node is a partial set A and the candidates that may still join it. Its children add one candidate
each, in the order of their gains, and a child may use later candidates only, so that every set is
reached once. With r items to go, submodularity bounds child i by f(A) plus its own gain and the
r − 1 next ones in that order; children whose bound does not beat the best set so far are cut. A
gain never grows on the way down, so the gains of a parent are ceilings for its children: a
candidate whose ceiling is too low is not evaluated again. Nodes are expanded many at a time, as
rows of one batch, the most promising first.

Given and pinned items are part of the state of the root. With groups, a candidate leaves a node
when its group is full there. All largest sets that the quotas allow have the same size, so that a
search still looks at sets of one size alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgn.core.arrays import Array, Float, device_of, namespace
from dgn.core.functions import Items, SetFunction, State
from dgn.core.search._checks import checked_count, checked_items, over_sets
from dgn.core.search.constrained import begin
from dgn.core.search.constraints import Constraints
from dgn.core.search.greedy import search_sets
from dgn.core.search.room import Room, as_numpy
from dgn.core.search.selection import Certificate, Selection, Selections, largest_sum
from dgn.errors import InvalidInput, SearchTooLarge

# Few calls on many rows, but on arrays that stay in the processor's cache.
_ELEMENTS_PER_CALL = 1 << 17
_NODES_PER_STEP = 512

# Every node may have a child for each candidate, and every child a ceiling for each: one step has
# about this many numbers, and a set with more candidates than its root is refused.
_ELEMENTS_PER_STEP = 1 << 22


def exact(
    objective: SetFunction,
    items: Items | Array,
    k: int,
    *,
    context: State | None = None,
    given: Any = None,
    pinned: Any = None,
    groups: Any = None,
    max_per_group: Any = None,
    max_nodes: int = 1_000_000,
) -> Selection | Selections:
    """Find the best set of at most k items and prove it, in the order in which greedy selects.

    For small sets: 30 items and k = 7 take well under a second. The time grows quickly with both.

    Args:
        objective: The set function f. It must be evaluable on parts of a set (see SetFunction).
        items: Items, or an array of features: [items, features] or [batch, items, features].
        k: The number of items to select.
        context: What is already covered: f(· | context) is maximized instead of f.
        given: Items that are already there, as for `greedy`.
        pinned: Items that must be selected, as for `greedy`.
        groups: The group of every item, as for `greedy`.
        max_per_group: The most items of each group, as for `greedy`.
        max_nodes: The number of partial sets after which the search gives up.

    Returns:
        One Selection for a single set, Selections for a batch.

    Raises:
        SearchTooLarge: No proof was found within `max_nodes`, or more than 2,048 items could be
            part of a better set than that of greedy.
        InvalidInput: The function contradicts itself: a search over parts of the set and a search
            over the whole set give different values.
    """
    items = checked_items(objective, items, context, needs_monotone=True)
    count, max_nodes = checked_count(k), checked_count(max_nodes, "max_nodes")

    constraints = Constraints.of(
        items.mask,
        count,
        single=items.single,
        given=given,
        pinned=pinned,
        groups=groups,
        max_per_group=max_per_group,
    )

    def search(
        function: SetFunction, own: Items, context: State | None, limits: Constraints
    ) -> Selection:
        room = limits.room(own.mask, count)
        start = begin(function, own, context, limits)
        pinned, gains = start.pinned[0].tolist(), start.gains[0].tolist()
        if not bool(namespace(own.mask).any(room.allowed)):
            return Selection.of(pinned, gains, -math.inf, own.features)
        is_free = limits.given is None and limits.pinned is None
        added = _best_in(room, function, own, context if is_free else start.state, max_nodes)
        if not pinned:
            return added
        indices, gains = [*pinned, *added.indices], [*gains, *added.gains]
        return Selection.of(indices, gains, -math.inf, own.features)  # nothing exceeds it

    return over_sets(search, objective, items, context, constraints)


def _best_in(
    room: Room, objective: SetFunction, items: Items, context: State | None, max_nodes: int
) -> Selection:
    """The best set of items that are allowed, in the order in which greedy selects them."""
    allowed = room.allowed[0]
    xp, device = namespace(allowed), device_of(allowed)
    most = min(int(room.counts[0]), int(xp.sum(allowed)))
    limits, in_groups = Constraints(), None
    if room.groups is not None and room.quotas is not None:
        in_groups = _Groups(room.groups[0], room.quotas[0])
        limits = Constraints(groups=as_numpy(room.groups), quotas=as_numpy(room.quotas)[0])
        most = min(most, in_groups.rank(allowed))
    own = Items(items.features, room.allowed)
    first_guess = search_sets(objective, own, context, limits, most)[0]
    branching = _Search(objective, own, most, context, max_nodes, first_guess, in_groups)
    best = branching.run()
    ordered = first_guess
    if set(best) != set(first_guess.indices):
        kept = xp.asarray([[index in best for index in range(items.size)]], device=device)
        chosen = Items(items.features, kept)
        ordered = search_sets(objective, chosen, context, Constraints(), len(best))[0]
    value = ordered.values[-1]
    if not math.isclose(value, branching.best_value, rel_tol=branching.tolerance):
        raise InvalidInput(
            "objective",
            message=f"{type(objective).__name__} gives the same set the values {value:g} and "
            f"{branching.best_value:g}, depending on the items around it; use greedy.",
        )
    return Selection(ordered.indices, ordered.gains, ordered.values, Certificate(value, value))


@dataclass(frozen=True, eq=False)
class _Groups:
    """The groups of the items, and how many of each may be selected.

    Attributes:
        groups: [items], the group of every item.
        quotas: [groups].
    """

    groups: Array
    quotas: Array

    def rank(self, allowed: Array) -> int:
        """The size of the largest sets of these items that the quotas allow."""
        members = np.bincount(as_numpy(self.groups)[as_numpy(allowed)], minlength=len(self.quotas))
        return int(np.minimum(members, as_numpy(self.quotas)).sum())

    def of(self, items: Array) -> _Groups:
        """The quotas of some of the items."""
        return _Groups(namespace(items).take(self.groups, items, axis=0), self.quotas)

    def left(self, chosen: Array) -> Array:
        """[nodes, items], how many of the group of each item may join `chosen`, [nodes, size]."""
        xp = namespace(chosen)
        flat = xp.take(self.groups, xp.reshape(chosen, (-1,)), axis=0)
        own = xp.reshape(flat, chosen.shape)
        used = xp.sum(own[:, :, None] == self.groups[None, None, :], axis=1, dtype=xp.int64)
        return xp.take(self.quotas, self.groups, axis=0)[None, :] - used

    def excluded_pairs(self, chosen: Array, order: Array) -> Array:
        """[nodes, items, items], which two items, in this order, may not both join `chosen`."""
        xp = namespace(chosen)
        groups = xp.reshape(xp.take(self.groups, xp.reshape(order, (-1,)), axis=0), order.shape)
        is_last = xp.take_along_axis(self.left(chosen), order, axis=1) < 2
        return (groups[:, :, None] == groups[:, None, :]) & is_last[:, :, None]


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Partial sets of one size, the most promising last.

    Attributes:
        state: The state of each partial set.
        values: [nodes], f of each partial set, given the context.
        chosen: [nodes, size], the items of each partial set.
        ceilings: [nodes, items], upper bounds of the gains; −inf where an item may not join.
        bounds: [nodes], what no completion can exceed.
    """

    state: State
    values: Array
    chosen: Array
    ceilings: Array
    bounds: Array

    def __len__(self) -> int:
        return self.bounds.shape[0]

    def rows(self, indices: Array) -> _Nodes:
        xp = namespace(self.bounds)
        return _Nodes(
            self.state.rows(indices),
            xp.take(self.values, indices, axis=0),
            xp.take(self.chosen, indices, axis=0),
            xp.take(self.ceilings, indices, axis=0),
            xp.take(self.bounds, indices, axis=0),
        )


class _Search:
    def __init__(
        self,
        objective: SetFunction,
        items: Items,
        k: int,
        context: State | None,
        max_nodes: int,
        first_guess: Selection,
        groups: _Groups | None,
    ) -> None:
        self.objective, self.items, self.k = objective, items, k
        self.groups = groups
        self.xp = namespace(items.features)
        self.context = context
        self.best_set = first_guess.indices
        # Values count from the context on: next to the value of the context, gains could vanish.
        self.best_value = first_guess.values[-1]
        self.max_nodes = self.nodes_left = max_nodes
        self.tolerance = 1000 * float(self.xp.finfo(items.features.dtype).eps)
        self.rows_per_call = max(1, _ELEMENTS_PER_CALL // items.features.shape[2])

    def run(self) -> tuple[int, ...]:
        """Search, and return the items of the best set."""
        if self.k == 1:
            return self.best_set
        candidates = self._keep_candidates()
        if len(candidates) < self.k:
            return self.best_set
        guess = self.best_set
        stack = [self._root_node()]
        at_once = max(1, min(_NODES_PER_STEP, _ELEMENTS_PER_STEP // self.items.size**2))
        while stack:
            nodes = self._promising(stack.pop())
            if len(nodes) > at_once:
                index = self.xp.arange(len(nodes), device=device_of(nodes.bounds))
                stack.append(nodes.rows(index[:-at_once]))
                nodes = nodes.rows(index[-at_once:])
            self._count(len(nodes))
            if nodes.chosen.shape[1] == self.k - 2:
                self._try_pairs(nodes)
            elif len(nodes):
                stack.append(self._children(nodes))
        if self.best_set is guess:
            return guess
        return tuple(candidates[index] for index in self.best_set)

    def _keep_candidates(self) -> list[int]:
        """Drop the items that no better set has; returns those that are left, by their indices."""
        xp, items = self.xp, self.items
        gains = self.objective.gains(items, self.objective.empty(items, self.context))
        gains = xp.where(items.mask, gains, xp.full_like(gains, -xp.inf))
        (kept,) = xp.nonzero((gains + largest_sum(gains, self.k - 1)[:, None])[0] > self._to_beat)
        if kept.shape[0] ** 2 > _ELEMENTS_PER_STEP:
            raise SearchTooLarge(
                f"{kept.shape[0]:,} of {items.size:,} items could be part of a better set, too "
                f"many for an exact search (at most {math.isqrt(_ELEMENTS_PER_STEP):,}); search "
                "fewer items, or use lazy_greedy, whose certificate says how good its set is."
            )
        self.items = items.gather(kept[None, :])
        self.groups = None if self.groups is None else self.groups.of(kept)
        return kept.tolist()

    def _root_node(self) -> _Nodes:
        xp = self.xp
        root = self.objective.empty(self.items, self.context)
        gains = self.objective.gains(self.items, root)
        return _Nodes(
            state=root,
            values=xp.zeros_like(gains[:, 0]),
            chosen=xp.zeros((1, 0), dtype=xp.int64, device=device_of(gains)),
            ceilings=xp.where(self.items.mask, gains, xp.full_like(gains, -xp.inf)),
            bounds=xp.full_like(gains[:, 0], xp.inf),
        )

    def _count(self, nodes: int) -> None:
        self.nodes_left -= nodes
        if self.nodes_left < 0:
            raise SearchTooLarge(
                f"No proof was found within {self.max_nodes:,} partial sets ({self.items.size} "
                f"items, k = {self.k}); use fewer items, a smaller k, or a larger max_nodes."
            )

    @property
    def _to_beat(self) -> float:
        # A set that is better by rounding alone is not better.
        return self.best_value * (1 + 8 * float(self.xp.finfo(self.items.features.dtype).eps))

    def _promising(self, nodes: _Nodes) -> _Nodes:
        (indices,) = self.xp.nonzero(nodes.bounds > self._to_beat)
        return nodes if indices.shape[0] == len(nodes) else nodes.rows(indices)

    def _children(self, nodes: _Nodes) -> _Nodes:
        xp = self.xp
        order, gains = self._sorted_gains(nodes)
        to_go = self.k - nodes.chosen.shape[1]
        bounds = nodes.values[:, None] + _window_sums(gains, to_go)
        parent, position = xp.nonzero((gains > -xp.inf) & (bounds > self._to_beat))
        bounds = bounds[parent, position]
        promising_last = xp.argsort(bounds, stable=True)
        parent, position = parent[promising_last], position[promising_last]
        order, gains = xp.take(order, parent, axis=0), xp.take(gains, parent, axis=0)
        item = xp.take_along_axis(order, position[:, None], axis=1)
        gain = xp.take_along_axis(gains, position[:, None], axis=1)[:, 0]
        later = xp.arange(self.items.size, device=device_of(position)) > position[:, None]
        ceilings = xp.where(later, gains, xp.full_like(gains, -xp.inf))
        ceilings = xp.take_along_axis(ceilings, xp.argsort(order, axis=1), axis=1)
        chosen = xp.concat([xp.take(nodes.chosen, parent, axis=0), item], axis=1)
        if self.groups is not None:
            is_open = self.groups.left(chosen) > 0
            ceilings = xp.where(is_open, ceilings, xp.full_like(ceilings, -xp.inf))
        return _Nodes(
            state=self._joined(nodes.state.rows(parent), item),
            values=xp.take(nodes.values, parent, axis=0) + gain,
            chosen=chosen,
            ceilings=ceilings,
            bounds=bounds[promising_last],
        )

    def _try_pairs(self, nodes: _Nodes) -> None:
        """Complete each node with its last two items: all pairs that could beat the best set."""
        xp = self.xp
        order, gains = self._sorted_gains(nodes)
        bounds = nodes.values[:, None, None] + gains[:, :, None] + gains[:, None, :]
        if self.groups is not None:
            excluded = self.groups.excluded_pairs(nodes.chosen, order)
            bounds = xp.where(excluded, xp.full_like(bounds, -xp.inf), bounds)
        parent, first, second = xp.nonzero(bounds > self._to_beat)
        (ordered,) = xp.nonzero(first < second)
        parent, ranks = parent[ordered], xp.stack([first[ordered], second[ordered]], axis=1)
        for start in range(0, parent.shape[0], self.rows_per_call):
            rows = parent[start : start + self.rows_per_call]
            rank = ranks[start : start + self.rows_per_call]
            pairs = xp.take_along_axis(xp.take(order, rows, axis=0), rank, axis=1)
            first_gain = gains[rows, rank[:, 0]]
            with_first = self._joined(nodes.state.rows(rows), pairs[:, :1])
            second_gain = self._gains_of(pairs[:, 1], with_first)
            found = xp.take(nodes.values, rows, axis=0) + first_gain + second_gain
            row = int(xp.argmax(found))
            if found[row].item() > self._to_beat:
                self.best_value = found[row].item()
                chosen = xp.concat([nodes.chosen[int(rows[row])], pairs[row]])
                self.best_set = tuple(chosen.tolist())

    def _sorted_gains(self, nodes: _Nodes) -> tuple[Array, Array]:
        """The items by decreasing gain, [nodes, items], and their gains in that order.

        The gain of an item that cannot be part of a better set is −inf.
        """
        xp = self.xp
        others = largest_sum(nodes.ceilings, self.k - nodes.chosen.shape[1] - 1)
        bounds = (nodes.values + others)[:, None] + nodes.ceilings
        parent, item = xp.nonzero(bounds > self._to_beat)
        gains = xp.full_like(nodes.ceilings, -xp.inf)
        for start in range(0, parent.shape[0], self.rows_per_call):
            part = slice(start, start + self.rows_per_call)
            rows, column = parent[part], item[part]
            gains[rows, column] = self._gains_of(column, nodes.state.rows(rows))
        order = xp.argsort(-gains, axis=1, stable=True)
        return order, xp.take_along_axis(gains, order, axis=1)

    def _gains_of(self, chosen: Array, states: State) -> Float[Array, " nodes"]:
        """What one item per node, [nodes], adds to these states."""
        candidate = self.items.gather(chosen[:, None])
        return self.objective.gains(candidate, self.objective.empty(candidate, states))[:, 0]

    def _joined(self, states: State, chosen: Array) -> State:
        """The states after these items, [nodes, joining], joined."""
        joining = self.items.gather(chosen)
        members = self.xp.ones_like(joining.features[:, :, 0])
        return self.objective.add(joining, self.objective.empty(joining, states), members)


def _window_sums(gains: Float[Array, "nodes items"], width: int) -> Float[Array, "nodes items"]:
    """The sum of each gain and the width − 1 that follow it, as far as they may join."""
    xp = namespace(gains)
    zeros = xp.zeros_like(gains)
    padded = xp.concat([xp.where(gains > -xp.inf, gains, zeros), zeros[:, : width - 1]], axis=1)
    size = gains.shape[1]
    return sum((padded[:, shift : shift + size] for shift in range(1, width)), padded[:, :size])
