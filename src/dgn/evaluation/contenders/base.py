"""The one door of the comparison: questions in, picks out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data.feature_table import FeatureTable
from dgn.data.records import Example
from dgn.errors import InvalidInput
from dgn.evaluation.scores import Hits, hits_at

Picks = NDArray[np.int64]
"""[claims, k], places among a claim's candidates in pick order, −1 where there are fewer."""


@dataclass(frozen=True, eq=False)
class Questions:
    """Claims with their candidates: as text and, of the same claims in the same order, as vectors.

    table: None where no contender needs vectors. made_with: which vectors, and whether scaled to
    length 1, if known. unanswerable: claims for which there is no candidate at all; their evidence
    counts as not found.
    """

    examples: tuple[Example, ...]
    table: FeatureTable | None = None
    made_with: tuple[str, bool] | None = None
    unanswerable: tuple[Example, ...] = ()

    def __post_init__(self) -> None:
        if not self.examples:
            raise InvalidInput("examples", found="none", allowed="at least one claim with pages")
        if self.table is not None:
            ours = [(example.claim.id, len(example.candidates)) for example in self.examples]
            if ours != list(zip(self.table.ids.tolist(), self.table.lengths.tolist(), strict=True)):
                raise InvalidInput(
                    "table", found="features of other claims", allowed="those of the examples"
                )

    @property
    def vectors(self) -> FeatureTable:
        """The table, for a contender that needs one."""
        if self.table is None:
            raise InvalidInput("table", found="none", allowed="features of the examples")
        return self.table

    @cached_property
    def gold(self) -> NDArray[np.bool_]:
        """[claims, items], False for padding."""
        longest = max(len(example.gold) for example in self.examples)
        gold = np.zeros((len(self.examples), longest), dtype=bool)
        for row, example in enumerate(self.examples):
            gold[row, : len(example.gold)] = example.gold
        return gold

    @cached_property
    def missing(self) -> NDArray[np.int64]:
        """[claims], how much of each claim's gold is no candidate."""
        return np.array([len(example.missing) for example in self.examples], dtype=np.int64)

    def hits_at(self, k: int, picks: Picks) -> Hits:
        """What the first k picks found of all gold, also of claims that nobody can answer."""
        lost = [len(example.missing) for example in self.unanswerable]
        none = np.full((len(lost), picks.shape[1]), -1, dtype=np.int64)
        no_gold = np.zeros((len(lost), self.gold.shape[1]), dtype=bool)
        return hits_at(
            k,
            np.concatenate([picks, none]),
            np.concatenate([self.gold, no_gold]),
            np.concatenate([self.missing, np.array(lost, dtype=np.int64)]),
        )


class Contender(ABC):
    """A way to pick. name: how tables call it. parameters: how many numbers it learned."""

    name: str
    parameters: int = 0

    @abstractmethod
    def pick(self, questions: Questions, k: int) -> Picks:
        """Up to k candidates of every claim."""


def best_first(scores: Sequence[NDArray[Any]], k: int) -> Picks:
    """The k best scores of every claim, ties to the lowest place."""
    picks = np.full((len(scores), k), -1, dtype=np.int64)
    for row, of_claim in enumerate(scores):
        best = np.argsort(-of_claim, kind="stable")[:k]
        picks[row, : len(best)] = best
    return picks
