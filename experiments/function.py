r"""Train the weights of minilm's function through the greedy layers.

    python -m experiments.function READERS OUT                  # for each fold, and for all kinds
    python -m experiments.function READERS OUT --reader 0       # the model without a reader

READERS is what scripts/read_pairs_on_device wrote: the cosines of MiniLM's words, and for each fold
the logits of a reader that has not seen its kinds of text. So the function learns how far a reader
can be trusted on text that is new to it. A fold is measured by weights that were trained on the
other folds; on the training parts, which choose the settings, and on the dev parts, which report.
OUT/weights.npz are the weights learned from all kinds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dgn.core.functions import FeatureCoverage, Items
from dgn.core.native.facets import WordTable
from dgn.data import Example
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.text.facets.encoder import FacetEncoder
from dgn.text.facets.formula import WORD_FACTS, FacetWeights, compute_facets
from dgn.text.facets.matching import match_query
from dgn.text.facets.reading import read_queries
from dgn.minilm.encoder import reading_weights
from dgn.text.vocabulary import WordReader
from experiments import rows
from experiments.compared import contextual, divided, read_cosines
from experiments.domains import FOLDS, read_domain
from experiments.mixture import batch_of, window
from experiments.recall import print_recalls, recalls_of
from experiments.rows import Kind, Row

_MOST_TRAIN, _MOST_DEV, _MOST_PASSAGES = 200, 80, 500
_LEARNED = {
    "few": ("threshold", "log_scale", "likeness", "relevance_weight"),
    "all": (
        *("word_weight", "threshold", "log_scale", "bonus", "title", "neighbours", "likeness"),
        "relevance_weight",
    ),
}


@dataclass(frozen=True)
class Settings:
    """How the function is trained; `pull` draws its weights to where they start."""

    steps: int = 400
    batch: int = 32
    learning_rate: float = 1e-2
    layers: int = 4
    temperature: float = 0.3
    learned: str = "few"
    pull: float = 1.0
    reader: int = 1
    seed: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Train for each fold and for all kinds, print the recall, and write the weights."""
    parser = argparse.ArgumentParser(prog="python -m experiments.function", description=__doc__)
    parser.add_argument("readers", type=Path)
    parser.add_argument("out", type=Path)
    for name, default in vars(Settings()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=default.__class__, default=default)
    given = vars(parser.parse_args(arguments))
    settings = Settings(**{name: given[name] for name in vars(Settings())})
    print(settings, flush=True)
    torch.set_num_threads(1)
    kinds = read_kinds(given["readers"])
    start = _start(settings.reader)
    found: dict[str, dict[str, NDArray[np.float64]]] = {"train": {}, "dev": {}}
    given["out"].mkdir(parents=True, exist_ok=True)
    for number, fold in enumerate(FOLDS):
        weights = train(settings, [kind for name, kind in kinds.items() if name not in fold])
        np.savez(given["out"] / f"weights-{number}.npz", **vars(_full(weights, settings.reader)))
        for name in fold:
            found["train"][name] = recalls_of(weights, kinds[name].train)
            found["dev"][name] = recalls_of(weights, kinds[name].dev)
    for part, own in found.items():
        before = {name: recalls_of(start, getattr(kinds[name], part)) for name in kinds}
        print_recalls(f"{part}, start", before)
        print_recalls(f"{part}, kinds left out", {name: own[name] for name in kinds})
    weights = train(settings, list(kinds.values()))
    np.savez(given["out"] / "weights.npz", **vars(_full(weights, settings.reader)))
    shown: dict[str, list[float]] = {
        n: np.round(getattr(weights, n), 3).ravel().tolist() for n in _LEARNED["all"]
    }
    print(f"\nlearned from all kinds: {shown}")
    return 0


def train(settings: Settings, kinds: Sequence[Kind]) -> FacetWeights:
    """The weights of the function, learned from these kinds of text."""
    torch.manual_seed(settings.seed)
    random = np.random.default_rng(settings.seed)
    start = {n: torch.from_numpy(w.copy()) for n, w in vars(_start(settings.reader)).items()}
    learned = [name for name in _LEARNED[settings.learned] if start[name].numel()]
    weights = {n: nn.Parameter(w.clone(), n in learned) for n, w in start.items()}
    own = [weights[name] for name in learned]
    optimizer = torch.optim.Adam(own, settings.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.steps)
    layers = UnfoldedGreedy(settings.layers, settings.temperature)
    criterion = LayerwiseCrossEntropy("set")
    shares = np.sqrt([len(kind.train) for kind in kinds])
    shares /= shares.sum()
    for _ in range(settings.steps):
        windows: list[Row] = []
        while len(windows) < settings.batch:
            some = kinds[int(random.choice(len(kinds), p=shares))].train
            one = window(some[int(random.integers(len(some)))], random)
            if one.gold.any() and not one.gold.all():
                windows.append(one)
        batch = batch_of(windows)
        facets = compute_facets(FacetWeights(**weights), batch.matches)
        objective = FeatureCoverage(facets.weights, target=facets.target)
        unfolded = layers(objective, Items(facets.features, batch.matches.mask))
        apart = torch.stack([(weights[n] - start[n]).square().sum() for n in learned]).sum()
        loss = criterion(unfolded, batch.gold) + settings.pull * apart
        optimizer.zero_grad()
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        optimizer.step()
        schedule.step()
    return FacetWeights(**{name: weight.detach().numpy() for name, weight in weights.items()})


def read_kinds(readers: Path) -> dict[str, Kind]:
    """The queries of all kinds of text as MiniLM matches them; they are kept in READERS."""
    path = readers / "rows.xz"
    if not path.is_file():
        cosines, words = read_cosines(readers / "compare"), FacetEncoder().reader
        kinds = {
            name: _kind(name, words, cosines[name], readers / f"fold-{number}")
            for number, fold in enumerate(FOLDS)
            for name in fold
        }
        rows.save(path, dict(sorted(kinds.items())), np.ones((1, 1), np.float32))
    return rows.load(path)[0]


def _kind(name: str, words: WordReader, cosines: Mapping[str, Any], reader: Path) -> Kind:
    random = np.random.default_rng(0)
    domain = read_domain(name)
    parts: dict[str, list[Row]] = {}
    for part, most in (("train", _MOST_TRAIN), ("dev", _MOST_DEV)):
        file = {"train": "train-logits.npz", "dev": "logits.npz"}[part]
        known = cosines[part]
        examples: Sequence[Example] = getattr(domain, part)[: len(known)]
        logits = divided(np.load(reader / file)[name], examples)
        places: list[int] = list(range(len(examples)))
        if part == "train":
            places = sorted(random.permutation(len(examples))[:most].tolist())
        kept = [place for place in places if len(examples[place].gold) <= _MOST_PASSAGES]
        parts[part] = [_row(words, examples[n], known[n], logits[n]) for n in kept[:most]]
    return Kind([rows.shortened(row, random) for row in parts["train"]], parts["dev"])


def _row(
    reader: WordReader, example: Example, cosines: tuple[Any, Any], logits: NDArray[np.float32]
) -> Row:
    (words,), table, _ = read_queries(reader, [example.query])
    match = match_query(words, table)
    used, query = np.unique(match["query"], return_inverse=True)
    own = contextual(example.query, match, table.facts[match["query"]], *cosines)
    count = len(example.gold)
    own |= {
        "query": query,
        "relevance": logits,
        "about": np.zeros(1, np.float32),
        "passages": np.zeros((count, 1), np.float32),
    }
    facts = table.facts[used]
    gold = np.array(example.gold)
    hard = np.argsort(-np.where(gold, -np.inf, own["likeness"]), kind="stable")[:12]
    nothing = np.zeros((len(facts), 1), np.float32)
    return Row(
        own,
        WordTable(nothing, facts, table.stem[used]),
        gold,
        hard[~gold[hard]],
        np.full(count, np.nan, np.float32),
    )


def _start(reader: int) -> FacetWeights:
    """Where training starts, for words without vectors."""
    weights = reading_weights(relevance=reader)
    return replace(weights, word_weight=weights.word_weight[-WORD_FACTS - 2 :])


def _full(weights: FacetWeights, reader: int) -> FacetWeights:
    """The weights as the model has them, with room for vectors of words that are not used."""
    room = reading_weights(relevance=reader).word_weight * 0
    room[-WORD_FACTS - 1 :] = weights.word_weight[-WORD_FACTS - 1 :]
    return replace(weights, word_weight=room)


if __name__ == "__main__":
    sys.exit(main())
