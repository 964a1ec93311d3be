"""The reasons for a selection of passages, as data: in the words of the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import Items, SetFunction
from dgn.core.search import Certificate, Selection
from dgn.core.search.steps import Step, explain
from dgn.errors import InvalidInput
from dgn.text.encoders.base import Facet
from dgn.text.languages import stems_of
from dgn.text.query import Passage, Query
from dgn.text.spelling import title_text

Source: TypeAlias = Literal["text", "title", "similar", "asked"]

_LEAST_INCREASE = 0.02
"""A smaller increase of coverage is not reported."""

_LEAST_WORTH = 0.1
"""An item that covers less than this share of the best one covers next to nothing."""


@dataclass(frozen=True)
class WordCoverage:
    """A word of the query, and how far it was covered before and after a selection, 0 to 1.

    Attributes:
        word: The word as the query writes it.
        before: How far it was covered before.
        after: How far it is covered now.
        source: "text" if the passage contains the word or a form of it, "title" if the title of
            its document does, and "similar" if the passage, its title or its neighbours
            contain only words that are similar. "asked" if the word is what the question asks for,
            such as "when (a date)", and the passage contains such a thing.
    """

    word: str
    before: float
    after: float
    source: Source


@dataclass(frozen=True)
class SelectedPassage:
    """Why a passage was selected.

    Attributes:
        index: The passage.
        passage: Its text and where it comes from.
        gain: What it added.
        gains: What it would have added at each step, up to the one at which it was selected.
        word_gain: The part of the gain that comes from words of the query; the rest comes from
            features without names and from scores of the user.
        runner_up: The passage with the second largest gain at that step; None if there was none.
        runner_up_gain: What that passage would have added.
        covers: The words that it covers further, the largest contributions first.
        covered: The share of the query that is covered after it.
    """

    index: int
    passage: Passage
    gain: float
    gains: tuple[float, ...]
    word_gain: float
    runner_up: int | None
    runner_up_gain: float
    covers: tuple[WordCoverage, ...]
    covered: float


@dataclass(frozen=True)
class PassedPassage:
    """Why a passage was not selected.

    Attributes:
        index: The passage.
        passage: Its text and where it comes from.
        gains: What it would have added at each step.
        like: The selected passage that covers most of what it covers, or the passage that it
            repeats; None if it covers nothing, or next to nothing.
        overlap: The share of what it covers that this passage covers too.
        is_left_out: Whether `min_relevance` left it out before the search; its gains are then 0.
        is_repeat: Whether it repeats `like`, so that it took no part in the search; its gains are
            then 0.
    """

    index: int
    passage: Passage
    gains: tuple[float, ...]
    like: int | None
    overlap: float
    is_left_out: bool = False
    is_repeat: bool = False

    def __str__(self) -> str:
        """The reason in a sentence."""
        if self.is_repeat:
            return f"[{self.index}] was not selected: it repeats [{self.like}]."
        if self.is_left_out:
            return f"[{self.index}] was not selected: its relevance is below min_relevance."
        best = max(self.gains, default=0.0)
        if best <= 0:
            return f"[{self.index}] was not selected: it would have added nothing."
        reason = f"it would have added at most {best:.2f}, less than the selected passages"
        if self.like is not None:
            reason += f"; [{self.like}] covers {self.overlap:.0%} of what it covers"
        return f"[{self.index}] was not selected: {reason}."


@dataclass(frozen=True, eq=False)
class Explanation:
    """A selection of passages, explained.

    Attributes:
        query: The text of the query.
        selected: The selected passages, in the order of selection.
        passed: The other passages, the largest gains first.
        certificate: How close to the best possible set the selection is.
        words: The words of the query; empty if the objective does not define coverage.
        content_words: The numbers of the words that are not function words, or of all if there are
            none.
        weights: How much each word counts; they sum to 1.
        coverage: [selected + 1, words], how far each word is covered after so many selections.
        per_token: Whether passages were selected by gain per token.
    """

    query: str
    selected: tuple[SelectedPassage, ...]
    passed: tuple[PassedPassage, ...]
    certificate: Certificate
    words: tuple[str, ...]
    content_words: tuple[int, ...]
    weights: tuple[float, ...]
    coverage: NDArray[np.float64]
    per_token: bool = False

    def why_not(self, index: int) -> PassedPassage:
        """Why this passage was not selected."""
        for one in self.passed:
            if one.index == index:
                return one
        count = len(self.selected) + len(self.passed)
        if any(one.index == index for one in self.selected):
            raise InvalidInput("index", message=f"Passage {index} was selected.")
        raise InvalidInput("index", found=str(index), allowed=f"from 0 to {count - 1}")

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON can hold it."""
        content = set(self.content_words)
        return {
            "query": self.query,
            "words": [
                {
                    "word": word,
                    "weight": self.weights[number],
                    "is_content": number in content,
                    "covered": [float(share) for share in self.coverage[:, number]],
                }
                for number, word in enumerate(self.words)
            ],
            "selected": [asdict(one) for one in self.selected],
            "passed": [asdict(one) for one in self.passed],
            "certificate": self.certificate.ratio,
            "per_token": self.per_token,
        }

    def __str__(self) -> str:
        from dgn.text.explanation.rendering import to_text

        return to_text(self)

    def print(self) -> None:
        """Print to the terminal, in colour if rich is installed."""
        from dgn.text.explanation.rendering import print_explanation

        print_explanation(self)

    def draw(self, path: Path | str) -> None:
        """Draw the coverage of the words and the gains as a PNG, SVG or PDF file."""
        from dgn.text.explanation.rendering import draw_explanation

        draw_explanation(self, Path(path))


def explain_passages(
    query: Query,
    selection: Selection,
    objective: SetFunction,
    items: Items,
    facets: Sequence[Facet],
    covered: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    per_token: bool = False,
) -> Explanation:
    """Replay a search for passages, and describe it in the words of the query.

    Args:
        query: The query with its passages.
        selection: What was selected.
        objective: The function that was maximized.
        items: The passages as items.
        facets: The words of the query, with their features.
        covered: [selected + 1, features], how far each feature is covered.
        weights: [features], how much each feature counts.
        per_token: Whether passages were selected by gain per token.
    """
    steps = explain(objective, items, selection)
    names = tuple(facet.name for facet in facets)
    content = [number for number, facet in enumerate(facets) if facet.is_content]
    word_weights = np.array([weights[list(facet.features)].sum() for facet in facets])
    word_weights = word_weights / (word_weights.sum() or 1.0)
    coverage = np.zeros((len(steps) + 1, len(facets)))
    for number, facet in enumerate(facets):
        own = list(facet.features)
        # A word whose features do not weigh anything is covered as far as they are on average.
        shares = weights[own] if weights[own].sum() else np.ones(len(own))
        coverage[:, number] = covered[:, own] @ shares / shares.sum()
    coverage = np.clip(coverage, 0.0, 1.0)
    total = np.clip(coverage @ word_weights, 0.0, 1.0)
    selected = tuple(
        SelectedPassage(
            step.index,
            query.passages[step.index],
            step.gain,
            tuple(earlier.gains[step.index] for earlier in steps[: number + 1]),
            float(_facet_gains(facets, step).sum()),
            step.runner_up,
            step.runner_up_gain,
            _increases(
                facets,
                coverage[number],
                coverage[number + 1],
                _facet_gains(facets, step),
                query,
                step.index,
            ),
            float(total[number + 1]),
        )
        for number, step in enumerate(steps)
    )
    return Explanation(
        query.text,
        selected,
        _passed(query, selection, objective, items, steps),
        selection.certificate,
        names,
        tuple(content or range(len(facets))),
        tuple(word_weights.tolist()),
        coverage,
        per_token,
    )


def _facet_gains(facets: Sequence[Facet], step: Step) -> NDArray[np.float64]:
    """[facets], what the selected passage added by each of them."""
    gained = np.array(step.contributions)
    return np.array([gained[list(facet.features)].sum() for facet in facets])


def _increases(
    facets: Sequence[Facet],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    gains: NDArray[np.float64],
    query: Query,
    index: int,
) -> tuple[WordCoverage, ...]:
    passage, languages = query.passages[index], query.languages
    title = stems_of(title_text(passage.title), languages[0])  # it is read as the query is
    stems = stems_of(passage.text, languages[index + 1]), title
    increased = [n for n in range(len(facets)) if after[n] - before[n] >= _LEAST_INCREASE]
    increased.sort(key=lambda n: -gains[n])
    words: dict[str, WordCoverage] = {}  # a word that the query repeats is told once
    for n in increased:
        name = facets[n].name
        source = "asked" if facets[n].is_asked else _source(facets[n].stem, *stems)
        words.setdefault(
            name.lower(), WordCoverage(name, float(before[n]), float(after[n]), source)
        )
    return tuple(words.values())


def _source(stem: str, text: frozenset[str], title: frozenset[str]) -> Source:
    if stem in text:
        return "text"
    return "title" if stem in title else "similar"


def _passed(
    query: Query,
    selection: Selection,
    objective: SetFunction,
    items: Items,
    steps: tuple[Step, ...],
) -> tuple[PassedPassage, ...]:
    chosen = set(selection.indices)
    overlaps = _overlaps(objective.counted(), items, selection.indices)
    found: list[PassedPassage] = []
    for index, passage in enumerate(query.passages):
        if index in chosen:
            continue
        twin = query.twins[index]
        if twin != index:
            nothing = (0.0,) * len(steps)
            found.append(PassedPassage(index, passage, nothing, twin, 1.0, is_repeat=True))
            continue
        if index >= items.size or not items.mask[0, index]:
            nothing = (0.0,) * len(steps)
            found.append(PassedPassage(index, passage, nothing, None, 0.0, is_left_out=True))
            continue
        nearest = int(overlaps[index].argmax()) if overlaps[index].any() else None
        found.append(
            PassedPassage(
                index,
                passage,
                tuple(step.gains[index] for step in steps),
                None if nearest is None else selection.indices[nearest],
                0.0 if nearest is None else float(overlaps[index, nearest]),
            )
        )
    found.sort(key=lambda one: -max(one.gains, default=0.0))
    return tuple(found)


def _overlaps(
    objective: SetFunction, items: Items, selected: tuple[int, ...]
) -> NDArray[np.float64]:
    """[items, selected], the share of what an item covers that a selected item covers too.

    It is 0 for an item that covers next to nothing: what it shares says nothing then.
    """
    alone = objective.contributions(items, objective.empty(items))
    worth = np.asarray(alone, np.float64)[0]
    overlaps = np.zeros((len(worth), len(selected)))
    total = worth.sum(axis=1)
    covers = total > _LEAST_WORTH * total.max(initial=0.0)
    for number, index in enumerate(selected):
        shared = np.minimum(worth, worth[index]).sum(axis=1)
        overlaps[covers, number] = shared[covers] / total[covers]
    return overlaps
