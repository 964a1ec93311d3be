"""Which networks are trained for the report, and with which settings.

Every model is tuned by a random search of its own with the same number of trials; the best trial on
the claims that choose is then trained with several seeds. Rows of the kind PAPER have the training
of the paper; those of the kind UNIT have ours, with regularization. A study varies one thing at the
best settings of the paper's models.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from dgn.errors import InvalidInput
from experiments.paper.features import PAPER, UNIT
from experiments.paper.networks import Settings
from experiments.paper.training import Run

Search = Mapping[str, Sequence[Any]]
"""By setting: ("log", low, high), ("from", low, high), or ("one of", …)."""

_RATE: Search = {"learning_rate": ("log", 1e-4, 1e-2), "width": ("from", 64, 300)}
_TEMPERATURE: Search = {"temperature": ("from", 0.5, 6.0)}
_WEIGHT: Search = {"positive_weight": ("log", 1.0, 20.0)}
_START: Search = {
    "weights_start": ("log", 0.03, 1.0),
    "scale": ("log", 1.0, 100.0),
    "concave": ("one of", "log", "sqrt", "one-minus-exp"),
}
_REGULARIZED: Search = {
    **_RATE,
    "dropout": ("one of", 0.0, 0.1, 0.3),
    "scale": ("log", 1.0, 30.0),
    "weight_decay": ("log", 0.01, 1.0),
}
_LAYERS: Search = {"layers": ("from", 1, 7), **_TEMPERATURE}

_PAPERS = Settings()
_OURS = Settings(cosine=True, ema_decay=0.995, labels="set", epochs=15, patience=0)
_DEEP = (701, 702, 300)
DEEP_DGN = (1439, 1439, 1439, 254)
"""The paper gives 4,943K parameters and no widths; with these there are 4,943,473."""

ONE_LAYER = (553,)
"""The paper has one encoder layer in a figure and two in its text; 300 → 553 has 167K, too."""


@dataclass(frozen=True)
class Model:
    """A trained row of the tables.

    Attributes:
        kind: The kind of features.
        settings: What is the same in every trial; "width" of the search is the last layer.
        search: What is searched; nothing where the row has the best settings of another one.
        like: The row whose best settings it has, with `changes`.
        changes: What differs from that row.
    """

    kind: str
    settings: Settings = _PAPERS
    search: Search | None = None
    like: str = ""
    changes: tuple[tuple[str, Any], ...] = ()


def _encoder(settings: Settings, *, deep: bool, listwise: bool) -> Settings:
    widths = _DEEP if deep else settings.widths
    return replace(settings, architecture="encoder", widths=widths, listwise=listwise)


def _pair(kind: str, addition: str, settings: Settings, rate: Search, layers: Search) -> Any:
    """The Encoder and the DeepEncoder, with their own loss and with that of the DGN."""
    for listwise, loss in ((False, _WEIGHT), (True, layers)):
        for deep in (False, True):
            name = ("Deep" if deep else "") + "Encoder" + (", listwise" if listwise else "")
            made = _encoder(settings, deep=deep, listwise=listwise)
            yield name + addition, Model(kind, made, {**rate, **loss})


_SEARCH: Search = {**_RATE, **_TEMPERATURE}
_WIDTH_IS_GIVEN: Search = {name: _SEARCH[name] for name in ("learning_rate", "temperature")}
MODELS: dict[str, Model] = {
    **dict(_pair(PAPER, "", _PAPERS, _RATE, _TEMPERATURE)),
    "DGN": Model(PAPER, search=_SEARCH),
    "DGN, annealed": Model(PAPER, replace(_PAPERS, annealing=0.9), _SEARCH),
    "DGN, ordered": Model(PAPER, replace(_PAPERS, labels="ordered"), _SEARCH),
    "DGN, start searched": Model(PAPER, search={**_SEARCH, **_START}),
    "DGN, cumulative": Model(PAPER, replace(_PAPERS, loss="cumulative"), _SEARCH),
    "DGN, last layer": Model(PAPER, replace(_PAPERS, loss="last layer"), _SEARCH),
    "DGN, one layer": Model(PAPER, replace(_PAPERS, widths=ONE_LAYER), _WIDTH_IS_GIVEN),
    "Deep DGN": Model(PAPER, replace(_PAPERS, widths=DEEP_DGN), _WIDTH_IS_GIVEN),
    "DGN, ten times the rate": Model(PAPER, like="DGN"),
    "DGN, naive log, τ = .01": Model(
        PAPER, like="DGN", changes=(("loss", "naive log"), ("temperature", 0.01))
    ),
    "DGN, τ = .01": Model(PAPER, like="DGN", changes=(("temperature", 0.01),)),
    **dict(_pair(UNIT, ", tuned", _OURS, _REGULARIZED, _LAYERS)),
    "DGN, tuned": Model(UNIT, _OURS, {**_REGULARIZED, **_LAYERS}),
}
RECIPES = {
    kind: tuple(name for name, model in MODELS.items() if model.kind == kind)
    for kind in (PAPER, UNIT)
}

TEMPERATURES = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 10.0)
POSITIVE_WEIGHTS = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0)
STARTS = {
    f"α {weights:g}, scale {scale:g}": {
        "weights_start": weights,
        "scale": scale,
        "temperature": 1.0,
    }
    for weights, scale in ((0.3, 3.0), (0.1, 10.0), (0.05, 30.0))
}
"""Where the DGN starts. Small weights on large features: a function that diminishes strongly."""

LEARNING_RATES = {"ten times the best learning rate": 10.0, "the best": 1.0, "a tenth of it": 0.1}
IMBALANCES = ("1 per gold", "as they are", "4 pages")
"""Of training claims: one other sentence for each gold one, their own page, or further pages."""

IMBALANCE_MODELS = ("DGN", "Encoder, listwise", "Encoder", "Encoder, no weight")
SHARES_OF_CLAIMS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
ABLATIONS: dict[str, dict[str, Any]] = {
    "labels `ordered`": {"labels": "ordered"},
    "labels `set`": {"labels": "set"},
    "K = 1": {"layers": 1},
    "K = 3": {"layers": 3},
    "start at the identity": {"identity": True},
    "gumbel": {"relaxation": "gumbel"},
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


@dataclass(frozen=True)
class Effort:
    """How much to train: models, trials of each search, seeds, studies and their seeds."""

    models: tuple[str, ...] = tuple(MODELS)
    trials: int = 20
    seeds: int = 5
    study_seeds: int = 2
    studies: tuple[str, ...] = tuple(STUDY_MODELS)
    epochs: int | None = None
    claims: int | None = None

    def __post_init__(self) -> None:
        needed = {name for study in self.studies for name in STUDY_MODELS[study]}
        needed |= {MODELS[name].like for name in self.models} - {""}
        if missing := needed.difference(self.models):
            raise InvalidInput(
                "models",
                message="The chosen studies and rows need the models "
                f"{'; '.join(sorted(missing))}; add them, or choose others.",
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of features that the models need."""
        return tuple(dict.fromkeys(MODELS[name].kind for name in self.models))


def plan_search(effort: Effort, claims: int, inputs: int) -> list[Run]:
    """The trials of every model that has a search of its own.

    Args:
        effort: How much to train.
        claims: The number of training claims.
        inputs: The dimension of the features.
    """
    runs: list[Run] = []
    for name in effort.models:
        model = MODELS[name]
        if model.search is not None:
            random = np.random.default_rng(zlib.crc32(name.encode()))
            for trial in range(effort.trials):
                settings = _drawn(model.settings, model.search, inputs, random)
                runs.append(Run("search", f"{name} {trial:02}", 0, model.kind, settings))
    return [_completed(run, effort, claims) for run in runs]


def plan_tables(effort: Effort, claims: int, best: Mapping[str, Settings]) -> list[Run]:
    """Each model with several seeds, and the studies.

    Args:
        effort: How much to train.
        claims: The number of training claims.
        best: The settings that the search of each model found.
    """
    runs = [
        Run("table", name, seed, MODELS[name].kind, settings_of(name, best))
        for name in effort.models
        for seed in range(effort.seeds)
    ]
    for study in effort.studies:
        for seed in range(effort.study_seeds):
            for variant, settings in _study(study, effort.claims or claims, best):
                runs.append(Run(study, variant, seed, PAPER, settings))
    return [_completed(run, effort, claims) for run in runs]


def settings_of(name: str, best: Mapping[str, Settings]) -> Settings:
    """The settings of a row of the tables."""
    model = MODELS[name]
    if not model.like:
        return best[name]
    settings = replace(best[model.like], **dict(model.changes))
    if name == "DGN, ten times the rate":
        return replace(settings, learning_rate=10 * settings.learning_rate)
    return settings


def trials_of(plan: Sequence[Run], name: str) -> list[Run]:
    """The trials of a model."""
    return [run for run in plan if run.study == "search" and run.variant[:-3] == name]


def _drawn(
    settings: Settings, search: Search, inputs: int, random: np.random.Generator
) -> Settings:
    drawn: dict[str, Any] = {}
    for name, (how, *values) in search.items():
        if how == "one of":
            drawn[name] = values[int(random.integers(len(values)))]
            continue
        low, high = cast("tuple[float, float]", values)
        if name in ("width", "layers"):
            drawn[name] = int(random.integers(int(low), int(high) + 1))
        elif how == "log":
            drawn[name] = _rounded(math.exp(random.uniform(math.log(low), math.log(high))))
        else:
            drawn[name] = _rounded(random.uniform(low, high))
    if "width" in drawn:
        first = settings.widths[:-1] if len(settings.widths) > 2 else (inputs,)
        drawn["widths"] = (*first, drawn.pop("width"))
    return replace(settings, **drawn)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _completed(run: Run, effort: Effort, claims: int) -> Run:
    """The run with a batch size that gives about 64 steps per epoch."""
    settings = run.settings
    if effort.claims is not None and not settings.claims:
        settings = replace(settings, claims=min(effort.claims, claims))
    learned = settings.claims or claims
    batch_size = 2 ** min(8, max(2, round(math.log2(max(learned, 1) / 64))))
    epochs = settings.epochs if effort.epochs is None else effort.epochs
    return replace(run, settings=replace(settings, batch_size=batch_size, epochs=epochs))


def _study(study: str, claims: int, best: Mapping[str, Settings]) -> Iterator[tuple[str, Settings]]:
    """The variants of a study of the paper's models, at their best settings."""
    dgn = best["DGN"]
    if study == "start":
        for name, start in STARTS.items():
            yield name, replace(dgn, **start)
    elif study == "temperature":
        for temperature in TEMPERATURES:
            yield f"fixed {temperature}", replace(dgn, temperature=temperature)
            yield f"annealed {temperature}", replace(dgn, temperature=temperature, annealing=0.9)
    elif study == "weight":
        for weight in POSITIVE_WEIGHTS:
            yield f"Encoder {weight}", replace(best["Encoder"], positive_weight=weight)
        for weight in (POSITIVE_WEIGHTS[0], POSITIVE_WEIGHTS[-1]):
            yield f"DGN {weight}", replace(dgn, positive_weight=weight)
    elif study == "imbalance":
        models = {**best, "Encoder, no weight": replace(best["Encoder"], positive_weight=1.0)}
        for name in IMBALANCE_MODELS:
            for candidates in IMBALANCES:
                yield f"{name}: {candidates}", replace(models[name], candidates=candidates)
    elif study == "ablation":
        for name, change in ABLATIONS.items():
            settings = replace(dgn, **change)
            if settings.identity:  # hidden layers would have to be as wide as the inputs
                settings = replace(settings, widths=dgn.widths[:1])
            if "tenth" in name:
                settings = replace(settings, learning_rate=dgn.learning_rate / 10)
            yield name, settings
    elif study == "claims":
        for share in SHARES_OF_CLAIMS:
            few = max(1, round(share * claims))
            yield f"{few}", replace(dgn, claims=few)
    elif study == "epochs":
        # The paper's figure: no early stop, so that the curves are whole.
        for name, factor in LEARNING_RATES.items():
            rate = factor * dgn.learning_rate
            yield name, replace(dgn, patience=0, learning_rate=rate)
