"""What the tests of the adapters retrieve."""

QUERY = "The bridge was designed by Clara Voss, and trains have crossed it since 1911."
TEXTS = [
    "The Corran Bridge stands on four piers of grey granite.",
    "The bridge was designed by the engineer Clara Voss.",
    "Voss, who designed the bridge, also designed two smaller bridges.",
    "In 1911 the first train crossed the river.",
    "Ice damaged a pier in 1947.",
]
WANTED = [1, 3]
"""What k = 2 selects."""
