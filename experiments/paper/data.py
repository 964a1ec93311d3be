"""Claims with the sentences of their pages, and which of them are for which purpose.

Three layouts are read: FEVER's own files with its `wiki-pages`, ERASER's with `docs/`, and rows of
dgn, which contain their passages. The pages of a claim are those that its evidence names.
"""

from __future__ import annotations

import json
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgn.data import read_rows
from dgn.errors import BrokenInput, InvalidInput

_NEEDED = (
    "claims as train*.jsonl and dev.jsonl (or paper_dev.jsonl, shared_task_dev.jsonl) with pages "
    "in docs/ or wiki-pages/; or rows that contain their passages"
)
_DEVS = ("paper_dev.jsonl", "shared_task_dev.jsonl", "dev.jsonl")
_TESTS = ("paper_test.jsonl", "test.jsonl")
_LEARN, _CHOOSE = 0.6, 0.8
"""Of one file for all purposes: the shares of pages to learn from, and to learn or choose from."""

_LARGE = 1000
"""A dev file with this many claims is divided; a smaller one is reported as a whole."""


@dataclass(frozen=True)
class Claim:
    """A claim as its file gives it.

    Attributes:
        id: Its identifier.
        text: Its text.
        groups: Alternative sets of evidence; each piece is a page and a sentence.
        pages: The pages to search.
    """

    id: str
    text: str
    groups: tuple[tuple[tuple[str, int], ...], ...]
    pages: tuple[str, ...]

    @property
    def evidence(self) -> frozenset[tuple[str, int]]:
        """All sentences that any group names."""
        return frozenset(piece for group in self.groups for piece in group)


@dataclass(frozen=True)
class Example:
    """A claim with the sentences to select from.

    Attributes:
        id: The identifier of the claim.
        text: The text of the claim.
        pages: For each page, its title and its sentences, in order.
        gold: For each sentence of all pages, whether it is evidence.
    """

    id: str
    text: str
    pages: tuple[tuple[str, tuple[str, ...]], ...]
    gold: tuple[bool, ...]

    @property
    def sentences(self) -> list[str]:
        """The sentences of all pages."""
        return [sentence for _, page in self.pages for sentence in page]


@dataclass(frozen=True)
class Layout:
    """The parts of a data folder; no page is in two of them.

    Attributes:
        name: The name of the folder.
        learn: The claims to learn from.
        choose: The claims that choose the settings and the epochs.
        report: The claims that are reported; they choose nothing.
        description: The same in a sentence.
        left_out: The number of claims whose pages do not exist.
    """

    name: str
    learn: list[Example]
    choose: list[Example]
    report: list[Example]
    description: str
    left_out: int


def read_layout(folder: Path) -> Layout:
    """Read a data folder, and divide it."""
    dev, test = _first(folder, _DEVS), _first(folder, _TESTS)
    if dev is None:
        raise InvalidInput("data", message=f"{folder} has no dev claims; it needs {_NEEDED}.")
    files = sorted(folder.glob("train*.jsonl"))
    paths = [*files, dev] if test is None else [*files, dev, test]
    of_file, left_out = _read_all(folder, paths)
    name, train = folder.resolve().name, [of_file[path] for path in files]
    learned = " + ".join(path.name for path in files)
    if not files:
        ends = ((0, _LEARN), (_LEARN, _CHOOSE), (_CHOOSE, 1))
        learn, choose, report = (_part(of_file[dev], *between) for between in ends)
        said = f"{dev.name} divided by its pages: 60% to learn from, 20% choose, 20% are reported"
        return Layout(name, learn, choose, report, said, left_out)
    whole = [example for examples in train for example in examples]
    if test is not None:
        said = f"trained on {learned}; {dev.name} chooses; reported on {test.name}"
        return Layout(name, whole, of_file[dev], of_file[test], said, left_out)
    if len(of_file[dev]) >= _LARGE:
        choose, report = _part(of_file[dev], 0, 0.5), _part(of_file[dev], 0.5, 1)
        said = f"trained on {learned}; {dev.name} divided by its pages: one half chooses, the "
        return Layout(name, whole, choose, report, said + "other half is reported", left_out)
    learn, choose = _part(whole, 0, _CHOOSE), _part(train[0], _CHOOSE, 1)
    said = f"{learned} divided by documents: 80% to learn from, 20% choose; reported on {dev.name}"
    return Layout(name, learn, choose, of_file[dev], said, left_out)


def read_claims(path: Path) -> Iterator[Claim]:
    """The claims of a file of FEVER or ERASER; those without evidence are left out."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    claim = _claim_of(json.loads(line))
                except (ValueError, KeyError, TypeError, IndexError) as error:
                    raise BrokenInput(path, number, message=f"not a claim ({error!r}).") from None
                if claim.pages:
                    yield claim


def page_of(folder: Path, title: str) -> tuple[str, ...] | None:
    """The lines of a page of ERASER's `docs/`; None if there is none."""
    path = folder / title
    # A title comes from a data file: it must not lead out of the folder.
    if path.parent != folder or not path.is_file():
        return None
    return tuple(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))


def example_of(claim: Claim, pages: Mapping[str, Sequence[str]]) -> Example | None:
    """The claim with the sentences of its pages that are not blank; None if a page is missing."""
    if any(title not in pages for title in claim.pages):
        return None
    kept: list[tuple[str, tuple[str, ...]]] = []
    gold: list[bool] = []
    for title in dict.fromkeys(claim.pages):
        lines = [(line, text) for line, text in enumerate(pages[title]) if text.strip()]
        kept.append((title, tuple(text for _, text in lines)))
        gold += [(title, line) in claim.evidence for line, _ in lines]
    return Example(claim.id, claim.text, tuple(kept), tuple(gold)) if gold else None


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read_all(folder: Path, paths: Sequence[Path]) -> tuple[dict[Path, list[Example]], int]:
    """The examples of every file, and the number of claims without their pages."""
    if not (folder / "docs").is_dir() and not (folder / "wiki-pages").is_dir():
        return {path: list(_rows_of(path)) for path in paths}, 0
    claims = {path: list(read_claims(path)) for path in paths}
    wanted = {title for of_file in claims.values() for claim in of_file for title in claim.pages}
    pages = read_pages(folder, wanted)
    examples: dict[Path, list[Example]] = {}
    left_out = 0
    for path, of_file in claims.items():
        joined = [example_of(claim, pages) for claim in of_file]
        examples[path] = [example for example in joined if example is not None]
        left_out += len(joined) - len(examples[path])
    return examples, left_out


def _rows_of(path: Path) -> Iterator[Example]:
    """Rows of dgn, which contain their passages."""
    for number, row in enumerate(read_rows(path)):
        pages: dict[object, tuple[str, list[str]]] = {}
        for passage in row.query.passages:
            # A page without a name is known by its first sentence.
            title = passage.id or passage.title or passage.text
            pages.setdefault(passage.document, (title, []))[1].append(passage.text)
        if pages:
            named = tuple((title, tuple(texts)) for title, texts in pages.values())
            yield Example(row.query.id or str(number), row.query.text, named, tuple(row.gold))


def _claim_of(row: dict[str, Any]) -> Claim:
    if "annotation_id" in row:
        groups = tuple(
            tuple(
                (span["docid"], sentence)
                for span in group
                for sentence in range(span["start_sentence"], span["end_sentence"])
            )
            for group in row["evidences"]
        )
        identifier, text, pages = row["annotation_id"], row["query"], row.get("docids")
    else:
        groups = tuple(
            tuple((_same(page), int(line)) for _, _, page, line in group if page is not None)
            for group in row.get("evidence", [])
        )
        identifier, text, pages = str(row["id"]), row["claim"], None
    groups = tuple(group for group in groups if group)
    named = dict.fromkeys(page for group in groups for page, _ in group)
    return Claim(identifier, text, groups, tuple(pages or named))


def _same(title: str) -> str:
    """A title in the form in which titles are compared: FEVER mixes two forms of accents."""
    return unicodedata.normalize("NFC", title)


def read_pages(folder: Path, wanted: set[str]) -> dict[str, Sequence[str]]:
    """The pages that claims name; FEVER's five million pages are read once and not kept."""
    if (folder / "docs").is_dir():
        found = {title: page_of(folder / "docs", title) for title in wanted}
        return {title: page for title, page in found.items() if page is not None}
    pages: dict[str, Sequence[str]] = {}
    for path in sorted((folder / "wiki-pages").glob("wiki-*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if (title := _same(row["id"])) in wanted:
                    pages[title] = _sentences_of(row["lines"])
    return pages


def _sentences_of(lines: str) -> list[str]:
    """The sentences by their numbers; a line is the number, the text and links, with tabs."""
    sentences: list[str] = []
    for part in lines.split("\n"):
        number, _, rest = part.partition("\t")
        if number == str(len(sentences)):
            sentences.append(rest.partition("\t")[0])
        elif part and sentences:  # a line break inside a sentence
            sentences[-1] = f"{sentences[-1]} {part.partition(chr(9))[0]}".strip()
    return sentences


def _part(examples: Iterable[Example], low: float, high: float) -> list[Example]:
    """The examples all of whose pages are in this part; parts that do not overlap share none."""
    return [
        example
        for example in examples
        if all(low <= zlib.crc32(title.encode()) / 2**32 < high for title, _ in example.pages)
    ]
