"""The contract of a family of encoders that can be trained.

A family knows how its features are stored, which torch module learns its encoder, and how the
trained encoder is described in a model folder. `dgn data features` and `dgn train` work with every
registered family; loading a trained encoder is the encoder's own task (`Encoder.load`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dgn.data import Batches, Example, ToDevice
from dgn.errors import BrokenInput, InvalidInput
from dgn.text.encoders import Encoder

if TYPE_CHECKING:
    from torch import nn


TEACHER_LOGITS = "teacher_logits.npy"
"""Logits of a stronger model; written later than the features, and not a part of them."""


@dataclass(frozen=True)
class FeatureOptions:
    """What the features of a data set are made with.

    Args:
        vectors: What `open_vectors` takes.
        unit: Whether pooled vectors are scaled to length 1.
        encoder: The name of the family.
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


class TrainableFamily(ABC):
    """How one kind of encoder is trained.

    Attributes:
        encoder: The class of the encoder at run time; its `family` is the name, as in
            `--encoder NAME`.
        settings: A frozen dataclass of `dgn.settings.setting` fields: the section of a training
            configuration with the family's name.
    """

    encoder: type[Encoder]
    settings: type

    @property
    def name(self) -> str:
        """The name of the family."""
        return self.encoder.family

    @abstractmethod
    def check_options(self, options: FeatureOptions) -> None:
        """Raise InvalidInput if the features of this family cannot be made with these options."""

    @abstractmethod
    def feature_key(self, options: FeatureOptions) -> dict[str, Any]:
        """What the features depend on besides the data, the vectors and `unit`."""

    @abstractmethod
    def open_writer(self, folder: Path, options: FeatureOptions, workers: int) -> FeatureWriter:
        """A writer of features into a folder."""

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
    def batches(self, table: Any, batch_size: int, seed: int, to_device: ToDevice) -> Batches:
        """The queries of a table, batch by batch."""

    @abstractmethod
    def module(
        self, architecture: str, settings: Any, inputs: int, dropout: float, seed: int
    ) -> nn.Module:
        """The torch module that learns the encoder, at its start.

        Its `forward(x, mask)` returns `(SetFunction, Items)` for the architecture "dgn" and scores,
        [batch, items], for the pointwise ones. Its state has the names that `Encoder.load` takes.
        """

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


def load_array(path: Path) -> NDArray[Any]:
    """An array of a folder of features."""
    try:
        return np.load(path)
    except (OSError, ValueError, EOFError) as error:
        raise BrokenInput(
            path, None, message=f"{error}. Run dgn data features again to repair the folder."
        ) from None


_FAMILIES: dict[str, TrainableFamily] = {}


def register_family(family: TrainableFamily) -> None:
    """Make a family available to `dgn data features` and `dgn train`.

    Args:
        family: The family; it replaces one with the same name.
    """
    _FAMILIES[family.name] = family


def find_family(name: str) -> TrainableFamily:
    """The family with this name."""
    if name not in _FAMILIES:
        raise InvalidInput("encoder", found=repr(name), allowed=f"one of {', '.join(_FAMILIES)}")
    return _FAMILIES[name]


def family_names() -> tuple[str, ...]:
    """The names of all registered families."""
    return tuple(_FAMILIES)
