"""The demonstration: the comparison of the paper on a generated problem, in under a minute.

python -m experiments.demo --seeds 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch

from dgn.apps.cli.options import positive, show_progress
from dgn.core import Selections, Step, explain, greedy, top_k
from dgn.core.functions import FeatureCoverage, Items
from dgn.data import DenseBatches
from dgn.evaluation.metrics import scores_at
from dgn.learn import FitConfig, fit, parameter_count, to_device
from dgn.learn.families.modules import PooledScorer
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.learn.networks import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    LearnedWeights,
    PointwiseNetwork,
    SelectionNetwork,
)
from dgn.learn.setup import choose_threads
from experiments.synthetic import SyntheticClaims, SyntheticProblem, make_problem

KS = (1, 3, 5, 7)
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)
LAYERS = 5
TEMPERATURE = 2.0
START_SCALE = 1.0
LEARNING_RATE = 2e-3
POSITIVE_WEIGHT = 3.0
BATCH_SIZE = 128


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


def run_demo(
    seed: int,
    *,
    epochs: int = 20,
    on_progress: Callable[[str, float], None] = lambda _doing, _share: None,
) -> DemoResult:
    """Generate the problem of this seed, train the four networks, and score all six selectors.

    Args:
        seed: The seed.
        epochs: The number of epochs.
        on_progress: Called with what is being done, and the share that is done.
    """
    problem = make_problem(seed)
    test = problem.test
    choose_threads(0, BATCH_SIZE * test.x.shape[1] * 64 * 128)
    torch.manual_seed(seed)
    encoder = PointwiseNetwork(PooledScorer(FeedForward((64, 64, 64))), POSITIVE_WEIGHT)
    deep = PointwiseNetwork(PooledScorer(FeedForward((64, 128, 128, 64))), POSITIVE_WEIGHT)
    dgn = _identity_dgn()
    listwise = PointwiseNetwork(
        PooledScorer(FeedForward((64, 64, 64))), greedy=dgn.greedy, criterion=dgn.criterion
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
    for number, (name, network) in enumerate(networks.items()):
        _fit(
            name,
            network,
            problem,
            config,
            lambda doing, share, done=number: on_progress(doing, (done + share) / len(networks)),
        )
    picks = {
        "Top-k": _top_k_picks(test),
        "Greedy": _greedy_picks(test, _best_scale(problem.validation)),
        **{name: _network_picks(network, test) for name, network in networks.items()},
    }
    sizes = {name: parameter_count(network) for name, network in networks.items()}
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


def _fit(
    name: str,
    network: SelectionNetwork,
    problem: SyntheticProblem,
    config: FitConfig,
    on_progress: Callable[[str, float], None],
) -> None:
    train, validation = (
        DenseBatches(c.x, c.gold, c.mask, BATCH_SIZE, config.seed, to_device("cpu"))
        for c in (problem.train, problem.validation)
    )
    on_progress(f"training {name}", 0.0)
    fit(
        network,
        train,
        validation,
        config,
        lambda report: on_progress(
            f"training {name}  recall {report.recall:.3f}", report.epoch / config.epochs
        ),
    )


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
        "--seeds", type=positive, default=1, metavar="N", help="average over N seeds (default 1)"
    )
    seeds = parser.parse_args(arguments).seeds
    started = time.perf_counter()
    results: list[DemoResult] = []
    try:
        for seed in range(seeds):
            with show_progress(f"seed {seed}") as update:
                results.append(run_demo(seed, on_progress=update))
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
