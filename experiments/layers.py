r"""What do the greedy layers add on word facets? `python -m experiments.layers --out FILE`.

Two models with the same features (the words of the query), the same few hundred weights, the same
loss, the same number of trials and steps. One maximizes coverage of the words: a word that is
covered is not worth much a second time. The other maximizes the sum of what each passage covers by
itself, so that it ranks. Each is trained on one domain at a time; a fifth of the training documents
chooses the learning rate, and dev is reported.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.core.functions import FeatureCoverage, Items, Power
from dgn.data import Example
from dgn.evaluation.metrics import paired_comparison
from dgn.files import write_atomically
from dgn.learn.families.modules import FacetModule
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.selector import Selector
from dgn.text.facets.encoder import FacetEncoder
from dgn.text.facets.formula import FacetSizes, FacetWeights, untrained_weights
from experiments.domains import read_domain
from experiments.mixture import TrainingBatch, batch_of, window
from experiments.recall import KS, recalls
from experiments.rows import Row, matched

SETS = ("contractnli", "entailmentbank", "evinf", "fever", "multirc", "politihop", "qmsum")
FORMS = ("coverage", "sum")
_RATES = (1e-3, 3e-3, 1e-2)
_STEPS, _BATCH, _LAYERS, _TEMPERATURE = 400, 16, 7, 0.1
_MOST_QUERIES = 600


def main(arguments: Sequence[str] | None = None) -> int:
    """Train both on each set, compare them, and write the numbers."""
    parser = argparse.ArgumentParser(prog="python -m experiments.layers", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=_STEPS)
    options = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    for name in options.sets:
        found[name] = _compare(name, options.seeds, options.steps)
        print(f"{name} ({found[name]['queries']} queries)")
        for form in ("untrained coverage", "untrained sum", *FORMS):
            means = " / ".join(f"{share:.3f}" for share in found[name][form]["recall"])
            print(f"  {form:<20} {means}")
        said = [
            f"{one['difference']['mean']:+.3f} (p {one['p_value']:.3f})"
            for one in found[name]["coverage minus sum"]
        ]
        print(f"  {'coverage minus sum':<20} {' / '.join(said)}", flush=True)
    if options.out:
        write_atomically(options.out, json.dumps(found, indent=1) + "\n")
        print(f"wrote {options.out}")
    return 0


def _compare(name: str, seeds: int, steps: int) -> dict[str, Any]:
    domain, encoder = read_domain(name), FacetEncoder()
    random = np.random.default_rng(0)
    order: list[int] = random.permutation(len(domain.train)).tolist()
    train = [domain.train[place] for place in order]
    chooses = [_share(example) < 0.2 for example in train]
    choose = [example for example, is_in in zip(train, chooses, strict=True) if is_in]
    learn = [example for example, is_in in zip(train, chooses, strict=True) if not is_in]
    rows = matched(encoder, learn, None)
    dev = domain.dev[:_MOST_QUERIES]
    results: dict[str, Any] = {"queries": len(dev), "training queries": len(learn)}
    by_form: dict[str, NDArray[np.float64]] = {}
    for form in FORMS:
        start = _recalls(form, untrained_weights(), dev)
        results[f"untrained {form}"] = {"recall": start.mean(axis=0).tolist()}
        tried = {
            rate: float(_recalls(form, _train(form, rows, rate, 0, steps), choose[:200]).mean())
            for rate in _RATES
        }
        rate = max(tried, key=lambda one: tried[one])
        by_seed = np.stack(
            [_recalls(form, _train(form, rows, rate, s, steps), dev) for s in range(seeds)]
        )
        by_form[form] = by_seed.mean(axis=0)
        results[form] = {
            "recall": by_seed.mean(axis=(0, 1)).tolist(),
            "sd over seeds": by_seed.mean(axis=1).std(axis=0, ddof=1 if seeds > 1 else 0).tolist(),
            "learning rate": rate,
            "tried": tried,
        }
    results["coverage minus sum"] = [
        asdict(paired_comparison(*(by_form[form][:, place] for form in FORMS), seed=0))
        for place in range(len(KS))
    ]
    return results


def _share(example: Example) -> float:
    """A number from 0 to 1 that is the same for all queries of a document."""
    return zlib.crc32("\n".join(sorted(example.query.texts)).encode()) / 2**32


def _train(form: str, rows: Sequence[Row], rate: float, seed: int, steps: int) -> FacetWeights:
    random = np.random.default_rng(seed)
    module = FacetModule(FacetSizes(256, 0, 0, 0), seed=seed)
    layers, criterion = UnfoldedGreedy(_LAYERS, _TEMPERATURE), LayerwiseCrossEntropy()
    optimizer = torch.optim.Adam(module.parameters(), rate)
    for _ in range(steps):
        chosen = [window(rows[int(random.integers(len(rows)))], random) for _ in range(_BATCH)]
        batch = batch_of([one for one in chosen if one.gold.any() and not one.gold.all()])
        loss = _loss(form, module, layers, criterion, batch)
        optimizer.zero_grad()
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        optimizer.step()
    return FacetWeights(**{n: w.detach().numpy() for n, w in vars(module.weights).items()})


def _loss(
    form: str,
    module: FacetModule,
    layers: UnfoldedGreedy,
    criterion: LayerwiseCrossEntropy,
    batch: TrainingBatch,
) -> Tensor:
    objective, items = module(batch.matches)
    if form == "sum":
        alone = objective.gains(items, objective.empty(items))
        objective = FeatureCoverage(concave=Power(1.0))
        items = Items(alone[..., None], items.mask)
    return criterion(layers(objective, items), batch.gold)


def _recalls(form: str, weights: FacetWeights, examples: Sequence[Example]) -> NDArray[np.float64]:
    """[examples, KS]: by greedy, or by the gains of the first step."""
    encoder = FacetEncoder(weights)
    if form == "coverage":
        return recalls(Selector(encoder), examples)
    found = np.zeros((len(examples), len(KS)))
    for row, example in enumerate(examples):
        objective, items = encoder.encode([example.query])
        gains = np.asarray(objective.gains(items, objective.empty(items)))[0]
        gold = np.array(example.gold)[np.argsort(-gains, kind="stable")]
        hits = np.cumsum(gold)
        found[row] = [hits[min(k, len(hits)) - 1] / gold.sum() for k in KS]
    return found


if __name__ == "__main__":
    sys.exit(main())
