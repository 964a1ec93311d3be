"""The facets in training: queries matched once, as a table in memory, and a module of weights.

table = MatchTable.of(encoder.reader, examples)
network = FacetNetwork(FacetModule(weights, dropout=0.5), UnfoldedGreedy(4, 0.1))
fit(network, table, FitConfig(learning_rate=3e-3))
FacetEncoder(network.encoder.learned())
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dgn.core import Selections, greedy
from dgn.core.arrays import Float
from dgn.core.functions import Items, SetFunction
from dgn.data import Example
from dgn.learn.batches import Batch, Table
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy, relevance_loss
from dgn.learn.networks import SelectionNetwork
from dgn.text.facets.formula import Facets, FacetWeights, compute_facets
from dgn.text.facets.matching import Matches, QueryMatches, match_query
from dgn.text.facets.reading import read_queries
from dgn.text.vocabulary import WordReader, WordTable

_QUERIES_PER_BATCH = 64
_HALF = ("similarity", "title", "about", "passages")
"""Kept in half precision: they are the largest, and their errors are small."""

_NETWORK = ("projection", "hidden", "hidden_bias", "output", "output_bias")


@dataclass(frozen=True, eq=False)
class MatchedQuery:
    """A query against its passages.

    Attributes:
        matches: The arrays of AXES; `query` numbers rows of `words`.
        words: The words of the query.
        gold: [passages], True for gold passages.
    """

    matches: QueryMatches
    words: WordTable
    gold: NDArray[np.bool_]

    @classmethod
    def of(cls, matches: QueryMatches, table: WordTable, gold: Sequence[bool]) -> MatchedQuery:
        """A query that was matched with a table of more words."""
        used, query = np.unique(matches["query"], return_inverse=True)
        half = {name: matches[name].astype(np.float16) for name in _HALF}
        words = WordTable(table.vectors[used], table.facts[used], np.asarray(table.stem[used]))
        return cls({**matches, **half, "query": query}, words, np.array(gold, dtype=bool))


@final
class MatchTable(Table):
    """Matched queries; the `x` of a batch is Matches of torch tensors.

    Args:
        queries: The queries.
    """

    def __init__(self, queries: Sequence[MatchedQuery]) -> None:
        super().__init__(np.array([len(query.gold) for query in queries], np.int64))
        self._queries = queries

    @classmethod
    def of(
        cls,
        reader: WordReader,
        examples: Sequence[Example],
        on_read: Callable[[int], None] = lambda _: None,
    ) -> MatchTable:
        """Match every example once; `on_read` is called with the number of those that are done."""
        queries: list[MatchedQuery] = []
        for start in range(0, len(examples), _QUERIES_PER_BATCH):
            part = examples[start : start + _QUERIES_PER_BATCH]
            words, table, _ = read_queries(reader, [example.query for example in part])
            for query, example in zip(words, part, strict=True):
                matches = match_query(query, table)
                queries.append(MatchedQuery.of(matches, table, example.gold))
            on_read(len(queries))
        return cls(queries)

    def rows(self, rows: NDArray[np.int64]) -> MatchTable:
        """Some of the queries."""
        return MatchTable(self._some(rows))

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        return padded(self._some(rows))

    def _some(self, rows: NDArray[np.int64]) -> list[MatchedQuery]:
        numbers: list[int] = rows.tolist()
        return [self._queries[number] for number in numbers]


def padded(queries: Sequence[MatchedQuery]) -> Batch:
    """Matched queries as one batch of tensors."""
    sizes = [len(query.words.facts) for query in queries]
    starts = np.cumsum(sizes) - sizes
    numbered = [
        {**query.matches, "query": query.matches["query"] + start}
        for query, start in zip(queries, starts, strict=True)
    ]
    words = WordTable(
        np.concatenate([query.words.vectors for query in queries]),
        np.concatenate([query.words.facts for query in queries]),
        np.concatenate([query.words.stem for query in queries]),
    )
    matches = Matches.of(numbered, words)
    gold = np.zeros(matches.mask.shape, bool)
    for number, query in enumerate(queries):
        gold[number, : len(query.gold)] = query.gold
    tensors = matches.moved(lambda array: torch.from_numpy(np.ascontiguousarray(array)))
    return Batch(tensors, torch.from_numpy(gold), tensors.mask)


@final
class FacetModule(nn.Module):
    """Learns FacetWeights; its input is Matches of torch tensors.

    Args:
        weights: The weights at the start.
        dropout: The share of the network's units that are left out of a training step.
        learns_words: Whether the weights of the words are trained, too. A few hundred examples
            teach the network something; the weights of the words they make worse elsewhere.
    """

    def __init__(
        self, weights: FacetWeights, dropout: float = 0.0, *, learns_words: bool = True
    ) -> None:
        super().__init__()
        self._names = tuple(vars(weights))
        for name, weight in vars(weights).items():
            is_trained = learns_words or name in _NETWORK
            self.register_parameter(name, nn.Parameter(torch.tensor(weight), is_trained))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Matches, mask: Tensor | None = None) -> tuple[SetFunction, Items]:
        """The set function of each query, and its passages as items.

        Args:
            x: The matches of a batch.
            mask: Not used: matches have their own mask.
        """
        del mask
        return self.facets(x).function(x.mask)

    def facets(self, x: Matches) -> Facets:
        """The features of the passages, with the logits of their relevance."""
        return compute_facets(self.weights, x, self.dropout)

    def network_parameters(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """What is trained, in two parts: the network that judges relevance, and the function."""
        trained = [(n, weight) for n, weight in self.named_parameters() if weight.requires_grad]
        network = [weight for name, weight in trained if name in _NETWORK]
        return network, [weight for name, weight in trained if name not in _NETWORK]

    @property
    def weights(self) -> FacetWeights:
        """The parameters, as the formula takes them."""
        return FacetWeights(**{name: self.get_parameter(name) for name in self._names})

    def learned(self) -> FacetWeights:
        """A copy of the weights, as the encoder takes them."""
        arrays = {n: w.detach().cpu().numpy().copy() for n, w in vars(self.weights).items()}
        return FacetWeights(**arrays)


@final
class FacetNetwork(SelectionNetwork):
    """Greedy layers on facets: trained by the loss of the layers, and by that of the relevance.

    Args:
        encoder: A module with `facets(x)`, such as a FacetModule.
        greedy: The layers.
    """

    def __init__(self, encoder: nn.Module, greedy: UnfoldedGreedy) -> None:
        super().__init__()
        self.encoder, self.greedy = encoder, greedy
        self.criterion = LayerwiseCrossEntropy("set")

    def loss(
        self,
        x: Matches,
        gold: Tensor,
        mask: Tensor | None = None,
    ) -> Float[Tensor, ""]:
        real: Tensor = x.mask if mask is None else mask
        facets: Facets = cast("Any", self.encoder).facets(x)
        unfolded = self.greedy(*facets.function(real))
        return self.criterion(unfolded, gold) + relevance_loss(facets.logits, gold, real)

    def loss_terms(self, gold: Tensor, mask: Tensor) -> Float[Tensor, ""]:
        return (gold & mask).any(dim=1).sum().to(torch.float32)

    @torch.no_grad()
    def select(self, x: Matches, mask: Tensor | None = None, k: int | None = None) -> Selections:
        k = self.greedy.layers if k is None else k
        objective, items = self.encoder(x, mask)
        return cast("Selections", greedy(objective, items, k))

    def set_temperature(self, temperature: float) -> None:
        self.greedy.temperature = temperature
