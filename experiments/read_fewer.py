r"""What is lost if the reader of the model minilm reads only the passages that words put on top.

    python -m experiments.read_fewer --queries 60 --out experiments/results/read-fewer.json

For the first dev queries of each set, recall at k: without the reader; with the best m passages
read, or a share of all of them; with all of them; with all of them, but only the first window of
each; and, with `--torch`, all of this with weights that are not rounded to 8 bits.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from dgn.core import Selection, greedy
from dgn.core.functions import FeatureCoverage, Items
from dgn.data import Example
from dgn.files import write_atomically
from dgn.minilm import MiniLMEncoder, reading
from dgn.minilm.reading import windows
from dgn.selector import Limits, Selector
from dgn.text.query import Query
from experiments.domains import DOMAINS, english_sets, read_domain

KS = (1, 3, 5, 7)
READ, SHARES = (4, 6, 8, 12), (0.0, 0.25, 0.4, 0.5)
_EVERYTHING = 4096


def variants(encoder: MiniLMEncoder, query: Query) -> Iterator[tuple[str, Any, Items]]:
    """The function and the items of a query, in several ways.

    Args:
        encoder: It reads every passage.
        query: The query.
    """
    objective, items = cast("tuple[Any, Items]", encoder.encode([query]))
    features = np.asarray(items.features)
    relevance = features[0, :, -1]
    by_words = features.copy()
    by_words[..., -1] = 0
    yield "all", objective, items
    yield "words", objective, Items(by_words, items.mask)
    first = np.flatnonzero(np.array(query.twins) == np.arange(len(query.twins)))
    function = FeatureCoverage(objective.weights[0], target=objective.target[0])
    found = cast("Selection", greedy(function, by_words[0, first], len(first)))
    order = first[list(found.indices)]
    for least, share in itertools.product(READ, SHARES):
        count = max(least, math.ceil(share * len(first)))
        few = by_words.copy()
        few[0, order[:count], -1] = relevance[order[:count]]
        name = f"best {least}" + (f" or {share:.0%}" if share else "")
        yield name, objective, Items(few, items.mask)


def first_window(count: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """The first window of a passage that is read with a query; texts by themselves are whole."""
    return windows(count, size, overlap)[: 1 if size < 200 else None]


def recall(examples: Sequence[Example], encoder: MiniLMEncoder) -> dict[str, list[float]]:
    """By variant: the mean share of the gold passages among the first k, for each of KS."""
    selector, limits = Selector(encoder), Limits(k=max(KS))
    found: dict[str, list[list[float]]] = {}
    for example in examples:
        query, gold = example.query, set(np.flatnonzero(example.gold).tolist())
        several = [*variants(encoder, query)]
        if max(encoder.count_tokens(query.texts)) > reading.PASSAGE_WINDOW:
            with patch.object(reading, "windows", first_window):
                several.append(("all, first window", *cast("Any", encoder.encode([query]))))
        else:
            several.append(("all, first window", *several[0][1:]))
        for name, objective, items in several:
            (selection,) = selector.select_encoded([query], limits, objective, items)
            shares = [len(gold & set(selection.indices[:k])) / len(gold) for k in KS]
            found.setdefault(name, []).append(shares)
    return {name: np.mean(rows, axis=0).round(4).tolist() for name, rows in found.items()}


def in_torch(encoder: MiniLMEncoder) -> MiniLMEncoder:
    """The same encoder with the weights as they are, computed by torch."""
    import torch

    from dgn.minilm.transformer import MiniLM

    class Plain:
        def __init__(self, weights: dict[str, NDArray[np.float32]], heads: int) -> None:
            del heads
            named = {name: torch.from_numpy(weight) for name, weight in weights.items()}
            self._model = MiniLM(named, 0.0).eval()

        def __call__(self, texts: Any, kinds: Any = None, *, only_first: bool = False) -> Any:
            found: list[NDArray[np.float32]] = []
            with torch.inference_mode():
                for row, text in enumerate(texts):
                    tokens = torch.tensor([text])
                    kind = torch.zeros_like(tokens) if kinds is None else torch.tensor([kinds[row]])
                    vectors = self._model(tokens, kind, torch.ones_like(tokens, dtype=torch.bool))
                    found.append(vectors[0, : 1 if only_first else None].numpy())
            return np.concatenate(found)

    with patch.object(reading, "Transformer", Plain):
        return with_everything(encoder)


def with_everything(encoder: MiniLMEncoder) -> MiniLMEncoder:
    """The same encoder, which reads every passage together with the query."""
    description, arrays = encoder.save()
    description["read"] = _EVERYTHING
    return MiniLMEncoder.load(description, lambda _: arrays, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=60, help="queries of each set")
    parser.add_argument("--passages", type=int, default=1500, help="most passages of each set")
    parser.add_argument("--sets", nargs="*", help="default: all English sets and the ten domains")
    parser.add_argument("--torch", action="store_true", help="torch in place of 8 bits")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    loaded = Selector.from_pretrained("minilm").encoder
    assert isinstance(loaded, MiniLMEncoder)  # noqa: S101
    encoder = in_torch(loaded) if options.torch else with_everything(loaded)
    results: dict[str, dict[str, list[float]]] = {}
    for name in options.sets or sorted({*DOMAINS, *english_sets()}):
        examples: list[Example] = []
        passages = 0
        for example in read_domain(name).dev[: options.queries]:
            passages += len(example.gold)
            if passages > options.passages and examples:
                break
            examples.append(example)
        results[name] = recall(examples, encoder)
        counts = [n for one in examples for n in encoder.count_tokens(one.query.texts)]
        is_long = np.array(counts) > reading.PASSAGE_WINDOW
        results[name]["queries, passages, share of long ones"] = [
            *(len(examples), len(counts)),
            round(float(is_long.mean()), 3),
        ]
        print(name, json.dumps(results[name]), flush=True)
    for kind in [name for name in next(iter(results.values())) if "," not in name or "all" in name]:
        mean = np.mean([own[kind] for own in results.values()], axis=0)
        print(f"mean of {len(results)} sets, {kind}:", mean.round(4).tolist())
    write_atomically(options.out, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
