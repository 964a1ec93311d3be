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
import torch
from numpy.typing import NDArray
from torch import nn

from dgn.core.native.facets import WordTable
from dgn.data import Example
from dgn.errors import InvalidInput
from dgn.learn.facets import FacetModule, FacetNetwork, MatchedQuery, MatchTable
from dgn.learn.layers import UnfoldedGreedy
from dgn.selector import Selector
from dgn.selector.model_folder import DEFAULT, MINILM, UNTRAINED
from dgn.text.encoders import Encoder, FacetEncoder
from dgn.text.encoders.facets.formula import (
    Facets,
    FacetSizes,
    FacetWeights,
    compute_facets,
    start_weights,
)
from dgn.text.encoders.facets.matching import Matches
from dgn.text.encoders.minilm.encoder import UNREAD, MiniLMEncoder
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
    def encoder(self, weights: Mapping[str, NDArray[Any]]) -> Encoder:
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
        self.selector, self._encoder = selector, encoder
        formulas = encoder.formulas
        english = sum(example.query.languages[0] == ENGLISH for example in examples)
        # Other languages have the same formula only if the model was made for any language.
        is_mostly_english = 2 * english >= len(examples)
        self._is_english = formulas.others is not formulas.english and is_mostly_english
        weights = (formulas.english if is_mostly_english else formulas.others).weights
        self._weights = weights if weights.sizes.hidden else _with_network(weights)

    def usable(self, examples: Sequence[Example]) -> list[Example]:
        if not self._is_english:
            return list(examples)
        return [example for example in examples if example.query.languages[0] == ENGLISH]

    def table(self, examples: Sequence[Example], on_read: OnRead) -> MatchTable:
        return MatchTable.of(self._encoder.reader, examples, on_read)

    def network(self, layers: int, dropout: float) -> FacetNetwork:
        return FacetNetwork(FacetModule(self._weights, dropout), UnfoldedGreedy(layers))

    def encoder(self, weights: Mapping[str, NDArray[Any]]) -> FacetEncoder:
        languages = "english" if self._is_english else "any"
        learned, encoder = FacetWeights(**weights), self._encoder
        return FacetEncoder(learned, encoder.vectors, encoder.idf, languages=languages)


@final
class ReaderStart(Start):
    """Starts from a model of the family minilm; the last layers of its reader are trained.

    The transformer reads every pair once, when the table is made.
    """

    learning_rate = 1e-4

    def __init__(self, selector: Selector, encoder: MiniLMEncoder) -> None:
        self.selector, self._encoder = selector, encoder

    def usable(self, examples: Sequence[Example]) -> list[Example]:
        return [example for example in examples if example.query.languages[0] == ENGLISH]

    def table(self, examples: Sequence[Example], on_read: OnRead) -> MatchTable:
        dimension = self._encoder.weights.sizes.dimension
        queries: list[MatchedQuery] = []
        for example in examples:
            matches, table = self._encoder.matches_to_train(example.query)
            # The static vectors of words are not used: only facts about words are.
            unused = np.zeros((len(table.facts), dimension), np.float32)
            words = WordTable(unused, table.facts, table.stem)
            queries.append(MatchedQuery.of(matches, words, example.gold))
            on_read(len(queries))
        return MatchTable(queries)

    def network(self, layers: int, dropout: float) -> FacetNetwork:
        encoder = self._encoder
        module = _ReaderModule(encoder.weights, encoder.last_layers, dropout)
        return FacetNetwork(module, UnfoldedGreedy(layers))

    def encoder(self, weights: Mapping[str, NDArray[Any]]) -> MiniLMEncoder:
        layers = {n: w for n, w in weights.items() if n in self._encoder.last_layers}
        facets = {n: w for n, w in weights.items() if n not in layers}
        return self._encoder.with_layers(FacetWeights(**facets), layers)


@final
class _ReaderModule(nn.Module):
    """Learns the last layers of MiniLM's reader and the weights of the facets.

    The transformer is not trained: `passages` of a batch are what the last layers see.

    Args:
        weights: The weights of the facets at the start.
        layers: The last layers at the start: pool.weight, pool.bias, score.weight and score.bias.
        dropout: The share of units that are left out of a training step.
    """

    def __init__(
        self, weights: FacetWeights, layers: Mapping[str, NDArray[Any]], dropout: float
    ) -> None:
        super().__init__()
        self._names = tuple(vars(weights))
        for name, weight in vars(weights).items():
            self.register_parameter(name, nn.Parameter(torch.tensor(weight)))
        outputs, inputs = layers["pool.weight"].shape
        self.pool, self.score = nn.Linear(inputs, outputs), nn.Linear(outputs, 1)
        for name, weight in layers.items():
            self.get_parameter(name).data = torch.tensor(weight, dtype=torch.float32)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Matches, mask: object = None) -> Any:
        """The set function of each query, and its passages as items; the mask is not used."""
        del mask
        return self.facets(x).function(x.mask)

    def facets(self, x: Matches) -> Facets:
        """The features of the passages, with the logits of their relevance."""
        hidden = self.dropout(torch.tanh(self.pool(x.passages)))
        is_read = x.relevance > UNREAD + 1  # the logit of passages that are not read is fixed
        logits = torch.where(is_read, self.score(hidden)[..., 0], x.relevance)
        weights = FacetWeights(**{name: self.get_parameter(name) for name in self._names})
        return compute_facets(weights, replace(x, relevance=logits))


def _with_network(weights: FacetWeights) -> FacetWeights:
    """The same weights with a network that finds nothing relevant yet."""
    kept = {name: weight for name, weight in vars(weights).items() if np.size(weight)}
    return replace(start_weights(_SIZES, seed=0), **kept)
