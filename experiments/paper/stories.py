"""The three stories of the paper (Jarhead, Phoenix, Stripes), with its values of f next to ours.

The paper tells how its network weighs two or three sentences of each claim. Those numbers are a
fingerprint of its learned function: what a sentence is worth alone, and what is left of that after
the first pick. The texts are read from the source of the paper and from the pages of FEVER; the
output names sentences by page and line and quotes none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dgn.core import greedy
from dgn.errors import InvalidInput
from dgn.files import write_atomically
from dgn.learn import DifferentiableGreedyNetwork
from experiments.made import made_by
from experiments.paper.data import Example, read_pages
from experiments.paper.features import PAPER, embedder, make_table
from experiments.paper.measures import Spread
from experiments.paper.plan import MODELS
from experiments.paper.report import table
from experiments.paper.results import Results

_START = "To illustrate how the dependencies"
"""Where the first story begins in the source of the paper."""

_QUOTE, _SHORTEST = re.compile(r"``(.*?)''", re.DOTALL), 4
_WORD = re.compile(r"\w+")
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
        example: The claim, with the sentences of its page and then those quoted from other pages.
        places: The candidate of each letter.
        names: The name of each candidate: page and line.
    """

    example: Example
    places: dict[str, int]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """What one network makes of a story: f({v}), f(v | first pick of the paper), and its picks."""

    alone: tuple[float, ...]
    after: tuple[float, ...]
    picks: tuple[int, ...]


def write_stories(results: Results, paper: Path, folder: Path) -> Path:
    """Tell the stories with all networks on the features of the paper."""
    experiment = results.experiment
    pages = read_pages(experiment.data, {story.page for story in STORIES})
    quotes = read_quotes(paper)
    settings = [setting_of(story, quotes, pages) for story in STORIES]
    texts = [text for one in settings for text in (one.example.text, *one.example.sentences)]
    embed = embedder(experiment.vectors, PAPER, texts)
    features = make_table([one.example for one in settings], embed, unit=False)
    names = [
        name
        for name in results.effort.models
        if MODELS[name].kind == PAPER and MODELS[name].settings.architecture == "dgn"
    ]
    networks = {
        name: [results.network(record) for record in results.records("table", name)]
        for name in names
    }
    learned = [title for one in experiment.layout.learn for title, _ in one.pages]
    lines = ["# The stories of the paper", "", f"{made_by('experiments/paper')}.", ""]
    lines += table(["model", "seeds"], [(name, len(of)) for name, of in networks.items()])
    for number, (story, setting) in enumerate(zip(STORIES, settings, strict=True)):
        x = features.batch(np.array([number])).x
        first = setting.places[story.order[0]]
        told = {name: [tell(one, x, first) for one in of] for name, of in networks.items()}
        lines += _story(story, setting, told, learned.count(story.page))
    write_atomically(folder / "stories.md", "\n".join(lines).rstrip() + "\n")
    return folder / "stories.md"


def read_quotes(paper: Path) -> list[str]:
    """The claims and sentences of the stories, in their order, without LaTeX."""
    source = paper.read_text(encoding="utf-8")
    if _START not in source:
        raise InvalidInput("stories", message=f"{paper} is not the LaTeX source of the paper.")
    quotes = [_plain(text) for text in _QUOTE.findall(source[source.index(_START) :])]
    return [text for text in quotes if len(text.split()) >= _SHORTEST]


def _plain(latex: str) -> str:
    text = re.sub(r"\$\^?(\w+)\$", r"\1", latex.replace("\\%", "%"))
    return " ".join(text.split()).rstrip(",")


def setting_of(story: Story, quotes: Sequence[str], pages: Mapping[str, Sequence[str]]) -> Setting:
    """The candidates of a story: its page, and what the paper quotes of other pages."""
    if story.page not in pages:
        raise InvalidInput("data", message=f"The pages have no {story.page}.")
    page = pages[story.page]
    texts = list(page)
    names = [f"{story.page} {line}" for line in range(len(texts))]
    places: dict[str, int] = {}
    for letter, sentence in story.sentences.items():
        quote = quotes[sentence.quote]
        if sentence.page == story.page:
            places[letter] = _line_of(quote, page)
        else:
            places[letter] = len(texts)
            texts.append(quote)
            names.append(f"{sentence.page}, quoted in the paper")
    document = (story.page, tuple(texts))
    example = Example(story.name, quotes[story.claim], (document,), (False,) * len(texts))
    return Setting(example, places, tuple(names))


def _line_of(quote: str, sentences: Sequence[str]) -> int:
    """The line of a page with the words of a quotation; FEVER's text differs in its spelling."""
    wanted = Counter(_WORD.findall(quote.lower()))

    def likeness(line: int) -> float:
        words = Counter(_WORD.findall(sentences[line].lower()))
        return 2 * (wanted & words).total() / max(1, wanted.total() + words.total())

    best = max(range(len(sentences)), key=likeness)
    if likeness(best) < 0.7:
        raise InvalidInput("stories", message=f"The pages do not have {quote[:40]!r}.")
    return best


@torch.no_grad()
def tell(network: DifferentiableGreedyNetwork, x: Any, first: int) -> Told:
    """What a network makes of a story.

    Args:
        network: The network.
        x: [1, candidates, inputs].
        first: The first pick of the paper.
    """
    f, items = network.encode(x)
    empty = f.empty(items)
    member = torch.zeros(x.shape[:2])
    member[0, first] = 1
    alone: Any = f.gains(items, empty)[0]
    after: Any = f.gains(items, f.add(items, empty, member))[0]
    picks = greedy(f, items, min(_PICKS, x.shape[1])).indices[0]
    return Told(tuple(alone.tolist()), tuple(after.tolist()), tuple(np.asarray(picks).tolist()))


def _story(
    story: Story, setting: Setting, told: Mapping[str, Sequence[Told]], training_claims: int
) -> Iterator[str]:
    of_page = sum(name.startswith(f"{story.page} ") for name in setting.names)
    instead = f"; its DeepEncoder: {_letters(story.instead)}" if story.instead else ""
    yield from (
        f"## {story.name}",
        "",
        f"{len(setting.names)} candidates: the {of_page} sentences of {story.page}, and "
        f"{len(setting.names) - of_page} that the paper quotes from a page that is not at hand. "
        f"{training_claims} training claims are about {story.page}. The DGN of the paper selects "
        f"{_letters(story.order)}{instead}.",
        "",
        *(
            f"- {letter}: {setting.names[setting.places[letter]]}"
            + (" (evidence)" if sentence.gold else "")
            for letter, sentence in story.sentences.items()
        ),
        "",
    )
    header, papers = ["model"], list[str]()
    for letter, sentence in story.sentences.items():
        alone, after = ([] if v is None else [v] for v in (sentence.alone, sentence.after))
        header.append(f"f({letter})")
        papers += _cells(alone, after, is_first=letter == story.order[0])
        if letter != story.order[0]:
            header += [f"f({letter} given {story.order[0]})", "kept"]
    rows = [("*the paper*", *papers)]
    for name, of in told.items():
        cells: list[str] = []
        for letter, place in setting.places.items():
            values = [one.alone[place] for one in of], [one.after[place] for one in of]
            cells += _cells(*values, is_first=letter == story.order[0])
        rows.append((name, *cells))
    yield from table(header, rows)
    yield from table(
        ["order of selection", f"first {_PICKS}, by the number of seeds", "as in the paper"],
        [(name, _orders(of, setting), _agreement(story, of, setting)) for name, of in told.items()],
    )


def _cells(alone: Sequence[float], after: Sequence[float], *, is_first: bool) -> Iterator[str]:
    yield _number(alone)
    if not is_first:
        yield _number(after)
        kept = [b / a for a, b in zip(alone, after, strict=False) if a > 0]
        yield str(Spread.of(kept)) if kept else "–"


def _number(values: Sequence[float]) -> str:
    if not values:
        return "–"
    of = Spread.of(values)
    return f"{of.mean:.2f}" + (f" ±{of.sd:.2f}" if of.count > 1 else "")


def _orders(told: Sequence[Told], setting: Setting) -> str:
    letters = {place: letter for letter, place in setting.places.items()}
    orders = Counter(
        ", ".join(letters.get(p, setting.names[p].rsplit(" ", 1)[-1]) for p in one.picks)
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
