"""Training minilm on labelled rows: the weights of its facets; the transformer stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from numpy.typing import NDArray

from dgn.data import Example
from dgn.errors import InvalidInput
from dgn.learn.facets import FacetModule, FacetNetwork, MatchedQuery, MatchTable
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.starts import OnRead, Start
from dgn.minilm import MiniLMEncoder
from dgn.selector import Selector
from dgn.text.facets.formula import FacetWeights
from dgn.text.languages import ENGLISH


@final
class ContextualStart(Start):
    """Starts from a model of the family minilm, which reads every text once."""

    learning_rate = 3e-3

    def __init__(self, selector: Selector) -> None:
        encoder = selector.encoder
        if not isinstance(encoder, MiniLMEncoder):
            raise InvalidInput("from", message="The encoder is not of the family minilm.")
        self.selector, self._encoder = selector, encoder

    def usable(self, examples: Sequence[Example]) -> list[Example]:
        return [example for example in examples if example.query.read_language == ENGLISH]

    def table(self, examples: Sequence[Example], on_read: OnRead) -> MatchTable:
        queries: list[MatchedQuery] = []
        for example in examples:
            ((matches, words),) = self._encoder.match([example.query])
            queries.append(MatchedQuery.of(matches, words, example.gold))
            on_read(len(queries))
        return MatchTable(queries)

    def network(self, layers: int, dropout: float) -> FacetNetwork:
        return FacetNetwork(FacetModule(self._encoder.weights, dropout), UnfoldedGreedy(layers))

    def encoder(self, weights: Mapping[str, NDArray[Any]], breadth: float) -> MiniLMEncoder:
        return MiniLMEncoder(FacetWeights(**weights), self._encoder.updates, breadth=breadth)
