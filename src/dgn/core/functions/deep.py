"""Deep submodular functions: layers of non-negative weights and concave functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dgn.core.arrays import Array, Float, cast_like, device_of, namespace
from dgn.core.functions.base import Items, SetFunction, State, check_maker, check_range
from dgn.core.functions.concave import INCREASING, Concave, Sqrt
from dgn.core.functions.weighted import context_level
from dgn.core.numerics import row_sum
from dgn.errors import InvalidInput

_DEFAULT: Any = None
"""Stands for √x: torch.compile cannot trace a default value that is an object."""


@final
@dataclass(frozen=True, eq=False)
class DeepSubmodular(SetFunction):
    """f(A) = Σ φ(W_L φ(… φ(W_1 φ(Σ_{a∈A} h_a)))), deep submodular (Bilmes and Bai, 2017).

    Choose it when features belong together: two features that feed the same unit of a layer are
    partly redundant, which no weighted sum over features can say. With non-negative weights it is
    monotone and submodular, however deep it is. The layers are usually learned; a torch module that
    keeps them non-negative, for example by softplus, builds the function, as for FeatureCoverage.

    Args:
        layers: The matrices W_1 to W_L, at least 0, [outputs, inputs] each; the first one has an
            input for every feature. The outputs of the last layer are summed. Without layers, this
            is FeatureCoverage without weights.
        concave: φ, √x by default.

    Examples:
        >>> import numpy as np
        >>> from dgn.core.search import greedy
        >>> topics = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # two features are one topic
        >>> greedy(DeepSubmodular((topics,)), np.eye(3), k=2).indices
        (0, 2)
    """

    layers: tuple[Array, ...]
    concave: Concave = _DEFAULT

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if self.concave is _DEFAULT:
            object.__setattr__(self, "concave", Sqrt())
        for place, layer in enumerate(self.layers):
            shape = tuple(getattr(layer, "shape", ()))
            if len(shape) != 2 or (place and shape[1] != self.layers[place - 1].shape[0]):
                raise InvalidInput(
                    "layers",
                    message=f"Layer {place} has the shape {shape}; it needs [outputs, inputs], "
                    "with as many inputs as the layer before it has outputs.",
                )

    @property
    def monotone(self) -> bool | None:
        return True if type(self.concave) in INCREASING else None

    def empty(self, items: Items, context: State | None = None) -> State:
        features = items.features
        xp, device, width = namespace(features), device_of(features), features.shape[2]
        if self.layers and self.layers[0].shape[1] != width:
            raise InvalidInput(
                "layers",
                message=f"The first layer has {self.layers[0].shape[1]} inputs, and the items have "
                f"{width} features; it needs one input for each feature.",
            )
        if context is None:
            level = xp.zeros((items.batch, width), dtype=features.dtype, device=device)
        else:
            check_maker(context, "DeepSubmodular")
            level = context_level(context, items)
        outside = xp.ones((items.batch, items.size), dtype=features.dtype, device=device)
        return State(level, outside, maker="DeepSubmodular")

    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        return row_sum(self.contributions(items, state))

    def contributions(self, items: Items, state: State) -> Float[Array, "batch items width"]:
        """The gains by the units of the last layer."""
        # A layer passes on increases, not values, whose difference would lose what is small.
        level = state.level[:, None, :]
        step = state.outside[..., None] * items.features
        for layer in self._weights(items.features):
            step = self.concave.increase(level, step) @ layer
            level = self.concave.of(level) @ layer
        return self.concave.increase(level, step)

    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        joining = state.outside * member
        level = state.level + (joining[:, None, :] @ items.features)[:, 0, :]
        return State(level, state.outside * (1 - member), maker=state.maker)

    def value(self, state: State) -> Float[Array, " batch"]:
        level = state.level
        for layer in self._weights(level):
            level = (self.concave.of(level)[:, None, :] @ layer)[:, 0, :]
        return row_sum(self.concave.of(level))

    def check(self, items: Items, context: State | None = None) -> None:
        largest = check_range("features", items.features)
        limits = namespace(items.features).finfo(items.features.dtype)
        reached, lost = items.size * largest, 0.0
        if context is not None:
            check_maker(context, "DeepSubmodular")
            reached += check_range("context", context.level)
        for place, layer in enumerate(self.layers):
            heaviest = check_range(f"layers[{place}]", cast_like(layer, items.features))
            # φ is concave with φ(0) = 0, and at most max(x, 1) for every φ of dgn.
            reached = max(reached, 1.0) * max(1.0, heaviest * layer.shape[1])
            # Products below the smallest normal number are lost, and φ makes them larger.
            passed = heaviest * self._raised(lost)
            lost = layer.shape[1] * (passed + float(limits.smallest_normal))
        if reached > float(limits.max):
            raise InvalidInput(
                "features",
                message=f"features contains {largest:g}, and the layers may raise sums of it to "
                f"more than {items.features.dtype} can hold; scale the features or the layers.",
            )
        units = self.layers[-1].shape[0] if self.layers else items.features.shape[2]
        least = units * max(self._raised(lost), float(limits.smallest_normal)) / float(limits.eps)
        if self._has_less(least, items):
            raise InvalidInput(
                "features",
                message=f"The values of a set are too small for {items.features.dtype}; scale the "
                "features or the layers, or use a wider dtype.",
            )

    def _raised(self, amount: float) -> float:
        """φ of one number."""
        return float(self.concave.of(np.asarray([amount], np.float64))[0])

    def _has_less(self, least: float, items: Items) -> bool:
        """Whether the best item of a set is worth less than this, and more than nothing."""
        xp = namespace(items.features)
        best = xp.max(self.gains(items, self.empty(items)), axis=1)
        if bool(xp.all(best >= least)):
            return False
        # The same function of zeros and ones: something is worth nothing only if it is 0 there.
        ones = [xp.astype(cast_like(one, best) > 0, best.dtype) for one in self.layers]
        plain = DeepSubmodular(tuple(ones), self.concave)
        present = Items(xp.astype(items.features > 0, best.dtype))
        counts = xp.max(plain.gains(present, plain.empty(present)), axis=1) > 0
        return bool(xp.any(counts & (best < least)))

    def _weights(self, like: Array) -> Iterator[Float[Array, "inputs outputs"]]:
        return (namespace(like).matrix_transpose(cast_like(one, like)) for one in self.layers)
