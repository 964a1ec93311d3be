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
    "DeepEncoder": {7: (0.815, 0.207, 0.330)},
    "DGN": {
        7: (0.811, 0.206, 0.328),
        5: (0.738, 0.253, 0.377),
        3: (0.615, 0.342, 0.440),
        1: (0.356, 0.593, 0.445),
    },
}
PARAMETERS = {"Encoder": "172K", "DeepEncoder": "915K", "DGN": "167K"}
CLAIMS = {"training": 109_810, "validation": 13_332, "test": 6_666}


def cut_of_missed_recall(greedy: float, dgn: float) -> float:
    """The share of what greedy misses that the DGN finds; NaN if greedy misses nothing."""
    return (dgn - greedy) / (1 - greedy) if greedy < 1 else math.nan
