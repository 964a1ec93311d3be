"""Reasons for people: plain text, and the same in a terminal's colours."""

from __future__ import annotations

from collections.abc import Iterator

from dgn.errors import require_extra
from dgn.selector.reasons import PassReason, PickReason, Reasons
from dgn.selector.sources import Sentence

_PASSED_SHOWN = 3
_WORDS_SHOWN = 6
_LEAST_WEIGHT = 0.6
"""As a share of the mean weight of the claim's words."""

Line = list[tuple[str, str]]
"""Pieces of text, each with its style in a terminal; '' for none."""


def as_text(reasons: Reasons) -> str:
    """Plain text."""
    return "\n".join("".join(text for text, _ in line) for line in _lines(reasons))


def print_reasons(reasons: Reasons) -> None:
    """Print to the terminal; colours go away where the output is no terminal."""
    require_extra("colours", package="rich", extra="data")
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in _lines(reasons):
        console.print(Text.assemble(*line))


def _lines(reasons: Reasons) -> Iterator[Line]:
    yield [("claim  ", "dim"), (reasons.claim, "bold")]
    for number, pick in enumerate(reasons.picks, start=1):
        yield []
        yield from _pick_lines(number, pick, reasons)
    yield []
    if reasons.picks and reasons.words:
        yield [
            (f"{reasons.picks[-1].covered:.0%} of the claim is covered", "green"),
            (f"; {reasons.certificate}", "dim"),
        ]
        telling = _telling(reasons)
        open_words = [
            word
            for word, covered in zip(reasons.words, reasons.cover[-1], strict=True)
            if covered < 0.5 and word in telling
        ]
        if open_words:
            yield [("less than half said: ", "dim"), (", ".join(open_words), "yellow")]
    else:
        yield [(str(reasons.certificate), "dim")]
    shown = [one for one in reasons.passed if max(one.gains, default=0) > 0][:_PASSED_SHOWN]
    if shown:
        yield [("not picked:", "dim")]
    for one in shown:
        yield _pass_line(one)


def _telling(reasons: Reasons) -> set[str]:
    """The words that weigh something: of "the" and "was" nobody asks whether they were found."""
    least = _LEAST_WEIGHT / max(len(reasons.words), 1)
    return {w for w, weight in zip(reasons.words, reasons.weights, strict=True) if weight >= least}


def _pick_lines(number: int, pick: PickReason, reasons: Reasons) -> Iterator[Line]:
    telling = _telling(reasons)
    yield [
        (f"{number}. ", "bold"),
        (pick.sentence.text, "bold"),
        (f"  {_where(pick.sentence, pick.index)}", "dim"),
    ]
    ahead = (
        ""
        if pick.runner_up is None
        else f"; next best [{pick.runner_up}] would add {pick.runner_up_gain:.2f}"
    )
    share = f"; claim covered so far {pick.covered:.0%}" if reasons.words else ""
    yield [(f"   adds {pick.gain:.2f}{ahead}{share}", "dim")]
    if not reasons.words:
        return
    covers = [one for one in pick.covers if one.word in telling]
    if covers:
        words: Line = [("   covers ", "dim")]
        for place, one in enumerate(covers[:_WORDS_SHOWN]):
            words.append((", " if place else "", "dim"))
            words.append((one.word, "green"))
            before = f"{one.before:.0%} → " if one.before >= 0.005 else ""
            words.append((f" {before}{one.after:.0%}", "dim"))
        yield words
    elif pick.covers:
        small = ", ".join(one.word for one in pick.covers[:_WORDS_SHOWN])
        yield [(f"   says more of small words only ({small})", "dim")]
    elif pick.gain <= 0:
        yield [("   adds nothing: no sentence that is left does", "dim")]
    else:
        yield [("   next to nothing new of the claim's words; it adds to what is covered", "dim")]


def _pass_line(one: PassReason) -> Line:
    gains = ", ".join(f"{gain:.2f}" for gain in one.gains)
    reason = "" if one.like is None else f"; {one.overlap:.0%} of that is in [{one.like}] too"
    text = one.sentence.text if len(one.sentence.text) <= 70 else one.sentence.text[:69] + "…"
    return [(f"   [{one.index}] ", "dim"), (text, ""), (f"  would add {gains}{reason}", "dim")]


def _where(sentence: Sentence, index: int) -> str:
    place = f"[{index}]"
    if sentence.title:
        place += f" {sentence.title}, sentence {sentence.place + 1}"
    elif sentence.document is not None:
        place += f" document {sentence.document + 1}, sentence {sentence.place + 1}"
    return place
