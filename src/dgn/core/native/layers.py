"""The unfolded greedy layers by the compiled kernel, forward and backward, for float32."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dgn.core.native.forms import FORMS
from dgn.core.native.library import highest_isa, library
from dgn.core.native.structures import Arrays, Layers

_Floats: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SoftSets:
    """What the layers search.

    Attributes:
        features: [batch, items, features], at least 0.
        mask: [batch, items], False for padding.
        log_prior: [batch, items].
        weights: [batch, features]; rows may be the same memory.
        level: [batch, features], where the set function begins; rows may be the same memory.
        noise: [batch, layers, items], added to the gains; None for none.
        form: One of FORMS.
        parameter: The parameter of the form.
        temperature: What gains are divided by.
        layers: The number of layers.
        is_hard: Whether the most probable item joins the set, instead of p.
        lowest: What stands for log 0.
        isa: An index of ISAS; by default the highest.
    """

    features: _Floats
    mask: NDArray[np.bool_]
    log_prior: _Floats
    weights: _Floats
    level: _Floats
    noise: _Floats | None
    form: str
    parameter: float
    temperature: float
    layers: int
    is_hard: bool
    lowest: float
    isa: int | None = None

    def unfold(self, threads: int) -> tuple[_Floats, ...]:
        """What the layers choose.

        Returns:
            log p, log(1 − p), and how much of each item is outside the set and inside it before
            each layer, [batch, layers, items] each; what is outside at the end, [batch, items];
            and the level at the end, [batch, features].
        """
        batch, items, width = self.features.shape
        by_layer = [np.empty((batch, self.layers, items), np.float32) for _ in range(4)]
        after = [np.empty((batch, size), np.float32) for size in (items, width)]
        self._run((*by_layer, *after), None, threads)
        return (*by_layer, *after)

    def slope(
        self, chosen: tuple[_Floats, ...], gradients: tuple[_Floats, ...], threads: int
    ) -> tuple[_Floats, ...]:
        """The gradients of the features, the weights, the level and the log prior.

        Args:
            chosen: The first four arrays that `unfold` returned.
            gradients: Those of log p, log(1 − p), what is outside at the end, and the level.
            threads: The number of threads.
        """
        batch, items, width = self.features.shape
        shapes = ((batch, items, width), (batch, width), (batch, width), (batch, items))
        found = tuple(np.empty(shape, np.float32) for shape in shapes)
        given = [np.ascontiguousarray(one, np.float32) for one in gradients]
        self._run(chosen, (*given, *found), threads)
        return found

    def _run(self, results: Any, gradients: Any, threads: int) -> None:
        items, width = self.features.shape[1:]
        # The kernel has their addresses: they must live as long as it runs.
        arrays: dict[str, Any] = {
            name: np.ascontiguousarray(getattr(self, name))
            for name in ("features", "mask", "log_prior")
        }
        strides: dict[str, int] = {}
        for name in ("weights", "level"):
            rows: _Floats = getattr(self, name)
            is_shared = rows.strides[0] == 0
            arrays[name] = np.ascontiguousarray(rows[:1] if is_shared else rows)
            strides[f"{name}_stride"] = 0 if is_shared else width
        if self.noise is not None:
            arrays["noise"] = np.ascontiguousarray(self.noise)
        layers = Layers(
            **{name: array.ctypes.data for name, array in arrays.items()},
            **strides,
            sets=len(self.features),
            items=items,
            width=width,
            layers=self.layers,
            temperature=self.temperature,
            parameter=self.parameter,
            lowest=self.lowest,
            form=FORMS[self.form],
            is_hard=self.is_hard,
        )
        parallel = _find_parallel()
        threads = 1 if parallel is None else max(1, threads)
        work = np.empty(threads * library().dgn_unfold_work(items, width), np.float32)
        library().dgn_unfold(
            ctypes.c_int32(highest_isa() if self.isa is None else self.isa),
            ctypes.byref(layers),
            ctypes.byref(_addresses(results)),
            None if gradients is None else ctypes.byref(_addresses(gradients)),
            ctypes.c_void_p(work.ctypes.data),
            ctypes.c_void_p(parallel),
            ctypes.c_uint32(threads),
        )


def _addresses(arrays: Any) -> Arrays:
    return Arrays(*(array.ctypes.data for array in arrays))


@functools.cache
def _find_parallel() -> int | None:
    """The address of GOMP_parallel in the OpenMP library of this process; None without one.

    torch has loaded one. Threads of our own would compete with its threads, which keep a core
    busy for a while when they have nothing to do.
    """
    try:
        return ctypes.cast(ctypes.CDLL(None).GOMP_parallel, ctypes.c_void_p).value
    except (AttributeError, OSError, TypeError):
        return None
