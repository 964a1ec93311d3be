"""The contract of an encoder: from queries and their passages to a set function over the passages.

An encoder works at run time, in NumPy. `FacetEncoder` (text/facets) is the shipped one. An
installed package adds its own by an entry point of the group `dgn.encoders`, as `dgn.minilm` does:

    [project.entry-points."dgn.encoders"]
    minilm = "dgn.minilm:MiniLMEncoder"
"""

from __future__ import annotations

import importlib.metadata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import Items, SetFunction
from dgn.errors import InvalidInput
from dgn.text.languages import ENGLISH
from dgn.text.query import Passage, Query

if TYPE_CHECKING:
    from dgn.text.similarity import Contents

ReadArrays = Callable[[Mapping[str, tuple[int, ...]]], dict[str, NDArray[Any]]]
"""Reads the arrays of a model folder, given the shape that each must have."""


@dataclass(frozen=True)
class Facet:
    """A part of a query that has a name, and the features that stand for it.

    Attributes:
        name: As explanations call it.
        features: The features that stand for it.
        stem: The stem of a word, which the forms of the word share; empty if it is not a word.
        is_content: Whether it is more than a function word.
    """

    name: str
    features: tuple[int, ...]
    stem: str = ""
    is_content: bool = True


class PreparedPassages(ABC):
    """Passages that an encoder has read.

    Attributes:
        language: The language in which they were read.
    """

    language: str = ENGLISH

    @abstractmethod
    def encode(self, query: Query, indices: NDArray[np.int64]) -> tuple[SetFunction, Items]:
        """What `Encoder.encode` returns for one query.

        Args:
            query: The query; its passages are those at `indices`.
            indices: Which of the prepared passages they are, in order.
        """

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of float32, int64, int8, uint8 or bool that `Encoder.load_prepared` takes."""


DEFAULT_BREADTH = 0.1
"""Of the shipped models: the largest of 0, .05, .1, .2, .3 that costs less than .005 of recall at 5
on the training parts of 51 sets (experiments/aspects.py)."""


class Encoder(ABC):
    """From queries and their passages to a set function over the passages.

    Attributes:
        family: The name of the family in a model folder; empty if the encoder cannot be saved.
        description: What the encoder sees of a query, as a sentence for model cards.
        limits: What it cannot see, as a sentence for model cards.
        request_tokens: How many tokens it reads in a few seconds; a service takes no more at once.
        breadth: What a selector takes if its caller says nothing; 0 if `contents` returns None.
        score_share: The share of its worth that a caller's score has, where the caller does not say
            what it is worth; below 1 for an encoder that is better than most scores.
    """

    family: ClassVar[str] = ""
    description: ClassVar[str] = ""
    limits: ClassVar[str] = ""
    request_tokens: ClassVar[int] = 200_000
    breadth: float = 0.0
    score_share: ClassVar[float] = 1.0

    @abstractmethod
    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        """The queries as a batch of ground sets.

        Args:
            queries: At least one query; each has at least one passage.

        Returns:
            The set function, with one row of weights per query where they differ, and the items,
            one per passage, padded to the longest query.
        """

    @abstractmethod
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text; `max_tokens` is measured in these."""

    def prepare(self, passages: Sequence[Passage]) -> PreparedPassages | None:
        """Passages that many queries will be about, read once; None if nothing can be prepared."""
        del passages
        return None

    def load_prepared(self, arrays: Mapping[str, NDArray[Any]]) -> PreparedPassages | None:
        """Passages from what `PreparedPassages.arrays` returned, which may be mapped into memory.

        Raises:
            InvalidInput: The arrays do not fit together.
        """
        del arrays
        return None

    def contents(self, query: Query, indices: NDArray[np.int64]) -> Contents | None:
        """What some passages say beyond the query, for `breadth`; None if the encoder cannot tell.

        Args:
            query: The query, which may have no text.
            indices: The passages that are compared; the texts that are given follow them.
        """
        del query, indices
        return None

    def nearest(self, query: Query, index: int) -> tuple[tuple[str, float], ...]:
        """For each facet, the most similar word of a passage, and how similar it is.

        Empty if the encoder compares no words.
        """
        del query, index
        return ()

    @staticmethod
    def facets(query: Query) -> tuple[Facet, ...]:
        """The named parts of a query; empty if the features have no names."""
        del query
        return ()

    @property
    def uses_blas(self) -> bool:
        """Whether `encode` multiplies matrices with NumPy, whose threads have to be limited."""
        return True

    @property
    def parameters(self) -> int:
        """The number of learned parameters."""
        return 0

    @property
    def fingerprint(self) -> str:
        """Changes when passages would be read differently; a saved index records it."""
        return type(self).__name__

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The description and the arrays that `load` takes.

        Raises:
            InvalidInput: The encoder cannot be saved.
        """
        raise InvalidInput(
            "encoder", message=f"{type(self).__name__} cannot be saved in a model folder."
        )

    @classmethod
    def load(cls, description: Mapping[str, Any], arrays: ReadArrays) -> Encoder:
        """The encoder of a model folder.

        Args:
            description: What `save` returned.
            arrays: Reads the arrays of the folder, given the shape that each must have.

        Raises:
            InvalidInput: The description does not fit.
        """
        del description, arrays
        raise InvalidInput("encoder", message=f"{cls.__name__} cannot be loaded from a folder.")


_ENCODERS: dict[str, type[Encoder]] = {}


def register_encoder(encoder: type[Encoder]) -> None:
    """Make an encoder available to `Selector.from_pretrained` in this process.

    Args:
        encoder: The class; it replaces one with the same family.
    """
    _ENCODERS[encoder.family] = encoder


def find_encoder(family: str) -> type[Encoder]:
    """The encoder of this family: a registered one, or one that an installed package names."""
    if family not in _ENCODERS:
        for entry in importlib.metadata.entry_points(group="dgn.encoders"):
            if entry.name == family:
                register_encoder(entry.load())
    if family not in _ENCODERS:
        installed = {entry.name for entry in importlib.metadata.entry_points(group="dgn.encoders")}
        raise InvalidInput(
            "encoder",
            found=f"{family!r:.60}",
            allowed=f"one of {', '.join(sorted(installed | set(_ENCODERS)))}",
        )
    return _ENCODERS[family]


def require_keys(description: Mapping[str, Any], **kinds: type) -> None:
    """Raise InvalidInput unless the description has exactly these keys, of these types."""
    expected = {"family", *kinds}
    if set(description) != expected:
        found = ", ".join(sorted(map(str, description))) or "none"
        allowed = f"a description with the keys {', '.join(sorted(expected))}"
        raise InvalidInput("encoder", found=found, allowed=allowed)
    for name, kind in kinds.items():
        if type(description[name]) is not kind:
            raise InvalidInput(
                name, found=f"{description[name]!r:.40}", allowed=f"a {kind.__name__}"
            )


def checked_breadth(breadth: float) -> float:
    """The breadth of an encoder, or InvalidInput."""
    if not 0 <= breadth <= 1:
        raise InvalidInput("breadth", found=f"{breadth!r:.40}", allowed="from 0 to 1")
    return breadth


def require_sizes(sizes: Sequence[Any]) -> None:
    """Raise InvalidInput unless all sizes are integers from 0 to 4096."""
    if not all(type(size) is int and 0 <= size <= 4096 for size in sizes):
        raise InvalidInput("sizes", found=f"{list(sizes)!r:.60}", allowed="integers from 0 to 4096")
