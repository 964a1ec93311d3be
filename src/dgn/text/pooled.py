"""Pooled vectors at run time: the encoder of the paper, trained or not; NumPy alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import (
    Concave,
    FacilityLocation,
    FeatureCoverage,
    Items,
    Log1p,
    OneMinusExp,
    Power,
    Saturated,
    SetFunction,
)
from dgn.errors import BrokenInput, InvalidInput
from dgn.parts import Registry
from dgn.text.encoder import Encoder, ReadArrays, require_keys, require_sizes
from dgn.text.query import Query
from dgn.text.vectors import PooledVectors, open_vectors, unit_rows
from dgn.text.words import split_words

CONCAVE: Registry[Concave] = Registry(
    "concave",
    "dgn.concave",
    Concave,
    {"log": Log1p, "power": Power, "one-minus-exp": OneMinusExp, "saturated": Saturated},
)
OBJECTIVES: Registry[SetFunction] = Registry(
    "objective",
    "dgn.objectives",
    SetFunction,
    {"feature-coverage": FeatureCoverage, "facility-location": FacilityLocation},
)


@final
class PooledEncoder(Encoder):
    """X = query ⊙ passage of pooled vectors, through the layers that were learned.

    Without weights this is the untrained greedy baseline of the paper: relu(scale · X), all
    features with the same weight.

    Args:
        vectors: The vectors of texts.
        scale: Untrained only: what X is multiplied with.
        unit: Whether the vectors are scaled to length 1.
        weights: What was learned: `features.layers.N.weight` and `.bias` for each layer, and
            either `objective.raw` (a DGN) or `score.weight` and `score.bias` (a pointwise model).
        source: The vectors as `open_vectors` takes them, for saving.
        objective: The set function of a DGN, as a configuration names it.
        concave: Its φ, likewise.
    """

    family = "pooled"
    description = (
        "The features are computed from X = query ⊙ passage, the element-wise product of the mean "
        "word vectors of query and passage, as in the paper."
    )
    limits = (
        "It sees one mean vector per text: no word order, no title, no single words, and no other "
        "vectors than those that it was trained with."
    )

    def __init__(
        self,
        vectors: PooledVectors,
        scale: float = 100.0,
        *,
        unit: bool = True,
        weights: Mapping[str, NDArray[Any]] | None = None,
        source: str = "",
        objective: str = "feature-coverage",
        concave: str = "log",
    ) -> None:
        self._vectors, self._scale, self._unit = vectors, scale, unit
        self.weights, self._source = dict(weights or {}), source
        self._names = {"objective": objective, "concave": concave}
        self._build = objective_of(objective, concave)

    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        texts = [text for query in queries for text in (query.text, *query.texts)]
        vectors = np.asarray(self._vectors.pooled(texts))
        if self._unit:
            vectors = unit_rows(vectors)
        # Features on disk are float16; the same rounding gives the same selection as in training.
        vectors = vectors.astype(np.float16).astype(np.float32)
        longest = max(len(query.passages) for query in queries)
        x = np.zeros((len(queries), longest, vectors.shape[1]), np.float32)
        mask = np.zeros((len(queries), longest), np.bool_)
        start = 0
        for row, query in enumerate(queries):
            count = len(query.passages)
            x[row, :count] = vectors[start] * vectors[start + 1 : start + 1 + count]
            mask[row, :count] = True
            start += 1 + count
        return self._set_function(x, mask)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(split_words(text)) for text in texts]

    @property
    def fingerprint(self) -> str:
        return f"{type(self).__name__} {self._vectors.fingerprint}"

    @property
    def parameters(self) -> int:
        return sum(weight.size for weight in self.weights.values())

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        if not self.weights:
            return super().save()
        description = {
            "family": self.family,
            "vectors": self._vectors.fingerprint,
            "source": self._source,
            "unit": self._unit,
            "widths": widths_of(self.weights),
            "pointwise": "score.weight" in self.weights,
            **self._names,
        }
        return description, self.weights

    def _set_function(self, x: NDArray[Any], mask: NDArray[Any]) -> tuple[SetFunction, Items]:
        if not self.weights:
            return FeatureCoverage(), Items(np.maximum(self._scale * x, 0), mask)
        hidden = x
        for layer in range(len(widths_of(self.weights)) - 1):
            weight = self.weights[f"features.layers.{layer}.weight"]
            hidden = hidden @ weight.T + self.weights[f"features.layers.{layer}.bias"]
            hidden = np.maximum(hidden, 0)
        if "objective.raw" in self.weights:
            alpha = np.logaddexp(self.weights["objective.raw"], np.float32(0))
            return self._build(alpha), Items(hidden, mask)
        score = hidden @ self.weights["score.weight"].T + self.weights["score.bias"]
        # Probabilities keep the order of the scores and make a modular set function of them;
        # in float64, because large scores must not become equal.
        probability = np.exp(-np.logaddexp(0, -score.astype(np.float64)))
        return FeatureCoverage(concave=Power(1.0)), Items(probability, mask)

    @classmethod
    def load(
        cls, description: Mapping[str, Any], arrays: ReadArrays, vectors: str | None
    ) -> PooledEncoder:
        # Models from before there was a choice name neither.
        description = {"objective": "feature-coverage", "concave": "log", **description}
        kinds: dict[str, type] = {
            "objective": str,
            "vectors": str,
            "source": str,
            "unit": bool,
            "widths": list,
            "pointwise": bool,
            "concave": str,
        }
        require_keys(description, **kinds)
        widths = cast("list[int]", description["widths"])
        require_sizes(widths)
        if len(widths) < 2:
            raise InvalidInput("widths", found=str(widths), allowed="at least two sizes")
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, (before, after) in enumerate(itertools.pairwise(widths)):
            shapes[f"features.layers.{layer}.weight"] = (after, before)
            shapes[f"features.layers.{layer}.bias"] = (after,)
        if description["pointwise"]:
            shapes |= {"score.weight": (1, widths[-1]), "score.bias": (1,)}
        else:
            shapes["objective.raw"] = (widths[-1],)
        objective_of(description["objective"], description["concave"])
        weights = arrays(shapes)
        source = vectors or description["source"]
        opened = _open(source, description["vectors"])
        if opened.dimension != widths[0]:
            raise InvalidInput(
                "widths",
                message=f"The model has {widths[0]} inputs, and the vectors have the dimension "
                f"{opened.dimension}.",
            )
        return cls(
            opened,
            unit=description["unit"],
            weights=weights,
            source=source,
            objective=description["objective"],
            concave=description["concave"],
        )


def objective_of(objective: str, concave: str) -> Callable[[Any], SetFunction]:
    """What makes the set function of learned weights, [features].

    Args:
        objective: A name of `OBJECTIVES`.
        concave: A name of `CONCAVE`; only "log" for an objective without a concave function.

    Raises:
        InvalidInput: There is no such part, or it has no weights to learn.
    """
    phi = CONCAVE.build(concave)
    if not OBJECTIVES.takes(objective, "weights"):
        raise InvalidInput(
            "objective",
            message=f"The objective {objective} has no argument weights, which is what is learned.",
        )
    if concave != "log" and not OBJECTIVES.takes(objective, "concave"):
        raise InvalidInput(
            "concave", message=f"The objective {objective} has no concave function to choose."
        )
    return lambda weights: OBJECTIVES.build(objective, weights=weights, concave=phi)


def widths_of(weights: Mapping[str, NDArray[Any]]) -> list[int]:
    """The number of inputs, then the width of every layer."""
    layers = sum(
        name.startswith("features.layers.") and name.endswith(".weight") for name in weights
    )
    shapes = [weights[f"features.layers.{layer}.weight"].shape for layer in range(layers)]
    return [shapes[0][1], *(shape[0] for shape in shapes)]


def _open(source: str, fingerprint: str) -> Any:
    hint = "pass vectors=, the file or the name of the vectors that the model was trained with"
    if not source:
        raise InvalidInput(
            "vectors", message=f"The model does not say which vectors it needs; {hint}."
        )
    try:
        opened = open_vectors(source)
    except (BrokenInput, InvalidInput) as error:
        raise InvalidInput(
            "vectors", message=f"The vectors of the model cannot be opened ({error}); {hint}."
        ) from error
    if opened.fingerprint != fingerprint:
        raise InvalidInput(
            "vectors", message=f"{source} is not what the model was trained with; {hint}."
        )
    return opened
