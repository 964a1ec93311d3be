"""An explanation for people: as plain text, in the colours of a terminal, and as a figure."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dgn.errors import InvalidInput, require_extra
from dgn.files import save_figure
from dgn.text.explanation.reasons import Explanation, PassedPassage, SelectedPassage, WordCoverage
from dgn.text.query import Passage

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
            explanation.words[number]
            for number in explanation.content_words
            if explanation.coverage[-1, number] < 0.5
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
    content = {explanation.words[number] for number in explanation.content_words}
    covers = [word for word in one.covers if word.word in content]
    small = [word.word for word in one.covers if word.source != "similar"][:_WORDS_SHOWN]
    new = "" if one is explanation.selected[0] else "new "
    if covers:
        yield from _cover_lines(covers[:_WORDS_SHOWN], one.passage)
    elif small:
        quoted = ", ".join(f"“{word}”" for word in small)
        yield [(f"    covers only function words of the query: {quoted}", "dim")]
    else:
        yield [(f"    covers no {new}word of the query", "dim")]


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
        for number, word in enumerate(own):
            line.append((", " if number else "", "dim"))
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


def draw_explanation(explanation: Explanation, path: Path) -> None:
    """A heat map of the words of the query against the selected passages, and the gains."""
    if path.suffix.lower() not in {".png", ".svg", ".pdf"}:
        raise InvalidInput("path", found=repr(str(path)), allowed="a .png, .svg or .pdf file")
    require_extra("Drawing an explanation", package="matplotlib", extra="plot")
    from matplotlib.figure import Figure

    count, words = len(explanation.selected), len(explanation.content_words)
    width = max(9.5, 3.2 + 0.6 * words)
    figure = Figure(figsize=(width, 1.7 + 0.62 * count + 2.3), layout="constrained")
    ratios = [max(count, 1) * 0.62, 2.0]
    axes: Any = figure.subplots(2, 1, height_ratios=ratios) if words else [None, figure.subplots()]
    query = "\n".join(textwrap.wrap(_escaped(explanation.query), int(13 * width)))
    figure.suptitle(query, fontsize=11, x=0.01, ha="left")
    if words:
        _draw_coverage(axes[0], explanation)
    _draw_gains(axes[1], explanation)
    save_figure(figure, path, dpi=150)


def _draw_coverage(axes: Any, explanation: Explanation) -> None:
    shown = list(explanation.content_words)
    coverage = explanation.coverage[1:, shown]
    increase = np.diff(explanation.coverage[:, shown], axis=0)
    axes.imshow(coverage, cmap="Greens", vmin=0, vmax=1.3, aspect="auto")
    for row, column in np.argwhere(increase >= 0.02).tolist():
        axes.text(
            column,
            row,
            f"{coverage[row, column]:.0%}",
            ha="center",
            va="center",
            fontsize=8,
            color="black" if coverage[row, column] < 0.75 else "white",
        )
    labels = [
        _escaped(f"[{one.index}] " + textwrap.shorten(one.passage.text, 42, placeholder=" …"))
        for one in explanation.selected
    ]
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    words = [_escaped(explanation.words[number]) for number in shown]
    axes.set_xticks(range(len(words)), words, rotation=40, ha="right", fontsize=9)
    axes.set_title(
        "How far each content word is covered; a number where a passage covers it further",
        fontsize=9,
        loc="left",
    )
    axes.set_xticks(np.arange(len(words) - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(len(labels) - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _draw_gains(axes: Any, explanation: Explanation) -> None:
    steps = range(len(explanation.selected))
    for one in explanation.passed:
        axes.plot(steps, one.gains, color="0.82", linewidth=0.8, zorder=1)
    runner_up = [one.runner_up_gain for one in explanation.selected]
    axes.plot(steps, runner_up, "o--", color="0.45", markersize=4, label="next best")
    gains = [one.gain for one in explanation.selected]
    axes.plot(steps, gains, "o-", color="tab:green", markersize=6, label="selected")
    if explanation.words:
        for step, one in zip(steps, explanation.selected, strict=True):
            axes.annotate(
                f"{one.covered:.0%}",
                (step, one.gain),
                xytext=(6, 5),
                textcoords="offset points",
                fontsize=8,
                color="tab:green",
            )
    axes.set_xticks(list(steps), [f"[{one.index}]" for one in explanation.selected])
    axes.set_xlabel("selected passage, in order", fontsize=9)
    axes.set_ylabel("gain", fontsize=9)
    axes.margins(x=0.08)
    axes.set_ylim(0, 1.2 * max([*gains, 1e-9]))
    percent = "; %: query covered so far" if explanation.words else ""
    axes.set_title(f"Gain of each passage (grey: not selected){percent}", fontsize=9, loc="left")
    axes.legend(fontsize=8, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _escaped(text: str) -> str:
    """A text whose dollar signs are not the beginning of a formula."""
    return text.replace("$", r"\$")
