r"""Train the facets on 35 kinds of text, through the greedy layers.

    python -m experiments.mixture pack FOLDER --readers READERS     # matched queries, 30 MB
    python -m experiments.mixture train FOLDER OUT                  # on any machine, one core
    python -m experiments.mixture train FOLDER OUT --fold 2         # without the kinds of fold 2
    python -m experiments.mixture ship OUT MODEL --relevance 0.4    # a model folder
    python -m experiments.mixture weigh FOLDER OUT                  # other weights of the relevance
    python -m experiments.mixture left-out FOLDER OUT ...           # recall on kinds left out

A kind of text is drawn by the square root of its size. A step sees windows of documents with and
without order and titles, so that the model learns to do without them. The loss is the layer-wise
cross-entropy of the unfolded greedy search, and that of the relevance of each passage, of which a
share comes from the logits of a reader (experiments/read_pairs.py at d973326) that has not seen its
kind of text. What chooses the settings is the recall on kinds that were left out, on their training
parts; dev reports. The layers learn to trust the relevance more than new kinds of text justify, so
its weight is chosen in this way, too: `weigh` reads OUT/fold-N, what `train --fold N` wrote.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.core import Selections, greedy
from dgn.learn import (
    Batch,
    EpochReport,
    FitConfig,
    LayerwiseCrossEntropy,
    SelectionNetwork,
    Table,
    UnfoldedGreedy,
    fit,
)
from dgn.learn.facets import FacetModule, padded
from dgn.learn.losses import relevance_loss
from dgn.selector import Selector
from dgn.text.facets.encoder import FacetEncoder
from dgn.text.facets.formula import (
    FacetSizes,
    FacetWeights,
    positive,
    start_weights,
    untrained_weights,
)
from dgn.text.facets.matching import AXES, Matches
from experiments import rows
from experiments.domains import FOLDS, KINDS, read_domain
from experiments.recall import print_recalls, recalls_of
from experiments.rows import Kind, Row, matched, some_passages

_PARTS = ("train", "dev")
_DIRECTIONS = 64
_LONGEST_WINDOW = 48
_MOST_GOLD = 12
_WORDS_KEPT = 0.9
_RELEVANCES = (None, 0.8, 0.6, 0.4, 0.25, 0.15)
_MOST_WEIGHED = 150
_STEPS_PER_LINE = 500


@dataclass(frozen=True)
class Settings:
    """How the facets are trained. More than 500 steps are rounded up to a multiple of 500.

    Attributes:
        layers: K, the number of greedy layers.
        temperature: τ of the layers.
        greedy_share: How much the loss of the layers counts; that of the relevance counts 1.
        relevance_share: How much the loss of the relevance counts.
        teacher_share: The share of the loss of the relevance that comes from a reader.
        learns: "network" for the relevance alone, "all" for the weights of the function, too.
        function_rate: The learning rate of the function, as a share of that of the network.
    """

    steps: int = 7000
    batch: int = 24
    learning_rate: float = 2e-3
    decay: float = 0.1
    dropout: float = 0.3
    hidden: int = 192
    projection: int = 48
    layers: int = 4
    temperature: float = 0.2
    greedy_share: float = 2.0
    relevance_share: float = 1.0
    teacher_share: float = 0.5
    learns: str = "all"
    function_rate: float = 0.3
    seed: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack, train or ship."""
    parser = argparse.ArgumentParser(prog="python -m experiments.mixture", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("folder", type=Path)
    packing.add_argument("--readers", type=Path, help="logits of readers, written at d973326")
    packing.add_argument("--most", type=int, nargs=2, default=(600, 80), metavar=("TRAIN", "DEV"))
    training = commands.add_parser("train")
    training.add_argument("folder", type=Path)
    training.add_argument("out", type=Path)
    training.add_argument("--fold", type=int, help="leave out the kinds of this fold")
    for one in fields(Settings):
        default: Any = getattr(Settings(), one.name)
        training.add_argument(
            f"--{one.name.replace('_', '-')}", type=default.__class__, default=default
        )
    weighing = commands.add_parser("weigh")
    weighing.add_argument("folder", type=Path)
    weighing.add_argument("out", type=Path)
    averaging = commands.add_parser("left-out")
    averaging.add_argument("folder", type=Path)
    averaging.add_argument("out", type=Path, nargs="+")
    shipping = commands.add_parser("ship")
    shipping.add_argument("out", type=Path)
    shipping.add_argument("model", type=Path)
    shipping.add_argument("--relevance", type=float, help="its weight, in place of the learned one")
    given = parser.parse_args(arguments)
    if given.command == "pack":
        pack(given.folder, given.readers, tuple(given.most))
    elif given.command == "weigh":
        weigh(given.folder, given.out)
    elif given.command == "left-out":
        print_left_out(given.folder, given.out)
    elif given.command == "ship":
        found: dict[str, Any] = dict(np.load(given.out / "weights.npz"))
        if given.relevance is not None:
            found["relevance_weight"] = np.array([positive(given.relevance)], np.float32)
        Selector(FacetEncoder(FacetWeights(**found))).save_pretrained(given.model)
    else:
        settings = Settings(**{one.name: getattr(given, one.name) for one in fields(Settings)})
        run(given.folder, given.out, settings, given.fold)
    return 0


def pack(folder: Path, readers: Path | None, most: tuple[int, int]) -> None:
    """Match the queries of all kinds of text, and write them.

    Args:
        folder: Where to write.
        readers: Has `fold-N/train-logits.npz`, the logits for the kinds of fold N.
        most: The most queries of the training part, and of the dev part. FEVER, the largest, may
            have four times as many to learn from.
    """
    encoder, random = FacetEncoder(), np.random.default_rng(0)
    kinds: dict[str, Kind] = {}
    for name in KINDS:
        domain = read_domain(name)
        fold = next(number for number, own in enumerate(FOLDS) if name in own)
        logits: NDArray[Any] | None = None
        if readers is not None:
            logits = np.load(readers / f"fold-{fold}" / "train-logits.npz")[name]
        count = most[0] * (4 if name == "fever" else 1)
        places = np.sort(random.permutation(len(domain.train))[:count])
        learned = matched(encoder, domain.train, logits, places)
        dev = matched(encoder, domain.dev[: most[1]], None)
        kinds[name] = Kind([rows.shortened(row, random) for row in learned], dev)
        print(f"{name:<16}{len(learned):>6}{len(dev):>6}", flush=True)
    rows.save(folder / "rows.xz", kinds, rows.directions_of(kinds, _DIRECTIONS))


def run(folder: Path, out: Path, settings: Settings, fold: int | None) -> None:
    """Train; write the weights, and the recall on the kinds that were left out, or on all."""
    torch.set_num_threads(1)  # several runs share a machine
    kinds, directions = rows.load(folder / "rows.xz")
    left: tuple[str, ...] = () if fold is None else FOLDS[fold]
    weights = train(settings, [kind.train for name, kind in kinds.items() if name not in left])
    # The training parts choose settings, where they are not learned from.
    parts = _PARTS[1:] if fold is None else _PARTS
    found = {
        name: {
            part: recalls_of(weights, getattr(kinds[name], part)).mean(axis=0).tolist()
            for part in parts
        }
        for name in (left or kinds)
    }
    for part in parts:
        print_recalls(part, {name: np.array([own[part]]) for name, own in found.items()})
    out.mkdir(parents=True, exist_ok=True)
    np.savez(out / "weights.npz", **vars(_led_back(weights, directions)))
    report = {"settings": vars(settings), "fold": fold, "recall": found}
    (out / "recalls.json").write_text(json.dumps(report, indent=1), encoding="utf-8")


def print_left_out(folder: Path, outs: Sequence[Path]) -> None:
    """Print the mean recall on kinds left out, and which settings are not the default ones."""
    kinds, directions = rows.load(folder / "rows.xz")
    start = untrained_weights(directions.shape[1])
    before = [
        np.mean([recalls_of(start, getattr(kind, part)).mean(axis=0) for kind in kinds.values()], 0)
        for part in _PARTS
    ]
    print(f"{'':<16}{'training parts, which choose':>32}{'dev':>32}")
    print(f"{'untrained':<16}" + "".join(f"{share:>8.4f}" for mean in before for share in mean))
    for out in outs:
        reports = [json.loads(path.read_text()) for path in sorted(out.glob("fold-*/recalls.json"))]
        recall = {name: own for report in reports for name, own in report["recall"].items()}
        means = [np.mean([own[part] for own in recall.values()], axis=0) for part in _PARTS]
        shown = "".join(f"{share:>8.4f}" for mean in means for share in mean)
        changed = {
            name: value
            for name, value in reports[0]["settings"].items()
            if value != getattr(Settings(), name)
        }
        print(f"{out.name:<16}{shown}  {len(recall)} kinds, {changed}", flush=True)


def weigh(folder: Path, out: Path) -> None:
    """Print the recall on the training parts of kinds left out, by weights of the relevance."""
    kinds, directions = rows.load(folder / "rows.xz")
    found = {weight: dict[str, NDArray[np.float64]]() for weight in _RELEVANCES}
    for number, fold in enumerate(FOLDS):
        stored: dict[str, Any] = dict(np.load(out / f"fold-{number}" / "weights.npz"))
        own = FacetWeights(**stored)
        facts = own.word_weight[directions.shape[0] :]
        nothing = np.zeros((directions.shape[1], 1), np.float32)
        small = replace(
            own,
            word_weight=np.concatenate([nothing, facts]),
            projection=directions.T @ own.projection,
        )
        for weight, recall in found.items():
            changed = small
            if weight is not None:
                known = np.array([positive(weight)], np.float32)
                changed = replace(small, relevance_weight=known)
            for name in fold:
                recall[name] = recalls_of(changed, kinds[name].train[:_MOST_WEIGHED])
    for weight, recall in found.items():
        mean = np.mean([own.mean(axis=0) for own in recall.values()], axis=0)
        label = "learned" if weight is None else f"{weight:g}"
        print(f"{label:<10}" + "".join(f"{share:>8.4f}" for share in mean), flush=True)


def _led_back(weights: FacetWeights, directions: NDArray[np.float32]) -> FacetWeights:
    """The weights for vectors as they are, not by their directions."""
    words = weights.word_weight
    facts = words[directions.shape[1] :]
    whole = np.concatenate([directions @ words[: directions.shape[1]], facts])
    return replace(
        weights,
        word_weight=whole.astype(np.float32),
        projection=(directions @ weights.projection).astype(np.float32),
    )


def train(settings: Settings, kinds: Sequence[Sequence[Row]]) -> FacetWeights:
    """The facets, trained on these kinds of text."""
    sizes = FacetSizes(kinds[0][0].matches["about"].shape[0], settings.projection, settings.hidden)
    network = MixtureNetwork(sizes, settings)
    relevance, function = network.module.network_parameters()
    rate = settings.learning_rate
    started = time.monotonic()

    def show(report: EpochReport) -> None:
        seconds = time.monotonic() - started
        if report.loss is not None:
            step = report.epoch * min(_STEPS_PER_LINE, settings.steps)
            print(f"step {step}: loss {report.loss:.3f}, {seconds:.0f} s", flush=True)

    table = MixtureTable(kinds, settings)
    config = FitConfig(
        epochs=-(-settings.steps // _STEPS_PER_LINE),
        batch_size=settings.batch,
        learning_rate=rate,
        schedule="cosine",
        temperature=settings.temperature,
        seed=settings.seed,
    )
    groups = [
        {"params": relevance, "weight_decay": settings.decay},
        {"params": function, "lr": rate * settings.function_rate},
    ]
    fit(network, table, config, show, groups=groups)
    return network.module.learned()


@final
class MixtureTable(Table):
    """Windows of the rows of all kinds of text; every batch is drawn anew.

    An epoch is as long as the lines of progress are apart. The `x` of a batch has the matches, and
    the logits of the reader.
    """

    def __init__(self, kinds: Sequence[Sequence[Row]], settings: Settings) -> None:
        steps = min(_STEPS_PER_LINE, settings.steps)
        super().__init__(np.ones(steps * settings.batch, np.int64))
        self._kinds = kinds
        shares = np.sqrt([len(rows) for rows in kinds])
        self._shares = shares / shares.sum()
        self._random = np.random.default_rng(settings.seed)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        random, windows = self._random, list[Row]()
        while len(windows) < len(rows):
            kind = self._kinds[int(random.choice(len(self._kinds), p=self._shares))]
            row = kind[int(random.integers(len(kind)))]
            part = window(row, random, hidden_words=1 - _WORDS_KEPT)
            if part.gold.any() and not part.gold.all():
                windows.append(part)
        batch = padded(windows)
        teacher = np.full(batch.mask.shape, np.nan, np.float32)
        for number, row in enumerate(windows):
            teacher[number, : len(row.teacher)] = row.teacher
        return replace(batch, x=(batch.x, torch.from_numpy(teacher)))


@final
class MixtureNetwork(SelectionNetwork):
    """Greedy layers on facets; the loss of the layers, and that of the relevance with its teacher.

    Args:
        sizes: How large the encoder is.
        settings: How it is trained.
    """

    def __init__(self, sizes: FacetSizes, settings: Settings) -> None:
        super().__init__()
        start = start_weights(sizes, settings.seed)
        self.encoder = FacetModule(start, settings.dropout, learns_words=settings.learns == "all")
        self.greedy = UnfoldedGreedy(settings.layers, settings.temperature)
        self._criterion, self._settings = LayerwiseCrossEntropy("set"), settings
        # What is learned about a word comes from facts: its vector would remember the texts.
        weight = self.encoder.get_parameter("word_weight")
        is_fact = torch.ones_like(weight)
        is_fact[: sizes.dimension] = 0

        def facts_alone(gradient: Tensor) -> Tensor:
            return gradient * is_fact

        if weight.requires_grad:
            weight.register_hook(facts_alone)

    @property
    def module(self) -> FacetModule:
        """The encoder."""
        return cast("FacetModule", self.encoder)

    def loss(self, x: tuple[Matches, Tensor], gold: Tensor, mask: Tensor | None = None) -> Tensor:
        matches, teacher = x
        facets, settings = self.module.facets(matches), self._settings
        real = matches.mask if mask is None else mask
        loss = self._criterion(self.greedy(*facets.function(real)), gold)
        relevance = relevance_loss(facets.logits, gold, real, teacher, settings.teacher_share)
        return settings.greedy_share * loss + settings.relevance_share * relevance

    def loss_terms(self, gold: Tensor, mask: Tensor) -> Tensor:
        return (gold & mask).any(dim=1).sum().to(torch.float32)

    def select(
        self, x: tuple[Matches, Tensor], mask: Tensor | None = None, k: int | None = None
    ) -> Selections:
        objective, items = self.encoder(x[0], mask)
        return cast("Selections", greedy(objective, items, k or self.greedy.layers))

    def set_temperature(self, temperature: float) -> None:
        self.greedy.temperature = temperature


def window(row: Row, random: np.random.Generator, hidden_words: float = 0.0) -> Row:
    """A part of a query's passages, sometimes without their order and their titles.

    A share of the words of the query is left out, and a passage seems not to contain a share of
    the others.
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
    part = some_passages(row, kept)
    one = dict(part.matches)
    if random.random() < 0.4:  # loose passages
        for name in ("position", "is_ordered", "follows"):
            one[name] = np.zeros_like(one[name])
    if random.random() < 0.25:  # no titles
        one["title"] = np.zeros_like(one["title"])
    if hidden_words:
        is_left = random.random(len(one["query"])) >= hidden_words
        is_left[int(random.integers(len(is_left)))] = True
        is_seen = random.random((len(kept), int(is_left.sum()))) >= hidden_words
        one["query"] = one["query"][is_left]
        for name, axes in AXES.items():
            if axes == ("items", "tokens"):
                one[name] = one[name][:, is_left]
        for name in ("similarity", "exact", "pair"):
            one[name] = one[name] * is_seen
    return replace(part, matches=one)


if __name__ == "__main__":
    sys.exit(main())
