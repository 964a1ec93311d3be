"""What a selector learns from outcomes alone: `python -m experiments.outcomes --out FILE`.

A generated problem with a verdict, in which every part of a claim matters and the truth is known. A
claim consists of a few facets. The sentences of its page each express one facet and take a side,
yes or no. A claim is true if the page says yes to all of its facets; it is false if the page says
no to one of them. The page contains

    statements    for each facet of the claim, one or more sentences on the right side,
    mere talk     on a facet of the claim, in more words than the statements, but the side it takes
                  means nothing. A few further inputs, its manner, tell it from a statement.
    other         sentences on facets that the claim does not have; they take sides at random.

Half of the claims are true, and nothing in the claim says which, so that whoever reads no statement
of some facet can only guess about it. The evidence of a claim is a statement for each of its
facets.

All methods have the same encoder at the same start, the same reader and the same trials. Those that
learn from outcomes choose a trial and an epoch by the loss of the outcome that the reader predicts
from k selected sentences of claims that are not reported; evidence labels choose by their recall.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dgn.core import Selections, top_k
from dgn.core.functions import FeatureCoverage, Items, Power
from dgn.core.numerics import lowest_log
from dgn.files import write_atomically
from dgn.learn import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    LayerwiseCrossEntropy,
    LearnedWeights,
    StraightThrough,
    UnfoldedGreedy,
)
from experiments.made import made_by

FACETS, DIMENSIONS, MANNER = 24, 64, 4
FEWEST, MOST = 2, 4
_MOST_REPETITIONS, _MOST_TALK, _OTHER = 3, 2, 4
_NOISE, _SIDE_NOISE = 0.2, 0.3
SENTENCES = MOST * (1 + _MOST_REPETITIONS + _MOST_TALK) + _OTHER


K, KS, TRAIN = MOST, (1, 2, MOST), 2000
TEMPERATURE, EPOCHS, READER_EPOCHS, BATCH_SIZE = 4.0, 10, 2, 64
TUNING_SEED = 100
"""The seed of all trials; the seeds that are reported are 0, 1, …"""

METHODS = (
    "greedy, untrained",
    "DGN",
    "evidence labels",
    "attention over all",
    "straight-through top-k",
)
_MODULAR = FeatureCoverage(concave=Power(1.0))


@dataclass(frozen=True, eq=False)
class Claims:
    """Claims with their pages.

    Attributes:
        x: [claims, sentences, inputs], what the selector sees.
        seen: [claims, sentences, inputs + 1], what the reader sees of a sentence: its side, too.
        mask: [claims, sentences], False for padding.
        gold: [claims, sentences], True for the clearest statement of each facet.
        verdict: [claims], 1 for true.
        facet: [claims, sentences], which facet of the claim a sentence states; −1 for none.
        facets: [claims], the number of facets of each claim.
    """

    x: Tensor
    seen: Tensor
    mask: Tensor
    gold: Tensor
    verdict: Tensor
    facet: NDArray[np.int64]
    facets: NDArray[np.int64]

    def recall(self, selected: NDArray[np.int64]) -> float:
        """The share of a claim's facets that some selected sentence states, a mean over claims."""
        shares = np.zeros(len(self.facets))
        for row, (of_claim, count) in enumerate(zip(selected, self.facets, strict=True)):
            stated = {int(f) for f in self.facet[row, of_claim[of_claim >= 0]]} - {-1}
            shares[row] = len(stated) / count
        return float(shares.mean())


@dataclass(frozen=True)
class Settings:
    """What the trials vary: the learning rates of selector and reader, and the temperature.

    The temperature is relative to that of the problem, and multiplied by `factor` per epoch;
    `stay_near` is how much the distance of the selector from its start costs.
    """

    learning_rate: float = 2e-3
    reader_learning_rate: float = 4e-3
    temperature: float = 1.0
    factor: float = 0.85
    stay_near: float = 0.0


def draw_settings(trials: int) -> list[Settings]:
    """Usual settings, and then random ones; the same draws for every method."""
    random = np.random.default_rng(7)
    return [Settings()] + [
        Settings(
            learning_rate=float(10 ** random.uniform(-3.0, -2.0)),
            reader_learning_rate=float(10 ** random.uniform(-3.0, -2.0)),
            temperature=float(random.choice([0.5, 1.0, 2.0])),
            factor=float(random.choice([0.8, 0.9, 1.0])),
            stay_near=float(random.choice([0.0, 1e-3, 1e-2])),
        )
        for _ in range(trials - 1)
    ]


class Reader(nn.Module):
    """Predicts the verdict: each sentence is read by itself, then all together.

    What is read from a sentence is weighted by how far it is selected, and summed.
    """

    def __init__(self, width: int, hidden: int = 64) -> None:
        super().__init__()
        self.read = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.conclude = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, seen: Tensor, membership: Tensor) -> Tensor:
        """[batch, 2], logits, from [batch, sentences, width] and [batch, sentences]."""
        return self.conclude((membership[:, None, :] @ self.read(seen))[:, 0])


class ScoreSelector(nn.Module):
    """Selects by f of each sentence by itself, with the encoder of the DGN.

    Args:
        encoder: A module with `forward(x, mask) -> (SetFunction, Items)`.
        greedy: The layers, on the sum of the scores; None for attention over all sentences.
    """

    def __init__(self, encoder: nn.Module, greedy: UnfoldedGreedy | None) -> None:
        super().__init__()
        self.encoder, self.greedy, self.temperature = encoder, greedy, 1.0

    def scores(self, x: Tensor, mask: Tensor) -> Tensor:
        """[batch, sentences]."""
        objective, items = self.encoder(x, mask)
        return objective.gains(items, objective.empty(items))

    def membership(self, x: Tensor, mask: Tensor) -> Tensor:
        """How far each sentence is selected."""
        scores = self.scores(x, mask)
        if self.greedy is not None:
            return self.greedy(_MODULAR, Items(scores[..., None], mask)).membership
        logits = torch.where(mask, scores / self.temperature, lowest_log(scores))
        return K * torch.softmax(logits, dim=1)

    @torch.no_grad()
    def select(self, x: Tensor, mask: Tensor, k: int) -> Selections:
        """The k sentences with the highest scores."""
        return cast("Selections", top_k(self.scores(x, mask), k, mask))

    def set_temperature(self, temperature: float) -> None:
        """Of the softmax."""
        self.temperature = temperature
        if self.greedy is not None:
            self.greedy.temperature = temperature


Selector = DifferentiableGreedyNetwork | ScoreSelector


class Learner:
    """A selector and a reader that learn together.

    Args:
        method: One of METHODS.
        settings: How they learn.
        seed: The seed of their start and of the order of claims.
    """

    def __init__(self, method: str, settings: Settings, seed: int) -> None:
        self._method, self._settings, self._seed = method, settings, seed
        torch.manual_seed(seed)
        features = FeedForward((DIMENSIONS + MANNER, 96, DIMENSIONS))
        encoder = FeatureEncoder(features, LearnedWeights(DIMENSIONS))
        encoder.start_as_identity()  # the manner of a sentence counts nothing
        is_hard = method == "straight-through top-k"
        layers = UnfoldedGreedy(K, TEMPERATURE, StraightThrough() if is_hard else None)
        if method in ("attention over all", "straight-through top-k"):
            self.selector: Selector = ScoreSelector(encoder, layers if is_hard else None)
        else:
            loss = LayerwiseCrossEntropy("set")
            self.selector = DifferentiableGreedyNetwork(encoder, layers, loss)
        self.reader = self._new_reader()

    def fit(self, learn: Claims, choose: Claims) -> float:
        """Learn, and keep the best epoch; returns what is missed on the claims that choose."""
        if self._method == "greedy, untrained":
            return self._fit(learn, choose, 0, READER_EPOCHS + EPOCHS, self._outcome_missed)
        if self._method != "evidence labels":
            return self._fit(learn, choose, EPOCHS, READER_EPOCHS, self._outcome_missed)
        missed = self._fit(learn, choose, EPOCHS, READER_EPOCHS, self._evidence_missed)
        self.reader = self._new_reader()
        self._fit(learn, choose, 0, READER_EPOCHS + EPOCHS, self._outcome_missed)
        return missed

    def selected(self, claims: Claims, k: int) -> NDArray[np.int64]:
        """[claims, k], what is selected; −1 for none."""
        return np.asarray(self.selector.select(claims.x, claims.mask, k).indices)

    @torch.no_grad()
    def predicted(self, claims: Claims, k: int = K) -> Tensor:
        """The logits of the verdict, from k selected sentences alone."""
        member = torch.zeros(claims.mask.shape)
        picks = torch.from_numpy(self.selected(claims, k))
        member.scatter_add_(1, picks.clamp(min=0), (picks >= 0).float())
        return self.reader(claims.seen, member)

    def _new_reader(self) -> Reader:
        torch.manual_seed(self._seed + 1)
        return Reader(DIMENSIONS + MANNER + 1)

    def _fit(
        self,
        learn: Claims,
        choose: Claims,
        epochs: int,
        reader_epochs: int,
        missed: Callable[[Claims], float],
    ) -> float:
        settings, selector = self._settings, list(self.selector.parameters())
        start = [weight.detach().clone() for weight in selector]
        optimizer = torch.optim.AdamW(
            [
                {"params": self.reader.parameters(), "lr": settings.reader_learning_rate},
                {"params": selector, "lr": settings.learning_rate, "weight_decay": 0.0},
            ],
            weight_decay=1e-4,
        )
        random = torch.Generator().manual_seed(self._seed)
        torch.manual_seed(self._seed)
        best, parts = float("inf"), (self.selector, self.reader)
        weights = [copy.deepcopy(part.state_dict()) for part in parts]
        highest = TEMPERATURE * settings.temperature
        for number in range(-reader_epochs, epochs):
            cooled = highest * settings.factor ** max(0, number)
            self.selector.set_temperature(max(highest / 20, cooled))
            order = torch.randperm(len(learn.mask), generator=random)
            for first in range(0, len(order), BATCH_SIZE):
                rows = order[first : first + BATCH_SIZE]
                optimizer.zero_grad()
                near = sum(((w - s) ** 2).sum() for w, s in zip(selector, start, strict=True))
                (self._loss(learn, rows) + settings.stay_near * near).backward()
                if number < 0:  # what the reader cannot read yet, it cannot ask for
                    for weight in selector:
                        weight.grad = None
                optimizer.step()
            if (now := missed(choose)) < best:
                best = now
                weights = [copy.deepcopy(part.state_dict()) for part in parts]
        for part, kept in zip(parts, weights, strict=True):
            part.load_state_dict(kept)
        return best

    def _loss(self, claims: Claims, rows: Tensor) -> Tensor:
        x, seen, mask = claims.x[rows], claims.seen[rows], claims.mask[rows]
        verdict = claims.verdict[rows]
        with torch.no_grad():
            picks = self.selector.select(x, mask, K).indices
        member = torch.zeros(mask.shape).scatter_add(1, picks.clamp(min=0), (picks >= 0).float())
        loss = cross_entropy(self.reader(seen, member), verdict)
        if self._method == "greedy, untrained":
            return loss
        if self._method == "evidence labels":
            assert isinstance(self.selector, DifferentiableGreedyNetwork)  # noqa: S101
            return loss + self.selector.loss(x, claims.gold[rows], mask)
        soft = self.selector.membership(x, mask)
        return loss + cross_entropy(self.reader(seen, soft), verdict)

    def _outcome_missed(self, claims: Claims) -> float:
        return float(cross_entropy(self.predicted(claims), claims.verdict))

    def _evidence_missed(self, claims: Claims) -> float:
        return 1 - statistics.mean(claims.recall(self.selected(claims, k)) for k in KS)


def make_claims(seed: int) -> Iterator[Claims]:
    """Claims that learn, choose and are reported; another seed has other facets."""
    random = np.random.default_rng(seed)
    directions = random.standard_normal((FACETS, DIMENSIONS))
    talk = random.standard_normal(MANNER)
    for count in (TRAIN, TRAIN // 3, 1000):
        yield _claims(random, directions, talk, count)


def main() -> None:
    """Run all methods, and print and write the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.outcomes", description=__doc__)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    results: dict[str, Any] = {"made": made_by("experiments/outcomes.py")}
    heads = [f"{what} at {k}" for what in ("recall", "accuracy") for k in KS]
    print("| | " + " | ".join(heads) + " |\n| --- |" + " --: |" * len(heads))
    for method in METHODS:
        learn, choose, _ = make_claims(TUNING_SEED)
        drawn = draw_settings(options.trials)
        missed = [Learner(method, one, TUNING_SEED).fit(learn, choose) for one in drawn]
        settings = drawn[missed.index(min(missed))]
        rows: list[list[float]] = []
        for seed in range(options.seeds):
            learn, choose, report = make_claims(seed)
            learner = Learner(method, settings, seed)
            learner.fit(learn, choose)
            rows.append(measure(learner, report))
        results[method] = {"settings": asdict(settings), "trials": missed, "seeds": rows}
        write_atomically(options.out, json.dumps(results, indent=1) + "\n")
        cells = [_spread(list(column)) for column in zip(*rows, strict=True)]
        print(f"| {method} | {' | '.join(cells)} |", flush=True)


def measure(learner: Learner, report: Claims) -> list[float]:
    """Recall at each of KS, then the accuracy of the verdict at each of them."""
    recalls = [report.recall(learner.selected(report, k)) for k in KS]
    hits = [learner.predicted(report, k).argmax(dim=1) == report.verdict for k in KS]
    return [*recalls, *(float(of.float().mean()) for of in hits)]


def _spread(values: list[float]) -> str:
    mean = f"{statistics.mean(values):.3f}"
    sd = f" ±{statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return (mean + sd).replace("0.", ".")


def _claims(
    random: np.random.Generator,
    directions: NDArray[np.float64],
    talk: NDArray[np.float64],
    count: int,
) -> Claims:
    shape = (count, SENTENCES)
    x = np.zeros((*shape, DIMENSIONS + MANNER), np.float32)
    side = np.zeros((*shape, 1), np.float32)
    mask, gold = np.zeros(shape, bool), np.zeros(shape, bool)
    facet = np.full(shape, -1)
    facets = random.integers(FEWEST, MOST + 1, count)
    verdict = random.integers(0, 2, count)
    for row in range(count):
        own = np.asarray(random.choice(FACETS, int(facets[row]), replace=False))
        denied = -1 if verdict[row] else int(random.integers(int(facets[row])))
        page = _page(random, own, denied)
        order: list[int] = random.permutation(len(page)).tolist()
        page = [page[place] for place in order]
        size = len(page)
        columns: list[NDArray[Any]] = [np.array(column) for column in zip(*page, strict=True)]
        topic, strength, says, number, is_talk, is_gold = columns
        sentences = strength[:, None] * directions[topic]
        sentences += _NOISE * random.standard_normal(sentences.shape)
        manner = is_talk[:, None] * talk + 0.3 * random.standard_normal((size, MANNER))
        x[row, :size, :DIMENSIONS] = directions[own].sum(axis=0) * sentences
        x[row, :size, DIMENSIONS:] = manner
        side[row, :size, 0] = says + _SIDE_NOISE * random.standard_normal(size)
        mask[row, :size], gold[row, :size], facet[row, :size] = True, is_gold, number
    return Claims(
        x=torch.from_numpy(x),
        seen=torch.from_numpy(np.concatenate([x, side], axis=2)),
        mask=torch.from_numpy(mask),
        gold=torch.from_numpy(gold),
        verdict=torch.from_numpy(verdict),
        facet=facet,
        facets=facets,
    )


_Sentence = tuple[int, float, int, int, bool, bool]
"""Topic, strength, side, the facet of the claim that it states, and whether it is talk or gold."""


def _page(random: np.random.Generator, own: NDArray[np.int64], denied: int) -> list[_Sentence]:
    page: list[_Sentence] = []
    for number, topic in enumerate(own.tolist()):
        says = -1 if number == denied else 1
        strength = _strength(random)
        page.append((topic, strength, says, number, False, True))
        for _ in range(random.integers(0, _MOST_REPETITIONS + 1)):
            weaker = strength * random.uniform(0.6, 0.9)
            page.append((topic, weaker, says, number, False, False))
        for _ in range(random.integers(0, _MOST_TALK + 1)):
            louder = strength * random.uniform(1.0, 1.5)
            page.append((topic, louder, _any_side(random), -1, True, False))
    others = [topic for topic in range(FACETS) if topic not in own]
    for topic in random.choice(others, _OTHER).tolist():
        page.append((topic, _strength(random), _any_side(random), -1, False, False))
    return page


def _strength(random: np.random.Generator) -> float:
    return float(2.0 ** random.uniform(-1.0, 1.0))


def _any_side(random: np.random.Generator) -> int:
    return int(random.choice([-1, 1]))


if __name__ == "__main__":
    main()
