"""How the facets are trained: their settings, their features and their torch module."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from dgn.data import Batches, ToDevice
from dgn.errors import InvalidInput
from dgn.learn.families.base import FeatureOptions, FeatureWriter, TrainableFamily
from dgn.learn.families.facets_table import MatchBatches, MatchTable, MatchWriter
from dgn.settings import check_at_least, check_choices, setting
from dgn.text import WordReader, token_idf
from dgn.text.facets.encoder import LANGUAGE_CHOICES, FacetEncoder, default_vectors
from dgn.text.facets.formula import FacetSizes

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

    languages: str = setting(
        "english",
        "the languages of the training data; queries in others use fixed weights",
        choices=LANGUAGE_CHOICES,
    )

    def __post_init__(self) -> None:
        check_choices(self)
        check_at_least(self, 0, "hidden", "projection")

    def sizes(self, dimension: int) -> FacetSizes:
        """The sizes for word vectors of this dimension."""
        return FacetSizes(dimension, self.projection, self.hidden, int(self.hidden > 0))


@final
class FacetFamily(TrainableFamily):
    """Trains FacetEncoder: coverage of the words of the query."""

    encoder = FacetEncoder
    settings = FacetSettings

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
        return MatchWriter(
            folder, WordReader(default_vectors(), token_idf()), titles=options.titles
        )

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

    def batches(self, table: Any, batch_size: int, seed: int, to_device: ToDevice) -> Batches:
        return MatchBatches(table, batch_size, seed, to_device)

    def module(
        self, architecture: str, settings: Any, inputs: int, dropout: float, seed: int
    ) -> nn.Module:
        from dgn.learn.families.modules import FacetModule

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
        described = {"family": self.name, "vectors": vectors, "idf": "shipped", "sizes": sizes}
        is_english = settings.languages == "english"
        return described if is_english else {**described, "languages": settings.languages}
