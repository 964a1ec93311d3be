"""Passages that were read once: a query over them pays for the query alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.errors import BrokenInput, InvalidInput
from dgn.files import write_atomically
from dgn.selector.limits import LimitArguments, Limits
from dgn.selector.result import PassageSelection
from dgn.text.encoders.base import PreparedPassages
from dgn.text.query import Passage, Query, checked_query

if TYPE_CHECKING:
    from dgn.selector.selector import Selector

_PASSAGES, _ABOUT, _TWINS = "passages.jsonl", "index.json", "twins.npy"
_FORMAT = "dgn-index-1"


@final
class PassageIndex:
    """Passages that a selector has read; `Selector.index` and `Selector.load_index` return one.

    Attributes:
        passages: All passages, in order.
    """

    def __init__(
        self,
        selector: Selector,
        passages: tuple[Passage, ...],
        twins: NDArray[np.int64],
        prepared: PreparedPassages | None,
    ) -> None:
        self.passages = passages
        self._selector, self._twins, self._prepared = selector, twins, prepared

    @classmethod
    def of(cls, selector: Selector, passages: tuple[Passage, ...]) -> PassageIndex:
        """Read passages that were checked."""
        twins = np.array(Query("", passages).twins, np.int64)
        return cls(selector, passages, twins, selector.encoder.prepare(passages))

    def __len__(self) -> int:
        return len(self.passages)

    def select(
        self,
        query: str,
        *,
        documents: Iterable[str | int] | None = None,
        **limits: Unpack[LimitArguments],
    ) -> PassageSelection:
        """Select passages of the index that together cover a query.

        The result is the one of `Selector.select` with these documents.

        Args:
            query: A claim or a question.
            documents: The documents to select from, by their id or their number in the index; by
                default all of them.
            limits: k, max_tokens, stop_at and the other limits of `Selector.select`.

        Raises:
            InvalidInput: An argument is not what is described here.
        """
        checked, text = Limits(**limits), checked_query(query)
        indices = self._everything if documents is None else self._indices_of(documents)
        passages = self.passages
        if documents is not None:
            chosen: list[int] = indices.tolist()
            passages = tuple(passages[index] for index in chosen)
        asked = Query(text, passages)
        asked.__dict__["twins"] = self._twins_of(indices)  # where cached_property looks first
        if self._prepared is None:
            return self._selector.select_queries([asked], checked)[0]
        objective, items = self._prepared.encode(asked, indices)
        return self._selector.select_encoded([asked], checked, objective, items)[0]

    def save(self, folder: str | Path) -> None:
        """Write the index into a folder, from which `Selector.load_index` maps it into memory."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lines = "".join(json.dumps(_as_row(passage)) + "\n" for passage in self.passages)
        except TypeError as error:
            raise InvalidInput(
                "metadata", message=f"The metadata of a document cannot be saved as JSON: {error}."
            ) from None
        write_atomically(folder / _PASSAGES, lines)
        np.save(folder / _TWINS, self._twins, allow_pickle=False)
        if self._prepared is not None:
            self._prepared.save(folder)
        about = {
            "format": _FORMAT,
            "reader": self._selector.encoder.fingerprint,
            "passages": len(self.passages),
            "prepared": self._prepared is not None,
        }
        write_atomically(folder / _ABOUT, json.dumps(about, indent=2))

    @classmethod
    def load(cls, selector: Selector, folder: Path) -> PassageIndex:
        """Open what `save` wrote.

        Raises:
            BrokenInput: A file is missing, damaged, or from another version.
            InvalidInput: The index was made with other word vectors.
        """
        about = _read_json(folder / _ABOUT)
        if about.get("format") != _FORMAT:
            found = repr(about.get("format"))
            raise BrokenInput(folder / _ABOUT, None, found=found, allowed=_FORMAT)
        if about.get("reader") != selector.encoder.fingerprint:
            raise InvalidInput(
                "folder",
                message=f"{folder} was made with another encoder or other word vectors; make it "
                "again with selector.index(documents).save(folder).",
            )
        passages = tuple(_read_passages(folder / _PASSAGES))
        if len(passages) != about.get("passages"):
            allowed = f"{about.get('passages')} passages"
            raise BrokenInput(folder / _PASSAGES, None, found=str(len(passages)), allowed=allowed)
        try:
            twins: Any = np.load(folder / _TWINS, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise BrokenInput(folder / _TWINS, None, message=f"cannot be read ({error}).") from None
        if twins.dtype != np.int64 or twins.shape != (len(passages),):
            raise BrokenInput(folder / _TWINS, None, message="does not fit the passages.")
        prepared = selector.encoder.load_prepared(folder) if about.get("prepared") else None
        return cls(selector, passages, twins, prepared)

    @cached_property
    def _everything(self) -> NDArray[np.int64]:
        return np.arange(len(self.passages))

    @cached_property
    def _documents(self) -> dict[str | int, list[int]]:
        """Where the passages of each document are, by its number and by its id."""
        found: dict[str | int, list[int]] = {}
        for index, passage in enumerate(self.passages):
            if passage.document is not None:
                found.setdefault(passage.document, []).append(index)
            if passage.id is not None:
                found.setdefault(passage.id, []).append(index)
        return found

    def _indices_of(self, documents: Iterable[str | int]) -> NDArray[np.int64]:
        if isinstance(documents, str):
            raise InvalidInput("documents", found="one string", allowed="a list of ids or numbers")
        indices: list[int] = []
        for document in documents:
            if document not in self._documents:
                found = f"{document!r:.60}"
                raise InvalidInput("documents", found=found, allowed="ids or numbers of the index")
            indices += self._documents[document]
        if not indices:
            raise InvalidInput("documents", found="none", allowed="at least one document")
        return np.array(list(dict.fromkeys(indices)), np.int64)

    def _twins_of(self, indices: NDArray[np.int64]) -> tuple[int, ...]:
        first: dict[int, int] = {}
        twins = self._twins[indices].tolist()
        return tuple(first.setdefault(twin, number) for number, twin in enumerate(twins))


def _as_row(passage: Passage) -> dict[str, Any]:
    row = {name: value for name, value in asdict(passage).items() if value not in (None, "", {})}
    return {"text": passage.text, **row}


def _read_passages(path: Path) -> Sequence[Passage]:
    passages: list[Passage] = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    passages.append(Passage(**json.loads(line)))
                except (ValueError, TypeError) as error:
                    raise BrokenInput(
                        path, number, message=f"is not a passage ({error})."
                    ) from None
    except OSError as error:
        raise BrokenInput(path, None, message=f"cannot be read ({error}).") from None
    return passages


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BrokenInput(path, None, message=f"cannot be read ({error}).") from None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
