"""The three stories of the paper (Jarhead, Phoenix, Stripes), with its values of f next to ours.

The paper tells how its network weighs two or three sentences of each claim. Those numbers are a
fingerprint of its learned function: what a sentence is worth alone, and what is left of that after
the first pick. The texts are read from the source of the paper and from the pages of FEVER; the
output names sentences by page and line and quotes none.

    python -m experiments.stories RUN… --data DATA --paper FILE --out FILE
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dgn.core import greedy
from dgn.data.eraser import EraserDocs, read_eraser_claims
from dgn.errors import DGNError, InvalidInput
from dgn.files import write_atomically
from dgn.selector import Selector
from dgn.text import Query
from dgn.text.words import split_words
from experiments.reproduce.markdown import table
from experiments.reproduce.results import Spread

_START = "To illustrate how the dependencies"
"""Where the first story begins in the source of the paper."""

_QUOTE, _SHORTEST = re.compile(r"``(.*?)''", re.DOTALL), 4
_PICKS = 3


@dataclass(frozen=True)
class Sentence:
    """A sentence that the paper quotes.

    Attributes:
        quote: Its number among the quotations of the stories.
        page: The page that it is from.
        alone: f({v}) in the paper; None where it is not given.
        after: f(v | first pick) in the paper.
        gold: Whether the paper calls it evidence.
    """

    quote: int
    page: str
    alone: float | None
    after: float | None
    gold: bool


@dataclass(frozen=True)
class Story:
    """A claim, and the sentences about which the paper gives numbers.

    Attributes:
        name: Its name.
        claim: The number of the quotation.
        page: The page whose sentences are all candidates.
        sentences: By the letter of the paper.
        order: What the DGN of the paper selects first.
        instead: What its DeepEncoder selects; empty where the paper does not say.
    """

    name: str
    claim: int
    page: str
    sentences: dict[str, Sentence]
    order: str
    instead: str


_MENDES, _MURRAY = "Sam_Mendes", "Bill_Murray"
_JARHEAD, _STRIPES = "Jarhead_-LRB-film-RRB-", "Stripes_-LRB-film-RRB-"
_PHOENIX = "Phoenix,_Arizona"
STORIES = (
    Story(
        "Jarhead",
        0,
        _JARHEAD,
        {
            "a": Sentence(1, _MENDES, 14.48, None, gold=True),
            "b": Sentence(2, _JARHEAD, 12.86, 8.00, gold=True),
            "c": Sentence(3, _MENDES, 12.26, 7.25, gold=False),
        },
        order="ab",
        instead="bc",
    ),
    Story(
        "Phoenix",
        4,
        _PHOENIX,
        {
            "a": Sentence(5, _PHOENIX, 13.23, 7.5, gold=True),
            "b": Sentence(6, _PHOENIX, 15.99, None, gold=False),
            "c": Sentence(7, _PHOENIX, None, None, gold=False),
        },
        order="bc",
        instead="",
    ),
    Story(
        "Stripes",
        8,
        _STRIPES,
        {
            "a": Sentence(9, _MURRAY, 7.87, None, gold=True),
            "b": Sentence(10, _MURRAY, 7.21, 4.74, gold=False),
            "c": Sentence(11, _STRIPES, 6.73, 5.21, gold=True),
        },
        order="ac",
        instead="ab",
    ),
)


@dataclass(frozen=True)
class Setting:
    """A story with its texts.

    Attributes:
        query: The claim, with the sentences of its page and then those that are quoted from others.
        places: The candidate of each letter.
        names: The name of each candidate: page and line.
    """

    query: Query
    places: dict[str, int]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """What one network makes of a story.

    Attributes:
        alone: By candidate, f({v}).
        after: By candidate, f(v | first pick of the paper).
        picks: The candidates in the order of selection.
    """

    alone: tuple[float, ...]
    after: tuple[float, ...]
    picks: tuple[int, ...]


def read_quotes(paper: Path) -> list[str]:
    """The claims and sentences of the stories, in their order, without LaTeX."""
    source = paper.read_text(encoding="utf-8")
    if _START not in source:
        raise InvalidInput("paper", message=f"{paper} is not the LaTeX source of the paper.")
    quotes = [_plain(text) for text in _QUOTE.findall(source[source.index(_START) :])]
    return [text for text in quotes if len(text.split()) >= _SHORTEST]


def _plain(latex: str) -> str:
    text = re.sub(r"\$\^?(\w+)\$", r"\1", latex.replace("\\%", "%"))
    return " ".join(text.split()).rstrip(",")


def settings_of(story: Story, quotes: Sequence[str], docs: EraserDocs) -> Setting:
    """The candidates of a story: its page, and what the paper quotes of other pages."""
    page = docs.get(story.page)
    if page is None:
        raise InvalidInput("data", message=f"The pages have no {story.page}.")
    texts = list(page.sentences)
    names = [f"{story.page} {line}" for line in range(len(texts))]
    places: dict[str, int] = {}
    for letter, sentence in story.sentences.items():
        quote = quotes[sentence.quote]
        if sentence.page == story.page:
            places[letter] = _line_of(quote, page.sentences)
        else:
            places[letter] = len(texts)
            texts.append(quote)
            names.append(f"{sentence.page}, quoted in the paper")
    return Setting(Query.of(quotes[story.claim], texts), places, tuple(names))


def _line_of(quote: str, sentences: Sequence[str]) -> int:
    """The line of a page with the words of a quotation; FEVER's text differs in its spelling."""
    wanted = Counter(word.lower() for word in split_words(quote))

    def likeness(line: int) -> float:
        found = Counter(word.lower() for word in split_words(sentences[line]))
        return 2 * (wanted & found).total() / (wanted.total() + found.total())

    best = max(range(len(sentences)), key=likeness)
    if likeness(best) < 0.7:
        raise InvalidInput("paper", message=f"The pages do not have the sentence {quote[:40]!r}.")
    return best


def tell(selector: Selector, setting: Setting, first: int) -> Told:
    """What a network makes of a story, given the first pick of the paper."""
    f, items = selector.encoder.encode([setting.query])
    count = len(setting.names)
    empty = f.empty(items)
    alone: Any = np.asarray(f.gains(items, empty))[0, :count]
    member = np.zeros((1, count), alone.dtype)
    member[0, first] = 1
    after: Any = np.asarray(f.gains(items, f.add(items, empty, member)))[0, :count]
    picks = greedy(f, items, min(_PICKS, count)).indices[0]
    return Told(tuple(alone.tolist()), tuple(after.tolist()), tuple(np.asarray(picks).tolist()))


def report(runs: Sequence[Path], data: Path, paper: Path) -> Iterator[str]:
    """The lines of the output."""
    quotes, docs = read_quotes(paper), EraserDocs(data / "docs")
    models: dict[str, list[Selector]] = {}
    for run in runs:
        name = re.sub(r"-seed\d+$", "", run.name)
        models.setdefault(name, []).append(Selector.from_pretrained(run))
    learned = [
        page
        for path in sorted(data.glob("train*.jsonl"))
        for claim in read_eraser_claims(path)
        for page in claim.pages or claim.evidence_pages
    ]
    yield from ("# The stories of the paper", "")
    yield from table(
        ["model", "seeds"], [(name, len(selectors)) for name, selectors in models.items()]
    )
    for story in STORIES:
        yield from _story(story, settings_of(story, quotes, docs), models, learned)


def _story(
    story: Story, setting: Setting, models: dict[str, list[Selector]], learned: Sequence[str]
) -> Iterator[str]:
    first = setting.places[story.order[0]]
    told = {
        name: [tell(selector, setting, first) for selector in selectors]
        for name, selectors in models.items()
    }
    own = sum(name.startswith(f"{story.page} ") for name in setting.names)
    instead = f"; its DeepEncoder: {_letters(story.instead)}" if story.instead else ""
    yield from (
        f"## {story.name}",
        "",
        f"{len(setting.names)} candidates: the {own} sentences of {story.page}, and "
        f"{len(setting.names) - own} that the paper quotes from a page that is not at hand. "
        f"{learned.count(story.page)} training claims are about {story.page}. The DGN of the "
        f"paper selects {_letters(story.order)}{instead}.",
        "",
        *(
            f"- {letter}: {setting.names[setting.places[letter]]}"
            + (" (evidence)" if sentence.gold else "")
            for letter, sentence in story.sentences.items()
        ),
        "",
    )
    header = ["model"]
    for letter in story.sentences:
        header.append(f"f({letter})")
        if letter != story.order[0]:
            header += [f"f({letter} given {story.order[0]})", "kept"]
    rows = [
        ("*the paper*", *_cells(story, {k: _papers(s) for k, s in story.sentences.items()})),
        *(
            (
                name,
                *_cells(
                    story,
                    {
                        letter: (
                            [one.alone[place] for one in of],
                            [one.after[place] for one in of],
                        )
                        for letter, place in setting.places.items()
                    },
                ),
            )
            for name, of in told.items()
        ),
    ]
    yield from table(header, rows)
    yield from table(
        ["order of selection", f"first {_PICKS}, by the number of seeds", "as in the paper"],
        [(name, _orders(of, setting), _agreement(story, of, setting)) for name, of in told.items()],
    )


def _papers(sentence: Sentence) -> tuple[list[float], list[float]]:
    return tuple([] if value is None else [value] for value in (sentence.alone, sentence.after))  # pyright: ignore


def _cells(story: Story, values: dict[str, tuple[list[float], list[float]]]) -> Iterator[str]:
    for letter, (alone, after) in values.items():
        yield _number(alone)
        if letter != story.order[0]:
            yield _number(after)
            kept = [b / a for a, b in zip(alone, after, strict=False) if a > 0]
            yield str(Spread.of(kept)) if kept else "–"


def _number(values: Sequence[float]) -> str:
    if not values:
        return "–"
    found = Spread.of(values)
    return f"{found.mean:.2f}" + (f" ±{found.sd:.2f}" if found.count > 1 else "")


def _orders(told: Sequence[Told], setting: Setting) -> str:
    letters = {place: letter for letter, place in setting.places.items()}
    orders = Counter(
        ", ".join(
            letters.get(place, setting.names[place].rsplit(" ", 1)[-1]) for place in one.picks
        )
        for one in told
    )
    return "; ".join(f"{order} ({count})" for order, count in orders.most_common())


def _agreement(story: Story, told: Sequence[Told], setting: Setting) -> str:
    wanted = tuple(setting.places[letter] for letter in story.order)
    firsts = sum(one.picks[:1] == wanted[:1] for one in told)
    both = sum(one.picks[:2] == wanted for one in told)
    return f"first pick {firsts} of {len(told)}, both {both}"


def _letters(order: str) -> str:
    return " and then ".join(order)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell the stories, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments.stories", description=__doc__)
    parser.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="model folders, NAME-seedN, as experiments.reproduce leaves them in OUT/runs/table",
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DATA", help="ERASER's FEVER")
    parser.add_argument("--paper", type=Path, required=True, metavar="FILE", help="its LaTeX")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        lines = list(report(options.runs, options.data, options.paper))
    except DGNError as error:
        print(f"stories: {error}", file=sys.stderr)
        return 1
    write_atomically(options.out, "\n".join(lines).rstrip() + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
