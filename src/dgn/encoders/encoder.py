"""The one door of the encoders: queries in, a set function and its items out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dgn.arrays import Array, namespace
from dgn.encoders.query import Query
from dgn.objectives import FeatureCoverage, Items, SetFunction


@dataclass(frozen=True)
class Facet:
    """A part of what is asked: for claim facets a word of the claim, and the features of it."""

    name: str
    features: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Encoded:
    """What an encoder makes of a batch of queries.

    objective: what a set of sentences is worth. items: what each sentence offers.
    named: for each query, how many of its first features have a name.
    name_facets: says what those of a query are about; asked only when someone wants to know.
    full: [batch, features] or None, what a sentence would offer that says all of a feature.
    given: [batch, items, features] or None, from 0 to 1, what a sentence's page says of a feature
    anyway, by its title.
    """

    objective: SetFunction
    items: Items
    named: tuple[int, ...]
    name_facets: Callable[[int], tuple[Facet, ...]] = lambda _: ()
    full: Array | None = None
    given: Array | None = None

    def row(self, number: int) -> Encoded:
        """One query of the batch, without padding."""
        xp = namespace(self.items.features)
        size = int(xp.sum(xp.astype(self.items.mask[number], xp.int64)))
        named = self.named[number]
        return Encoded(
            _of_row(self.objective, number),
            Items(self.items.features[number : number + 1, :size]),
            (named,),
            lambda _: self.name_facets(number),
            None if self.full is None else self.full[number : number + 1, :named],
            None if self.given is None else self.given[number : number + 1, :size, :named],
        )


def for_budget(encoded: Encoded) -> Encoded:
    """The same for a search that pays by the token: what can be named, beyond what all have.

    Place, length and what every sentence has anyway are worth the same in a short sentence as in a
    long one: paid by the token, they would buy short sentences that say nothing.
    """
    items, objective = encoded.items, encoded.objective
    if min(encoded.named) and isinstance(objective, FeatureCoverage):
        named = slice(0, max(encoded.named))
        weights = objective.weights
        if weights is not None:
            objective = FeatureCoverage(weights[..., named], objective.concave)
        items = items.columns(named)
    xp = namespace(items.features)
    hidden = xp.where(items.mask[..., None], items.features, xp.inf)
    common = xp.min(hidden, axis=1, keepdims=True)
    return replace(encoded, objective=objective, items=Items(items.features - common, items.mask))


class TextEncoder(ABC):
    """From texts to features."""

    @abstractmethod
    def encode(self, queries: Sequence[Query]) -> Encoded:
        """The queries as a batch of ground sets; at least one query, each with a sentence."""

    @abstractmethod
    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has: what a budget is counted in."""


def _of_row(objective: SetFunction, number: int) -> SetFunction:
    """The same function, with the weights of one query if there are some for each."""
    if isinstance(objective, FeatureCoverage) and getattr(objective.weights, "ndim", 0) == 2:
        return FeatureCoverage(objective.weights[number : number + 1], objective.concave)
    return objective
