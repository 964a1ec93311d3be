"""scikit-learn: choose rows that represent all rows, or features that represent all features.

Both maximize facility location on similarities, which needs memory for a square of the items that
are chosen from: up to some ten thousand rows, or features.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import FacilityLocation
from dgn.core.search import Selection, lazy_greedy
from dgn.errors import InvalidInput, require_extra
from dgn.selector.limits import integer

require_extra("The scikit-learn adapter", package="sklearn", extra="sklearn")

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import validation

_validation: Any = validation  # whose functions are only partly typed


def _greedy(similarities: NDArray[np.float64], k: Any) -> Selection:
    f = FacilityLocation(np.ones(len(similarities)))
    return cast("Selection", lazy_greedy(f, similarities, min(integer("k", k), len(similarities))))


def _keep(estimator: Any, found: Selection) -> None:
    """Set what scikit-learn calls the fitted attributes."""
    estimator.indices_ = np.array(found.indices)
    estimator.gains_ = np.array(found.gains)
    estimator.certificate_ = found.certificate.ratio


class RowSelector(TransformerMixin, BaseEstimator):
    """Selects the k rows that represent all rows best.

    A row is represented by the most similar selected row; the similarity is the largest squared
    distance minus the squared distance.

        few = RowSelector(k=100).fit(X)
        train(few.transform(X), y[few.indices_])

    `transform` returns fewer rows than it is given, so that it cannot stand inside a Pipeline.

    Args:
        k: The number of rows.

    Attributes:
        indices_: The selected rows, in the order of selection.
        gains_: What each of them added.
        certificate_: At least this share of the best possible value was reached.
    """

    indices_: NDArray[np.int64]
    gains_: NDArray[np.float64]
    certificate_: float

    def __init__(self, k: int = 10) -> None:
        self.k = k

    def fit(self, X: Any, y: Any = None) -> RowSelector:  # noqa: N803
        """Select rows of X; y is not used."""
        del y
        x: Any = _validation.validate_data(self, X, dtype=np.float64)
        scale = np.abs(x).max() or 1.0  # squares of huge numbers would overflow
        x = x / scale
        squares = (x**2).sum(axis=1)
        distances = np.maximum(squares[:, None] + squares[None, :] - 2 * x @ x.T, 0.0)
        np.fill_diagonal(distances, 0.0)
        found = _greedy(distances.max() - distances, self.k)
        _keep(self, found)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """The selected rows of the X that was fitted, in the order of selection."""
        _validation.check_is_fitted(self)
        x: Any = _validation.validate_data(self, X, reset=False, dtype=None)
        if len(x) <= self.indices_.max():
            raise InvalidInput(
                "X", message=f"X has {len(x)} rows; pass the X that `fit` was called with."
            )
        return x[self.indices_]


class FeatureSelector(SelectorMixin, BaseEstimator):
    """Selects the k features that represent all features best.

    A feature is represented by the selected feature with the largest absolute correlation. It
    works in a Pipeline, and has `get_support` and `get_feature_names_out`.

    Args:
        k: The number of features.

    Attributes:
        indices_: The selected features, in the order of selection.
        gains_: What each of them added.
        certificate_: At least this share of the best possible value was reached.
    """

    indices_: NDArray[np.int64]
    gains_: NDArray[np.float64]
    certificate_: float

    def __init__(self, k: int = 10) -> None:
        self.k = k

    def fit(self, X: Any, y: Any = None) -> FeatureSelector:  # noqa: N803
        """Select features of X; y is not used."""
        del y
        x: Any = _validation.validate_data(self, X, dtype=np.float64)
        x = x / (np.abs(x).max(axis=0) + (np.abs(x).max(axis=0) == 0))
        x = x - x.mean(axis=0)
        lengths = np.sqrt((x**2).sum(axis=0))
        x = x / np.where(lengths > 1e-9, lengths, np.inf)  # a constant represents nothing
        found = _greedy(np.clip(np.abs(x.T @ x), 0.0, 1.0), self.k)
        _keep(self, found)
        return self

    def _get_support_mask(self) -> Any:
        _validation.check_is_fitted(self)
        mask = np.zeros(cast("Any", self).n_features_in_, np.bool_)
        mask[self.indices_] = True
        return mask
