"""Our own JSONL: one query per line, easy to write in any language.

    {"query": "…", "passages": ["…", "…"]}
    {"query": "…", "documents": [{"title": "…", "sentences": ["…"]}], "evidence": [[[0, 3]]]}

`passages` is a set of loose passages (with `titles`, one for each, if there are any). `documents`
are ordered: each has `text` or `sentences`, and optionally `title` and `id`. `sentences` is short
for a single document, with an optional `title`. `claim` may be written for `query`. Optional keys:
`scores`, one for each passage; `query_embedding`, `embeddings`, `given`, `pinned`, `groups` and
`language`, as `Selector.select` takes them; `id`; `label`; and `evidence`, a list of alternative
groups, where a piece of evidence is [document, sentence], or a number if there is one document or
none. A list of numbers is one group: `[0, 3]` is `[[0, 3]]`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from dgn.data.lines import Line, Problems, read_lines
from dgn.data.records import Claim, Evidence, Example, example_of
from dgn.errors import BrokenInput, InvalidInput
from dgn.text.query import Query

_FURTHER = ("scores", "query_embedding", "embeddings", "given", "pinned", "groups", "language")
"""Further keys of a row, which are arguments of `Query.of`."""

_KEYS = frozenset(
    (
        *("query", "claim", "passages", "documents", "sentences", "title", "titles"),
        *("id", "label", "evidence", *_FURTHER),
    )
)

ROW_FORMAT = "an object with query, and passages, documents or sentences"


@dataclass(frozen=True)
class Row:
    """A row of our JSONL: the query with all its passages, and what is known about it.

    Attributes:
        query: The query with its passages.
        claim: Its labels.
        source: The file and the line.
        unknown_keys: Keys of the row that have no meaning.
    """

    query: Query
    claim: Claim
    source: str = ""
    unknown_keys: tuple[str, ...] = ()

    def example(self) -> Example:
        """The row as an example, without blank sentences; passages are known by their page."""
        pages = self.claim.pages or ()
        passages = [
            passage if passage.document is None else replace(passage, id=pages[passage.document])
            for passage in self.query.passages
        ]
        example = example_of(self.claim, passages)
        return replace(example, source=self.source, unknown_keys=self.unknown_keys)


def read_rows(path: Path, problems: Problems | None = None) -> Iterator[Example]:
    """The examples of a JSONL file, one at a time."""
    problems = problems or Problems()
    for line in read_lines(path, problems):
        try:
            yield parse_row(line).example()
        except BrokenInput as problem:
            problems.report(problem)


def parse_row(line: Line) -> Row:
    """The row that a line contains.

    Raises:
        BrokenInput: The line is not a row of our format.
    """
    try:
        row: Any = json.loads(line.content, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        reason = f"{error.msg}, column {error.colno}"
        raise line.problem(f"invalid JSON ({reason})", ROW_FORMAT) from None
    except (ValueError, RecursionError) as error:
        raise line.problem(f"invalid JSON ({error})", ROW_FORMAT) from None
    if type(row) is not dict:
        raise line.problem(f"{row!r:.40}", ROW_FORMAT)
    fields = {key: value for key, value in cast("dict[str, Any]", row).items() if value is not None}
    identifier, label = fields.get("id", line.number), fields.get("label")
    if type(identifier) not in (str, int):
        raise line.problem(f"{identifier!r:.40}", "an id that is a string or an integer")
    if label is not None and type(label) is not str:
        raise line.problem(f"{label!r:.40}", "a label that is a string")
    try:
        query = Query.of(**_arguments_of(line, fields), id=str(identifier))
        str(identifier).encode()
    except (InvalidInput, UnicodeEncodeError) as error:
        raise line.error(str(error)) from None
    pages = _page_ids(fields)
    groups = _groups_of(line, fields.get("evidence", []), pages)
    claim = Claim(str(identifier), query.text, label, groups, tuple(pages))
    unknown = tuple(key for key in fields if key not in _KEYS)
    return Row(query, claim, f"{line.file}, line {line.number}", unknown)


def _arguments_of(line: Line, fields: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Query.of` that a row names."""
    texts = [fields[key] for key in ("query", "claim") if key in fields]
    if len(texts) != 1:
        keys = ", ".join(map(str, fields)) or "no keys"
        raise line.problem(keys, "either query or claim among the keys")
    given = [key for key in ("passages", "documents", "sentences") if key in fields]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise line.problem(found, "one of passages, documents and sentences")
    arguments: dict[str, Any] = {"query": texts[0]}
    arguments |= {key: fields[key] for key in _FURTHER if key in fields}
    if given == ["passages"]:
        titles = fields.get("titles", fields.get("title"))
        return arguments | {"passages": fields["passages"], "titles": titles}
    if given == ["documents"]:
        if fields.keys() & {"title", "titles"}:
            raise line.error("titles cannot be combined with documents; each has its own title.")
        return arguments | {"documents": fields["documents"]}
    document = {"sentences": fields["sentences"], "title": fields.get("title", "")}
    return arguments | {"documents": [document]}


def _page_ids(fields: dict[str, Any]) -> list[str]:
    """An identifier for each document: its own, its title, or one that tells it from others."""
    documents: list[Any] = fields.get("documents", [fields] if "sentences" in fields else [])
    ids: dict[str, None] = {}
    counts: Counter[str] = Counter()
    for document in documents:
        known = cast("dict[str, Any]", document) if type(document) is dict else {}
        own = None if document is fields else known.get("id")  # the id of a row is the query's
        base = str(known.get("title") or "") if own is None else str(own)
        name = base
        while name in ids:
            counts[base] += 1
            name = f"{base} #{counts[base] + 1}"
        ids[name] = None
    return list(ids)


def _groups_of(line: Line, evidence: Any, pages: list[str]) -> tuple[tuple[Evidence, ...], ...]:
    allowed = "evidence as a list of groups, each a list of [document, sentence] or of numbers"
    given = cast("list[Any]", evidence) if type(evidence) is list else [None]
    if given and all(type(piece) is int for piece in given):
        given = [given]  # one group
    groups: list[tuple[Evidence, ...]] = []
    for group in given:
        if type(group) is not list:
            raise line.problem(f"{evidence!r:.60}", allowed)
        pieces = [_piece_of(line, piece, pages, allowed) for piece in cast("list[Any]", group)]
        groups.append(tuple(pieces))
    return tuple(group for group in groups if group)


def _piece_of(line: Line, piece: Any, pages: list[str], allowed: str) -> Evidence:
    is_list = type(piece) is list
    numbers: list[Any] = cast("list[Any]", piece) if is_list else [0, piece]
    is_pair = len(numbers) == 2 and all(type(n) is int and n >= 0 for n in numbers)
    # A number alone needs a single document, and a pair needs documents at all.
    if not is_pair or (not pages if is_list else len(pages) > 1):
        raise line.problem(f"the evidence {piece!s:.40}", allowed)
    document, sentence = cast("list[int]", numbers)
    if pages and document >= len(pages):
        raise line.problem(f"the evidence {piece!s:.40}", f"a document below {len(pages)}")
    return Evidence(pages[document] if pages else "", sentence)


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
