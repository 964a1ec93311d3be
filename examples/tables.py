"""pandas and polars: the two sentences of each page that together cover its question.

In a clone: pip install . pandas polars && python -m examples.tables
"""

import pandas as pd
import polars as pl

from dgn.apps.adapters.tables import select_rows
from examples.pages import sentences

QUESTIONS = {
    "Clara Voss": "What did Clara Voss study, and which bridge did she design?",
    "Corran Bridge": "Who designed the bridge, and when did the first train cross it?",
    "Orr Valley Railway": "How long was the railway, and when did the last train run?",
}

rows = [{"page": o.title, "question": QUESTIONS[o.title], "text": o.text} for o in sentences()]
columns = {"group": "page", "query": "question", "text": "text", "k": 2}
found = select_rows(pd.DataFrame(rows), **columns)
print(found[["page", "rank", "text"]].to_string(index=False))
same = select_rows(pl.DataFrame(rows), **columns)
assert same["text"].to_list() == found["text"].to_list()
