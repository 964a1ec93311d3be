"""What is right? Labelled rows, and the files that they come from.

for example in read_rows("rows.jsonl"):
example.query, example.gold
"""

from dgn.data.lines import Line, Problems
from dgn.data.records import Example
from dgn.data.rows import parse_row, read_rows

__all__ = ["Example", "Line", "Problems", "parse_row", "read_rows"]
