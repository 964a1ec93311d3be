"""Draws docs/images/why.png: the example of the README with one passage more.

python docs/images/why.py
"""

from pathlib import Path

import dgn

selection = dgn.Selector.from_pretrained().select(
    "The bridge was designed by Clara Voss, and trains have crossed it since 1911.",
    [
        "The Corran Bridge stands on four piers of grey granite.",
        "The bridge was designed by the engineer Clara Voss.",
        "Voss, who designed the bridge, also designed two smaller bridges.",
        "In 1911 the first train crossed the river.",
        "Ice damaged a pier in 1947.",
    ],
    k=3,
)
selection.explain().draw(Path(__file__).with_name("why.png"))
