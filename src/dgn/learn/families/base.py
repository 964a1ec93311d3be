"""The contract of a family of encoders that can be trained.

A family knows how its features are stored, which torch module learns its encoder, and how the
trained encoder is described in a model folder. `dgn data features` and `dgn train` work with every
registered family; loading a trained encoder is the encoder's own task (`Encoder.load`).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dgn.data import Batches, Example, ToDevice
from dgn.errors import BrokenInput
from dgn.parts import Registry
from dgn.text.encoder import Encoder
from dgn.text.encoder import register_encoder

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

    @property
    def gold(self) -> NDArray[np.bool_]:
        """For each passage, whether it is gold."""
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


_DAMAGED = (OSError, ValueError, EOFError, MemoryError, OverflowError, TokenError, UserWarning)
_ROWS_PER_CHECK = 1 << 16
_KINDS = {"f": "floats", "i": "integers", "b": "booleans", "U": "strings"}


def load_array(
    path: Path,
    kinds: str = "fibU",
    shape: Sequence[int | None] = (),
    *,
    within: tuple[float, float] = (-np.inf, np.inf),
    is_finite: bool = True,
) -> NDArray[Any]:
    """An array of a folder of features, which is what training expects, or else an error.

    Args:
        path: The .npy file.
        kinds: The kinds that its type may have, as NumPy abbreviates them: "fb" for floats and
            booleans.
        shape: The size of each axis, None for any; by default, the shape is not checked.
        within: The smallest and the largest number that it may contain.
        is_finite: Whether all numbers must be finite.

    Raises:
        BrokenInput: The file contains something else, or a number that is not finite.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # of headers that nobody writes any more
            loaded: Any = np.load(path)
        if not hasattr(loaded, "dtype"):
            raise ValueError("it is an archive of several arrays")
    except _DAMAGED as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise broken_features(path, f"{reason}.") from None
    array: NDArray[Any] = loaded
    usual = array.dtype.isnative and (array.dtype.kind == "U" or array.dtype.itemsize <= 8)
    if not usual or array.dtype.kind not in kinds:
        wanted = " or ".join(_KINDS[kind] for kind in kinds)
        raise broken_features(path, f"expected {wanted}; found {array.dtype}.")
    if shape and (
        array.ndim != len(shape)
        or any(size not in (None, found) for size, found in zip(shape, array.shape, strict=True))
    ):
        sizes = ", ".join("any" if size is None else f"{size:,}" for size in shape)
        found = ", ".join(f"{size:,}" for size in array.shape)
        raise broken_features(path, f"expected the shape [{sizes}]; found [{found}].")
    if is_finite and array.dtype.kind in "fi" and array.ndim:
        _check_numbers(path, array, *within)
    return array


def _check_numbers(path: Path, array: NDArray[Any], least: float, most: float) -> None:
    """Raise BrokenInput unless all numbers are finite and in this range."""
    for start in range(0, len(array), _ROWS_PER_CHECK):
        rows = array[start : start + _ROWS_PER_CHECK]
        low, high = rows.min(initial=0), rows.max(initial=0)  # NaN, if there is one
        if np.isfinite(low) and np.isfinite(high) and least <= low and high <= most:
            continue
        wrong = ~np.isfinite(rows) | (rows < least) | (rows > most)
        if not wrong.any():
            continue  # only the 0 that was added is outside
        first = np.unravel_index(int(np.argmax(wrong)), rows.shape)
        place = ", ".join(str(int(n)) for n in (start + int(first[0]), *first[1:]))
        limits = f"from {least:g} to {most:g}" if np.isfinite(most) else f"of at least {least:g}"
        allowed = "finite numbers" if np.isinf(least) else f"numbers {limits}"
        raise broken_features(path, f"expected {allowed}; found {rows[first]} at [{place}].")


def broken_features(path: Path, message: str) -> BrokenInput:
    """The error for a file of features, with what to do."""
    return BrokenInput(
        path, None, message=f"{message} Run dgn data features again to repair the folder."
    )


_FAMILIES: dict[str, TrainableFamily] = {}

FAMILIES: Registry[TrainableFamily] = Registry(
    "encoder",
    "dgn.families",
    TrainableFamily,
    {
        "pooled": "dgn.learn.families.pooled:PooledFamily",
        "facets": "dgn.learn.families.facets:FacetFamily",
    },
)
"""Families by name, or as module:Class."""


def register_family(family: TrainableFamily) -> None:
    """Make a family available to `dgn data features` and `dgn train`, and its encoder to loading.

    Args:
        family: The family; it replaces one with the same name.
    """
    FAMILIES.register(family.name, type(family))
    _FAMILIES[family.name] = family
    register_encoder(family.encoder)


def find_family(name: str) -> TrainableFamily:
    """The family with this name."""
    if name not in _FAMILIES:
        found = FAMILIES.find(name)
        if name not in _FAMILIES:  # its module may have registered it
            register_family(found())
            return _FAMILIES[found.encoder.family]
    return _FAMILIES[name]


def family_names() -> tuple[str, ...]:
    """The names of all registered families."""
    return tuple(_FAMILIES)
