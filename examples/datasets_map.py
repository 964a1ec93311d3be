"""Hugging Face datasets: select for every row with `map`.

In a clone: pip install . datasets && python -m examples.datasets_map
"""

from datasets import Dataset

from dgn.apps.batch import SelectBatch
from examples.pages import QUESTION, sentences

texts = [one.text for one in sentences()]
titles = [one.title for one in sentences()]
dataset = Dataset.from_list(
    [
        {"query": QUESTION, "passages": texts, "titles": titles},
        {"query": "When did the last train run?", "passages": texts, "titles": titles},
    ]
)
selected = dataset.map(SelectBatch(k=2, columns={"titles": "titles"}), batched=True, batch_size=64)
for row in selected:
    print(row["query"], row["selected_texts"])
