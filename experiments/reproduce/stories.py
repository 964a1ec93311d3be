"""Claims on which the DGN and the listwise encoder differ, with their gains, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.core.search import Step, explain
from dgn.data import Example
from dgn.evaluation import EvaluationSet
from dgn.learn import to_device
from dgn.learn.families.pooled_table import PooledBatches, PooledTable
from dgn.learn.networks import DifferentiableGreedyNetwork


@dataclass(frozen=True)
class Story:
    """One claim.

    Attributes:
        kind: What it shows.
        example: The claim with its passages.
        dgn_picks: What the DGN selects.
        encoder_picks: What the Encoder selects.
        steps: The steps of the DGN, as many as there are gold sentences.
    """

    kind: str
    example: Example
    dgn_picks: tuple[int, ...]
    encoder_picks: tuple[int, ...]
    steps: tuple[Step, ...]


HELPS = "The DGN finds all the evidence, the encoder does not."
HURTS = "The encoder finds all the evidence, the DGN does not."


def find_stories(
    network: DifferentiableGreedyNetwork,
    dgn: NDArray[np.int64],
    encoder: NDArray[np.int64],
    evaluation_set: EvaluationSet,
    table: PooledTable,
    each: int = 2,
) -> list[Story]:
    """The first claims of two or three gold sentences where one of the two finds them all."""
    found: dict[str, list[Story]] = {HELPS: [], HURTS: []}
    for row, example in enumerate(evaluation_set.examples):
        wanted = sum(example.gold)
        if wanted not in (2, 3):
            continue
        ours, theirs = (_first(picks[row], wanted) for picks in (dgn, encoder))
        hits = [sum(example.gold[place] for place in picks) for picks in (ours, theirs)]
        # Both must begin alike, so that the difference is what the first passage changed.
        if ours[0] != theirs[0] or not example.gold[ours[0]] or hits[0] == hits[1]:
            continue
        kind = HELPS if hits[0] == wanted else HURTS
        if max(hits) == wanted and len(found[kind]) < each:
            found[kind].append(_tell(network, kind, example, row, ours, theirs, table))
    return [story for stories in found.values() for story in stories]


def describe(story: Story, *, with_text: bool) -> list[str]:
    """The story in Markdown; without text, claim and sentences are named by reference alone."""
    example, steps = story.example, story.steps
    claim = example.claim
    lines = [
        f"**{story.kind}** Claim {claim.id} ({claim.label}), {len(example.gold)} passages, "
        f"gold {_gold(example)}."
    ]
    if with_text:
        lines.append(f"> {claim.text}")
    for number, step in enumerate(steps, start=1):
        alone = steps[0].gains[step.index]
        lines.append(
            f"{number}. DGN: {_named(example, step.index)} adds {step.gain:.2f} (alone it is worth "
            f"{alone:.2f})" + _runner_up(example, step.runner_up, step.runner_up_gain)
        )
    other = next(place for place in story.encoder_picks if place not in story.dgn_picks)
    falling = " → ".join(f"{gain:.2f}" for gain in (step.gains[other] for step in steps))
    lines.append(
        f"- Encoder, listwise: {_named(example, other)} instead; to the DGN it is worth {falling}."
    )
    if with_text:
        shown = dict.fromkeys([*story.dgn_picks, other])
        lines += [f"- {_named(example, place)}: {example.query.texts[place]}" for place in shown]
    return lines


def _tell(
    network: DifferentiableGreedyNetwork,
    kind: str,
    example: Example,
    row: int,
    ours: tuple[int, ...],
    theirs: tuple[int, ...],
    table: PooledTable,
) -> Story:
    batch = PooledBatches(table, 1, 0, to_device("cpu")).batch(np.array([row]))
    with torch.no_grad():
        objective, items = network.encode(batch.x, batch.mask)
        selection = network.select(batch.x, batch.mask, k=len(ours))[0]
        steps = explain(objective, items, selection)
    return Story(kind, example, ours, theirs, steps)


def _first(picks: np.ndarray, count: int) -> tuple[int, ...]:
    return tuple(int(place) for place in picks[:count])


def _named(example: Example, place: int) -> str:
    mark = ", gold" if example.gold[place] else ""
    return f"sentence {example.query.passages[place].position}{mark}"


def _gold(example: Example) -> str:
    places = [
        f"{passage.id} {passage.position}"
        for passage, is_gold in zip(example.query.passages, example.gold, strict=True)
        if is_gold
    ]
    return ", ".join(places)


def _runner_up(example: Example, place: int | None, gain: float) -> str:
    if place is None:
        return "."
    return f"; the next best, {_named(example, place)}, would add {gain:.2f}."
