"""What a user's own scores bring, by their weight: `python -m experiments.score_weight`.

The scores are those of BM25 with stems, and the logits of a cross-encoder that
`experiments.read_pairs train` wrote (`--logits FILE`), for the first queries of each dev part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dgn
from dgn.data import Example
from dgn.evaluation import Bm25
from dgn.evaluation.metrics import paired_comparison
from dgn.selector import Selector
from experiments.compared import divided
from experiments.domains import DOMAINS, read_domain
from experiments.recall import KS

_WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the mean recall by weight, and the domains that lose significantly."""
    parser = argparse.ArgumentParser(prog="python -m experiments.score_weight", description=__doc__)
    parser.add_argument("--queries", type=int, default=200, help="queries per domain")
    parser.add_argument("--logits", type=Path, help="logits of a cross-encoder, .npz by domain")
    parser.add_argument("--model", help="as in dgn select")
    options = parser.parse_args(arguments)
    selector = Selector.from_pretrained(options.model)
    examples = {name: read_domain(name).dev[: options.queries] for name in DOMAINS}
    kinds = {"BM25": {name: _bm25(own) for name, own in examples.items()}}
    if options.logits:
        found = np.load(options.logits)
        kinds["cross-encoder"] = {name: divided(found[name], own) for name, own in examples.items()}
    for kind, scores in kinds.items():
        without: dict[str, NDArray[np.float64]] = {}
        for weight in _WEIGHTS:
            recalls = {
                name: _recalls(selector, own, scores[name], weight)
                for name, own in examples.items()
            }
            without = without or recalls
            mean = np.mean([own.mean(axis=0) for own in recalls.values()], axis=0)
            worse = [
                f"{name} at {k} ({own[:, place].mean() - without[name][:, place].mean():+.3f})"
                for name, own in recalls.items()
                for place, k in enumerate(KS)
                if _is_worse(own[:, place], without[name][:, place])
            ]
            cells = " ".join(f"{share:.3f}" for share in mean)
            print(f"{kind:<14} weight {weight:<5} {cells}   worse: {', '.join(worse) or 'none'}")
    return 0


def _bm25(examples: Sequence[Example]) -> list[NDArray[Any]]:
    return list(Bm25(stemmed=True).scores([example.query for example in examples]))


def _recalls(
    selector: Selector, examples: Sequence[Example], scores: Sequence[NDArray[Any]], weight: float
) -> NDArray[np.float64]:
    found = np.zeros((len(examples), len(KS)))
    for row, (example, own) in enumerate(zip(examples, scores, strict=True)):
        passages = tuple(
            replace(passage, score=float(score))
            for passage, score in zip(example.query.passages, own, strict=True)
        )
        query = replace(example.query, passages=passages)
        (selected,) = selector.select_queries([query], dgn.Limits(k=max(KS), score_weight=weight))
        gold = np.array(example.gold)
        hits = np.cumsum(gold[list(selected.indices)])
        found[row] = [hits[min(k, len(hits)) - 1] / gold.sum() for k in KS]
    return found


def _is_worse(own: NDArray[np.float64], without: NDArray[np.float64]) -> bool:
    is_lower = own.mean() < without.mean()
    return bool(is_lower and paired_comparison(own, without, seed=0).p_value < 0.05)


if __name__ == "__main__":
    sys.exit(main())
