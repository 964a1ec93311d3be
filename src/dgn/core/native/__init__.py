"""Compiled forms of the hot loops, for NumPy arrays and for tensors on the CPU.

The C code is compiled when the package is installed, if there is a C compiler, and loaded with
ctypes, which releases the GIL. Without it, or with DGN_KERNELS=off in the environment, NumPy
computes the same results, slower. The plain form is the definition; the kernels are tested against
it.
"""

from dgn.core.native.forms import FORMS, Coverage, compiled, is_sparse, level_of
from dgn.core.native.greedy import Range, constrained, greedy, one_set
from dgn.core.native.lazy import LargeSet, SparseRows
from dgn.core.native.library import ISAS, describe, highest_isa, is_available

__all__ = [
    "FORMS",
    "ISAS",
    "Coverage",
    "LargeSet",
    "Range",
    "SparseRows",
    "compiled",
    "constrained",
    "describe",
    "greedy",
    "highest_isa",
    "is_available",
    "is_sparse",
    "level_of",
    "one_set",
]
