"""The shared library of the kernels: whether there is one, and for which processor."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from numpy.typing import NDArray

from dgn.kernels.build import LIBRARY, REPORT

_WITHOUT_RESULT = (
    "dgn_greedy",
    "dgn_budgeted",
    "dgn_gains",
    "dgn_lazy",
    "dgn_facets",
    "dgn_unfold",
)

LEVELS = ("baseline", "AVX2", "AVX-512")


@functools.cache
def library() -> Any:
    """The shared library; None if there is none."""
    if _is_off() or not LIBRARY.is_file():
        return None
    try:
        found: Any = ctypes.CDLL(str(LIBRARY))
        for name in _WITHOUT_RESULT:
            getattr(found, name).restype = None
        found.dgn_facets_work.restype = ctypes.c_int64
        found.dgn_facets_work.argtypes = (ctypes.c_int64,) * 8
        found.dgn_unfold_work.restype = ctypes.c_int64
        found.dgn_unfold_work.argtypes = (ctypes.c_int64,) * 2
        found.dgn_highest_level.restype = ctypes.c_int32
    except (OSError, AttributeError):
        return None  # made for another machine, or by another version
    return found


def _is_off() -> bool:
    return os.environ.get("DGN_KERNELS", "").lower() in {"off", "0", "no", "false"}


def is_available() -> bool:
    """Whether the compiled kernels are used."""
    return library() is not None


@functools.cache
def highest_level() -> int:
    """The level of the processor that is used, an index of LEVELS."""
    return int(library().dgn_highest_level())


def address_of(array: NDArray[Any] | None) -> Any:
    """Where an array is in memory. `array.ctypes.data` says the same, three times as slowly."""
    return None if array is None else array.__array_interface__["data"][0]


def describe() -> str:
    """Which form of the search is used, and why."""
    if is_available():
        how = REPORT.read_text(encoding="utf-8").strip() if REPORT.is_file() else "compiled"
        return f"C, {LEVELS[highest_level()]} ({how})"
    if _is_off():
        return f"NumPy (DGN_KERNELS={os.environ['DGN_KERNELS']})"
    if LIBRARY.is_file():
        return f"NumPy ({LIBRARY} was made for another machine)"
    why = REPORT.read_text(encoding="utf-8").strip() if REPORT.is_file() else "not compiled"
    return f"NumPy ({why})"
