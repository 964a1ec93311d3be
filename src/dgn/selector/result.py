"""What a Selector returns: the selected passages, their gains and relevance, and the reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from dgn.core import Selection
from dgn.core.functions import Items, SetFunction
from dgn.errors import InvalidInput, require_extra
from dgn.selector.calibration import Calibration, facts_of
from dgn.selector.coverage import coverage_after, covered_alone, covered_features, relevance_of
from dgn.selector.limits import Limits
from dgn.selector.search import PassageSearch
from dgn.text.encoders import Facet
from dgn.text.explanation import Explanation
from dgn.text.explanation.replay import explain_passages
from dgn.text.passages import Passage
from dgn.text.query import Query

if TYPE_CHECKING:
    from dgn.selector.receipt import Receipt


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
        limits: How much was to be selected.
        facets_of: From a query to its words, with their features.
        objective: The set function of the query, as the encoder gave it.
        items: Its passages as items.
        given: The texts that are given with it, as items; None if there are none.
        search: What was really searched: with the caller's scores, within all constraints.
        model: The name and the hash of the model.
        calibration: What turns coverage and relevance into `sufficiency`; None if there is none.
    """

    query: Query = field(repr=False)
    limits: Limits = field(repr=False, compare=False)
    facets_of: Callable[[Query], tuple[Facet, ...]] = field(repr=False, compare=False)
    objective: SetFunction = field(repr=False, compare=False)
    items: Items = field(repr=False, compare=False)
    given: Items | None = field(repr=False, compare=False)
    search: PassageSearch = field(repr=False, compare=False)
    model: tuple[str, str] = field(repr=False, compare=False, default=("", ""))
    calibration: Calibration | None = field(repr=False, compare=False, default=None)

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

        Given texts cover, too. A value near 0 means that they do not mention the query. None if the
        objective does not define coverage.
        """
        coverage = coverage_after(self.objective, self.items, self.indices, self.given)
        return None if coverage is None else float(coverage[-1])

    @cached_property
    def sufficiency(self) -> float | None:
        """The probability that the answer is among the selected passages, from 0 to 1.

        It is None if the model was not calibrated (`dgn calibrate`), if it was calibrated on other
        kinds of queries (in another language), or if the objective does not define coverage.
        """
        if self.calibration is None or self.coverage is None:
            return None
        facts = facts_of(self.coverage, self.objective, self.items, self.indices)
        return self.calibration.probability(facts)

    def explain(self) -> Explanation:
        """Why each passage was selected, or was not."""
        return self._explanation

    def receipt(self) -> Receipt:
        """What happened to every passage, and why; `dgn verify` can compute it again."""
        from dgn.selector.receipt import Receipt

        return Receipt.of(self)

    def context(
        self, order: Literal["reading", "selection"] = "reading", separator: str = "\n"
    ) -> str:
        """The selected passages as the text of a prompt, each with its index for citing.

        Args:
            order: "reading" for the order of the documents and of the passages in them,
                "selection" for the order in which they were selected.
            separator: What stands between two passages.

        Examples:
            >>> from dgn import Selector
            >>> passages = ["Bo runs.", "Ada swims.", "Ada runs, too."]
            >>> print(Selector.from_pretrained().select("Who runs?", passages, k=2).context())
            [0] Bo runs.
            [2] Ada runs, too.
        """
        loose: Any = order
        if loose not in ("reading", "selection"):
            raise InvalidInput("order", found=repr(order), allowed='"reading" or "selection"')
        indices = sorted(self.indices) if order == "reading" else self.indices
        return separator.join(f"[{index}] {self.query.passages[index].text}" for index in indices)

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
            "sufficiency": self.sufficiency,
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
        covered = covered_features(self.objective, self.items, self.indices, self.given)
        facets = self.facets if covered is not None else ()
        shares, weights = covered or (np.zeros((len(self.indices) + 1, 0)), np.zeros(0))
        alone = covered_alone(self.objective, self.items, self.indices)
        return explain_passages(
            self.query,
            self,
            self.search.objective,
            self.search.items,
            facets,
            shares,
            np.zeros((len(self.indices), 0)) if alone is None else alone[0],
            weights,
            self.search.constraints,
            is_stopped=self.limits.stop_at is not None
            and len(self) < self.limits.most(len(self.query.passages)),
            irrelevant=self._irrelevant,
        )

    @property
    def _irrelevant(self) -> frozenset[int]:
        """The passages that `min_relevance` left out."""
        least = self.limits.min_relevance
        if not least:
            return frozenset()
        return frozenset(n for n, one in enumerate(self.relevance) if one < least)
