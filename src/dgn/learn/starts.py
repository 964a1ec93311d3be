"""Where training on your own labels starts: a model that exists, as a module that can be trained.

A start reads examples once into a table, gives a torch module with its weights, and turns trained
weights back into an encoder. `open_start` finds the start that a name stands for.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dgn.core.native.facets import WordTable
from dgn.data import Example
from dgn.errors import InvalidInput
from dgn.learn.families.facets_table import MatchTable, MatchWriter
from dgn.learn.families.modules import FacetModule, ReaderModule
from dgn.selector import Selector
from dgn.selector.model_folder import DEFAULT, MINILM, UNTRAINED
from dgn.text.encoder import Encoder
from dgn.text.facets import FacetEncoder
from dgn.text.facets.formula import FacetSizes, FacetWeights, start_weights
from dgn.minilm.encoder import UNREAD, MiniLMEncoder
from dgn.text.languages import ENGLISH

_SIZES = FacetSizes(256, projection=32, hidden=128)
"""Of a network that begins untrained: those of the shipped one."""

OnRead = Callable[[int], None]
"""Called with the number of examples that were read so far."""


class Start(ABC):
    """A model that training starts from.

    Attributes:
        selector: The model as it is before training.
        learning_rate: A rate that suits its weights.
    """

    selector: Selector
    learning_rate: float

    @abstractmethod
    def usable(self, examples: Sequence[Example]) -> list[Example]:
        """The examples whose queries this model reads with the weights that are trained."""

    @abstractmethod
    def table(self, examples: Sequence[Example], on_read: OnRead) -> MatchTable:
        """The examples, read once."""

    @abstractmethod
    def module(self, dropout: float) -> nn.Module:
        """The module at the start; `facets(x)` are the Facets of a batch of the table."""

    @abstractmethod
    def encoder(self, weights: Mapping[str, NDArray[Any]]) -> Encoder:
        """The encoder with weights that the module has learned, by their names there."""


def open_start(name: str, examples: Sequence[Example]) -> Start:
    """The start with this name.

    Args:
        name: "default", "untrained", "minilm", or a model folder.
        examples: What is learned from; their language decides which weights are trained.
    """
    selector = Selector.from_pretrained(name)
    if isinstance(selector.encoder, FacetEncoder):
        return FacetStart(selector, selector.encoder, examples)
    if isinstance(selector.encoder, MiniLMEncoder) and selector.encoder.last_layers:
        return ReaderStart(selector, selector.encoder)
    raise InvalidInput(
        "from",
        message=f"{name} is a model of the family {selector.encoder.family} that cannot be trained "
        f"on rows; start from {DEFAULT}, {UNTRAINED}, {MINILM[0]} or a folder of these families.",
    )


@final
class FacetStart(Start):
    """Starts from a model of the family facets; all of its weights are trained.

    A model for English uses fixed weights for other languages. If most of the queries are in other
    languages, these fixed weights are the start, and the trained model is for any language.
    """

    learning_rate = 3e-3

    def __init__(
        self, selector: Selector, encoder: FacetEncoder, examples: Sequence[Example]
    ) -> None:
        self.selector = selector
        self._vectors, self._reader = encoder.vectors, encoder.reader
        self._idf, formulas = encoder.idf, encoder.formulas
        english = sum(one.query.read_language == ENGLISH for one in examples)
        # Other languages have the same formula only if the model was made for any language.
        is_mostly_english = 2 * english >= len(examples)
        self._is_english = formulas.others is not formulas.english and is_mostly_english
        weights = (formulas.english if is_mostly_english else formulas.others).weights
        self._weights = weights if weights.sizes.hidden else _with_network(weights)

    def usable(self, examples: Sequence[Example]) -> list[Example]:
        if not self._is_english:
            return list(examples)
        return [one for one in examples if one.query.read_language == ENGLISH]

    def table(self, examples: Sequence[Example], on_read: OnRead) -> MatchTable:
        with tempfile.TemporaryDirectory() as folder:
            with MatchWriter(Path(folder), self._reader) as writer:
                for number, example in enumerate(examples):
                    writer.add(example)
                    on_read(number + 1)
            return MatchTable.load(folder)

    def module(self, dropout: float) -> nn.Module:
        module = FacetModule(self._weights.sizes, dropout)
        module.load_state_dict({n: torch.tensor(w) for n, w in vars(self._weights).items()})
        return module

    def encoder(self, weights: Mapping[str, NDArray[Any]]) -> FacetEncoder:
        languages = "english" if self._is_english else "any"
        learned = FacetWeights(**weights)
        return FacetEncoder(learned, self._vectors, self._idf, languages=languages)


@final
class ReaderStart(Start):
    """Starts from a model of the family minilm; the last layers of its reader are trained.

    The transformer reads every pair once, when the table is made.
    """

    learning_rate = 1e-4

    def __init__(self, selector: Selector, encoder: MiniLMEncoder) -> None:
        self.selector, self._encoder = selector, encoder

    def usable(self, examples: Sequence[Example]) -> list[Example]:
        return [one for one in examples if one.query.read_language == ENGLISH]

    def table(self, examples: Sequence[Example], on_read: OnRead) -> MatchTable:
        with tempfile.TemporaryDirectory() as folder:
            dimension = self._encoder.weights.sizes.dimension
            with MatchWriter(Path(folder), self._encoder.reader) as writer:
                for number, example in enumerate(examples):
                    matches, table = self._encoder.matches_to_train(example.query)
                    # The static vectors of words are not used: only facts about words are.
                    unused = np.zeros((len(table.facts), dimension), np.float32)
                    writer.add_matched(example, matches, WordTable(unused, table.facts, table.stem))
                    on_read(number + 1)
            return MatchTable.load(folder)

    def module(self, dropout: float) -> nn.Module:
        encoder = self._encoder
        return ReaderModule(encoder.weights, encoder.last_layers, UNREAD, dropout)

    def encoder(self, weights: Mapping[str, NDArray[Any]]) -> MiniLMEncoder:
        layers = {n: w for n, w in weights.items() if n in self._encoder.last_layers}
        facets = {n: w for n, w in weights.items() if n not in layers}
        return self._encoder.with_layers(FacetWeights(**facets), layers)


def _with_network(weights: FacetWeights) -> FacetWeights:
    """The same weights with a network that finds nothing relevant yet."""
    own = {name: weight for name, weight in vars(weights).items() if np.size(weight)}
    return replace(start_weights(_SIZES, seed=0), **own)
