"""A small world in the formats of FEVER and of the paper: for `make demo` and the tests.

    python -m experiments.paper.small FOLDER

One page per person, claims about them in FEVER's own format, pages for the three stories, and a
LaTeX source that tells them. Everything is made up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dgn.files import write_atomically
from experiments.paper.stories import STORIES

PLACES = ("Arden", "Brock", "Calder", "Dunmore", "Elsing", "Farrow", "Garth", "Holme")
TRADES = ("baker", "sailor", "printer", "miller", "weaver", "painter", "doctor", "potter")
_QUOTES = (
    ("the red ship sank", "red ship in harbour", "the ship sank in blue", "green harbour in red"),
    ("the green ship sank", "green ship in harbour", "the ship sank red", "blue ship in green"),
    ("the blue ship sank", "blue ship in harbour", "the blue harbour sank", "ship sank in blue"),
)
"""For each story, the claim and its sentences."""


def write_world(folder: Path) -> Path:
    """Write the files; returns the LaTeX source."""
    pages = {
        f"{place}_{trade.title()}": [
            f"{place} {trade.title()} was born in {place} .",
            f"He worked as a {trade} for thirty years .",
            "The weather was often bad .",
            f"His house in {place} still stands .",
            "Nobody knows why .",
            "The street is narrow .",
        ]
        for place in PLACES
        for trade in TRADES
    }
    order: list[int] = np.random.default_rng(0).permutation(len(pages)).tolist()
    titles = [list(pages)[row] for row in order]
    _write(folder / "train.jsonl", _claims(titles[:40], 1))
    _write(folder / "paper_dev.jsonl", _claims(titles[40:52], 1000))
    _write(folder / "paper_test.jsonl", _claims(titles[52:], 2000))
    for story, (_, *texts) in zip(STORIES, _QUOTES, strict=True):
        of_story = zip(story.sentences.values(), texts, strict=True)
        told = [text.capitalize() for sentence, text in of_story if sentence.page == story.page]
        pages[story.page] = ["A line of its own .", *told]
    (folder / "wiki-pages").mkdir(parents=True, exist_ok=True)
    empty = {"id": "", "text": "", "lines": ""}  # FEVER's files begin with such a row
    _write(folder / "wiki-pages" / "wiki-001.jsonl", [empty, *(_page(*of) for of in pages.items())])
    paper = folder / "paper.tex"
    quoted = "\n".join(f"``{text},'' and ``Ship,''" for story in _QUOTES for text in story)
    write_atomically(paper, f"``no story''\nTo illustrate how the dependencies {quoted}\n")
    return paper


def _claims(titles: Sequence[str], first: int) -> list[object]:
    """Claims with one sentence of evidence or two, and one without any."""
    rows: list[object] = []
    for number, title in enumerate(titles):
        place, trade = title.split("_")
        groups = [[[0, 0, title, 1]], [[0, 1, title, 0], [0, 2, title, 3]]][number % 2 :]
        text = f"{place} {trade} worked as a {trade.lower()} and was born in {place}."
        row = {"id": first + number, "label": "SUPPORTS", "claim": text, "evidence": groups}
        rows.append(row)
    nothing = {"label": "NOT ENOUGH INFO", "evidence": [[[0, None, None, None]]]}
    return [*rows, {"id": first + 900, "claim": "Somebody was there.", **nothing}]


def _page(title: str, sentences: Sequence[str]) -> dict[str, str]:
    lines = "\n".join(f"{number}\t{text}" for number, text in enumerate(sentences))
    return {"id": title, "text": " ".join(sentences), "lines": lines}


def _write(path: Path, rows: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    write_world(Path(sys.argv[1]))
