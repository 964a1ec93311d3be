"""An explanation for people: plain text, and the same in the colours of a terminal."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence

from dgn.explanation.reasons import Explanation, PassedPassage, SelectedPassage, WordCoverage
from dgn.query import Passage

_PASSED_SHOWN = 3
_WORDS_SHOWN = 6
_LONGEST_SELECTED = 400
_LONGEST_PASSED = 70
_NOTHING_COVERED = 0.01

Line = list[tuple[str, str]]
"""Pieces of text, each with its style in a terminal; empty for none."""


def to_text(explanation: Explanation) -> str:
    """The explanation as plain text."""
    return "\n".join("".join(text for text, _ in line) for line in _lines(explanation))


def print_explanation(explanation: Explanation) -> None:
    """Print the explanation, in colour if rich is installed and the output is a terminal."""
    if importlib.util.find_spec("rich") is None:
        print(to_text(explanation))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in _lines(explanation):
        console.print(Text.assemble(*line))


def _lines(explanation: Explanation) -> Iterator[Line]:
    yield [("query: ", "dim"), (explanation.query, "bold")]
    for one in explanation.selected:
        yield []
        yield from _selected_lines(one, explanation)
    yield []
    if explanation.selected and explanation.certificate.value <= 0:
        yield [("no passage adds anything to the query", "yellow")]
    elif explanation.selected and explanation.words:
        if explanation.selected[-1].covered < _NOTHING_COVERED:
            yield [("the passages do not mention the query; this selection means little", "yellow")]
        yield [
            (f"{explanation.selected[-1].covered:.0%} of the query is covered", "green"),
            (f"; the selection reaches {explanation.certificate}", "dim"),
        ]
        open_words = [
            explanation.words[place]
            for place in explanation.content_words
            if explanation.coverage[-1, place] < 0.5
        ]
        if open_words:
            yield [("covered less than half: ", "dim"), (", ".join(open_words), "yellow")]
    elif explanation.selected:
        yield [(f"the selection reaches {explanation.certificate}", "dim")]
    else:
        yield [("nothing was selected", "dim")]
    shown = [one for one in explanation.passed if max(one.gains, default=0) > 0][:_PASSED_SHOWN]
    if shown:
        yield [("not selected (gain at each step):", "dim")]
    for one in shown:
        yield _passed_line(one, explanation)


def _selected_lines(one: SelectedPassage, explanation: Explanation) -> Iterator[Line]:
    yield [
        (f"[{one.index}] ", "bold"),
        (_shortened(one.passage.text, _LONGEST_SELECTED), "bold"),
        (_origin(one.passage), "dim"),
    ]
    words = f" ({one.word_gain:.2f} by words)" if explanation.words else ""
    if explanation.per_token:
        other = "; selected by gain per token"
    elif one.runner_up is None:
        other = ""
    else:
        other = f"; next best: [{one.runner_up}] with {one.runner_up_gain:.2f}"
    covered = f"; query covered so far: {one.covered:.0%}" if explanation.words else ""
    yield [(f"    gain {one.gain:.2f}{words}{other}{covered}", "dim")]
    if not explanation.words:
        return
    content = {explanation.words[place] for place in explanation.content_words}
    covers = [word for word in one.covers if word.word in content]
    small = [word.word for word in one.covers if word.source != "similar"][:_WORDS_SHOWN]
    further = "" if one is explanation.selected[0] else "further "
    if covers:
        yield from _cover_lines(covers[:_WORDS_SHOWN], one.passage)
    elif small:
        only = ", ".join(small)
        yield [(f"    covers no {further}content word of the query, only {only}", "dim")]
    else:
        yield [(f"    covers no {further}word of the query", "dim")]


def _cover_lines(covers: Sequence[WordCoverage], passage: Passage) -> Iterator[Line]:
    """The words that the passage contains, those of its title, and those that are only similar.

    Between them is what the question asks for, such as a date.
    """
    has_more = passage.title or passage.position is not None
    similar = "it, its title or its neighbours say" if has_more else "says"
    openings = {
        "text": "    covers ",
        "title": "    by its title ",
        "asked": "    contains what is asked for: ",
        "similar": f"    {similar} something similar to ",
    }
    for source, opening in openings.items():
        own = [word for word in covers if word.source == source]
        if not own:
            continue
        line: Line = [(opening, "dim")]
        for place, word in enumerate(own):
            line.append((", " if place else "", "dim"))
            line.append((word.word, "green" if source == "text" else ""))
            before = f"{word.before:.0%} → " if word.before >= 0.005 else ""
            line.append((f" {before}{word.after:.0%}", "dim"))
        yield line


def _passed_line(one: PassedPassage, explanation: Explanation) -> Line:
    gains = ", ".join(f"{gain:.2f}" for gain in one.gains)
    if one.like is None:
        reason = ""
    elif explanation.words:
        reason = f"; {one.overlap:.0%} of what it covers is covered by [{one.like}], too"
    else:
        reason = f"; {one.overlap:.0%} of its features are also in [{one.like}]"
    text = _shortened(one.passage.text, _LONGEST_PASSED)
    return [(f"    [{one.index}] ", "dim"), (text, ""), (f"  {gains}{reason}", "dim")]


def _shortened(text: str, longest: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _origin(passage: Passage) -> str:
    if passage.position is None:
        return f"  ({passage.title})" if passage.title else ""
    document = passage.title or f"document {passage.document}"
    return f"  ({document}, sentence {passage.position})"
