"""Ray Data: select for a data set with one model per actor.

In a clone: pip install '.[ray]' 'ray[data]' && python -m examples.ray_data
"""

import ray

from dgn.apps.batch import SelectBatch
from examples.pages import QUESTION, sentences

texts = [one.text for one in sentences()]
rows = [
    {"query": QUESTION, "passages": texts},
    {"query": "When did the last train run?", "passages": texts},
]
ray.init(address="local", num_cpus=2, log_to_driver=False, logging_level="ERROR")
selected = ray.data.from_items(rows).map_batches(
    SelectBatch,
    fn_constructor_kwargs={"k": 2},
    batch_format="pyarrow",
    batch_size=64,
    concurrency=1,
)
for row in selected.take_all():
    print(row["query"], row["selected_texts"])
