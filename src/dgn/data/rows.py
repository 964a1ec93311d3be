"""Our own JSONL: one query per line, easy to write in any language.

    {"query": "…", "passages": ["…", "…"]}
    {"query": "…", "documents": [{"title": "…", "sentences": ["…"]}], "evidence": [[[0, 3]]]}

`passages` is a set of loose passages (with `titles`, one for each, if there are any). `documents`
are ordered: each has `text` or `sentences`, and optionally `title` and `id`. `sentences` is short
for a single document, with an optional `title`. `claim` may be written for `query`. Optional keys:
`scores`, one for each passage; `query_embedding`, `embeddings`, `given`, `pinned`, `groups` and
`language`, as `Selector.select` takes them; `id`; `label`; and `evidence`, a list of alternative
groups, where a piece of evidence is [document, sentence], or a number if there is one document or
none. A list of numbers is one group: `[0, 3]` is `[[0, 3]]`. In place of evidence, loose passages
may have `aspects`: lists of the numbers of passages that say the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from dgn.data.lines import Line, Problems, read_lines
from dgn.data.records import Example, without_blanks
from dgn.errors import BrokenInput, InvalidInput
from dgn.text.query import Query

_FURTHER = ("scores", "query_embedding", "embeddings", "given", "pinned", "groups", "language")
"""Further keys of a row, which are arguments of `Query.of`."""

_KEYS = frozenset(
    (
        *("query", "claim", "passages", "documents", "sentences", "title", "titles"),
        *("id", "label", "evidence", "aspects", *_FURTHER),
    )
)

ROW_FORMAT = "an object with query, and passages, documents or sentences"


def read_rows(path: Path | str, problems: Problems | None = None) -> Iterator[Example]:
    """The examples of a JSONL file, one at a time, without blank sentences.

    Args:
        path: The file; .gz, .xz and .zip are read directly.
        problems: What to do about broken rows; by default, the first one is raised.
    """
    problems = problems or Problems()
    for line in read_lines(Path(path), problems):
        try:
            yield without_blanks(parse_row(line))
        except BrokenInput as problem:
            problems.report(problem)


def parse_row(line: Line) -> Example:
    """The row that a line contains, with all its passages.

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
    aspects = _aspects_of(line, fields, len(query.passages))
    evidence = _evidence_of(line, fields)
    if aspects:
        evidence = {(0, index): str(index) for aspect in aspects for index in aspect}
    places = [
        (passage.document or 0, index if passage.position is None else passage.position)
        for index, passage in enumerate(query.passages)
    ]
    present = set(places)
    return Example(
        query,
        tuple(place in evidence for place in places),
        tuple(text for place, text in evidence.items() if place not in present),
        label,
        f"{line.file}, line {line.number}",
        tuple(key for key in fields if key not in _KEYS),
        aspects,
    )


def _aspects_of(line: Line, fields: dict[str, Any], count: int) -> tuple[tuple[int, ...], ...]:
    """Groups of passages that say the same."""
    aspects: Any = fields.get("aspects", [])
    allowed = f"aspects as lists of passage numbers from 0 to {count - 1}"
    if aspects and ("evidence" in fields or "passages" not in fields):
        raise line.error("aspects need passages, and cannot be combined with evidence.")
    groups: list[Any] = cast("list[Any]", aspects) if type(aspects) is list else [None]
    found: list[tuple[int, ...]] = []
    for group in groups:
        numbers: list[Any] = cast("list[Any]", group) if type(group) is list else [None]
        if not numbers or any(type(n) is not int or not 0 <= n < count for n in numbers):
            raise line.problem(f"{group!s:.60}", allowed)
        found.append(tuple(numbers))
    return tuple(found)


def _arguments_of(line: Line, fields: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Query.of` that a row names."""
    texts = [fields[key] for key in ("query", "claim") if key in fields]
    if len(texts) != 1:
        keys = ", ".join(map(str, fields)) or "no keys"
        raise line.problem(keys, "either query or claim among the keys")
    given = [key for key in ("passages", "documents", "sentences") if key in fields]
    if len(given) != 1:
        raise line.problem(
            " and ".join(given) or "none of them", "one of passages, documents and sentences"
        )
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


def _evidence_of(line: Line, fields: dict[str, Any]) -> dict[tuple[int, int], str]:
    """The document and the sentence of each piece of evidence, and how it is written."""
    allowed = "evidence as a list of groups, each a list of [document, sentence] or of numbers"
    evidence: Any = fields.get("evidence", [])
    documents = _document_count(fields)
    groups = cast("list[Any]", evidence) if type(evidence) is list else [None]
    if groups and all(type(piece) is int for piece in groups):
        groups = [groups]  # one group
    pieces: dict[tuple[int, int], str] = {}
    for group in groups:
        if type(group) is not list:
            raise line.problem(f"{evidence!r:.60}", allowed)
        for piece in cast("list[Any]", group):
            pieces[_place_of(line, piece, documents, allowed)] = f"{piece!s:.40}"
    return pieces


def _document_count(fields: dict[str, Any]) -> int:
    """The number of documents; 0 for loose passages."""
    return len(fields.get("documents", [None] if "sentences" in fields else []))


def _place_of(line: Line, piece: Any, documents: int, allowed: str) -> tuple[int, int]:
    is_list = type(piece) is list
    numbers: list[Any] = cast("list[Any]", piece) if is_list else [0, piece]
    is_pair = len(numbers) == 2 and all(type(n) is int and n >= 0 for n in numbers)
    # A number alone needs a single document, and a pair needs documents at all.
    if not is_pair or (not documents if is_list else documents > 1):
        raise line.problem(f"the evidence {piece!s:.40}", allowed)
    document, sentence = cast("list[int]", numbers)
    if documents and document >= documents:
        raise line.problem(f"the evidence {piece!s:.40}", f"a document below {documents}")
    return document, sentence


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
