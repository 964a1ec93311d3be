"""What a selector returns: the selected passages, their relevance, and the reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NotRequired, TypedDict, final

import numpy as np

from dgn.core import Selection
from dgn.core.constraints import Constraints
from dgn.core.functions import FacilityLocation, Items, Mixture, SetFunction
from dgn.errors import InvalidInput, require_extra
from dgn.selector.coverage import coverage_after, relevance_of
from dgn.selector.limits import Limits
from dgn.text.encoder import Facet
from dgn.text.explanation import Explanation, PassageReport
from dgn.text.query import Passage, Query


class SelectedRow(TypedDict):
    """A selected passage, as `PassageSelection.to_dict` returns it."""

    index: int
    text: str
    gain: float
    relevance: float
    title: NotRequired[str]
    document: NotRequired[int]
    position: NotRequired[int]
    start: NotRequired[int]
    end: NotRequired[int]
    id: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]


class WordRow(TypedDict):
    """A word of the query: how much it counts, and how far it is covered after each selection."""

    word: str
    weight: float
    is_content: bool
    covered: list[float]


class SelectionDict(TypedDict):
    """What `PassageSelection.to_dict` returns; the last four with `reasons=True`."""

    query: str | None
    selected: list[SelectedRow]
    coverage: float | None
    certificate: float
    words: NotRequired[list[WordRow]]
    gap: NotRequired[list[str]]
    is_repetitive: NotRequired[bool]
    passages: NotRequired[list[PassageReport]]


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
        objective: The function that was maximized, with the caller's scores.
        items: The passages as items of it, without those that repeat others.
        constraints: Which sets were allowed; None if k alone limited the search.
        given: The texts that are given with the query, as items; None if there are none.
        new: The passages as they were searched, without what given texts have said; None if that
            is nothing.
        tokens: The tokens of each passage; None without a token limit.
        nearest_of: The words of a passage that are nearest to those of the query; a copy in another
            process has none.
    """

    query: Query = field(repr=False)
    limits: Limits = field(repr=False, compare=False)
    facets_of: Callable[[Query], tuple[Facet, ...]] = field(repr=False, compare=False)
    objective: SetFunction = field(repr=False, compare=False)
    items: Items = field(repr=False, compare=False)
    constraints: Constraints | None = field(repr=False, compare=False)
    given: Items | None = field(repr=False, compare=False)
    new: Items | None = field(repr=False, compare=False, default=None)
    tokens: tuple[int, ...] | None = field(repr=False, compare=False, default=None)
    nearest_of: Callable[[Query, int], tuple[tuple[str, float], ...]] | None = field(
        repr=False, compare=False, default=None
    )

    def __getstate__(self) -> dict[str, Any]:
        """Without the encoder, which is large."""
        return {**self.__dict__, "nearest_of": None}

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
        coverage, the value of the passage as a share of the value of all passages. Without a query,
        it is 0.
        """
        if not self.query.text:
            return (0.0,) * len(self.query.passages)
        alone: list[float] = relevance_of(self.objective, self.items).tolist()
        # A passage that repeats another one is as relevant as that one.
        return tuple(alone[twin] if twin < len(alone) else 0.0 for twin in self.query.twins)

    @cached_property
    def coverage(self) -> float | None:
        """The share of the query that the selected passages cover, from 0 to 1.

        Given texts cover, too. A value near 0 means that they do not mention the query. None if the
        objective does not define coverage, or if there is no query.
        """
        if not self.query.text:
            return None
        coverage = coverage_after(self.objective, self.items, self.indices, self.given)
        return None if coverage is None else float(coverage[-1])

    @property
    def compared(self) -> int | None:
        """The number of passages that breadth is about, where it is not about all; else None."""
        f, count = self.objective, int(np.count_nonzero(self.items.mask))
        if not isinstance(f, Mixture) or f.columns is None:
            return None
        if not isinstance(f.functions[-1], FacilityLocation):
            return None
        last = f.columns[-1]
        width = last.stop - last.start
        return width if width < count else None

    @property
    def reports(self) -> tuple[PassageReport, ...]:
        """What happened to each passage, and why, in the order of `query.passages`."""
        return self.explain().reports

    def explain(self) -> Explanation:
        """Why each passage was selected, or was not."""
        return self._explanation

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

    def to_dict(self, *, reasons: bool = False) -> SelectionDict:
        """The selection as JSON can hold it.

        Args:
            reasons: Whether it has the words of the query, and one report for each passage, kept
                or dropped.
        """
        rows: list[dict[str, Any]] = []
        for index, gain, passage in zip(self.indices, self.gains, self.passages, strict=True):
            optional = {
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
            rows.append(
                row | {name: value for name, value in optional.items() if value is not None}
            )
        found: Any = {
            "query": self.query.text or None,
            "selected": rows,
            "coverage": self.coverage,
            "certificate": self.certificate.ratio,
        }
        return found | self.explain().to_dict() if reasons else found

    def to_pandas(self) -> Any:
        """The selected passages as a pandas DataFrame, one row each."""
        require_extra("to_pandas", package="pandas", extra="pandas")
        import pandas as pd

        columns = ["index", "text", "gain", "relevance", "title", "document", "position"]
        columns += ["start", "end", "id", "metadata"]
        return pd.DataFrame(self.to_dict()["selected"], columns=columns)

    @cached_property
    def _explanation(self) -> Explanation:
        from dgn.selector.reports import explained

        return explained(self)
