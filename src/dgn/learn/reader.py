"""Training minilm on labelled rows: the last layers of its reader and the weights of the facets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dgn.data import Example
from dgn.errors import InvalidInput
from dgn.learn.facets import FacetNetwork, MatchedQuery, MatchTable
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.starts import OnRead, Start
from dgn.minilm.encoder import UNREAD, MiniLMEncoder
from dgn.selector import Selector
from dgn.text.facets.formula import Facets, FacetWeights, compute_facets
from dgn.text.facets.matching import Matches
from dgn.text.languages import ENGLISH
from dgn.text.vocabulary import WordTable


@final
class ReaderStart(Start):
    """Starts from a model of the family minilm; the last layers of its reader are trained.

    The transformer reads every pair once, when the table is made.
    """

    learning_rate = 1e-4

    def __init__(self, selector: Selector) -> None:
        encoder = selector.encoder
        if not isinstance(encoder, MiniLMEncoder) or not encoder.last_layers:
            raise InvalidInput(
                "from", message="A minilm without its reader cannot be trained; start from minilm."
            )
        self.selector, self._encoder = selector, encoder

    def usable(self, examples: Sequence[Example]) -> list[Example]:
        return [example for example in examples if example.query.read_language == ENGLISH]

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
