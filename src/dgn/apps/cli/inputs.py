"""What `dgn select` reads for one query: pages, passages, and scores."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dgn.errors import BrokenInput, InvalidInput

if TYPE_CHECKING:
    from dgn.text.query import Document

_TEXT_SUFFIXES = {".txt", ".text", ".md", ".html", ".htm"}
_LARGEST_FILE = 64 * 2**20


def read_pages(names: Sequence[str], *, with_titles: bool) -> list[Document]:
    """Text files as documents; the name of a file is its title."""
    from dgn.text.query import Document

    documents: list[Document] = []
    for name in names:
        text = _text_of(name, "page")
        if not text.strip():
            raise BrokenInput(name, None, message="the page is empty.")
        title = _title_of(name) if with_titles else ""
        documents.append(Document(text, title, id=None if name == "-" else name))
    return documents


def read_passages(name: str) -> list[str]:
    """A file with one passage per line; empty lines do not count."""
    lines = [line.strip() for line in _text_of(name, "file").splitlines()]
    passages = [line for line in lines if line]
    if not passages:
        raise BrokenInput(_called(name), None, message="the file contains no passage.")
    return passages


def read_scores(given: str) -> list[float]:
    """Scores: a list such as `[0.2, 0.9]` or `0.2,0.9`, or a file of them.

    A file contains such a list, or one number per line; empty lines do not count.

    Raises:
        InvalidInput: It is neither a file nor a list of numbers.
        BrokenInput: The file contains something else.
    """
    if given != "-" and not Path(given).is_file():
        numbers = _numbers(given.split(",") if given[:1] != "[" else given)
        if numbers is None:
            found = f"{given!r:.60}"
            raise InvalidInput(
                "--scores", found=found, allowed="a file, or a list of numbers such as 0.2,0.9"
            )
        return numbers
    text = _text_of(given, "file").strip()
    if text.startswith("["):
        numbers = _numbers(text)
        if numbers is None:
            raise BrokenInput(_called(given), None, message="the file is not a list of numbers.")
        return numbers
    scores: list[float] = []
    for number, line in enumerate(text.splitlines(), 1):
        found = _numbers([line]) if line.strip() else []
        if found is None:
            raise BrokenInput(
                _called(given), number, message=f"{line.strip()!r:.40} is not a number."
            )
        scores += found
    return scores


def _numbers(given: str | list[str]) -> list[float] | None:
    """The numbers of a JSON list, or of some texts; None if something is not a number."""
    try:
        values: Any = json.loads(given) if isinstance(given, str) else [*map(float, given)]
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, list):
        return None
    entries = cast("list[Any]", values)
    return None if any(type(one) not in (int, float) for one in entries) else entries


def _title_of(name: str) -> str:
    """The name of a file, without the suffixes that say that it is text."""
    if name == "-":
        return ""
    path = Path(name)
    while path.suffix.lower() in _TEXT_SUFFIXES:
        path = path.with_suffix("")
    return path.name.replace("_", " ")


def _called(name: str) -> str:
    return "standard input" if name == "-" else name


def _text_of(name: str, kind: str) -> str:
    try:
        if name == "-":
            content = sys.stdin.buffer.read(_LARGEST_FILE + 1)
        else:
            with Path(name).open("rb") as stream:
                content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        reason = error.strerror or error
        raise BrokenInput(
            _called(name), None, message=f"the {kind} cannot be read ({reason})."
        ) from None
    if len(content) > _LARGEST_FILE:
        raise BrokenInput(_called(name), None, message=f"the {kind} is larger than 64 MiB.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BrokenInput(_called(name), line, message=f"the {kind} is not UTF-8.") from None
