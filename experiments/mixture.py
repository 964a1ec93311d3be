r"""Train the facets on the mixture of ten domains: `python -m experiments.mixture --out FOLDER`.

Every domain counts alike. A step sees windows of documents with and without order and titles, so
that the model learns to do without them. What chooses the settings is the mean over domains that
were left out of training (`--left-out`); two at a time, in five runs. A teacher that was trained on
all ten domains has seen those left out, and its logits on the others may carry a trace of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from dgn.core.native.facets import WordTable
from dgn.data import Example
from dgn.learn.families.modules import FacetModule
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.learn.networks import DifferentiableGreedyNetwork
from dgn.selector import Limits, Selector
from dgn.text.encoders.facets.encoder import FacetEncoder
from dgn.text.encoders.facets.formula import STATISTICS, FacetSizes, FacetWeights, compute_facets
from dgn.text.encoders.facets.matching import AXES, Matches, QueryMatches, match_query
from dgn.text.encoders.facets.reading import read_queries
from experiments.domains import DOMAINS, read_domain

FOLDS = (
    ("contractnli", "selqa"),
    ("entailmentbank", "multirc"),
    ("evinf", "tatqa"),
    ("fever", "qmsum"),
    ("politihop", "wice"),
)
KS = (1, 3, 5, 7)
_LONGEST_WINDOW = 48
_MOST_GOLD = 12
_HARD = 12
_GREEDY_LAYERS, _TEMPERATURE = 4, 0.1
_BINARY_SHARE = 0.3
_SMOOTHING = 0.05
_TITLE_WORDS_KEPT = 0.4


@dataclass(frozen=True)
class Settings:
    """How the network is trained."""

    steps: int = 6000
    batch: int = 24
    learning_rate: float = 2e-3
    decay: float = 0.1
    dropout: float = 0.3
    hidden: int = 128
    projection: int = 32
    greedy_share: float = 0.0
    teacher_share: float = 0.5
    networks: int = 1
    hidden_words: float = 0.0
    invented_titles: float = 0.0
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Row:
    """A query of the training part, matched; `hard` are the passages that the start prefers.

    Attributes:
        matches: The query against all its passages.
        words: The words of the query.
        gold: [passages].
        hard: The passages that are not gold and cover most of the query.
        teacher: [passages], the logits of a cross-encoder; NaN where there are none.
    """

    matches: QueryMatches
    words: WordTable
    gold: NDArray[np.bool_]
    hard: NDArray[np.int64]
    teacher: NDArray[np.float32]


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print the recall on each domain, and write the model."""
    parser = argparse.ArgumentParser(prog="python -m experiments.mixture", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the model into this folder")
    parser.add_argument("--left-out", action="store_true", help="train five times, without two")
    parser.add_argument("--measure", type=Path, help="do not train: measure what --out wrote")
    parser.add_argument("--teacher", type=Path, help="logits of a cross-encoder, .npz by domain")
    parser.add_argument(
        "--partial", action="store_true", help="FEVER's claims with incomplete gold, too"
    )
    for one in fields(Settings):
        name = f"--{one.name.replace('_', '-')}"
        default: Any = getattr(Settings(), one.name)
        kind: Any = default.__class__
        parser.add_argument(name, type=kind, default=default)
    given = vars(parser.parse_args(arguments))
    settings = Settings(**{one.name: given[one.name] for one in fields(Settings)})
    print(settings, flush=True)
    domains = {name: read_domain(name, partial=given["partial"]) for name in DOMAINS}
    if given["measure"]:
        measure(given["measure"], {name: domains[name].dev for name in DOMAINS})
        return 0
    encoder = FacetEncoder()
    teacher = dict(np.load(given["teacher"])) if given["teacher"] else {}
    rows = {n: matched(encoder, domains[n].train, teacher.get(n)) for n in DOMAINS}
    dev = {name: domains[name].dev for name in DOMAINS}
    print_recalls("untrained", {n: recalls(Selector(encoder), dev[n]) for n in DOMAINS})
    if given["left_out"]:
        found: dict[str, NDArray[np.float64]] = {}
        for fold in FOLDS:
            weights = train(settings, [rows[name] for name in DOMAINS if name not in fold])
            selector = Selector(FacetEncoder(weights))
            found |= {name: recalls(selector, dev[name]) for name in fold}
            if given["out"]:
                selector.save_pretrained(given["out"] / f"without-{'-'.join(fold)}")
        print_recalls("left out", {name: found[name] for name in DOMAINS})
    if given["out"]:
        selector = Selector(FacetEncoder(train(settings, list(rows.values()))))
        selector.save_pretrained(given["out"])
        print_recalls("all domains", {n: recalls(selector, dev[n]) for n in DOMAINS})
        print(f"wrote {given['out']}")
    return 0


def measure(folder: Path, dev: dict[str, tuple[Example, ...]]) -> None:
    """Print the recall of the models that an earlier run wrote, and of the untrained one."""
    untrained = Selector.from_pretrained("untrained")
    print_recalls("untrained", {name: recalls(untrained, dev[name]) for name in DOMAINS})
    found: dict[str, NDArray[np.float64]] = {}
    for fold in FOLDS:
        selector = Selector.from_pretrained(folder / f"without-{'-'.join(fold)}")
        found |= {name: recalls(selector, dev[name]) for name in fold}
    print_recalls("left out", {name: found[name] for name in DOMAINS})
    selector = Selector.from_pretrained(folder)
    print_recalls("all domains", {name: recalls(selector, dev[name]) for name in DOMAINS})


def matched(
    encoder: FacetEncoder, examples: Sequence[Example], teacher: NDArray[Any] | None
) -> list[Row]:
    """The examples of a domain, matched once."""
    rows: list[Row] = []
    place = 0
    for example in examples:
        (words,), table = read_queries(encoder.reader, [example.query])
        one = match_query(words, table)
        used, query = np.unique(one["query"], return_inverse=True)
        table = WordTable(table.vectors[used], table.facts[used], table.stem[used])
        gold = np.array(example.gold)
        objective, items = encoder.encode([example.query])
        gains = objective.gains(items, objective.empty(items))[0].copy()
        gains[gold] = -1
        logits = np.full(len(gold), np.nan, np.float32)
        if teacher is not None and place + len(gold) <= len(teacher):
            logits = teacher[place : place + len(gold)].astype(np.float32)
        place += len(gold)
        hard = np.argsort(-gains)[:_HARD]
        rows.append(Row({**one, "query": query}, table, gold, hard[~gold[hard]], logits))
    return rows


def train(settings: Settings, domains: Sequence[list[Row]]) -> FacetWeights:
    """The mean of some networks that were trained on these domains, as one network."""
    seeds = range(settings.seed, settings.seed + settings.networks)
    return joined([_train_one(settings, domains, seed) for seed in seeds])


def joined(parts: Sequence[FacetWeights]) -> FacetWeights:
    """One network whose logits are the mean of those of some networks."""
    projection = parts[0].sizes.projection
    blocks: list[NDArray[Any]] = []
    for number, part in enumerate(parts):
        block = np.zeros((STATISTICS + 3 * projection * len(parts), part.sizes.hidden))
        block[:STATISTICS] = part.hidden[:STATISTICS]
        for place in range(3):  # the query, the passage, and their product
            start = STATISTICS + (place * len(parts) + number) * projection
            own = STATISTICS + place * projection
            block[start : start + projection] = part.hidden[own : own + projection]
        blocks.append(block)
    changed = {
        "projection": np.concatenate([part.projection for part in parts], axis=1),
        "hidden": np.concatenate(blocks, axis=1),
        "hidden_bias": np.concatenate([part.hidden_bias for part in parts]),
        "output": np.concatenate([part.output for part in parts]) / len(parts),
        "output_bias": np.mean([part.output_bias for part in parts], axis=0),
    }
    return replace(parts[0], **{name: w.astype(np.float32) for name, w in changed.items()})


def _train_one(settings: Settings, domains: Sequence[list[Row]], seed: int) -> FacetWeights:
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    sizes = FacetSizes(256, settings.projection, settings.hidden)
    module = FacetModule(sizes, settings.dropout, seed, learns_words=False)
    layers = UnfoldedGreedy(_GREEDY_LAYERS, _TEMPERATURE)
    network = DifferentiableGreedyNetwork(module, layers, LayerwiseCrossEntropy("set"))
    learned = [weight for weight in module.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learned, settings.learning_rate, weight_decay=settings.decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.steps)
    augmentation = settings.hidden_words, settings.invented_titles
    started = time.monotonic()
    for step in range(settings.steps):
        chosen = [domains[int(random.integers(len(domains)))] for _ in range(settings.batch)]
        windows = [
            window(own[int(random.integers(len(own)))], random, *augmentation) for own in chosen
        ]
        batch = batch_of([one for one in windows if one.gold.any() and not one.gold.all()])
        facets = compute_facets(module.weights, batch.matches, module.dropout)
        loss = _relevance_loss(facets.logits, batch, settings.teacher_share)
        if settings.greedy_share:
            greedy = network.loss(batch.matches, batch.gold, batch.matches.mask)
            loss = loss + settings.greedy_share * greedy
        optimizer.zero_grad()
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        optimizer.step()
        schedule.step()
        if (step + 1) % 1000 == 0:
            seconds = time.monotonic() - started
            print(f"  step {step + 1}: loss {loss.item():.3f}, {seconds:.0f} s", flush=True)
    return FacetWeights(**{n: w.detach().numpy() for n, w in vars(module.weights).items()})


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """Some windows, padded; `teacher` has logits of a cross-encoder, or NaN."""

    matches: Any
    gold: Tensor
    teacher: Tensor


def batch_of(rows: Sequence[Row]) -> TrainingBatch:
    """The rows as one batch of tensors."""
    sizes = [len(row.words.facts) for row in rows]
    starts = np.cumsum(sizes) - sizes
    shifted = [
        {**row.matches, "query": row.matches["query"] + start}
        for row, start in zip(rows, starts, strict=True)
    ]
    words = WordTable(
        np.concatenate([row.words.vectors for row in rows]),
        np.concatenate([row.words.facts for row in rows]).astype(np.float32),
        np.concatenate([row.words.stem for row in rows]),
    )
    matches = Matches.of(shifted, words)
    gold = np.zeros(matches.mask.shape, bool)
    teacher = np.full(matches.mask.shape, np.nan, np.float32)
    for number, row in enumerate(rows):
        gold[number, : len(row.gold)] = row.gold
        teacher[number, : len(row.gold)] = row.teacher
    moved = matches.moved(_tensor)
    return TrainingBatch(moved, torch.from_numpy(gold), torch.from_numpy(teacher))


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def _relevance_loss(logits: Tensor, batch: TrainingBatch, teacher_share: float) -> Tensor:
    """Each gold passage against all that are not gold, and each passage by itself."""
    gold, mask = batch.gold.float(), batch.matches.mask
    others = torch.where(mask & ~batch.gold, logits, -1e4)
    above = logits - torch.logsumexp(others, dim=1, keepdim=True)
    listwise = -(logsigmoid(above) * gold).sum(dim=1) / gold.sum(dim=1)
    wanted = _SMOOTHING + (1 - 2 * _SMOOTHING) * gold
    taught = torch.isfinite(batch.teacher)
    soft = torch.where(taught, torch.sigmoid(torch.nan_to_num(batch.teacher)), wanted)
    wanted = (1 - teacher_share) * wanted + teacher_share * soft
    binary = binary_cross_entropy_with_logits(logits, wanted, reduction="none")[mask].mean()
    return (1 - teacher_share) * listwise.mean() + (_BINARY_SHARE + teacher_share) * binary


def window(
    row: Row,
    random: np.random.Generator,
    hidden_words: float = 0.0,
    invented_titles: float = 0.0,
) -> Row:
    """A part of a query's passages, sometimes without their order and their titles.

    A share of the words of the query is left out, and a passage seems not to contain a share of
    the others. Few domains have titles; some documents without one seem to have a title of one to
    three words of the query, which their passages then mention less often.
    """
    count = len(row.gold)
    kept = np.arange(count)
    if count > _LONGEST_WINDOW:
        gold, others = np.flatnonzero(row.gold), np.flatnonzero(~row.gold)
        if len(gold) > _MOST_GOLD:
            gold = random.choice(gold, _MOST_GOLD, replace=False)
        size = min(len(others), _LONGEST_WINDOW - len(gold))
        some = random.choice(others, size, replace=False)
        kept = np.unique(np.concatenate([gold, row.hard, some]))
    one = row.matches
    parts = {name: one[name][kept] for name, axes in AXES.items() if axes[0] == "items"}
    parts["follows"] = parts["follows"] & (np.diff(kept, prepend=-2) == 1)
    if random.random() < 0.4:  # loose passages
        for name in ("position", "is_ordered", "follows"):
            parts[name] = np.zeros_like(parts[name])
    if random.random() < 0.25:  # no titles
        parts["title"] = np.zeros_like(parts["title"])
    if not parts["title"].any() and random.random() < invented_titles:
        size = min(int(random.integers(1, 4)), len(one["query"]))
        first = int(random.integers(len(one["query"]) - size + 1))
        named = slice(first, first + size)
        parts["title"] = np.zeros_like(parts["title"])
        parts["title"][:, named] = 1
        is_kept = random.random((len(kept), size)) < _TITLE_WORDS_KEPT
        for name in ("similarity", "exact", "pair"):
            parts[name] = parts[name].copy()
            parts[name][:, named] = parts[name][:, named] * is_kept
    words = one["query"]
    if hidden_words:
        is_left = random.random(len(words)) >= hidden_words
        is_left[int(random.integers(len(words)))] = True
        is_seen = random.random((len(kept), int(is_left.sum()))) >= hidden_words
        words = words[is_left]
        for name, axes in AXES.items():
            if axes == ("items", "tokens"):
                parts[name] = parts[name][:, is_left]
        for name in ("similarity", "exact", "pair"):
            parts[name] = parts[name] * is_seen
    matches = {**one, "query": words, **parts}
    return Row(matches, row.words, row.gold[kept], row.hard, row.teacher[kept])


def recalls(selector: Selector, examples: Sequence[Example]) -> NDArray[np.float64]:
    """[examples, KS], the share of the gold passages that are among the first k."""
    found = np.zeros((len(examples), len(KS)))
    by_length = sorted(range(len(examples)), key=lambda place: len(examples[place].gold))
    for start in range(0, len(examples), 32):
        places = by_length[start : start + 32]
        selected = selector.select_queries([examples[p].query for p in places], Limits(k=max(KS)))
        for place, one in zip(places, selected, strict=True):
            gold = np.array(examples[place].gold)
            hits = np.cumsum(gold[list(one.indices)])
            found[place] = [hits[min(k, len(hits)) - 1] / gold.sum() for k in KS]
    return found


def print_recalls(name: str, found: dict[str, NDArray[np.float64]]) -> None:
    """One line per domain, and the mean over the domains."""
    print(f"\n{name}: recall at {', '.join(map(str, KS))}")
    for domain, own in found.items():
        print(f"  {domain:<16}" + "".join(f"{share:>8.3f}" for share in own.mean(axis=0)))
    mean = np.mean([own.mean(axis=0) for own in found.values()], axis=0)
    print(f"  {'mean':<16}" + "".join(f"{share:>8.3f}" for share in mean), flush=True)


if __name__ == "__main__":
    sys.exit(main())
