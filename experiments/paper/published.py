"""The numbers that the paper reports (Powers et al., 2018, Table 1 and Table 2)."""

from __future__ import annotations

import math

# For each k: recall, precision and F1. FEVER, oracle pages, fastText vectors.
TABLE_1: dict[str, dict[int, tuple[float, float, float]]] = {
    "Top-k": {
        7: (0.704, 0.179, 0.285),
        5: (0.598, 0.205, 0.305),
        3: (0.438, 0.244, 0.313),
        1: (0.194, 0.322, 0.242),
    },
    "Greedy": {
        7: (0.706, 0.179, 0.286),
        5: (0.600, 0.205, 0.306),
        3: (0.439, 0.245, 0.314),
        1: (0.194, 0.322, 0.242),
    },
    "Encoder": {
        7: (0.809, 0.205, 0.327),
        5: (0.734, 0.251, 0.374),
        3: (0.615, 0.342, 0.440),
        1: (0.353, 0.588, 0.441),
    },
    "DeepEncoder": {
        7: (0.815, 0.207, 0.330),
        5: (0.741, 0.254, 0.378),
        3: (0.624, 0.347, 0.446),
        1: (0.362, 0.602, 0.452),
    },
    "DGN": {
        7: (0.811, 0.206, 0.328),
        5: (0.738, 0.253, 0.377),
        3: (0.615, 0.342, 0.440),
        1: (0.356, 0.593, 0.445),
    },
    "Deep DGN": {
        7: (0.813, 0.206, 0.329),
        5: (0.741, 0.254, 0.378),
        3: (0.619, 0.345, 0.443),
        1: (0.370, 0.615, 0.462),
    },
}
COMMENTED_OUT = {"DeepEncoder", "Deep DGN"}
"""Rows that stand in the source of the paper as comments (DDGN there; DeepEncoder at k = 7 is also
in its Table 2). The paper does not report them."""

PARAMETERS = {"Encoder": "172K", "DeepEncoder": "915K", "DGN": "167K", "Deep DGN": "4943K"}
CLAIMS = {"training": 109_810, "validation": 13_332, "test": 6_666}
LARGEST_K, COVERED = 7, 0.93
"""K of the paper, and the share of its claims that have at most K gold sentences."""


def cut_of_missed_recall(greedy: float, dgn: float) -> float:
    """The share of what greedy misses by which the DGN misses less; NaN if greedy misses nothing.

    It is a net number: what the DGN finds and greedy misses, less what greedy finds and the DGN
    misses.
    """
    return (dgn - greedy) / (1 - greedy) if greedy < 1 else math.nan


def gold_per_claim(name: str, k: int) -> float:
    """k · precision / recall: the number of gold sentences, if k are selected for every claim.

    Where claims have fewer than k candidates, fewer are selected, and this is too large.
    """
    recall, precision, _ = TABLE_1[name][k]
    return k * precision / recall
