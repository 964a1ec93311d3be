"""A weighted sum of set functions, each with its own view of the features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from dgn.arrays import Array, Float, cast_like, namespace
from dgn.errors import InvalidInput
from dgn.objectives.base import SetFunction
from dgn.objectives.checks import check_maker, check_range
from dgn.objectives.items import Items, State


@final
@dataclass(frozen=True, eq=False)
class Mixture(SetFunction):
    """f(A) = Σ_i weight_i · f_i(A): a non-negative sum of submodular functions is submodular.

    functions: the parts.
    weights: [parts], at least 0.
    columns: which features each part reads, one slice a part; left out, every part reads all.
        Concatenate what the parts need: `Items(concat([h, similarities], axis=-1))` with
        `columns=(slice(0, 300), slice(300, None))`.
    """

    functions: tuple[SetFunction, ...]
    weights: Array
    columns: tuple[slice, ...] | None = None

    def __post_init__(self) -> None:
        if not self.functions:
            raise InvalidInput("functions", found="none", allowed="at least one set function")
        if len(self.weights) != len(self.functions):
            raise InvalidInput(
                "weights",
                found=f"{len(self.weights)} weights",
                allowed=f"one for each of the {len(self.functions)} functions",
            )
        if self.columns is not None and len(self.columns) != len(self.functions):
            raise InvalidInput(
                "columns",
                found=f"{len(self.columns)} slices",
                allowed=f"one for each of the {len(self.functions)} functions",
            )

    def empty(self, items: Items, context: State | None = None) -> State:
        given = (None,) * len(self.functions) if context is None else _parts(context)
        views = zip(self.functions, self._views(items), given, strict=True)
        return _joined([f.empty(view, part) for f, view, part in views])

    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        weights = cast_like(self.weights, items.features)
        gains = [f.gains(view, part) for f, view, part in self._over_parts(items, state)]
        return sum(weights[i] * gain for i, gain in enumerate(gains))

    def contributions(self, items: Items, state: State) -> Float[Array, "batch items width"]:
        weights = cast_like(self.weights, items.features)
        parts = [f.contributions(view, part) for f, view, part in self._over_parts(items, state)]
        weighted = [weights[i] * part for i, part in enumerate(parts)]
        return namespace(items.features).concat(weighted, axis=-1)

    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        parts = self._over_parts(items, state)
        return _joined([f.add(view, part, member) for f, view, part in parts])

    def value(self, state: State) -> Float[Array, " batch"]:
        weights = cast_like(self.weights, state.outside)
        parts = zip(self.functions, _parts(state), strict=True)
        return sum(weights[i] * f.value(part) for i, (f, part) in enumerate(parts))

    def check(self, items: Items, context: State | None = None) -> None:
        check_range("weights", cast_like(self.weights, items.features))
        given = (None,) * len(self.functions) if context is None else _parts(context)
        for f, view, part in zip(self.functions, self._views(items), given, strict=True):
            f.check(view, part)

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
