"""The family of the facets: what training, model folders and the command line need to know."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.data import Batches, Place
from dgn.encoders.base import (
    EncoderFamily,
    FeatureOptions,
    FeatureWriter,
    require,
    require_sizes,
)
from dgn.encoders.facets.encoder import FacetEncoder, default_vectors
from dgn.encoders.facets.matching import Matcher
from dgn.encoders.facets.table import MatchBatches, MatchTable
from dgn.encoders.facets.weights import FacetSizes, FacetWeights, shapes_of
from dgn.encoders.facets.writer import MatchWriter
from dgn.errors import InvalidInput
from dgn.settings import check_at_least, check_choices, setting
from dgn.text import WordReader, token_idf

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class FacetSettings:
    """How large the facets encoder is."""

    hidden: int = setting(64, "hidden units of the network that judges relevance; 0 for none")
    projection: int = setting(16, "dimension in which the network sees a text as a whole")
    learns: str = setting(
        "network", "what is trained: the network alone, or all weights", choices=("network", "all")
    )

    def __post_init__(self) -> None:
        check_choices(self)
        check_at_least(self, 0, "hidden", "projection")

    def sizes(self, dimension: int) -> FacetSizes:
        """The sizes for word vectors of this dimension."""
        return FacetSizes(dimension, self.projection, self.hidden, int(self.hidden > 0))


@final
class FacetFamily(EncoderFamily):
    """Facets: coverage of the words of the query."""

    name = "facets"
    settings = FacetSettings
    description = (
        "The features are the words of the query, compared with the words of each passage by "
        "spelling, stem and static word vectors (wordllama), how like the query a passage is as a "
        "whole, and how relevant a small network finds it. Words of a title count as covered by "
        "its passages."
    )
    limits = (
        "It compares words, not meanings: a fact in entirely different words is missed, negation "
        "is not understood, and it cannot tell whether a passage supports or refutes a claim."
    )

    def check_options(self, options: FeatureOptions) -> None:
        if options.vectors != "wordllama" or options.unit:
            raise InvalidInput(
                "encoder",
                message="The facets encoder works with the wordllama vectors as they are; leave "
                "out --vectors and --unit.",
            )

    def feature_key(self, options: FeatureOptions) -> dict[str, Any]:
        idf = {"idf": f"{zlib.crc32(token_idf().tobytes()):x}"}
        return idf if options.titles else {**idf, "titles": False}

    def open_writer(self, folder: Path, options: FeatureOptions, workers: int) -> FeatureWriter:
        del workers
        matcher = Matcher(WordReader(default_vectors(), token_idf()))
        return MatchWriter(folder, matcher, titles=options.titles)

    def load_tables(
        self,
        folders: Sequence[Path],
        *,
        partial: Sequence[Path] = (),
        negative_weight: float = 1.0,
    ) -> MatchTable:
        complete = [MatchTable.load(folder) for folder in folders]
        return MatchTable.join(
            complete + [MatchTable.load(folder, negative_weight) for folder in partial]
        )

    def batches(self, table: Any, batch_size: int, seed: int, place: Place) -> Batches:
        return MatchBatches(table, batch_size, seed, place)

    def trainable(
        self, architecture: str, settings: Any, inputs: int, dropout: float, seed: int
    ) -> nn.Module:
        from dgn.encoders.facets.network import FacetModule

        if architecture != "dgn":
            raise InvalidInput(
                "architecture",
                message=f"The facets encoder has no {architecture} architecture; use dgn.",
            )
        learns_words = settings.learns == "all" or not settings.hidden
        return FacetModule(settings.sizes(inputs), dropout, seed, learns_words=learns_words)

    def describe(
        self, architecture: str, settings: Any, inputs: int, features: Mapping[str, Any]
    ) -> dict[str, Any]:
        del architecture
        vectors = features.get("vectors", "")
        sizes = asdict(settings.sizes(inputs))
        return {"family": self.name, "vectors": vectors, "idf": "shipped", "sizes": sizes}

    def load(
        self,
        description: Mapping[str, Any],
        arrays: Callable[[Mapping[str, tuple[int, ...]]], dict[str, NDArray[Any]]],
        vectors: str | None,
    ) -> FacetEncoder:
        require(description, vectors=str, idf=str, sizes=dict)
        sizes = cast("dict[str, Any]", description["sizes"])
        names = {one.name for one in fields(FacetSizes)}
        if set(sizes) != names:
            allowed = f"a dictionary with {', '.join(sorted(names))}"
            raise InvalidInput("sizes", found=f"{sizes!r:.60}", allowed=allowed)
        require_sizes(list(sizes.values()))
        known = FacetSizes(**sizes)
        if vectors not in (None, "wordllama"):
            raise InvalidInput(
                "vectors", found=repr(vectors), allowed="left out; the facets need wordllama's"
            )
        installed = default_vectors()
        if description["vectors"] != installed.fingerprint:
            raise InvalidInput(
                "vectors",
                message=f"The model was trained on the vectors {description['vectors']}, and "
                f"{installed.fingerprint} are installed; install the version of wordllama that it "
                "was trained with.",
            )
        if known.dimension != installed.dimension:
            raise InvalidInput(
                "sizes",
                message=f"The model has the dimension {known.dimension}, and the vectors have "
                f"{installed.dimension}.",
            )
        own = {} if description["idf"] == "shipped" else {"idf": (len(installed.table),)}
        found = arrays({**shapes_of(known), **own})
        idf = found.pop("idf").astype(np.float32) if own else None
        return FacetEncoder(FacetWeights(**found), installed, idf)
