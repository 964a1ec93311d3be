"""A weighted sum of set functions, each on features of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

from dgn.core.arrays import Array, Float, cast_like, device_of, is_array, namespace
from dgn.core.functions.base import (
    SetFunction,
    as_array,
    check_extent,
    check_maker,
    check_range,
    row_of,
)
from dgn.core.items import Items, State
from dgn.errors import InvalidInput


@final
@dataclass(frozen=True, eq=False)
class Mixture(SetFunction):
    """f(A) = Σ_i weight_i · f_i(A): a non-negative sum of submodular functions is submodular.

    Choose it for two aims at once: what covers a query, and what represents all items.

    Args:
        functions: The parts.
        weights: At least 0; [parts], or [batch, parts] for one row per set.
        columns: The features that each part reads, one slice per part; by default, every part
            reads all features. Concatenate what the parts need:
            `Items(concat([h, similarities], axis=-1))` with
            `columns=(slice(0, 300), slice(300, None))`.
    """

    functions: tuple[SetFunction, ...]
    weights: Array
    columns: tuple[slice, ...] | None = None

    def __post_init__(self) -> None:
        count = len(self.functions)
        if not count:
            raise InvalidInput("functions", found="none", allowed="at least one set function")
        if not is_array(self.weights):
            object.__setattr__(self, "weights", as_array("weights", self.weights))
        entries = {"weights": self.weights.shape[-1] if self.weights.ndim in {1, 2} else 0}
        if self.columns is not None:
            entries["columns"] = len(self.columns)
        for name, found in entries.items():
            if found != count:
                raise InvalidInput(
                    name,
                    message=f"{name} has {found} entries; it needs one for each of the "
                    f"{count} functions.",
                )

    def empty(self, items: Items, context: State | None = None) -> State:
        given = (None,) * len(self.functions) if context is None else _parts(context)
        views = zip(self.functions, self._views(items), given, strict=True)
        return _joined([f.empty(view, part) for f, view, part in views])

    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        weights = self._weights_like(items.features)
        gains = [f.gains(view, part) for f, view, part in self._over_parts(items, state)]
        return sum(weights[i][:, None] * gain for i, gain in enumerate(gains))

    def contributions(self, items: Items, state: State) -> Float[Array, "batch items width"]:
        weights = self._weights_like(items.features)
        parts = [f.contributions(view, part) for f, view, part in self._over_parts(items, state)]
        weighted = [weights[i][:, None, None] * part for i, part in enumerate(parts)]
        return namespace(items.features).concat(weighted, axis=-1)

    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        parts = self._over_parts(items, state)
        return _joined([f.add(view, part, member) for f, view, part in parts])

    def value(self, state: State) -> Float[Array, " batch"]:
        weights = self._weights_like(state.outside)
        parts = zip(self.functions, _parts(state), strict=True)
        return sum(weights[i] * f.value(part) for i, (f, part) in enumerate(parts))

    def check(self, items: Items, context: State | None = None) -> None:
        check_range("weights", cast_like(self.weights, items.features))
        given = (None,) * len(self.functions) if context is None else _parts(context)
        for f, view, part in zip(self.functions, self._views(items), given, strict=True):
            f.check(view, part)
        check_extent(lambda: self.extent(items), items.features)

    def extent(self, items: Items) -> tuple[Array, Array] | None:
        parts = [f.extent(view) for f, view in zip(self.functions, self._views(items), strict=True)]
        known = [one for one in parts if one is not None]
        if len(known) < len(parts):
            return None
        xp = namespace(items.features)
        weights = self._weights_like(known[0][0])
        reached = xp.stack([weights[i] * low for i, (low, _) in enumerate(known)])
        # NaN: a part without a value; a weight of 0 takes the value from its part.
        counts = ~xp.isnan(reached) & (xp.stack(weights) > 0)
        best = xp.max(xp.where(counts, reached, -xp.inf), axis=0)
        best = xp.where(xp.any(counts, axis=0), best, xp.nan)
        return best, sum(weights[i] * high for i, (_, high) in enumerate(known))

    def coverage(self, state: State) -> tuple[Array, Array] | None:
        """The coverage of the first part, whose features come first; the others do not count."""
        found = self.functions[0].coverage(_parts(state)[0])
        if found is None:
            return None
        xp = namespace(state.outside)
        rest = sum(sum(_widths(part)) for part in _parts(state)[1:])
        shape, like = (state.outside.shape[0], rest), state.outside
        nothing = xp.zeros(shape, dtype=like.dtype, device=device_of(like))
        shares, weights = (xp.concat([one, nothing], axis=-1) for one in found)
        return shares, weights

    @property
    def monotone(self) -> bool | None:
        parts = {f.monotone for f in self.functions}
        return False if False in parts else None if None in parts else True

    def counted(self) -> Mixture:
        first = self.functions[0].counted()
        if first is self.functions[0]:  # it does not define coverage
            return self
        columns = None if self.columns is None else self.columns[:1]
        return Mixture((first,), self.weights[..., :1], columns)

    def of_set(self, row: int) -> Mixture:
        functions = tuple(f.of_set(row) for f in self.functions)
        return replace(self, functions=functions, weights=row_of(self.weights, row))

    def _weights_like(self, like: Array) -> list[Float[Array, "..."]]:
        """One array for each part: [1], or [batch] if the sets have weights of their own."""
        weights = cast_like(self.weights, like)
        rows = weights if weights.ndim == 2 else weights[None, :]
        return [rows[:, i] for i in range(len(self.functions))]

    def _views(self, items: Items) -> list[Items]:
        if self.columns is None:
            return [items] * len(self.functions)
        return [items.columns(columns) for columns in self.columns]

    def _over_parts(self, items: Items, state: State) -> Iterator[tuple[SetFunction, Items, State]]:
        return zip(self.functions, self._views(items), _parts(state), strict=True)


def _parts(state: State) -> tuple[State, ...]:
    check_maker(state, "Mixture")
    return state.parts


def _joined(parts: list[State]) -> State:
    return State(level=None, outside=parts[0].outside, parts=tuple(parts), maker="Mixture")


def _widths(state: State) -> Iterator[int]:
    if state.parts:
        for part in state.parts:
            yield from _widths(part)
    else:
        yield state.level.shape[-1]
