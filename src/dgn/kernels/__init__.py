"""Compiled searches for NumPy arrays: plain C, loaded with ctypes, which releases the GIL.

They are compiled when the package is installed, if there is a C compiler. Without them, or with
DGN_KERNELS=off in the environment, NumPy computes the same results, slower.
"""

from dgn.kernels.large import LargeSet, SparseRows
from dgn.kernels.layers import SoftSets
from dgn.kernels.library import LEVELS, describe, highest_level, is_available
from dgn.kernels.problems import FORMS, Coverage, Found, Range
from dgn.kernels.searches import budgeted, greedy, one_set

__all__ = [
    "FORMS",
    "LEVELS",
    "Coverage",
    "Found",
    "LargeSet",
    "Range",
    "SoftSets",
    "SparseRows",
    "budgeted",
    "describe",
    "greedy",
    "highest_level",
    "is_available",
    "one_set",
]
