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
from dgn.text.explanation.reasons import Explanation, PassedPassage, Source, WordCoverage
from dgn.text.passages import Passage

_PASSED_SHOWN = 3
_WORDS_SHOWN = 6
_LONGEST_SELECTED = 400
_LONGEST_PASSED = 70
_NOTHING_COVERED = 0.01
_LEAST_INCREASE = 0.02
LEAST_SHOWN = 0.1
"""A word that a passage covers less than this is not called repeated, and is not drawn."""

_GREEN = "#1b7a3d"
_STYLES: dict[str, dict[str, Any]] = {
    "new": {"facecolor": _GREEN, "edgecolor": "white"},
    "new similar": {"facecolor": "#e8f3ea", "edgecolor": _GREEN, "hatch": "///", "linewidth": 0},
    "old": {"facecolor": "white", "edgecolor": _GREEN, "linewidth": 1.1},
    "old similar": {"facecolor": "white", "edgecolor": "0.7", "linewidth": 0.9, "linestyle": ":"},
}
"""How a passage covers a word: further than before or not, and by the word itself or not."""

_LEGEND = {
    "new": "contains it",
    "new similar": "its title, or a similar word",
    "old": "contains it, covered before",
    "old similar": "its title, or a similar word, covered before",
}

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
    for place in range(len(explanation.selected)):
        yield []
        yield from _selected_lines(place, explanation)
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
        if explanation.gap:
            yield [("covered less than half: ", "dim"), (", ".join(explanation.gap), "yellow")]
    elif explanation.selected:
        yield [(f"the selection reaches {explanation.certificate}", "dim")]
    else:
        yield [("nothing was selected", "dim")]
    yield from _passed_lines(explanation)


def _selected_lines(place: int, explanation: Explanation) -> Iterator[Line]:
    one = explanation.selected[place]
    yield [
        (f"[{one.index}] ", "bold"),
        (_shortened(one.passage.text, _LONGEST_SELECTED), "bold"),
        (_origin(one.passage), "dim"),
    ]
    words = f" ({one.word_gain:.2f} by words)" if explanation.words else ""
    if one.is_pinned:
        other = "; pinned"
    elif explanation.length_counts:
        other = "; within the token limit, length counts, too"
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
    if covers:
        yield from _cover_lines(covers, one.passage)
        return
    repeated = repeated_words(explanation, place)
    for opening, words in (
        ("repeats what is covered already: ", repeated["text"] + repeated["asked"]),
        ("its title repeats what is covered already: ", repeated["title"]),
    ):
        if words:
            yield [(f"    {opening}{_listed(words)}", "dim")]
    if not any(repeated.values()):
        kind = "content " if len(content) < len({*explanation.words}) else ""
        yield [(f"    contains no {kind}word of the query", "dim")]


def repeated_words(explanation: Explanation, place: int) -> dict[Source, list[str]]:
    """The content words that a selected passage covers, and that were covered before it.

    Args:
        explanation: The explanation.
        place: The place of the passage in the order of selection, from 0.

    Returns:
        The words that its text contains, those of its title, and what the question asks for, each
        once, in the order of the query.
    """
    found: dict[Source, list[str]] = {"text": [], "title": [], "asked": []}
    told = {word.word.lower() for word in explanation.selected[place].covers}
    for number in explanation.content_words:
        word, source = explanation.words[number], explanation.sources[place][number]
        is_covered = explanation.alone[place, number] >= LEAST_SHOWN
        if source in found and is_covered and word.lower() not in told:
            told.add(word.lower())
            found[source].append(word)
    return found


def _listed(words: Sequence[str]) -> str:
    more = len(words) - _WORDS_SHOWN
    return ", ".join(words[:_WORDS_SHOWN]) + (f", and {more} more" if more > 0 else "")


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
        for number, word in enumerate(own[:_WORDS_SHOWN]):
            line.append((", " if number else "", "dim"))
            line.append((word.word, "green" if source == "text" else ""))
            before = f"{word.before:.0%} → " if word.before >= 0.005 else ""
            line.append((f" {before}{word.after:.0%}", "dim"))
        if len(own) > _WORDS_SHOWN:
            line.append((f", and {len(own) - _WORDS_SHOWN} more", "dim"))
        yield line


def _passed_lines(explanation: Explanation) -> Iterator[Line]:
    """The best of the passages that were not selected, and how many others there are."""
    searched = [one for one in explanation.passed if one.was_searched]
    useful = [one for one in searched if max(one.gains, default=0) > 0]
    shown = useful[:_PASSED_SHOWN]
    if shown:
        yield [("not selected (gain at each step):", "dim")]
    for one in shown:
        yield _passed_line(one, explanation)
    repeats = sum(one.reason.startswith("repeats") for one in explanation.passed)
    given = sum(one.reason == "repeats_given" for one in explanation.passed)
    left_out = sum(one.reason == "irrelevant" for one in explanation.passed)
    counts = {
        "and {} more with smaller gains": len(useful) - len(shown),
        "{} would have added nothing": len(searched) - len(useful),
        "{} repeated another one": repeats - given,
        "{} repeated a given text": given,
        "{} had less relevance than min_relevance": left_out,
    }
    told = [text.format(count) for text, count in counts.items() if count]
    if told and not shown:
        yield [(f"not selected: {'; '.join(told)}", "dim")]
    elif told:
        yield [(f"    {'; '.join(told)}", "dim")]


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


def draw_explanation(explanation: Explanation, path: Path) -> None:
    """What each selected passage covers of each word of the query, and the gains."""
    if path.suffix.lower() not in {".png", ".svg", ".pdf"}:
        raise InvalidInput("path", found=repr(str(path)), allowed="a .png, .svg or .pdf file")
    require_extra("Drawing an explanation", package="matplotlib", extra="plot")
    from matplotlib.figure import Figure

    rows, words = len(explanation.selected) + 1, len(explanation.content_words)
    width = max(9.5, 3.2 + 0.6 * words)
    figure = Figure(figsize=(width, 2.2 + 0.5 * rows + 2.3), layout="constrained")
    ratios = [rows * 0.5, 2.0]
    axes: Any = figure.subplots(2, 1, height_ratios=ratios) if words else [None, figure.subplots()]
    query = "\n".join(textwrap.wrap(_escaped(explanation.query), int(13 * width)))
    figure.suptitle(query, fontsize=11, x=0.01, ha="left")
    if words:
        _draw_coverage(axes[0], explanation)
    _draw_gains(axes[1], explanation)
    save_figure(figure, path, dpi=150)


def _draw_coverage(axes: Any, explanation: Explanation) -> None:
    """A table of what each passage itself covers, and what all of them cover together."""
    from matplotlib.patches import Patch

    shown = list(explanation.content_words)
    increase = np.diff(explanation.coverage[:, shown], axis=0)
    kinds: set[str] = set()
    for row in range(len(explanation.selected)):
        for column, word in enumerate(shown):
            share = float(explanation.alone[row, word])
            is_new = bool(increase[row, column] >= _LEAST_INCREASE)
            if share < LEAST_SHOWN and not is_new:
                continue
            is_there = explanation.sources[row][word] in ("text", "asked")
            kind = ("new" if is_new else "old") + ("" if is_there else " similar")
            kinds.add(kind)
            axes.add_patch(_cell(row, column, share, kind))
            if is_new:
                is_dark = is_there and share >= 0.75
                _write(axes, row, column, share, "white" if is_dark else "black")
    last = len(explanation.selected)
    for column, share in enumerate(explanation.coverage[-1, shown].tolist()):
        _write(axes, last, column, share, "0.35")
    axes.axhline(last - 0.5, color="0.6", linewidth=0.8)
    labels = [
        _escaped(f"[{one.index}] " + textwrap.shorten(one.passage.text, 42, placeholder=" …"))
        for one in explanation.selected
    ]
    axes.set_yticks(range(last + 1), [*labels, "together"], fontsize=8)
    words = [_escaped(explanation.words[number]) for number in shown]
    axes.set_xticks(range(len(words)), words, rotation=40, ha="right", fontsize=9)
    axes.set_xlim(-0.5, len(words) - 0.5)
    axes.set_ylim(last + 0.5, -0.5)
    axes.tick_params(which="both", length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    handles = [
        Patch(label=text, **_STYLES[kind]) for kind, text in _LEGEND.items() if kind in kinds
    ]
    axes.set_title("What each passage itself covers", fontsize=9, loc="left", pad=22)
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(-0.005, 1.0),
        ncols=len(handles) or 1,
        fontsize=8,
        frameon=False,
        borderpad=0.2,
    )


def _cell(row: int, column: int, share: float, kind: str) -> Any:
    from matplotlib.patches import Rectangle

    style = dict(_STYLES[kind])
    if kind == "new":
        style["alpha"] = 0.15 + 0.8 * share
    return Rectangle((column - 0.46, row - 0.42), 0.92, 0.84, **style)


def _write(axes: Any, row: int, column: int, share: float, colour: str) -> None:
    axes.text(column, row, f"{share:.0%}", ha="center", va="center", fontsize=8, color=colour)


def _draw_gains(axes: Any, explanation: Explanation) -> None:
    steps = range(len(explanation.selected))
    for one in explanation.passed:
        if one.was_searched:
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
