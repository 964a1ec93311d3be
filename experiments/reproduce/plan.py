"""Which networks are trained for the report, and with which settings.

Every model is tuned by a random search of its own with the same number of trials; the best trial on
the claims that choose is then trained with several seeds. There are two recipes: the paper's, on
the features of the paper, and ours, with regularization, on unit vectors.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgn.errors import InvalidInput
from dgn.learn.search_space import PAPER_SEARCH, Dimension, parse_dimension

PAPER, UNIT = "paper", "unit"
"""The two kinds of features: means over all tokens as they are, and over words, of length 1."""

*_SEARCH, _TEMPERATURE = PAPER_SEARCH
_POSITIVE_WEIGHT = "positive_weight=1:20:log"
_START = ("weights_start=0.03:1:log", "scale=1:100:log", "concave=log,sqrt,one-minus-exp")
_REGULARIZED = (*_SEARCH, "dropout=0,0.1,0.3", "scale=1:30:log", "weight_decay=0.01:1:log")
_OUR_LAYERS = ("layers=1:7", _TEMPERATURE)
_DEEP = {"architecture": "deep-encoder", "widths": [701, 702, 300]}
_DEEP_DGN = {"widths": [1439, 1439, 1439, 254]}
"""The paper gives 4,943K parameters and no widths; with these there are 4,943,473."""
_LISTWISE = {"encoder_loss": "listwise"}
_ANNEALED = {"annealing": "geometric", "min_temperature": 1e-3}
_PAPER: dict[str, Any] = {"optimizer": "adam", "layers": 7, "epochs": 20, "patience": 5}
_OURS: dict[str, Any] = {
    "optimizer": "adamw",
    "schedule": "cosine",
    "warmup": 50,
    "ema_decay": 0.995,
    "assignment": "set",
    "epochs": 15,
}


@dataclass(frozen=True)
class Model:
    """A trained row of the tables.

    Attributes:
        name: Its name.
        features: PAPER or UNIT.
        settings: What is the same in every trial of its search.
        search: What its search varies, as `dgn tune` takes it.
    """

    name: str
    features: str
    settings: dict[str, Any]
    search: tuple[str, ...]

    def is_dgn(self, kind: str) -> bool:
        """Whether it is a DGN on this kind of features."""
        return self.features == kind and "architecture" not in self.settings


MODELS = {
    model.name: model
    for model in (
        Model(
            "Encoder",
            PAPER,
            {**_PAPER, "architecture": "encoder"},
            (*_SEARCH, _POSITIVE_WEIGHT),
        ),
        Model("DeepEncoder", PAPER, {**_PAPER, **_DEEP}, (*_SEARCH, _POSITIVE_WEIGHT)),
        Model(
            "Encoder, listwise",
            PAPER,
            {**_PAPER, "architecture": "encoder", **_LISTWISE},
            (*_SEARCH, _TEMPERATURE),
        ),
        Model(
            "DeepEncoder, listwise",
            PAPER,
            {**_PAPER, **_DEEP, **_LISTWISE},
            (*_SEARCH, _TEMPERATURE),
        ),
        Model("DGN", PAPER, _PAPER, (*_SEARCH, _TEMPERATURE)),
        Model("DGN, annealed", PAPER, {**_PAPER, **_ANNEALED}, (*_SEARCH, _TEMPERATURE)),
        Model("DGN, ordered", PAPER, {**_PAPER, "assignment": "ordered"}, (*_SEARCH, _TEMPERATURE)),
        Model(
            "DGN, cumulative",
            PAPER,
            {**_PAPER, "assignment": "cumulative"},
            (*_SEARCH, _TEMPERATURE),
        ),
        Model("DGN, start searched", PAPER, _PAPER, (*_SEARCH, _TEMPERATURE, *_START)),
        Model("Deep DGN", PAPER, {**_PAPER, **_DEEP_DGN}, (*_SEARCH, _TEMPERATURE)),
        Model(
            "Encoder, tuned",
            UNIT,
            {**_OURS, "architecture": "encoder"},
            (*_REGULARIZED, _POSITIVE_WEIGHT),
        ),
        Model("DeepEncoder, tuned", UNIT, {**_OURS, **_DEEP}, (*_REGULARIZED, _POSITIVE_WEIGHT)),
        Model(
            "Encoder, listwise, tuned",
            UNIT,
            {**_OURS, "architecture": "encoder", **_LISTWISE},
            (*_REGULARIZED, *_OUR_LAYERS),
        ),
        Model(
            "DeepEncoder, listwise, tuned",
            UNIT,
            {**_OURS, **_DEEP, **_LISTWISE},
            (*_REGULARIZED, *_OUR_LAYERS),
        ),
        Model("DGN, tuned", UNIT, _OURS, (*_REGULARIZED, *_OUR_LAYERS)),
    )
}
RECIPES = {
    "paper": tuple(name for name, model in MODELS.items() if model.features == PAPER),
    "tuned": tuple(name for name, model in MODELS.items() if model.features == UNIT),
}

TEMPERATURES = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 10.0)
POSITIVE_WEIGHTS = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0)
STARTS: dict[str, dict[str, float]] = {
    f"α {weights:g}, scale {scale:g}": {"weights_start": weights, "scale": scale, "temperature": 1}
    for weights, scale in ((0.3, 3.0), (0.1, 10.0), (0.05, 30.0))
}
"""Where the DGN starts. Small weights on large features give a function that diminishes strongly;
the paper's own is at neither end of the scale (see `regime.py`)."""

LEARNING_RATES = {"ten times the best learning rate": 10.0, "the best": 1.0, "a tenth of it": 0.1}
IMBALANCES = ("1 per gold", "as they are", "4 pages")
"""Of training claims: one other passage for each gold one, their own page, or with the pages of
other claims; see `candidates.varied`."""
IMBALANCE_MODELS = ("DGN", "Encoder, listwise", "Encoder", "Encoder, no weight")
SHARES_OF_CLAIMS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
ABLATIONS: dict[str, dict[str, Any]] = {
    "labels `ordered`": {"assignment": "ordered"},
    "labels `set`": {"assignment": "set"},
    "K = 1": {"layers": 1},
    "K = 3": {"layers": 3},
    "start at the identity": {"start": "identity", "widths": []},
    "straight-through": {"relaxation": "straight-through"},
    "dropout .1": {"dropout": 0.1},
    "average of weights": {"ema_decay": 0.995},
    "a tenth of the learning rate": {},
}
STUDY_MODELS = {
    "start": ("DGN",),
    "temperature": ("DGN",),
    "weight": ("DGN", "Encoder"),
    "imbalance": ("DGN", "Encoder", "Encoder, listwise"),
    "ablation": ("DGN",),
    "claims": ("DGN",),
    "epochs": ("DGN",),
}
"""The studies, and the models whose best settings each of them varies."""
STUDIES = tuple(STUDY_MODELS)


@dataclass(frozen=True)
class PlannedRun:
    """One network to train.

    Attributes:
        study: The study that it belongs to.
        variant: The variant of the study.
        seed: The seed.
        features: The kind of features.
        settings: What differs from the defaults.
        candidates: One of IMBALANCES: the passages of the claims to learn from, and of those that
            choose.
    """

    study: str
    variant: str
    seed: int
    features: str
    settings: dict[str, Any]
    candidates: str = "as they are"

    @property
    def folder(self) -> str:
        """The name of its folder."""
        plain = "".join(c if c.isalnum() or c in ".-" else "-" for c in self.variant)
        return f"{self.study}/{plain.strip('-')}-seed{self.seed}"

    @property
    def is_reported(self) -> bool:
        """Whether it is scored on the reported claims: it selects from them, and is kept."""
        return self.study in ("table", "start", "imbalance")


@dataclass(frozen=True)
class Effort:
    """How much to train.

    Attributes:
        models: The names of the trained rows.
        trials: The number of trials of the search of each model.
        seeds: The number of seeds of the tables.
        study_seeds: The number of seeds of each point of a study.
        studies: The names of the studies.
        epochs: The number of epochs, in place of each model's own.
        claims: The number of claims that every run learns from; None for all. Each seed draws its
            own.
    """

    models: tuple[str, ...] = tuple(MODELS)
    trials: int = 20
    seeds: int = 5
    study_seeds: int = 2
    studies: tuple[str, ...] = STUDIES
    epochs: int | None = None
    claims: int | None = None

    def __post_init__(self) -> None:
        needed = {name for study in self.studies for name in STUDY_MODELS[study]}
        if missing := needed.difference(self.models):
            raise InvalidInput(
                "models",
                message=f"The studies {', '.join(self.studies)} need the models "
                f"{'; '.join(sorted(missing))}; add them, or choose other studies.",
            )


def plan_search(effort: Effort, claims: int, inputs: int) -> list[PlannedRun]:
    """The trials of every model.

    Args:
        effort: How much to train.
        claims: The number of training claims.
        inputs: The dimension of the features.
    """
    runs = [
        PlannedRun("search", f"{name} {trial:02}", 0, MODELS[name].features, settings)
        for name in effort.models
        for trial, settings in enumerate(_trials(MODELS[name], effort.trials, inputs))
    ]
    return [_completed(run, effort, claims) for run in runs]


def plan_tables(
    effort: Effort, claims: int, best: Mapping[str, dict[str, Any]]
) -> list[PlannedRun]:
    """Each model with several seeds, and the studies.

    Args:
        effort: How much to train.
        claims: The number of training claims.
        best: The settings that the search of each model found.
    """
    runs = [
        PlannedRun("table", name, seed, MODELS[name].features, dict(best[name]))
        for name in effort.models
        for seed in range(effort.seeds)
    ]
    runs += [
        run
        for study in effort.studies
        for seed in range(effort.study_seeds)
        for run in _study(study, seed, effort.claims or claims, best)
    ]
    return [_completed(run, effort, claims) for run in runs]


def trials_of(plan: Sequence[PlannedRun], name: str) -> list[PlannedRun]:
    """The trials of a model."""
    return [run for run in plan if run.study == "search" and run.variant[:-3] == name]


def _trials(model: Model, count: int, inputs: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(zlib.crc32(model.name.encode()))
    dimensions = [parse_dimension(text) for text in model.search]
    for _ in range(count):
        drawn = {one.name: _draw(one, random) for one in dimensions}
        *first, _ = model.settings.get("widths", [inputs, 0])
        widths = [*first, drawn.pop("width")]
        yield {**model.settings, **drawn, "widths": widths}


def _draw(dimension: Dimension, random: np.random.Generator) -> Any:
    if dimension.choices:
        return dimension.choices[int(random.integers(len(dimension.choices)))]
    if dimension.is_whole:
        return int(random.integers(int(dimension.low), int(dimension.high) + 1))
    low, high = dimension.low, dimension.high
    drawn = math.exp(random.uniform(math.log(low), math.log(high)))
    return float(f"{drawn if dimension.log else random.uniform(low, high):.3g}")


def _completed(run: PlannedRun, effort: Effort, claims: int) -> PlannedRun:
    """The run with a batch size that gives about 64 steps per epoch."""
    settings = dict(run.settings)
    if effort.claims is not None:
        settings.setdefault("max_queries", min(effort.claims, claims))
    claims = settings.get("max_queries", claims)
    settings["batch_size"] = 2 ** min(8, max(2, round(math.log2(max(claims, 1) / 64))))
    if effort.epochs is not None:
        settings["epochs"] = effort.epochs
    return dataclasses.replace(run, settings=settings)


def _study(
    study: str, seed: int, training_claims: int, best: Mapping[str, dict[str, Any]]
) -> Iterator[PlannedRun]:
    """Variations of the paper's models, at their best settings."""
    dgn = best["DGN"]

    def varied(variant: str, settings: dict[str, Any]) -> PlannedRun:
        return PlannedRun(study, variant, seed, PAPER, settings)

    if study == "start":
        for name, start in STARTS.items():
            yield varied(name, {**dgn, **start})
    elif study == "temperature":
        for temperature in TEMPERATURES:
            fixed = {**dgn, "temperature": temperature}
            yield varied(f"fixed {temperature}", fixed)
            yield varied(f"annealed {temperature}", {**fixed, **_ANNEALED})
    elif study == "weight":
        for weight in POSITIVE_WEIGHTS:
            weighted = {**best["Encoder"], "positive_weight": weight}
            yield varied(f"Encoder {weight}", weighted)
        for weight in (POSITIVE_WEIGHTS[0], POSITIVE_WEIGHTS[-1]):
            yield varied(f"DGN {weight}", {**dgn, "positive_weight": weight})
    elif study == "imbalance":
        unweighted = {**best["Encoder"], "positive_weight": 1.0}
        settings = {**best, "Encoder, no weight": unweighted}
        for name in IMBALANCE_MODELS:
            for candidates in IMBALANCES:
                run = varied(f"{name}: {candidates}", settings[name])
                yield dataclasses.replace(run, candidates=candidates)
    elif study == "ablation":
        for name, change in ABLATIONS.items():
            settings = {**dgn, **change}
            if "tenth" in name:
                settings["learning_rate"] = dgn["learning_rate"] / 10
            yield varied(name, settings)
    elif study == "claims":
        for share in SHARES_OF_CLAIMS:
            claims = max(1, round(share * training_claims))
            yield varied(f"{claims}", {**dgn, "max_queries": claims})
    elif study == "epochs":
        # The paper's figure: no early stop, so that the curves are whole.
        for name, factor in LEARNING_RATES.items():
            rate = dgn["learning_rate"] * factor
            yield varied(name, {**dgn, "patience": 0, "learning_rate": rate})
