"""The constraints of a search besides k and a budget, as every search takes them.

    greedy(f, items, 5, given=[0, 3])                   these items are there already: f(· | given)
    greedy(f, items, 5, pinned=[7])                     item 7 must be selected, and comes first
    greedy(f, items, 5, groups=pages, max_per_group=2)  at most two items of every page

`Constraints` is what a caller asked for, checked; `Constraints.room` is what it leaves to a search.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Bool, device_of, namespace
from dgn.core.search.room import Room, as_numpy
from dgn.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Constraints:
    """Which sets are allowed, in NumPy arrays that were checked.

    Attributes:
        given: [batch, items], True for items that are already there; None if there are none.
        pinned: The items of every set that must be selected, in their order; None if there are
            none.
        groups: [batch, items], from 0 on; items without a group have the last number. None if
            there are no groups.
        quotas: [groups], how many items of each group may be selected.
    """

    given: NDArray[np.bool_] | None = None
    pinned: tuple[tuple[int, ...], ...] | None = None
    groups: NDArray[np.int64] | None = None
    quotas: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        mask: Array,
        k: int | None,
        *,
        single: bool,
        given: Any = None,
        pinned: Any = None,
        groups: Any = None,
        max_per_group: Any = None,
    ) -> Constraints:
        """The constraints of a search, after they were checked.

        Args:
            mask: [batch, items], False for padding.
            k: The most items that may be selected; None if there is no such limit.
            single: Whether the caller passed one set and not a batch.
            given: Indices or booleans, as the caller passed them.
            pinned: Indices or booleans, as the caller passed them.
            groups: [items] or [batch, items], as the caller passed them.
            max_per_group: One quota for all groups, or one for each.
        """
        if (groups is None) != (max_per_group is None):
            missing, other = ("groups", "max_per_group")[:: 1 if groups is None else -1]
            raise InvalidInput(
                missing, message=f"{other} was passed without {missing}; pass both or neither."
            )
        if given is None and pinned is None and groups is None:
            return cls()
        real = as_numpy(mask)
        own = cls()
        if given is not None:
            rows = _indices("given", given, real, single=single)
            if any(map(len, rows)):
                there = np.zeros(real.shape, np.bool_)
                for row, chosen in enumerate(rows):
                    there[row, chosen] = True
                own = replace(own, given=there)
        if groups is not None:
            numbers, quotas = _quotas(groups, max_per_group, real)
            own = replace(own, groups=numbers, quotas=quotas)
        if pinned is not None:
            rows = _indices("pinned", pinned, real, single=single)
            if any(map(len, rows)):
                own = replace(own, pinned=tuple(tuple(row.tolist()) for row in rows))
                own._check_pinned(k, single)
        return own

    @property
    def limits_choice(self) -> bool:
        """Whether more is asked for than that some items are there already."""
        return self.pinned is not None or self.groups is not None

    def of_set(self, row: int, size: int) -> Constraints:
        """The constraints of one set of the batch, of which the first items are kept."""
        return Constraints(
            None if self.given is None else self.given[row : row + 1, :size],
            None if self.pinned is None else self.pinned[row : row + 1],
            None if self.groups is None else self.groups[row : row + 1, :size],
            self.quotas,
        )

    def given_of(self, row: int) -> list[int]:
        """The items of one set that are already there."""
        return [] if self.given is None else np.flatnonzero(self.given[row]).tolist()

    def pinned_of(self, row: int) -> tuple[int, ...]:
        """The items of one set that must be selected."""
        return () if self.pinned is None else self.pinned[row]

    def room(self, mask: Bool[Array, "batch items"], k: int) -> Room:
        """What the constraints leave to a search, after what is given and what is pinned.

        Args:
            mask: [batch, items], False for padding.
            k: How many items may be selected, the pinned ones included.
        """
        xp, device = namespace(mask), device_of(mask)
        batch, size = mask.shape
        if self.given is None and not self.limits_choice:
            return Room(mask, xp.full((batch,), min(k, size), dtype=xp.int64, device=device))
        counts = np.full(batch, min(k, size))
        free = np.ones((batch, size), np.bool_) if self.given is None else ~self.given
        quotas = None if self.quotas is None else np.tile(self.quotas, (batch, 1))
        for row, pinned in enumerate(self.pinned or ()):
            counts[row] -= len(pinned)
            free[row, list(pinned)] = False
            if quotas is not None and self.groups is not None:
                np.subtract.at(quotas[row], self.groups[row, list(pinned)], 1)
        if quotas is not None and self.groups is not None:
            free &= np.take_along_axis(quotas, self.groups, axis=1) > 0
        free &= (counts > 0)[:, None]

        def moved(array: NDArray[Any] | None) -> Array:
            return None if array is None else xp.asarray(array, device=device)

        return Room(mask & moved(free), moved(counts), moved(self.groups), moved(quotas))

    def _check_pinned(self, k: int | None, single: bool) -> None:
        assert self.pinned is not None  # noqa: S101
        for row, chosen in enumerate(self.pinned):
            where = "" if single else f" of set {row}"
            repeated = [item for item in chosen if chosen.count(item) > 1]
            there = [item for item in chosen if self.given is not None and self.given[row, item]]
            problem = ""
            if repeated:
                problem = f"pinned contains item {repeated[0]}{where} more than once."
            elif there:
                problem = f"Item {there[0]}{where} is both given and pinned; it can be only one."
            elif k is not None and len(chosen) > k:
                problem = f"{len(chosen)} items{where} are pinned, more than k, which is {k}."
            elif self.groups is not None and self.quotas is not None:
                used = np.bincount(self.groups[row, list(chosen)], minlength=len(self.quotas))
                if (used > self.quotas).any():
                    problem = (
                        f"The pinned items{where} are more of one group than max_per_group allows."
                    )
            if problem:
                raise InvalidInput("pinned", message=problem)


def _indices(
    argument: str, values: Any, mask: NDArray[np.bool_], *, single: bool
) -> list[NDArray[np.int64]]:
    """The items of every set that are named by indices or by booleans."""
    batch, size = mask.shape
    rows = values if batch > 1 or _is_nested(values) else [values]
    if single:
        allowed = f"the indices of items, or {size} booleans"
    else:
        allowed = (
            f"booleans of shape {(batch, size)}, or a list of indices for each of {batch} sets"
        )
    try:
        rows = list(rows)
        arrays = [as_numpy(row) for row in rows]
    except (TypeError, ValueError):
        raise InvalidInput(argument, found=f"{values!r:.40}", allowed=allowed) from None
    if len(arrays) != batch:
        raise InvalidInput(argument, found=f"{len(arrays)} rows", allowed=allowed)
    found: list[NDArray[np.int64]] = []
    for row, array in enumerate(arrays):
        where = "" if single else f" in set {row}"
        if array.ndim == 1 and array.dtype.kind == "b" and array.shape == (size,):
            array = np.flatnonzero(array)
        elif array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            name = f"dtype {array.dtype} and shape {array.shape}{where}"
            raise InvalidInput(argument, found=name, allowed=allowed)
        wrong = array[(array < 0) | (array >= size)]
        if len(wrong):
            raise InvalidInput(
                argument, found=f"{wrong[0]}{where}", allowed=f"indices from 0 to {size - 1}"
            )
        array = array.astype(np.int64)
        padding = array[~mask[row, array]]
        if len(padding):
            raise InvalidInput(
                argument,
                message=f"{argument} contains item {padding[0]}{where}, which is padding; name "
                "real items only.",
            )
        found.append(array)
    return found


def _is_nested(values: Any) -> bool:
    """Whether this is one row in a list, or in an array with one row."""
    try:
        return len(values) == 1 and as_numpy(values[0]).ndim == 1
    except (TypeError, ValueError, KeyError):
        return False


def _quotas(
    groups: Any, max_per_group: Any, mask: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The groups of items, numbered without gaps, and the quota of each number."""
    batch, size = mask.shape
    allowed = f"integers of shape ({size},) or {(batch, size)}, one for each item"
    try:
        numbers = as_numpy(groups)
    except (TypeError, ValueError):
        raise InvalidInput("groups", found=f"{groups!r:.40}", allowed=allowed) from None
    if numbers.dtype.kind not in "iu" or numbers.shape not in {(size,), (batch, size)}:
        found = f"dtype {numbers.dtype} and shape {numbers.shape}"
        raise InvalidInput("groups", found=found, allowed=allowed)
    numbers = np.broadcast_to(numbers, (batch, size))
    has_group = mask & (numbers >= 0)
    known, places = np.unique(numbers[has_group], return_inverse=True)
    quotas = np.append(_quota_of(known, max_per_group), size)
    own = np.full((batch, size), len(known), np.int64)
    own[has_group] = places
    return own, quotas.astype(np.int64)


def _quota_of(known: NDArray[Any], max_per_group: Any) -> NDArray[Any]:
    """The quotas of these groups."""
    allowed = "an integer of at least 1, or one integer of at least 0 for each group"
    try:
        one = None if isinstance(max_per_group, bool) else operator.index(max_per_group)
    except TypeError:
        one = None
    if one is not None:
        if one < 1:
            raise InvalidInput("max_per_group", found=str(one), allowed=allowed)
        return np.full(len(known), min(one, 2**31))
    try:
        quotas = as_numpy(max_per_group)
    except (TypeError, ValueError):
        quotas = np.zeros(0)
    if quotas.ndim != 1 or quotas.dtype.kind not in "iu" or (quotas < 0).any():
        raise InvalidInput("max_per_group", found=f"{max_per_group!r:.40}", allowed=allowed)
    if len(known) and known[-1] >= len(quotas):
        raise InvalidInput(
            "max_per_group",
            message=f"max_per_group has {len(quotas)} quotas, and groups contains {known[-1]}; "
            "pass one quota for each group number from 0 on, or one integer for all groups.",
        )
    return np.minimum(quotas, 2**31)[known]
