"""Claims where DGN and Encoder differ, told with their gains, as the paper tells its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from dgn.data.batches import ClaimBatches
from dgn.data.records import Example
from dgn.evaluation.contenders.base import Picks, Questions
from dgn.explanation import Explanation, explain
from dgn.training import placed_on
from dgn.unfolding import DifferentiableGreedyNetwork


@dataclass(frozen=True)
class Story:
    """One claim. kind: why it is told. explanation: of as many picks as there is gold."""

    kind: str
    example: Example
    dgn_picks: tuple[int, ...]
    encoder_picks: tuple[int, ...]
    explanation: Explanation


HELPS = "The DGN finds all the evidence, the Encoder does not."
HURTS = "The Encoder finds all the evidence, the DGN does not."


def find_stories(
    network: DifferentiableGreedyNetwork,
    dgn: Picks,
    encoder: Picks,
    questions: Questions,
    each: int = 2,
) -> list[Story]:
    """The first claims of two or three gold sentences where one of the two finds them all."""
    found: dict[str, list[Story]] = {HELPS: [], HURTS: []}
    for row, example in enumerate(questions.examples):
        wanted = sum(example.gold)
        if wanted not in (2, 3):
            continue
        ours, theirs = (_first(picks[row], wanted) for picks in (dgn, encoder))
        hits = [sum(example.gold[place] for place in picks) for picks in (ours, theirs)]
        # Both must begin alike, so that what differs is what the first pick changed.
        if ours[0] != theirs[0] or not example.gold[ours[0]] or hits[0] == hits[1]:
            continue
        kind = HELPS if hits[0] == wanted else HURTS
        if max(hits) == wanted and len(found[kind]) < each:
            found[kind].append(_tell(network, kind, example, row, ours, theirs, questions))
    return [story for stories in found.values() for story in stories]


def told(story: Story, *, with_text: bool) -> list[str]:
    """The story in Markdown. Without text it names claim and sentences by reference alone."""
    example, explanation = story.example, story.explanation
    claim = example.claim
    lines = [
        f"**{story.kind}** Claim {claim.id} ({claim.label}), {len(example.candidates)} candidates, "
        f"gold {_gold(example)}."
    ]
    if with_text:
        lines.append(f"> {claim.text}")
    for number, step in enumerate(explanation.steps, start=1):
        alone = explanation.steps[0].gains[step.index]
        lines.append(
            f"{number}. DGN: {_named(example, step.index)} adds {step.gain:.2f} (alone it is worth "
            f"{alone:.2f})" + _runner_up(example, step.runner_up, step.runner_up_gain)
        )
    other = next(place for place in story.encoder_picks if place not in story.dgn_picks)
    falling = " → ".join(f"{gain:.2f}" for gain in explanation.history(other))
    lines.append(f"- Encoder: {_named(example, other)} instead; to the DGN it is worth {falling}.")
    if with_text:
        shown = dict.fromkeys([*story.dgn_picks, other])
        lines += [
            f"- {_named(example, place)}: {example.candidates[place].text}" for place in shown
        ]
    return lines


def _tell(
    network: DifferentiableGreedyNetwork,
    kind: str,
    example: Example,
    row: int,
    ours: tuple[int, ...],
    theirs: tuple[int, ...],
    questions: Questions,
) -> Story:
    batch = ClaimBatches(questions.vectors, 1, 0, placed_on("cpu")).batch(np.array([row]))
    with torch.no_grad():
        items = network.encode(batch.x, batch.mask)
        selection = network.select(batch.x, batch.mask, k=len(ours))[0]
        explanation = explain(network.set_function(), items, selection)
    return Story(kind, example, ours, theirs, explanation)


def _first(picks: np.ndarray, count: int) -> tuple[int, ...]:
    return tuple(int(place) for place in picks[:count])


def _named(example: Example, place: int) -> str:
    mark = ", gold" if example.gold[place] else ""
    return f"sentence {example.candidates[place].sentence}{mark}"


def _gold(example: Example) -> str:
    places = [
        f"{candidate.page} {candidate.sentence}"
        for candidate, is_gold in zip(example.candidates, example.gold, strict=True)
        if is_gold
    ]
    return ", ".join(places)


def _runner_up(example: Example, place: int | None, gain: float) -> str:
    if place is None:
        return "."
    return f"; the next best, {_named(example, place)}, would add {gain:.2f}."
