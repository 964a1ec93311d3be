"""The formula of the facets with its weights: by the compiled kernel, or by NumPy without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core import native
from dgn.core.functions import FeatureCoverage, Items
from dgn.core.native.facets import FacetKernel, QueryWords, WordTable
from dgn.text.facets.formula import (
    LONGEST_QUERY,
    WHOLE_SCALE,
    FacetWeights,
    encode,
)
from dgn.text.facets.matching import (
    FUNCTION_WORD_SHARE,
    IDF_MIDDLE,
    IDF_SPREAD,
    SAME_STEM,
    SOME_NUMBER,
    TITLE_FROM,
    Matches,
    match_query,
)
from dgn.text.languages import ENGLISH


@final
class Formula:
    """The formula with its weights; from words to a set function and items.

    Args:
        weights: What was learned, or chosen.
    """

    def __init__(self, weights: FacetWeights) -> None:
        self.weights = weights

    def compute(
        self, words: Sequence[QueryWords], table: WordTable
    ) -> tuple[FeatureCoverage, Items]:
        """The set function of each query, and its passages as items."""
        if native.is_available():
            features, weights, target, mask = self.kernel.compute(table, words)
            items = Items(features) if len(words) == 1 else Items(features, mask)
            return FeatureCoverage(weights, target=target), items
        matches = Matches.of([match_query(one, table) for one in words], table)
        return encode(self.weights, matches)

    @cached_property
    def kernel(self) -> FacetKernel:
        """The compiled form."""
        w = {name: np.asarray(weight) for name, weight in vars(self.weights).items()}

        def positive(name: str) -> tuple[float, ...]:
            return tuple(np.logaddexp(w[name], 0).tolist())

        arrays = ("word_weight", "projection", "hidden", "hidden_bias", "output")
        has_relevance = len(w["relevance_weight"]) > 0
        numbers = {
            "threshold": w["threshold"].item(),
            "scale": math.exp(w["log_scale"].item()),
            "title": positive("title")[0],
            "likeness": positive("likeness")[0],
            "likeness_from": w["likeness"][1].item(),
            "relevance": positive("relevance_weight")[0] if has_relevance else -1.0,
            "output_bias": w["output_bias"].item(),
            "middle_idf": IDF_MIDDLE,
            "spread_idf": IDF_SPREAD,
            "same_stem": SAME_STEM,
            "some_number": SOME_NUMBER,
            "title_from": TITLE_FROM,
            "function_share": FUNCTION_WORD_SHARE,
            "whole_scale": WHOLE_SCALE,
            "longest_query": LONGEST_QUERY,
        }
        several = {name: positive(name) for name in ("bonus", "neighbours")}
        return FacetKernel({name: w[name] for name in arrays}, numbers, several)


@final
@dataclass(frozen=True, eq=False)
class Formulas:
    """The formula of English, and that of all other languages.

    Attributes:
        english: For queries in English.
        others: For the other queries.
    """

    english: Formula
    others: Formula

    def encode(
        self, words: Sequence[QueryWords], table: WordTable, languages: Sequence[str]
    ) -> tuple[FeatureCoverage, Items]:
        """The set function of each query, and its passages as items.

        Args:
            words: The words of each query.
            table: What is known about the words.
            languages: The language of each query.
        """
        english = [row for row, code in enumerate(languages) if code == ENGLISH]
        others = [row for row, code in enumerate(languages) if code != ENGLISH]
        if not others or not english:
            formula = self.others if others else self.english
            return formula.compute(words, table)
        return joined(
            [
                (rows, *formula.compute([words[row] for row in rows], table))
                for rows, formula in ((english, self.english), (others, self.others))
            ]
        )


def joined(
    parts: Sequence[tuple[Sequence[int], FeatureCoverage, Items]],
) -> tuple[FeatureCoverage, Items]:
    """Several batches as one, given the row of each of their queries; zeros fill up the rows."""
    count = sum(len(rows) for rows, _, _ in parts)
    size = max(items.size for _, _, items in parts)
    width = max(objective.weights.shape[-1] for _, objective, _ in parts)

    def filled(shape: tuple[int, ...], arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        whole = np.zeros((count, *shape), arrays[0].dtype)
        for (rows, _, _), own in zip(parts, arrays, strict=True):
            whole[np.ix_(rows, *map(range, own.shape[1:]))] = own
        return whole

    weights, target = (
        filled((width,), [getattr(objective, name) for _, objective, _ in parts])
        for name in ("weights", "target")
    )
    features = filled((size, width), [items.features for _, _, items in parts])
    mask = filled((size,), [np.asarray(items.mask) for _, _, items in parts])
    return FeatureCoverage(weights, target=target), Items(features, mask)
