"""Evidence sets of many domains, each with a part to learn from and a part to report.

The data are read from ../shared/data. The sets in `evidence` bring their own parts; FEVER has train
and dev; MultiRC and WiCE have one file each and are divided here by document, so that no document
is in both parts.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from dgn.data import Example, read_rows
from dgn.data.records import without_blanks
from dgn.text.query import Passage, Query
from experiments.paper.data import page_of, read_claims

DATA = Path(__file__).parents[2] / "shared" / "data"
DOMAINS = (
    "contractnli",
    "entailmentbank",
    "evinf",
    "fever",
    "multirc",
    "politihop",
    "qmsum",
    "selqa",
    "tatqa",
    "wice",
)
"""Ten kinds of text, whose dev parts have most queries."""

FOLDS = (
    ("contractnli", "covidqa", "cuad", "evinf", "obliqa", "scisumm", "tatqa"),
    ("climatefever", "fever", "healthsumm", "iam", "politihop", "wice"),
    ("clapnq", "fetaqa", "multirc", "multispan", "musique", "selqa", "squad", "twowiki"),
    ("bugreports", "codechange", "dstc11", "emanual", "irc", "manpages", "sosum"),
    ("bc3", "entailmentbank", "exam", "fairytale", "friendsqa", "pathquestion", "qmsum"),
)
"""All 35 English kinds of text; what is alike is left out together.

Contracts, rules and papers; claims and debates; encyclopedias; software and support; talk, stories
and school.
"""

KINDS = tuple(sorted(name for fold in FOLDS for name in fold))

_UNORDERED = ("entailmentbank",)
_TRAIN_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Domain:
    """The examples of one domain; the parts have no document in common."""

    name: str
    train: tuple[Example, ...]
    dev: tuple[Example, ...]


def english_sets() -> tuple[str, ...]:
    """The sets in `evidence` that are in English: 32 kinds of text."""
    folders = sorted(path.name for path in (DATA / "evidence").iterdir() if path.is_dir())
    return tuple(name for name in folders if not name.startswith("xx-"))


def read_domain(name: str, *, partial: bool = False) -> Domain:
    """The examples of a domain that have gold among their passages.

    Args:
        name: One of DOMAINS, or a set in `evidence`.
        partial: Whether FEVER's claims with incomplete gold are learned from, too.
    """
    train, dev = _parts(name)
    if partial and name == "fever":
        folder = DATA / "fever-eraser"
        train += read_eraser(folder / "train_partial.jsonl")
    return Domain(name, tuple(filter(_is_usable, train)), tuple(filter(_is_usable, dev)))


def _parts(name: str) -> tuple[list[Example], list[Example]]:
    found: list[list[Example]] = [[], []]
    if name == "fever":
        folder = DATA / "fever-eraser"
        found = [list(read_eraser(folder / f"{part}.jsonl")) for part in _PARTS]
    elif name in ("multirc", "wice"):
        for document, example in _whole(name):
            is_dev = zlib.crc32(document.encode()) % 100 >= 100 * _TRAIN_SHARE
            found[is_dev].append(example)
    else:
        folder = DATA / "evidence" / name
        found = [list(read_rows(next(folder.glob(f"{part}.jsonl*")))) for part in _PARTS]
    if name in _UNORDERED:
        found = [[_unordered(example) for example in part] for part in found]
    return found[0], found[1]


_PARTS = ("train", "dev")


def _whole(name: str) -> Iterator[tuple[str, Example]]:
    """The examples of a set that comes in one file, each with its document."""
    if name == "wice":
        yield from read_wice()
        return
    folder = DATA / "multirc"
    for example in read_eraser(folder / "dev.jsonl"):
        untitled = tuple(replace(passage, title="") for passage in example.query.passages)
        yield (
            example.query.passages[0].id or "",
            replace(example, query=replace(example.query, passages=untitled)),
        )


def read_wice() -> Iterator[tuple[str, Example]]:
    """The claims of WiCE with their articles; gold is what some supporting set names."""
    with (DATA / "wice" / "claim_dev.jsonl").open(encoding="utf-8") as stream:
        for number, line in enumerate(stream):
            row = json.loads(line)
            gold = {place for group in row["supporting_sentences"] for place in group}
            pages = {str(number): row["evidence"]}
            evidence = {(str(number), place) for place in gold}
            example = _joined(str(number), row["claim"], pages, evidence)
            # Articles have no titles.
            untitled = tuple(replace(passage, title="") for passage in example.query.passages)
            query = replace(example.query, passages=untitled)
            yield "\n".join(row["evidence"]), replace(example, query=query)


def read_eraser(path: Path) -> Iterator[Example]:
    """The claims of a file in ERASER's layout, with the sentences of their pages in `docs/`."""
    page = lru_cache(maxsize=10_000)(partial(page_of, path.parent / "docs"))
    for claim in read_claims(path):
        pages = {title: page(title) or () for title in claim.pages}
        yield _joined(claim.id, claim.text, pages, claim.evidence)


def _joined(
    identifier: str, text: str, pages: Mapping[str, Sequence[str]], evidence: Set[tuple[str, int]]
) -> Example:
    """The example of a claim with all sentences of its pages that are not blank."""
    passages = tuple(
        Passage(sentence, title, number, position, id=title)
        for number, (title, sentences) in enumerate(pages.items())
        for position, sentence in enumerate(sentences)
    )
    gold = tuple((passage.id, passage.position) in evidence for passage in passages)
    return without_blanks(Example(Query(text, passages, identifier), gold))


def _unordered(example: Example) -> Example:
    passages = tuple(replace(p, document=None, position=None) for p in example.query.passages)
    return replace(example, query=replace(example.query, passages=passages))


def _is_usable(example: Example) -> bool:
    return any(example.gold)
