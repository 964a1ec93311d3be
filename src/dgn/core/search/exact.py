"""Exact search by branch and bound, for small sets: the reference for greedy.

A node is a partial set A and the candidates that may still join it. Its children add one candidate
each, in the order of their gains, and a child may use later candidates only, so that every set is
reached once. With r items to go, submodularity bounds child i by f(A) plus its own gain and the
r − 1 next ones in that order; children whose bound does not beat the best set so far are cut. A
gain never grows on the way down, so the gains of a parent are ceilings for its children: a
candidate whose ceiling is too low is not evaluated again. Nodes are expanded many at a time, as
rows of one batch, the most promising first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dgn.core.arrays import Array, Float, device_of, namespace
from dgn.core.functions import Items, SetFunction, State
from dgn.core.search._checks import checked_count, checked_items, over_sets, single
from dgn.core.search.greedy import greedy
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
    max_nodes: int = 1_000_000,
) -> Selection | Selections:
    """Find the best set of at most k items and prove it, in the order in which greedy selects.

    For small sets: 30 items and k = 7 take well under a second. The time grows quickly with both.

    Args:
        objective: The set function f. It must be evaluable on parts of a set (see SetFunction).
        items: Items, or an array of features: [items, features] or [batch, items, features].
        k: The number of items to select.
        context: What is already covered: f(· | context) is maximized instead of f.
        max_nodes: The number of partial sets after which the search gives up.

    Returns:
        One Selection for a single set, Selections for a batch.

    Raises:
        SearchTooLarge: No proof was found within `max_nodes`, or more than 2,048 items could be
            part of a better set than that of greedy.
        InvalidInput: The function contradicts itself: a search over parts of the set and a search
            over the whole set give different values.
    """
    items = checked_items(objective, items, context)
    count, max_nodes = checked_count(k), checked_count(max_nodes, "max_nodes")

    def search(function: SetFunction, own: Items, given: State | None) -> Selection:
        most = min(count, int(namespace(own.mask).sum(own.mask)))
        first_guess = single(greedy(function, own, most, context=given))
        branching = _Search(function, own, most, given, max_nodes, first_guess)
        best = branching.run()
        if set(best) == set(first_guess.indices):
            ordered = first_guess
        else:
            ordered = _in_greedy_order(function, own, best, given)
        value = ordered.values[-1]
        if not math.isclose(value, branching.best_value, rel_tol=branching.tolerance):
            raise InvalidInput(
                "objective",
                message=f"{type(objective).__name__} gives the same set the values {value:g} and "
                f"{branching.best_value:g}, depending on the items around it; use greedy.",
            )
        return Selection(ordered.indices, ordered.gains, ordered.values, Certificate(value, value))

    return over_sets(search, objective, items, context)


def _in_greedy_order(
    objective: SetFunction, items: Items, chosen: tuple[int, ...], context: State | None
) -> Selection:
    xp = namespace(items.features)
    kept = xp.asarray([i in chosen for i in range(items.size)], device=device_of(items.features))
    only_chosen = Items(items.features, kept[None, :])
    return single(greedy(objective, only_chosen, len(chosen), context=context))


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
    ) -> None:
        self.objective, self.items, self.k = objective, items, k
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
        return _Nodes(
            state=self._joined(nodes.state.rows(parent), item),
            values=xp.take(nodes.values, parent, axis=0) + gain,
            chosen=xp.concat([xp.take(nodes.chosen, parent, axis=0), item], axis=1),
            ceilings=xp.take_along_axis(ceilings, xp.argsort(order, axis=1), axis=1),
            bounds=bounds[promising_last],
        )

    def _try_pairs(self, nodes: _Nodes) -> None:
        """Complete each node with its last two items: all pairs that could beat the best set."""
        xp = self.xp
        order, gains = self._sorted_gains(nodes)
        bounds = nodes.values[:, None, None] + gains[:, :, None] + gains[:, None, :]
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
