"""The reasons for a selection of passages, as data: in the words of the query."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dgn.core import Certificate
from dgn.errors import InvalidInput
from dgn.text.passages import Passage

Source: TypeAlias = Literal["text", "title", "similar", "asked"]

Reason: TypeAlias = Literal[
    "repeats",
    "repeats_given",
    "irrelevant",
    "adds_nothing",
    "over_quota",
    "too_long",
    "stopped",
    "less_gain",
]

_HALF = 0.5


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
        is_pinned: Whether it had to be selected.
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
    is_pinned: bool = False


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
        reason: Why it was not selected:
            "repeats": it repeats `like`, and took no part in the search;
            "repeats_given": it repeats a given text, and took no part in the search;
            "irrelevant": its relevance is below min_relevance, and it took no part in the search;
            "adds_nothing": nothing is left that it would add;
            "over_quota": as many of its document or group were selected as are allowed;
            "too_long": it does not fit into what is left of the token limit;
            "stopped": the search stopped, because enough was covered;
            "less_gain": others added more.
    """

    index: int
    passage: Passage
    gains: tuple[float, ...]
    like: int | None
    overlap: float
    reason: Reason

    @property
    def was_searched(self) -> bool:
        """Whether it took part in the search."""
        return self.reason not in ("repeats", "repeats_given", "irrelevant")

    def __str__(self) -> str:
        """The reason in a sentence."""
        best = max(self.gains, default=0.0)
        reason = {
            "repeats": f"it repeats [{self.like}]",
            "repeats_given": "it repeats a text that is given",
            "irrelevant": "its relevance is below min_relevance",
            "adds_nothing": "it would have added nothing",
            "over_quota": "as many of its document or group are selected as are allowed",
            "too_long": "it does not fit into what is left of the token limit",
            "stopped": "enough of the query was covered before",
            "less_gain": f"it would have added at most {best:.2f}, less than the selected passages",
        }[self.reason]
        if self.was_searched and self.reason != "adds_nothing" and self.like is not None:
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
        alone: [selected, words], how far each selected passage covers each word by itself.
        sources: For each selected passage and each word, by what it covers the word, if it does;
            see `WordCoverage`.
        length_counts: Whether the length of passages counted, because there is a token limit.
    """

    query: str
    selected: tuple[SelectedPassage, ...]
    passed: tuple[PassedPassage, ...]
    certificate: Certificate
    words: tuple[str, ...]
    content_words: tuple[int, ...]
    weights: tuple[float, ...]
    coverage: NDArray[np.float64]
    alone: NDArray[np.float64]
    sources: tuple[tuple[Source, ...], ...]
    length_counts: bool = False

    @property
    def gap(self) -> tuple[str, ...]:
        """The content words of the query that are covered less than half."""
        last = self.coverage[-1]
        return tuple(self.words[n] for n in self.content_words if last[n] < _HALF)

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
            "length_counts": self.length_counts,
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
