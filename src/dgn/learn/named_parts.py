"""Relaxations and losses by name, as configurations name them.

They are imported when a network is built, because they need torch, which a configuration does not.
"""

from __future__ import annotations

from typing import Any

from dgn.parts import Registry

RELAXATIONS: Registry[Any] = Registry(
    "relaxation",
    "dgn.relaxations",
    "dgn.learn.relaxations:Relaxation",
    {
        "softmax": "dgn.learn.relaxations:Softmax",
        "straight-through": "dgn.learn.relaxations:StraightThrough",
        "gumbel": "dgn.learn.relaxations:Gumbel",
        "perturbed": "dgn.learn.relaxations:Perturbed",
        "sparsemax": "dgn.learn.relaxations:Sparsemax",
        "imle": "dgn.learn.relaxations:ImplicitMLE",
        "greedy-likelihood": "dgn.learn.relaxations:GreedyLikelihood",
    },
)
"""How a greedy layer chooses."""

LOSSES: Registry[Any] = Registry(
    "loss",
    "dgn.losses",
    "dgn.learn.losses:Loss",
    {"layerwise": "dgn.learn.losses:LayerwiseCrossEntropy"},
)
"""What the greedy layers learn from."""
