"""The reasons for a selection of passages, in the words of the query: one report per passage.

explanation = selection.explain()
print(explanation)                     # as text
explanation.why_not(7).reason          # "less_gain"
explanation.gap                        # the words of the query that are not covered
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dgn.core import Certificate
from dgn.errors import InvalidInput
from dgn.text.query import Passage

Source: TypeAlias = Literal["text", "title", "similar"]

Reason: TypeAlias = Literal[
    "selected",
    "pinned",
    "repeats",
    "repeats_given",
    "irrelevant",
    "adds_nothing",
    "over_quota",
    "too_long",
    "stopped",
    "less_gain",
]

NEARLY_EQUAL = 0.8
"""Passages with this similarity are nearly copies of each other."""

_HALF = 0.5
_PASSED_SHOWN = 3
_WORDS_SHOWN = 6
_NUMBERS_SHOWN = 4
_LONGEST_SELECTED = 400
_LONGEST_PASSED = 70
_NOTHING_COVERED = 0.01
_LEAST_REPEATED = 0.1
"""A word that a passage covers less than this is not called repeated."""


@dataclass(frozen=True)
class WordCoverage:
    """A word of the query, and how far it was covered before and after a selection, 0 to 1.

    Attributes:
        word: The word as the query writes it.
        before: How far it was covered before.
        after: How far it is covered now.
        source: "text" if the passage contains the word or a form of it, "title" if the title of
            its document does, and "similar" if the passage, its title or its neighbours
            contain only words that are similar.
        near: For "similar", the word of the passage that is most similar to it, if the model
            compares words; otherwise empty.
        similarity: How similar that word is, from 0 to 1.
    """

    word: str
    before: float
    after: float
    source: Source
    near: str = ""
    similarity: float = 0.0


@dataclass(frozen=True)
class PassageReport:
    """What happened to a passage, and why.

    Attributes:
        index: The passage.
        reason: "selected", "pinned", or why it was dropped:
            "repeats": it repeats `like`, and took no part in the search;
            "repeats_given": it repeats a given text, and took no part in the search;
            "irrelevant": its relevance is below min_relevance, and it took no part in the search;
            "adds_nothing": nothing is left that it would add;
            "over_quota": as many of its document or group were selected as are allowed;
            "too_long": it would have been taken, had there been room within the token limit;
            "stopped": the search stopped, because enough was covered;
            "less_gain": others added more.
        gain: What it added; None if it was dropped.
        gains: What it would have added at each step, up to the one at which it was selected.
        relevance: The share of the query that it covers by itself, from 0 to 1.
        tokens: Its tokens; None without a token limit.
        covers: For a selected passage, the words that it covers further, the largest contributions
            first.
        runner_up: For a selected passage, the allowed passage with the second largest gain at that
            step; None if there was none, and for a pinned passage.
        like: For a dropped passage, the selected one that covers most of what it covers, or the
            passage that it repeats; None if it covers nothing, or next to nothing.
        overlap: The share of what it covers that `like` covers too.
        similar_to: The selected passage, other than itself, that is most similar to it, if their
            similarity is at least ½; None if there is none.
        similarity: Their similarity, from 0 to 1.
        stands_for: For a selected passage, the dropped ones that are more similar to it than to any
            other selected one, and at least .8.
    """

    index: int
    reason: Reason
    gain: float | None
    gains: tuple[float, ...]
    relevance: float
    tokens: int | None = None
    covers: tuple[WordCoverage, ...] = ()
    runner_up: int | None = None
    like: int | None = None
    overlap: float = 0.0
    similar_to: int | None = None
    similarity: float = 0.0
    stands_for: tuple[int, ...] = ()

    @property
    def is_selected(self) -> bool:
        """Whether it was selected."""
        return self.gain is not None

    @property
    def was_searched(self) -> bool:
        """Whether it took part in the search."""
        return self.reason not in ("repeats", "repeats_given", "irrelevant")

    def __str__(self) -> str:
        """The reason in a sentence."""
        best = max(self.gains, default=0.0)
        reason = {
            "selected": f"it added {self.gain or 0:.2f}",
            "pinned": "it was pinned",
            "repeats": f"it repeats [{self.like}]",
            "repeats_given": "it repeats a text that is given",
            "irrelevant": "its relevance is below min_relevance",
            "adds_nothing": "it would have added nothing",
            "over_quota": "as many of its document or group are selected as are allowed",
            "too_long": "it would have been taken, but there was no room within the token limit",
            "stopped": "enough of the query was covered before",
            "less_gain": f"it would have added at most {best:.2f}, less than the selected passages",
        }[self.reason]
        if self.similar_to is not None:
            reason += f"; similar to [{self.similar_to}] ({self.similarity:.2f})"
        elif self.was_searched and self.reason != "adds_nothing" and self.like is not None:
            reason += f"; [{self.like}] covers {self.overlap:.0%} of what it covers"
        verdict = "was selected" if self.is_selected else "was not selected"
        return f"[{self.index}] {verdict}: {reason}."


@dataclass(frozen=True, eq=False)
class Explanation:
    """A selection of passages, explained.

    Attributes:
        query: The text of the query.
        passages: All passages.
        reports: What happened to each of them, in the same order.
        order: The selected passages, in the order of selection.
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
        compared: The number of passages that breadth is about, where it is not about all.
    """

    query: str
    passages: tuple[Passage, ...]
    reports: tuple[PassageReport, ...]
    order: tuple[int, ...]
    certificate: Certificate
    words: tuple[str, ...]
    content_words: tuple[int, ...]
    weights: tuple[float, ...]
    coverage: NDArray[np.float64]
    alone: NDArray[np.float64]
    sources: tuple[tuple[Source, ...], ...]
    length_counts: bool = False
    compared: int | None = None

    @property
    def selected(self) -> tuple[PassageReport, ...]:
        """The reports of the selected passages, in the order of selection."""
        return tuple(self.reports[index] for index in self.order)

    @cached_property
    def passed(self) -> tuple[PassageReport, ...]:
        """The reports of the other passages, the largest gains first."""
        dropped = [report for report in self.reports if not report.is_selected]
        return tuple(sorted(dropped, key=lambda report: -max(report.gains, default=0.0)))

    @cached_property
    def covered(self) -> tuple[float, ...]:
        """The share of the query that is covered after 0, 1, … selected passages."""
        shares = np.clip(self.coverage @ np.array(self.weights, np.float64), 0.0, 1.0)
        return tuple(shares.tolist())

    @property
    def gap(self) -> tuple[str, ...]:
        """The content words of the query that are covered less than half."""
        last = self.coverage[-1]
        return tuple(self.words[n] for n in self.content_words if last[n] < _HALF)

    @property
    def is_repetitive(self) -> bool:
        """Whether most of the selected passages are nearly copies of another selected one."""
        alike = [report for report in self.selected if report.similarity >= NEARLY_EQUAL]
        return 2 * len(alike) > len(self.order)

    def why_not(self, index: int) -> PassageReport:
        """Why this passage was not selected."""
        if not 0 <= index < len(self.reports):
            last = len(self.reports) - 1
            raise InvalidInput("index", found=str(index), allowed=f"from 0 to {last}")
        if self.reports[index].is_selected:
            raise InvalidInput("index", message=f"Passage {index} was selected.")
        return self.reports[index]

    def to_dict(self) -> dict[str, Any]:
        """The words of the query and one report per passage, as JSON can hold them."""
        content = set(self.content_words)
        return {
            "words": [
                {
                    "word": word,
                    "weight": self.weights[number],
                    "is_content": number in content,
                    "covered": self.coverage[:, number].tolist(),
                }
                for number, word in enumerate(self.words)
            ],
            "gap": list(self.gap),
            "is_repetitive": self.is_repetitive,
            "passages": [asdict(report) for report in self.reports],
        }

    def __str__(self) -> str:
        return "\n".join("".join(text for text, _ in line) for line in _lines(self))

    def print(self) -> None:
        """Print to the terminal, in colour if rich is installed."""
        if importlib.util.find_spec("rich") is None:
            print(self)
            return
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        for line in _lines(self):
            console.print(Text.assemble(*line))


Line: TypeAlias = list[tuple[str, str]]
"""Pieces of text, each with its style in a terminal; empty for none."""


def _lines(explanation: Explanation) -> Iterator[Line]:
    if explanation.query:
        yield [("query: ", "dim"), (explanation.query, "bold")]
    for place in range(len(explanation.order)):
        if place or explanation.query:
            yield []
        yield from _selected_lines(place, explanation)
    yield []
    if explanation.order and explanation.certificate.value <= 0:
        yield [("no passage adds anything to the query", "yellow")]
    elif explanation.order and explanation.words:
        if explanation.covered[-1] < _NOTHING_COVERED:
            yield [("the passages do not mention the query; this selection means little", "yellow")]
        yield [
            (f"{explanation.covered[-1]:.0%} of the query is covered", "green"),
            (f"; the selection reaches {explanation.certificate}", "dim"),
        ]
        if explanation.gap:
            yield [("covered less than half: ", "dim"), (", ".join(explanation.gap), "yellow")]
        if explanation.compared is not None:
            yield [(f"breadth is about the {explanation.compared} passages that add most", "dim")]
        if explanation.is_repetitive:
            yield [
                (
                    "most of the selected passages are similar to each other "
                    f"(above {NEARLY_EQUAL}); more breadth selects others",
                    "yellow",
                )
            ]
    elif explanation.order:
        yield [(f"the selection reaches {explanation.certificate}", "dim")]
    else:
        yield [("nothing was selected", "dim")]
    yield from _passed_lines(explanation)


def _selected_lines(place: int, explanation: Explanation) -> Iterator[Line]:
    report = explanation.selected[place]
    passage = explanation.passages[report.index]
    yield [
        (f"[{report.index}] ", "bold"),
        (_shortened(passage.text, _LONGEST_SELECTED), "bold"),
        (_origin(passage), "dim"),
    ]
    other = ""
    if report.reason == "pinned":
        other = "; pinned"
    elif explanation.length_counts:
        other = "; within the token limit, length counts, too"
    elif report.runner_up is not None:
        gain = explanation.reports[report.runner_up].gains[place]
        other = f"; next best: [{report.runner_up}] with {gain:.2f}"
    covered = explanation.covered[place + 1] if explanation.words else 0.0
    so_far = f"; query covered so far: {covered:.0%}" if explanation.words else ""
    yield [(f"    gain {report.gain:.2f}{other}{so_far}", "dim")]
    if report.similar_to is not None:
        yield [(f"    similar to [{report.similar_to}] ({report.similarity:.2f})", "dim")]
    if report.stands_for:
        yield [(f"    stands for {_numbered(report.stands_for)} (above {NEARLY_EQUAL})", "dim")]
    if not explanation.words:
        return
    content = {explanation.words[number] for number in explanation.content_words}
    covers = [word for word in report.covers if word.word in content]
    if covers:
        yield from _cover_lines(covers, passage)
        return
    repeated = _repeated_words(explanation, place)
    for opening, words in (
        ("repeats what is covered already: ", repeated["text"]),
        ("its title repeats what is covered already: ", repeated["title"]),
    ):
        if words:
            yield [(f"    {opening}{_listed(words)}", "dim")]
    if not any(repeated.values()):
        kind = "content " if len(content) < len({*explanation.words}) else ""
        yield [(f"    contains no {kind}word of the query", "dim")]


def _repeated_words(explanation: Explanation, place: int) -> dict[Source, list[str]]:
    """The content words that a selected passage covers, and that were covered before it.

    Returns:
        The words that its text contains, and those of its title, each once, in the order of the
        query.
    """
    repeated: dict[Source, list[str]] = {"text": [], "title": []}
    told = {word.word.lower() for word in explanation.selected[place].covers}
    for number in explanation.content_words:
        word, source = explanation.words[number], explanation.sources[place][number]
        is_covered = explanation.alone[place, number] >= _LEAST_REPEATED
        if source in repeated and is_covered and word.lower() not in told:
            told.add(word.lower())
            repeated[source].append(word)
    return repeated


def _numbered(indices: Sequence[int]) -> str:
    more = len(indices) - _NUMBERS_SHOWN
    shown = ", ".join(f"[{index}]" for index in indices[:_NUMBERS_SHOWN])
    return shown + (f" and {more} more" if more > 0 else "")


def _listed(words: Sequence[str]) -> str:
    more = len(words) - _WORDS_SHOWN
    return ", ".join(words[:_WORDS_SHOWN]) + (f", and {more} more" if more > 0 else "")


def _cover_lines(covers: Sequence[WordCoverage], passage: Passage) -> Iterator[Line]:
    """The words that the passage contains, those of its title, and those that are only similar."""
    has_more = passage.title or passage.position is not None
    similar = "it, its title or its neighbours say" if has_more else "says"
    openings = {
        "text": "    covers ",
        "title": "    by its title ",
        "similar": f"    {similar} something similar to ",
    }
    for source, opening in openings.items():
        words = [word for word in covers if word.source == source]
        if not words:
            continue
        line: Line = [(opening, "dim")]
        for number, word in enumerate(words[:_WORDS_SHOWN]):
            line.append((", " if number else "", "dim"))
            line.append((word.word, "green" if source == "text" else ""))
            before = f"{word.before:.0%} → " if word.before >= 0.005 else ""
            line.append((f" {before}{word.after:.0%}", "dim"))
            if word.near:
                line.append((f" (near {word.near}, {word.similarity:.2f})", "dim"))
        if len(words) > _WORDS_SHOWN:
            line.append((f", and {len(words) - _WORDS_SHOWN} more", "dim"))
        yield line


def _passed_lines(explanation: Explanation) -> Iterator[Line]:
    """The best of the passages that were not selected, and how many others there are."""
    searched = [report for report in explanation.passed if report.was_searched]
    useful = [report for report in searched if max(report.gains, default=0) > 0]
    shown = useful[:_PASSED_SHOWN]
    if shown:
        yield [("not selected (gain at each step):", "dim")]
    for report in shown:
        yield _passed_line(report, explanation)
    reasons = [report.reason for report in explanation.passed]
    counts = {
        "and {} more with smaller gains": len(useful) - len(shown),
        "{} would have added nothing": len(searched) - len(useful),
        "{} repeated another one": reasons.count("repeats"),
        "{} repeated a given text": reasons.count("repeats_given"),
        "{} had less relevance than min_relevance": reasons.count("irrelevant"),
    }
    told = [text.format(count) for text, count in counts.items() if count]
    if told and not shown:
        yield [(f"not selected: {'; '.join(told)}", "dim")]
    elif told:
        yield [(f"    {'; '.join(told)}", "dim")]


def _passed_line(report: PassageReport, explanation: Explanation) -> Line:
    gains = ", ".join(f"{gain:.2f}" for gain in report.gains)
    if report.similar_to is not None:
        reason = f"; similar to [{report.similar_to}] ({report.similarity:.2f})"
    elif report.like is None:
        reason = ""
    elif explanation.words:
        reason = f"; {report.overlap:.0%} of what it covers is covered by [{report.like}], too"
    else:
        reason = f"; {report.overlap:.0%} of its features are also in [{report.like}]"
    text = _shortened(explanation.passages[report.index].text, _LONGEST_PASSED)
    return [(f"    [{report.index}] ", "dim"), (text, ""), (f"  {gains}{reason}", "dim")]


def _shortened(text: str, longest: int) -> str:
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    words = text[: longest - 1].rpartition(" ")[0]
    # A word is cut only if it is a large part of what is shown.
    return f"{words} …" if len(words) > longest // 2 else f"{text[: longest - 1]}…"


def _origin(passage: Passage) -> str:
    if passage.position is None:
        return f"  ({passage.title})" if passage.title else ""
    document = passage.title or f"document {passage.document}"
    return f"  ({document}, sentence {passage.position})"
