"""What a Selector returns: the selected passages, their gains and relevance, and the reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from dgn.core.functions import Items, SetFunction
from dgn.core.search import Selection
from dgn.errors import require_extra
from dgn.selector.coverage import coverage_after, covered_features, relevance_of
from dgn.text.encoders import Facet
from dgn.text.explanation import Explanation
from dgn.text.explanation.reasons import explain_passages
from dgn.text.query import Passage, Query


@final
@dataclass(frozen=True)
class PassageSelection(Selection):
    """The selection of some passages of a query.

    It is frozen, can be pickled, and keeps no reference to the batch that it came from.

    Attributes:
        indices: The selected passages, as positions in `query.passages`, in order of selection.
        gains: What each of them added to the objective.
        values: The value of the objective after each selection.
        certificate: How close to the best possible set this is, at least.
        query: The query with all its passages.
        facets_of: From a query to its words, with their features.
        objective: The set function of the query, as the encoder gave it.
        items: Its passages as items.
        searched: The function and the items that were really searched: with the caller's scores,
            or for a token limit.
        per_token: Whether passages were selected by gain per token.
    """

    query: Query = field(repr=False)
    facets_of: Callable[[Query], tuple[Facet, ...]] = field(repr=False, compare=False)
    objective: SetFunction = field(repr=False, compare=False)
    items: Items = field(repr=False, compare=False)
    searched: tuple[SetFunction, Items] = field(repr=False, compare=False)
    per_token: bool = field(repr=False, compare=False, default=False)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The selected passages, in order of selection."""
        return tuple(self.query.passages[index] for index in self.indices)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the selected passages, in order of selection."""
        return tuple(passage.text for passage in self.passages)

    @cached_property
    def facets(self) -> tuple[Facet, ...]:
        """The words of the query, with their features."""
        return self.facets_of(self.query)

    @cached_property
    def relevance(self) -> tuple[float, ...]:
        """The relevance of every passage of the query, from 0 to 1.

        The share of the query that the passage covers by itself. If the objective does not define
        coverage, the value of the passage as a share of the value of all passages.
        """
        alone: list[float] = relevance_of(self.objective, self.items).tolist()
        # A passage that repeats another one is as relevant as that one.
        return tuple(alone[twin] if twin < len(alone) else 0.0 for twin in self.query.twins)

    @cached_property
    def coverage(self) -> float | None:
        """The share of the query that the selected passages cover, from 0 to 1.

        A value near 0 means that they do not mention the query. None if the objective does not
        define coverage.
        """
        coverage = coverage_after(self.objective, self.items, self.indices)
        return None if coverage is None else float(coverage[-1])

    def explain(self) -> Explanation:
        """Why each passage was selected, or was not."""
        return self._explanation

    def to_dict(self) -> dict[str, Any]:
        """The selection as JSON can hold it."""
        rows: list[dict[str, Any]] = []
        for index, gain, passage in zip(self.indices, self.gains, self.passages, strict=True):
            known = {
                "title": passage.title or None,
                "document": passage.document,
                "position": passage.position,
                "start": passage.start,
                "end": passage.end,
                "id": passage.id,
                "metadata": dict(passage.metadata) or None,
            }
            row = {
                "index": index,
                "text": passage.text,
                "gain": gain,
                "relevance": self.relevance[index],
            }
            rows.append(row | {name: value for name, value in known.items() if value is not None})
        return {
            "query": self.query.text,
            "selected": rows,
            "coverage": self.coverage,
            "certificate": self.certificate.ratio,
        }

    def to_pandas(self) -> Any:
        """The selected passages as a pandas DataFrame, one row each."""
        require_extra("to_pandas", package="pandas", extra="pandas")
        import pandas as pd

        columns = ["index", "text", "gain", "relevance", "title", "document", "position"]
        columns += ["start", "end", "id", "metadata"]
        return pd.DataFrame(self.to_dict()["selected"], columns=columns)

    @cached_property
    def _explanation(self) -> Explanation:
        covered = covered_features(self.objective, self.items, self.indices)
        facets = self.facets if covered is not None else ()
        shares, weights = covered or (np.zeros((len(self.indices) + 1, 0)), np.zeros(0))
        return explain_passages(
            self.query,
            self,
            *self.searched,
            facets,
            shares,
            weights,
            per_token=self.per_token,
        )
