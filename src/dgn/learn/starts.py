"""Where training on labelled rows starts: a model that exists, as a network that can be trained.

A start reads examples once into a table, gives a network with its weights, and turns trained
weights back into an encoder. `open_start` finds the start that a name stands for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.errors import InvalidInput
from dgn.learn.facets import FacetModule, FacetNetwork, MatchTable
from dgn.learn.layers import UnfoldedGreedy
from dgn.selector import Selector
from dgn.selector.model_folder import DEFAULT, MINILM, UNTRAINED
from dgn.text.encoder import Encoder
from dgn.text.facets import FacetEncoder
from dgn.text.facets.formula import FacetSizes, FacetWeights, start_weights
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
    def network(self, layers: int, dropout: float) -> FacetNetwork:
        """The network at the start."""

    @abstractmethod
    def encoder(self, weights: Mapping[str, NDArray[Any]], breadth: float) -> Encoder:
        """The encoder with weights that `network.encoder` has learned, by their names there."""


def open_start(name: str, examples: Sequence[Example]) -> Start:
    """The start with this name.

    Args:
        name: "default", "untrained", "minilm", or a model folder.
        examples: What is learned from; their language decides which weights are trained.
    """
    selector = Selector.from_pretrained(name)
    if isinstance(selector.encoder, FacetEncoder):
        return FacetStart(selector, selector.encoder, examples)
    if selector.encoder.family == "minilm":
        from dgn.learn.contextual import ContextualStart

        return ContextualStart(selector)
    raise InvalidInput(
        "from",
        message=f"{name} is a model of the family {selector.encoder.family} that cannot be trained "
        f"on rows; start from {DEFAULT}, {UNTRAINED}, {MINILM} or a folder of these families.",
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
        self.selector, self._encoder = selector, encoder
        formulas = encoder.formulas
        english = sum(example.query.read_language == ENGLISH for example in examples)
        # Other languages have the same formula only if the model was made for any language.
        is_mostly_english = 2 * english >= len(examples)
        self._is_english = formulas.others is not formulas.english and is_mostly_english
        weights = (formulas.english if is_mostly_english else formulas.others).weights
        self._weights = weights if weights.sizes.hidden else _with_network(weights)

    def usable(self, examples: Sequence[Example]) -> list[Example]:
        if not self._is_english:
            return list(examples)
        return [example for example in examples if example.query.read_language == ENGLISH]

    def table(self, examples: Sequence[Example], on_read: OnRead) -> MatchTable:
        return MatchTable.of(self._encoder.reader, examples, on_read)

    def network(self, layers: int, dropout: float) -> FacetNetwork:
        return FacetNetwork(FacetModule(self._weights, dropout), UnfoldedGreedy(layers))

    def encoder(self, weights: Mapping[str, NDArray[Any]], breadth: float) -> FacetEncoder:
        languages = "english" if self._is_english else "any"
        learned, own = FacetWeights(**weights), self._encoder
        return FacetEncoder(learned, own.vectors, own.idf, languages=languages, breadth=breadth)


def _with_network(weights: FacetWeights) -> FacetWeights:
    """The same weights with a network that finds nothing relevant yet."""
    kept = {name: weight for name, weight in vars(weights).items() if np.size(weight)}
    return replace(start_weights(_SIZES, seed=0), **kept)
