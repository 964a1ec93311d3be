"""The contracts of an encoder and of an encoder family.

An `Encoder` works at run time, in NumPy. An `EncoderFamily` knows everything around one kind of
encoder: how its features are stored for training, which torch module learns it, and how a trained
one is saved and loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dgn.data import Batches, Example, Place
from dgn.errors import InvalidInput
from dgn.objectives import Items, SetFunction
from dgn.query import Passage, Query

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Facet:
    """A part of a query that has a name, and the features that stand for it.

    Attributes:
        name: As explanations call it.
        features: The features that stand for it.
        is_asked: Whether it is what a question asks for, such as a date, and not a word.
    """

    name: str
    features: tuple[int, ...]
    is_asked: bool = False


class PreparedPassages(ABC):
    """Passages that an encoder has read."""

    @abstractmethod
    def encode(self, query: Query, places: NDArray[np.int64]) -> tuple[SetFunction, Items]:
        """What `Encoder.encode` returns for one query.

        Args:
            query: The query; its passages are those at `places`.
            places: Which of the prepared passages they are, in order.
        """

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write files that `Encoder.load_prepared` reads."""


class Encoder(ABC):
    """From queries and their passages to a set function over the passages."""

    @abstractmethod
    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        """The queries as a batch of ground sets.

        Args:
            queries: At least one query; each has at least one passage.

        Returns:
            The set function, with one row of weights per query where they differ, and the items,
            one per passage, padded to the longest query.
        """

    def prepare(self, passages: Sequence[Passage]) -> PreparedPassages | None:
        """Passages that many queries will be about, read once; None if nothing can be prepared."""
        del passages
        return None

    def load_prepared(self, folder: Path) -> PreparedPassages | None:
        """What `PreparedPassages.save` wrote; None if this encoder prepares nothing."""
        del folder
        return None

    @abstractmethod
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text; `max_tokens` is measured in these."""

    def facets(self, query: str) -> tuple[Facet, ...]:
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

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The description and the arrays that `EncoderFamily.load` takes.

        Raises:
            InvalidInput: The encoder does not belong to a family and cannot be saved.
        """
        raise InvalidInput(
            "encoder",
            message=f"{type(self).__name__} cannot be saved; only encoders that belong to an "
            "encoder family can.",
        )


@dataclass(frozen=True)
class FeatureOptions:
    """What the features of a data set are made with.

    Args:
        vectors: What `open_vectors` takes.
        unit: Whether pooled vectors are scaled to length 1.
        encoder: The name of the encoder family.
        titles: Whether the titles of the pages are used.
    """

    vectors: str = "wordllama"
    unit: bool = False
    encoder: str = "pooled"
    titles: bool = True


class FeatureWriter(ABC):
    """Writes the features of examples into a folder; used as a context manager.

    Attributes:
        query_count: The number of queries so far.
        passage_count: The number of different passages so far.
        missing_count: The number of gold sentences so far that are not among the passages.
    """

    query_count: int
    passage_count: int
    missing_count: int

    @abstractmethod
    def add(self, example: Example) -> None:
        """Add an example that has passages."""

    @abstractmethod
    def __enter__(self) -> FeatureWriter: ...

    @abstractmethod
    def __exit__(self, failed: object, *_: object) -> None: ...


@runtime_checkable
class Table(Protocol):
    """The features of a data set, in memory."""

    def __len__(self) -> int: ...

    @property
    def dimension(self) -> int:
        """The number of inputs of the network."""
        ...

    def rows(self, rows: NDArray[np.int64]) -> Table:
        """Some of the queries."""
        ...


class EncoderFamily(ABC):
    """Everything that belongs to one kind of encoder.

    Attributes:
        name: The name, as in `--encoder NAME`.
        settings: A frozen dataclass of `dgn.settings.setting` fields: the section [encoder] of a
            training configuration.
        description: What the encoder sees of a query, as a sentence for model cards.
        limits: What it cannot see, as a sentence for model cards.
    """

    name: str
    settings: type
    description: str
    limits: str

    # Features

    @abstractmethod
    def check_options(self, options: FeatureOptions) -> None:
        """Raise InvalidInput if the features of this family cannot be made with these options."""

    @abstractmethod
    def feature_key(self, options: FeatureOptions) -> dict[str, Any]:
        """What the features depend on besides the data, the vectors and `unit`."""

    @abstractmethod
    def open_writer(self, folder: Path, options: FeatureOptions, workers: int) -> FeatureWriter:
        """A writer of features into a folder."""

    # Training

    @abstractmethod
    def load_tables(
        self,
        folders: Sequence[Path],
        *,
        partial: Sequence[Path] = (),
        negative_weight: float = 1.0,
    ) -> Table:
        """The features of some folders as one table.

        Args:
            folders: Folders whose gold is complete.
            partial: Folders whose gold is incomplete.
            negative_weight: How much their other passages count against the gold.
        """

    @abstractmethod
    def batches(self, table: Any, batch_size: int, seed: int, place: Place) -> Batches:
        """The queries of a table, batch by batch."""

    @abstractmethod
    def trainable(
        self, architecture: str, settings: Any, inputs: int, dropout: float, seed: int
    ) -> nn.Module:
        """The torch module that learns the encoder, at its start.

        Its `forward(x, mask)` returns `(SetFunction, Items)` for the architecture "dgn" and scores,
        [batch, items], for the pointwise ones. Its state has the names that `load` takes.
        """

    # Run time

    @abstractmethod
    def describe(
        self, architecture: str, settings: Any, inputs: int, features: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The description of a trained encoder, for config.json.

        Args:
            architecture: "dgn", "encoder" or "deep-encoder".
            settings: An instance of `self.settings`.
            inputs: The number of inputs of the network.
            features: The key of the features that it was trained on, and their `source`.
        """

    @abstractmethod
    def load(
        self,
        description: Mapping[str, Any],
        arrays: Callable[[Mapping[str, tuple[int, ...]]], dict[str, NDArray[Any]]],
        vectors: str | None,
    ) -> Encoder:
        """The encoder of a model folder.

        Args:
            description: What `describe` or `Encoder.save` returned.
            arrays: Reads the arrays of the folder, given the shape that each must have.
            vectors: Vectors to use in place of those that the description names.

        Raises:
            InvalidInput: The description does not fit, or the vectors are not available.
        """


def require(description: Mapping[str, Any], **kinds: type) -> None:
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


def require_sizes(sizes: Sequence[Any]) -> None:
    """Raise InvalidInput unless all sizes are integers from 0 to 4096."""
    if not all(type(size) is int and 0 <= size <= 4096 for size in sizes):
        raise InvalidInput("sizes", found=f"{list(sizes)!r:.60}", allowed="integers from 0 to 4096")
