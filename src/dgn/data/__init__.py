"""What is asked, and what is right? Records, readers, the page store, batches.

Our own JSONL needs no extra; the readers of FEVER's and ERASER's formats need `dgn[data]`.
"""

from dgn.data.batches import Batch, Batches, DenseBatches, Position, ToDevice
from dgn.data.dataset import Dataset, PageSource, make_examples, read_claims, read_examples
from dgn.data.lines import Line, Problems
from dgn.data.records import Claim, Evidence, Example, Page, example_of
from dgn.data.rows import Row, parse_row, read_rows

__all__ = [
    "Batch",
    "Batches",
    "Claim",
    "Dataset",
    "DenseBatches",
    "Evidence",
    "Example",
    "Line",
    "Page",
    "PageSource",
    "Position",
    "Problems",
    "Row",
    "ToDevice",
    "example_of",
    "make_examples",
    "parse_row",
    "read_claims",
    "read_examples",
    "read_rows",
]
