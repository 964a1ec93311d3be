"""Spark: select for the rows of a data frame.

In a clone: pip install '.[ray,pandas]' pyspark && python -m examples.spark_frames (needs Java)
"""

import os
import sys
from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession

from dgn.apps.batch import SelectBatch
from examples.pages import QUESTION, sentences

COLUMNS = (
    "query string, passages array<string>, selected array<long>, selected_texts array<string>, "
    "gains array<double>, scores array<double>, coverage double"
)


def select(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """What Spark calls in each of its workers."""
    return map(SelectBatch(k=2), batches)


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers run this Python
    texts = [one.text for one in sentences()]
    rows = [(QUESTION, texts), ("When did the last train run?", texts)]
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    frame = spark.createDataFrame(rows, "query string, passages array<string>")
    for row in frame.mapInPandas(select, COLUMNS).collect():
        print(row["query"], row["selected_texts"])
    spark.stop()
