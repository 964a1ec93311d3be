"""Passages that were read once: a query over them pays for the query alone."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.array_files import map_arrays, write_arrays
from dgn.errors import BrokenInput, InvalidInput
from dgn.files import only_writer
from dgn.parallel import single_threaded_blas
from dgn.selector.limits import LimitArguments, Limits
from dgn.selector.result import PassageSelection
from dgn.text.encoder import PreparedPassages
from dgn.text.languages import checked_language
from dgn.text.query import (
    Passage,
    Query,
    checked_embeddings,
    checked_groups,
    checked_pinned,
    checked_query,
    checked_vectors,
    given_passages,
)

if TYPE_CHECKING:
    from dgn.selector.selector import Selector

_FILE = "index.safetensors"
_FORMAT = "dgn-index-2"
_PASSAGES, _TWINS, _EMBEDDINGS = "index.passages", "index.twins", "index.embeddings"


@final
class PassageIndex:
    """Passages that a selector has read; `Selector.index` and `Selector.load_index` return one.

    Attributes:
        passages: All passages, in order.
        embeddings: [passages, width], the caller's vectors of length 1; None if there are none.
    """

    def __init__(
        self,
        selector: Selector,
        passages: tuple[Passage, ...],
        twins: NDArray[np.int64],
        prepared: PreparedPassages | None,
        embeddings: NDArray[np.float32] | None = None,
    ) -> None:
        self.passages, self.embeddings = passages, embeddings
        self._selector, self._twins, self._prepared = selector, twins, prepared

    @classmethod
    def of(
        cls, selector: Selector, passages: tuple[Passage, ...], embeddings: Any = None
    ) -> PassageIndex:
        """Read passages that were checked; the embeddings are as in `Selector.select`."""
        twins = np.array(Query("", passages).twins, np.int64)
        vectors = None
        if embeddings is not None:
            vectors = checked_vectors("embeddings", embeddings, len(passages))
        return cls(selector, passages, twins, selector.encoder.prepare(passages), vectors)

    def __len__(self) -> int:
        return len(self.passages)

    def select(
        self,
        query: str,
        *,
        documents: Iterable[str | int] | None = None,
        query_embedding: Any = None,
        given: Iterable[str | Passage | Mapping[str, Any]] | None = None,
        pinned: Iterable[int] | None = None,
        groups: Iterable[Hashable] | None = None,
        language: str | None = None,
        **limits: Unpack[LimitArguments],
    ) -> PassageSelection:
        """Select passages of the index that together cover a query.

        The result is the one of `Selector.select` with these documents.

        Args:
            query: A claim or a question.
            documents: The documents to select from, by their id or their number in the index; by
                default all of them. If some ids are numbers, a number is an id.
            query_embedding: Your own vector of the query, if the index has embeddings.
            given: Texts that are already there, as in `Selector.select`.
            pinned: Passages that must be selected, as positions among those of the documents.
            groups: The group of each passage of the documents, as in `Selector.select`.
            language: As in `Selector.select`; by default that of the index, which was found from
                all its passages.
            limits: k, max_tokens, stop_at and the other limits of `Selector.select`.

        Raises:
            InvalidInput: An argument is not what is described here.
        """
        checked, text = Limits.of(limits), checked_query(query)
        read_in = None if self._prepared is None else self._prepared.language
        code = read_in if language is None else checked_language(language)
        indices = self._everything if documents is None else self._indices_of(documents)
        passages = self.passages
        if documents is not None:
            chosen: list[int] = indices.tolist()
            passages = tuple(passages[index] for index in chosen)
        asked = Query(
            text,
            passages,
            given=() if given is None else tuple(given_passages(given)),
            pinned=() if pinned is None else checked_pinned(pinned, len(passages)),
            groups=None if groups is None else checked_groups(groups, len(passages)),
            embeddings=self._embeddings_of(query_embedding, indices),
            language=code,
        )
        twins = self._twins[indices]
        is_distinct = len(np.unique(twins)) == len(twins)
        known = tuple(range(len(twins))) if is_distinct else asked.twins_of(twins.tolist())
        asked.__dict__["twins"] = known  # where cached_property looks first
        if self._prepared is None or code != read_in:
            return self._selector.select_queries([asked], checked)[0]
        with single_threaded_blas() if self._selector.encoder.uses_blas else nullcontext():
            objective, items = self._prepared.encode(asked, indices)
            (found,) = self._selector.select_encoded([asked], checked, objective, items)
            return self._selector.in_groups_with_room(found)

    def save(self, folder: str | Path) -> None:
        """Write the index into a folder, from which `Selector.load_index` maps it into memory.

        The index is one file. An existing one is replaced in one step: processes that have opened
        it keep what they have, and a process that is killed while it saves leaves the old one.
        """
        folder = Path(folder)
        try:
            lines = "".join(json.dumps(_as_row(passage)) + "\n" for passage in self.passages)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                "metadata", message=f"The metadata of a document cannot be saved as JSON: {error}."
            ) from None
        prepared = {} if self._prepared is None else self._prepared.arrays()
        arrays = {
            _PASSAGES: np.frombuffer(lines.encode(), np.uint8),
            _TWINS: self._twins,
            **({} if self.embeddings is None else {_EMBEDDINGS: self.embeddings}),
            **prepared,
        }
        metadata = {
            "format": _FORMAT,
            "reader": self._selector.encoder.fingerprint,
            "prepared": json.dumps(bool(prepared)),
        }
        if folder.exists() and not folder.is_dir():
            raise InvalidInput("folder", message=f"{folder} is a file; choose a folder.")
        folder.mkdir(parents=True, exist_ok=True)
        with only_writer(folder):  # it removes what a process that was killed has left
            write_arrays(folder / _FILE, arrays, metadata)

    @classmethod
    def load(cls, selector: Selector, folder: Path) -> PassageIndex:
        """Open what `save` wrote.

        Raises:
            BrokenInput: The file is missing, damaged, or from another version.
            InvalidInput: The index was made with other word vectors.
        """
        path = folder / _FILE
        arrays, metadata = map_arrays(path, {_PASSAGES: 1, _TWINS: 1})
        if metadata.get("format") != _FORMAT:
            raise BrokenInput(path, None, found=repr(metadata.get("format")), allowed=_FORMAT)
        if metadata.get("reader") != selector.encoder.fingerprint:
            raise InvalidInput(
                "folder",
                message=f"{folder} was made with another encoder or other word vectors; make it "
                "again with selector.index(documents).save(folder).",
            )
        passages = tuple(_read_passages(path, bytes(arrays.pop(_PASSAGES))))
        twins = np.array(arrays.pop(_TWINS))
        inside = twins.dtype == np.int64 and twins.shape == (len(passages),)
        if not inside or not passages or twins.min() < 0 or twins.max() >= len(passages):
            raise BrokenInput(path, None, message="its repeats do not fit; make it again.")
        embeddings = arrays.pop(_EMBEDDINGS, None)
        if embeddings is not None and (
            embeddings.dtype != np.float32
            or embeddings.ndim != 2
            or len(embeddings) != len(passages)
        ):
            raise BrokenInput(path, None, message="its embeddings do not fit; make it again.")
        prepared = None
        if metadata.get("prepared") == "true":
            try:
                prepared = selector.encoder.load_prepared(arrays)
            except InvalidInput as error:
                raise BrokenInput(path, None, message=str(error)) from None
        return cls(selector, passages, twins, prepared, embeddings)

    def _embeddings_of(
        self, query_embedding: Any, indices: NDArray[np.int64]
    ) -> NDArray[np.float32] | None:
        """The vectors of a query and of some passages; None if no query has one."""
        if query_embedding is None:
            return None
        if self.embeddings is None:
            raise InvalidInput(
                "query_embedding",
                message="The index has no embeddings; make it with "
                "selector.index(documents, embeddings=…).",
            )
        chosen = np.asarray(self.embeddings[indices])
        return checked_embeddings(query_embedding, chosen, len(indices))

    @cached_property
    def _everything(self) -> NDArray[np.int64]:
        return np.arange(len(self.passages))

    @cached_property
    def _documents(self) -> dict[str | int, list[int]]:
        """Where the passages of each document are, by its id and by its number."""
        by_id: dict[str | int, list[int]] = {}
        by_number: dict[str | int, list[int]] = {}
        for index, passage in enumerate(self.passages):
            if passage.document is not None:
                by_number.setdefault(passage.document, []).append(index)
            if passage.id is not None:
                by_id.setdefault(passage.id, []).append(index)
        # Ids that were given as numbers were made strings; a number then means such an id.
        as_numbers: dict[str | int, list[int]] = {
            int(one): indices for one, indices in by_id.items() if _is_number(one)
        }
        return (as_numbers or by_number) | by_id

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


def _is_number(identifier: str | int) -> bool:
    text = str(identifier)
    return text.removeprefix("-").isdecimal() and str(int(text)) == text


def _as_row(passage: Passage) -> dict[str, Any]:
    row = {name: value for name, value in asdict(passage).items() if value not in (None, "", {})}
    return {"text": passage.text, **row}


def _read_passages(path: Path, content: bytes) -> Sequence[Passage]:
    passages: list[Passage] = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            passage = Passage(**json.loads(line))
            if not isinstance(cast("Any", passage.text), str):
                raise TypeError("its text is not a string")
        except (ValueError, TypeError, RecursionError) as error:
            raise BrokenInput(
                path, None, message=f"passage {number} cannot be read ({error})."
            ) from None
        passages.append(passage)
    return passages
