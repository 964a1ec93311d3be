"""Why each sentence was picked, and why another was not: as data, in the claim's own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.encoders import Encoded, Facet
from dgn.errors import InvalidInput
from dgn.explanation import Step, explain
from dgn.maximizers import Certificate
from dgn.objectives import FeatureCoverage
from dgn.selector.coverage import covered_facets, facet_weights
from dgn.selector.selection import SentenceSelection
from dgn.selector.sources import Sentence

_NEWS = 0.02
"""A rise in coverage below this is not worth a word."""


@dataclass(frozen=True)
class WordCover:
    """A word of the claim, and how far it is covered, from 0 to 1, before a pick and after it."""

    word: str
    before: float
    after: float


@dataclass(frozen=True)
class PickReason:
    """Why a sentence was picked.

    gain: what it added. runner_up: the second best at that step, and what it would have added.
    covers: the words that it says more of, the largest contributions first.
    covered: the share of the claim that is covered now.
    """

    index: int
    sentence: Sentence
    gain: float
    runner_up: int | None
    runner_up_gain: float
    covers: tuple[WordCover, ...]
    covered: float


@dataclass(frozen=True)
class PassReason:
    """Why a sentence was not picked.

    gains: what it would have added at each step. like: the picked sentence that says most of what
    it says, and what share of it.
    """

    index: int
    sentence: Sentence
    gains: tuple[float, ...]
    like: int | None
    overlap: float


@dataclass(frozen=True, eq=False)
class Reasons:
    """A selection, explained.

    words: of the claim. weights: how much each matters; together 1.
    cover: [picks + 1, words], how far each is covered after so many picks.
    """

    claim: str
    picks: tuple[PickReason, ...]
    passed: tuple[PassReason, ...]
    certificate: Certificate
    words: tuple[str, ...]
    weights: tuple[float, ...]
    cover: NDArray[np.float64]

    def why_not(self, index: int) -> PassReason:
        """Why this sentence was not picked."""
        for one in self.passed:
            if one.index == index:
                return one
        picked = [pick.index for pick in self.picks]
        count = len(picked) + len(self.passed)
        found = f"{index}, which was picked" if index in picked else str(index)
        raise InvalidInput(
            "index", found=found, allowed=f"a sentence that was not picked, from 0 to {count - 1}"
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "claim": self.claim,
            "words": [
                {"word": word, "weight": weight, "covered": [float(c) for c in column]}
                for word, weight, column in zip(self.words, self.weights, self.cover.T, strict=True)
            ],
            "picks": [asdict(pick) for pick in self.picks],
            "passed": [asdict(one) for one in self.passed],
            "certificate": self.certificate.ratio,
        }

    def __str__(self) -> str:
        from dgn.selector.rendering import as_text

        return as_text(self)

    def print(self) -> None:
        """Show it in the terminal, in colour where there is any."""
        from dgn.selector.rendering import print_reasons

        print_reasons(self)

    def draw(self, path: Path | str) -> None:
        """Draw it: claim words against picks, and the falling gains. PNG, SVG or PDF."""
        from dgn.selector.drawing import draw_reasons

        draw_reasons(self, Path(path))


def reasons_of(selection: SentenceSelection) -> Reasons:
    """Play the search again, and say what it saw."""
    encoded = selection.encoded
    steps = explain(encoded.objective, encoded.items, selection).steps
    # Coverage can be told of the claim's words alone, and only where f is a coverage.
    told = isinstance(encoded.objective, FeatureCoverage) and encoded.full is not None
    facets = encoded.name_facets(0) if told else ()
    names = tuple(facet.name for facet in facets)
    cover = covered_facets(encoded, selection.indices)[:, : len(names)]
    weights = facet_weights(encoded)[: len(names)]
    shares = cover @ weights
    picks = tuple(
        PickReason(
            step.index,
            selection.candidates[step.index],
            step.gain,
            step.runner_up,
            step.runner_up_gain,
            _news(names, cover[number], cover[number + 1], _facet_gains(facets, step)),
            float(shares[number + 1]),
        )
        for number, step in enumerate(steps)
    )
    return Reasons(
        selection.question.claim,
        picks,
        _passed(selection, steps),
        selection.certificate,
        names,
        tuple(weights.tolist()),
        cover,
    )


def _facet_gains(facets: Sequence[Facet], step: Step) -> NDArray[np.float64]:
    """[facets], what the pick added by each of them."""
    gained = np.array(step.contributions)
    return np.array([gained[list(facet.features)].sum() for facet in facets])


def _news(
    names: tuple[str, ...],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    gains: NDArray[np.float64],
) -> tuple[WordCover, ...]:
    told = [place for place in range(len(names)) if after[place] - before[place] >= _NEWS]
    told.sort(key=lambda place: -gains[place])
    return tuple(WordCover(names[p], float(before[p]), float(after[p])) for p in told)


def _passed(selection: SentenceSelection, steps: tuple[Step, ...]) -> tuple[PassReason, ...]:
    picked = set(selection.indices)
    overlaps = _overlaps(selection.encoded, selection.indices)
    found: list[PassReason] = []
    for index, sentence in enumerate(selection.candidates):
        if index in picked:
            continue
        nearest = int(overlaps[index].argmax()) if overlaps.shape[1] else None
        found.append(
            PassReason(
                index,
                sentence,
                tuple(step.gains[index] for step in steps),
                None if nearest is None else selection.indices[nearest],
                0.0 if nearest is None else float(overlaps[index, nearest]),
            )
        )
    found.sort(key=lambda one: -max(one.gains, default=0.0))
    return tuple(found)


def _overlaps(encoded: Encoded, picks: tuple[int, ...]) -> NDArray[np.float64]:
    """[items, picks], what share of an item's worth a picked one has too, feature by feature."""
    objective = encoded.objective
    features = np.asarray(encoded.items.features, np.float64)[0]
    if not isinstance(objective, FeatureCoverage):
        return np.zeros((len(features), 0))
    worth = objective.concave.of(features)
    if objective.weights is not None:
        worth = worth * np.asarray(objective.weights, np.float64).reshape(-1)
    shared = np.minimum(worth[:, None], worth[None, list(picks)]).sum(axis=2)
    return shared / np.maximum(worth.sum(axis=1), 1e-12)[:, None]
