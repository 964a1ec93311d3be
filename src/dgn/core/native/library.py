"""The shared library of the kernels: whether there is one, and for which instruction set."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from numpy.typing import NDArray

from dgn.core.native.build import LIBRARY, REPORT, version_of_sources
from dgn.core.native.structures import STRUCTURES

_WITHOUT_RESULT = (
    "dgn_greedy",
    "dgn_constrained",
    "dgn_gains",
    "dgn_lazy",
    "dgn_describe",
    "dgn_facets",
    "dgn_similar",
    "dgn_transform",
)

ISAS = ("baseline", "AVX2", "AVX-512")
"""The instruction sets, in the order of their numbers in dispatch.c."""


@functools.cache
def library() -> Any:
    """The shared library; None if there is none that fits."""
    if _is_off() or not LIBRARY.is_file() or not _is_complete():
        return None
    try:
        found: Any = ctypes.CDLL(str(LIBRARY))
        if not _fits(found):
            return None
        for name in _WITHOUT_RESULT:
            getattr(found, name).restype = None
        found.dgn_facets_work.restype = ctypes.c_int64
        found.dgn_facets_work.argtypes = (ctypes.c_int64,) * 8
        found.dgn_transform_work.restype = ctypes.c_int64
        found.dgn_highest_isa.restype = ctypes.c_int32
    except (OSError, AttributeError):
        return None  # made for another machine, or by another version
    return found


def _fits(found: Any) -> bool:
    """Whether a library was made from these sources, and has structures of the sizes of ours.

    One that was made from other sources would read memory that means something else.
    """
    found.dgn_version.restype = ctypes.c_uint32
    sizes = (ctypes.c_int64 * len(STRUCTURES)).in_dll(found, "dgn_sizes")
    return found.dgn_version() == version_of_sources() and list(sizes) == [
        ctypes.sizeof(one) for one in STRUCTURES
    ]


def _is_complete() -> bool:
    """Whether the library has the size that it had when it was built.

    To load one that was cut would end the process.
    """
    if not REPORT.is_file():
        return False
    words = REPORT.read_text(encoding="utf-8").split()
    return words[-2:] == [str(LIBRARY.stat().st_size), "bytes"]


def _is_off() -> bool:
    return os.environ.get("DGN_KERNELS", "").lower() in {"off", "0", "no", "false"}


def is_available() -> bool:
    """Whether the compiled kernels are used."""
    return library() is not None


@functools.cache
def highest_isa() -> int:
    """The instruction set that is used, an index of ISAS."""
    return int(library().dgn_highest_isa())


def address_of(array: NDArray[Any] | None) -> Any:
    """Where an array is in memory. `array.ctypes.data` says the same, three times as slowly."""
    return None if array is None else array.__array_interface__["data"][0]


def describe() -> str:
    """Which form of the search is used, and why."""
    if is_available():
        how = REPORT.read_text(encoding="utf-8").strip() if REPORT.is_file() else "compiled"
        return f"C, {ISAS[highest_isa()]} ({how})"
    if _is_off():
        return f"NumPy (DGN_KERNELS={os.environ['DGN_KERNELS']})"
    if LIBRARY.is_file():
        return f"NumPy ({LIBRARY} was made elsewhere or from other sources; install dgn again)"
    why = REPORT.read_text(encoding="utf-8").strip() if REPORT.is_file() else "not compiled"
    return f"NumPy ({why})"
