"""Dask: select for the partitions of a data frame.

In a clone: pip install . 'dask[dataframe]' && python -m examples.dask_partitions
"""

import dask
import dask.dataframe as dd
import pandas as pd

from dgn.apps.jobs import SelectBatch
from examples.pages import QUESTION, sentences

dask.config.set({"dataframe.convert-string": False})  # lists stay lists
texts = [one.text for one in sentences()]
rows = [
    {"query": QUESTION, "passages": texts},
    {"query": "When did the last train run?", "passages": texts},
]
frame = dd.from_pandas(pd.DataFrame(rows), npartitions=2)
select = SelectBatch(k=2)
found = frame.map_partitions(select, meta=select(pd.DataFrame(rows[:1])).iloc[:0])
for _, row in found.compute(scheduler="threads").iterrows():
    print(row["query"], row["selected_texts"])
