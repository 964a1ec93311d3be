"""The demonstration: the comparison of the paper on a generated problem, in under a minute.

    python -m experiments.demo --seeds 5
    python -m experiments.demo --temperatures --seeds 3     # τ and functions, from random features

The problem has the structure of the paper's and none of its text. Facets are random directions in
an embedding space. A claim is the sum of a few facets; a sentence expresses one facet, with some
strength. The inputs are those of the paper: the vector of the claim times that of each sentence,
element by element. A page contains

    gold          for each facet of the claim, the sentence that states it most strongly,
    redundant     further, weaker sentences on the same facets: relevant, but nothing new,
    irrelevant    sentences on facets that the claim does not have.

The repetitions of a strong facet outshine the only statement of a weak one, so that no score of a
sentence by itself can tell them apart: one has to know what was selected before.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dgn.core import Selections, Step, explain, greedy, top_k
from dgn.core.functions import FacilityLocation, FeatureCoverage, Items, Power, SetFunction
from dgn.evaluation.metrics import scores_at
from dgn.learn import (
    DenseTable,
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    FitConfig,
    LayerwiseCrossEntropy,
    LearnedWeights,
    PointwiseNetwork,
    PointwiseScorer,
    SelectionNetwork,
    UnfoldedGreedy,
    fit,
)
from experiments.made import made_by

KS = (1, 3, 5, 7)
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)
LAYERS = 5
TEMPERATURE = 2.0
START_SCALE = 1.0
LEARNING_RATE = 2e-3
POSITIVE_WEIGHT = 3.0
BATCH_SIZE = 128


TEMPERATURES = (0.1, 0.3, 1.0, 4.0)
OWN_FUNCTIONS: dict[str, SetFunction] = {
    "FeatureCoverage, mean": FeatureCoverage(np.full(64, 1 / 64)),
    "FeatureCoverage, sum": FeatureCoverage(),
    "FacilityLocation, mean": FacilityLocation(np.full(64, 1 / 64)),
    "FacilityLocation, sum": FacilityLocation(),
}
"""Means over the features have a first gain of about 1, and sums one of about 50."""

GOLD, REDUNDANT, IRRELEVANT, PADDING = "gold", "redundant", "irrelevant", "padding"


@dataclass(frozen=True)
class SyntheticConfig:
    """The parameters of the problem."""

    facets: int = 24
    dimensions: int = 64
    fewest_facets: int = 2
    most_facets: int = 5
    most_repetitions: int = 4
    irrelevant: int = 6
    noise: float = 0.2

    @property
    def longest_page(self) -> int:
        """The largest number of sentences of a page."""
        return self.most_facets * (1 + self.most_repetitions) + self.irrelevant


@dataclass(frozen=True, eq=False)
class SyntheticClaims:
    """Claims with their pages, padded.

    Attributes:
        x: [claims, sentences, dimensions], float32, claim times sentence.
        mask: [claims, sentences], False for padding.
        gold: [claims, sentences], True for gold.
        facet: [claims, sentences], the facet of each sentence; −1 for padding.
        claim_facets: For each claim, its facets.
    """

    x: NDArray[np.float32]
    mask: NDArray[np.bool_]
    gold: NDArray[np.bool_]
    facet: NDArray[np.int64]
    claim_facets: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.claim_facets)

    def role(self, claim: int, sentence: int) -> str:
        """The role of a sentence on its page: gold, redundant, irrelevant or padding."""
        if not self.mask[claim, sentence]:
            return PADDING
        if self.gold[claim, sentence]:
            return GOLD
        wanted = int(self.facet[claim, sentence]) in self.claim_facets[claim]
        return REDUNDANT if wanted else IRRELEVANT


@dataclass(frozen=True, eq=False)
class SyntheticProblem:
    """One set of facets, and claims about them that share no page."""

    train: SyntheticClaims
    validation: SyntheticClaims
    test: SyntheticClaims


def make_problem(
    seed: int,
    *,
    train: int = 4000,
    validation: int = 500,
    test: int = 1000,
    config: SyntheticConfig | None = None,
) -> SyntheticProblem:
    """A problem with this many claims; the same seed gives the same problem."""
    config = config or SyntheticConfig()
    random = np.random.default_rng(seed)
    directions = random.standard_normal((config.facets, config.dimensions))
    made = [_make_claims(random, directions, count, config) for count in (train, validation, test)]
    return SyntheticProblem(*made)


class _Sentence(NamedTuple):
    facet: int
    strength: float
    is_gold: bool


def _make_claims(
    random: np.random.Generator, directions: NDArray[Any], count: int, config: SyntheticConfig
) -> SyntheticClaims:
    shape = (count, config.longest_page)
    x = np.zeros((*shape, config.dimensions), dtype=np.float32)
    mask, gold = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    facet = np.full(shape, -1)
    claim_facets: list[tuple[int, ...]] = []
    for row in range(count):
        wanted = _choose_facets(random, config)
        page = _write_page(random, wanted, config)
        facets = [sentence.facet for sentence in page]
        strengths = np.array([sentence.strength for sentence in page])
        sentences = strengths[:, None] * directions[facets]
        sentences += config.noise * random.standard_normal(sentences.shape)
        x[row, : len(page)] = directions[list(wanted)].sum(axis=0) * sentences
        mask[row, : len(page)] = True
        gold[row, : len(page)] = [sentence.is_gold for sentence in page]
        facet[row, : len(page)] = facets
        claim_facets.append(wanted)
    return SyntheticClaims(x, mask, gold, facet, tuple(claim_facets))


def _choose_facets(random: np.random.Generator, config: SyntheticConfig) -> tuple[int, ...]:
    count = random.integers(config.fewest_facets, config.most_facets + 1)
    return tuple(random.choice(config.facets, count, replace=False).tolist())


def _write_page(
    random: np.random.Generator, wanted: tuple[int, ...], config: SyntheticConfig
) -> list[_Sentence]:
    """The sentences of a page, in random order."""
    page: list[_Sentence] = []
    for facet in wanted:
        strength = _random_strength(random)
        page.append(_Sentence(facet, strength, is_gold=True))
        for _ in range(random.integers(0, config.most_repetitions + 1)):
            page.append(_Sentence(facet, strength * random.uniform(0.6, 0.9), is_gold=False))
    others = [facet for facet in range(config.facets) if facet not in wanted]
    for facet in random.choice(others, config.irrelevant).tolist():
        page.append(_Sentence(facet, _random_strength(random), is_gold=False))
    return [page[i] for i in random.permutation(len(page))]


def _random_strength(random: np.random.Generator) -> float:
    return 2.0 ** random.uniform(-1.0, 1.0)


@dataclass(frozen=True)
class Row:
    """One row of the table: its name, its number of parameters, and its recall at each of KS."""

    name: str
    parameters: int
    recall: tuple[float, ...]


@dataclass(frozen=True)
class Story:
    """One test claim on which the DGN finds every facet and the Encoder does not."""

    claims: SyntheticClaims
    claim: int
    dgn_picks: tuple[int, ...]
    encoder_picks: tuple[int, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class DemoResult:
    """The table of one seed, and one claim as an example; None if no claim is a good one."""

    rows: tuple[Row, ...]
    story: Story | None


def run_demo(seed: int, *, epochs: int = 20) -> DemoResult:
    """Generate the problem of this seed, train the four networks, and score all six selectors."""
    problem = make_problem(seed)
    test = problem.test
    torch.manual_seed(seed)
    encoder = PointwiseNetwork(PointwiseScorer(FeedForward((64, 64, 64))), POSITIVE_WEIGHT)
    deep = PointwiseNetwork(PointwiseScorer(FeedForward((64, 128, 128, 64))), POSITIVE_WEIGHT)
    dgn = _identity_dgn()
    listwise = PointwiseNetwork(
        PointwiseScorer(FeedForward((64, 64, 64))), greedy=dgn.greedy, criterion=dgn.criterion
    )
    config = FitConfig(
        epochs=epochs,
        learning_rate=LEARNING_RATE,
        seed=seed,
        batch_size=BATCH_SIZE,
        temperature=TEMPERATURE,
        eval_ks=KS,
    )
    networks = {"Encoder": encoder, "DeepEncoder": deep, "Encoder, listwise": listwise, "DGN": dgn}
    learn, choose = (
        DenseTable(*(torch.from_numpy(part) for part in (of.x, of.gold, of.mask)))
        for of in (problem.train, problem.validation)
    )
    for name, network in networks.items():
        print(f"seed {seed}: training {name}", file=sys.stderr, flush=True)
        fit(network, learn, config, validation=choose)
    picks = {
        "Top-k": _top_k_picks(test),
        "Greedy": _greedy_picks(test, _best_scale(problem.validation)),
        **{name: _network_picks(network, test) for name, network in networks.items()},
    }
    sizes = {
        name: sum(weight.numel() for weight in network.parameters())
        for name, network in networks.items()
    }
    rows = tuple(
        Row(name, sizes.get(name, 0), tuple(scores_at(k, p.indices, test.gold).recall for k in KS))
        for name, p in picks.items()
    )
    return DemoResult(rows, _find_story(dgn, picks["DGN"], picks["Encoder"], test))


def _identity_dgn() -> DifferentiableGreedyNetwork:
    """A DGN that starts exactly at untrained greedy on relu(X)."""
    encoder = FeatureEncoder(FeedForward((64, 64, 64)), LearnedWeights(64))
    encoder.start_as_identity(START_SCALE)
    return DifferentiableGreedyNetwork(
        encoder,
        UnfoldedGreedy(LAYERS, TEMPERATURE),
        LayerwiseCrossEntropy("set"),
    )


def compare_temperatures(seed: int, steps: int = 1000) -> dict[str, float]:
    """Recall at 5 of networks with features of their own, from random weights, by τ and function.

    What most people try first: two layers of features, a function on them, and the greedy layers.
    "First gain" is the largest gain before training.
    """
    problem = make_problem(seed)
    train, test = problem.train, problem.test
    x, mask, gold = (torch.from_numpy(part) for part in (train.x, train.mask, train.gold))
    found: dict[str, float] = {}
    for name, function in (("scorer", None), *OWN_FUNCTIONS.items()):
        for temperature in TEMPERATURES if function else (1.0,):
            torch.manual_seed(seed)
            network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.Softplus())
            layers = UnfoldedGreedy(LAYERS if function else 1, temperature)
            optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
            order = np.random.default_rng(seed)
            if function is not None and temperature == TEMPERATURES[0]:
                items = Items(_own_features(network, x[:100], name).detach(), mask[:100])
                gains = function.gains(items, function.empty(items))
                found[f"{name}, first gain"] = float(gains.amax(dim=1).mean())
            for _ in range(steps):
                rows = torch.from_numpy(order.choice(len(x), BATCH_SIZE // 2, replace=False))
                items = Items(_own_features(network, x[rows], name), mask[rows])
                unfolded = layers(function or FeatureCoverage(concave=Power(1.0)), items)
                loss = LayerwiseCrossEntropy("set")(unfolded, gold[rows])
                optimizer.zero_grad()
                loss.backward()  # pyright: ignore[reportUnknownMemberType]
                optimizer.step()
            with torch.no_grad():
                features = _own_features(network, torch.from_numpy(test.x), name)
            f = function or FeatureCoverage(concave=Power(1.0))
            items = Items(features.numpy(), test.mask)
            picks = cast("Selections", greedy(f, items, max(KS)))
            label = name if function is None else f"{name}, τ = {temperature:g}"
            found[label] = scores_at(5, picks.indices, test.gold).recall
            print(f"seed {seed}: {label} {found[label]:.3f}", file=sys.stderr, flush=True)
    return found


def _own_features(network: nn.Module, x: torch.Tensor, name: str) -> torch.Tensor:
    """[batch, items, features]; of a scorer, a single one."""
    features = network(x / 3)  # inputs of size 1
    return features[..., :1] if name == "scorer" else features


def _top_k_picks(claims: SyntheticClaims) -> Selections:
    # The sum of claim ⊙ sentence is their inner product, the paper's similarity.
    return cast("Selections", top_k(claims.x.sum(axis=2), max(KS), claims.mask))


def _greedy_picks(claims: SyntheticClaims, scale: float) -> Selections:
    items = Items(np.maximum(scale * claims.x, 0), claims.mask)
    return cast("Selections", greedy(FeatureCoverage(), items, max(KS)))


def _network_picks(network: SelectionNetwork, claims: SyntheticClaims) -> Selections:
    return network.select(torch.from_numpy(claims.x), torch.from_numpy(claims.mask), k=max(KS))


def _best_scale(claims: SyntheticClaims) -> float:
    """The scale of untrained greedy that is best on the validation claims."""

    def mean_recall(scale: float) -> float:
        picks = _greedy_picks(claims, scale).indices
        return sum(scores_at(k, picks, claims.gold).recall for k in KS)

    return max(SCALES, key=mean_recall)


def _find_story(
    dgn: DifferentiableGreedyNetwork, ours: Selections, theirs: Selections, test: SyntheticClaims
) -> Story | None:
    """The first claim with three or more facets that only the DGN gets completely right."""
    for claim, facets in enumerate(test.claim_facets):
        wanted = len(facets)
        dgn_picks = ours[claim].indices[:wanted]
        encoder_picks = theirs[claim].indices[:wanted]
        found = {int(test.facet[claim, i]) for i in encoder_picks}
        if wanted >= 3 and all(test.gold[claim, i] for i in dgn_picks) and len(found) < wanted:
            with torch.no_grad():
                x, mask = torch.from_numpy(test.x[[claim]]), torch.from_numpy(test.mask[[claim]])
                steps = explain(*dgn.encode(x, mask), ours[claim])
            return Story(test, claim, dgn_picks, encoder_picks, steps)
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration for seeds 0, 1, … and print the table and one explained claim."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.demo",
        description="Train on a generated problem, and print the paper's comparison.",
    )
    parser.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="average over N seeds (default 1)"
    )
    parser.add_argument(
        "--temperatures", action="store_true", help="compare τ and functions on own features"
    )
    options = parser.parse_args(arguments)
    seeds: int = options.seeds
    if options.temperatures:
        tables = [compare_temperatures(seed) for seed in range(seeds)]
        print(made_by("experiments/demo.py"))
        print(f"Recall at 5 after 1,000 steps from random features; seeds 0 to {seeds - 1}\n")
        for name in tables[0]:
            print(f"{name:<36}{_spread([table[name] for table in tables])}")
        return 0
    started = time.perf_counter()
    results: list[DemoResult] = []
    try:
        results += [run_demo(seed) for seed in range(seeds)]
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
    _print_table(results)
    stories = [result.story for result in results if result.story is not None]
    if stories:
        print(f"\n{_describe(stories[0])}")
    print(f"\n{time.perf_counter() - started:.0f} s, seeds 0 to {seeds - 1}")
    return 0


def _print_table(results: list[DemoResult]) -> None:
    seeds = len(results)
    spread = "1 seed" if seeds == 1 else f"{seeds} seeds, mean ± standard deviation"
    print(made_by("experiments/demo.py"))
    print(f"Recall after k selected sentences, 1,000 test claims, {spread}\n")
    width = 11 if seeds == 1 else 15
    print(f"{'':<18}{'parameters':>10}" + "".join(f"{f'k = {k}':>{width}}" for k in KS))
    for same in zip(*(result.rows for result in results), strict=True):
        cells = [_spread([row.recall[place] for row in same]) for place in range(len(KS))]
        parameters = f"{same[0].parameters:,}" if same[0].parameters else "–"
        line = "".join(f"{cell:>{width}}" for cell in cells)
        print(f"{same[0].name:<18}{parameters:>10}{line}")


def _spread(values: list[float]) -> str:
    mean = f"{statistics.mean(values):.3f}"
    if len(values) == 1:
        return mean
    return f"{mean} ±" + f"{statistics.stdev(values):.3f}".removeprefix("0")


def _describe(story: Story) -> str:
    """One claim with the gains of its steps, as in the paper."""
    facets = story.claims.claim_facets[story.claim]
    length = int(story.claims.mask[story.claim].sum())
    lines = [
        f"Test claim {story.claim} has the facets {', '.join(map(str, facets))}; its page has "
        f"{length} sentences.",
        "Encoder selects " + "; ".join(_sentence(story, i) for i in story.encoder_picks) + ".",
        "DGN selects, each given those before:",
    ]
    for step in story.steps[: len(facets)]:
        alone = story.steps[0].gains[step.index]
        lines.append(f"  {_sentence(story, step.index)}: gain {step.gain:.2f} (alone {alone:.2f})")
        if step.runner_up is not None:
            lines.append(
                f"     next best: {_sentence(story, step.runner_up)} with {step.runner_up_gain:.2f}"
            )
    rejected = next(i for i in story.encoder_picks if i not in story.dgn_picks)
    gains = [step.gains[rejected] for step in story.steps[: len(story.dgn_picks)]]
    falling = " → ".join(f"{gain:.2f}" for gain in gains)
    lines.append(f"Not selected: {_sentence(story, rejected)}; its gain falls {falling}.")
    return "\n".join(lines)


def _sentence(story: Story, index: int) -> str:
    facet = int(story.claims.facet[story.claim, index])
    return f"sentence {index} ({story.claims.role(story.claim, index)}, facet {facet})"


if __name__ == "__main__":
    sys.exit(main())
