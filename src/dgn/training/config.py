"""What a run is told: one frozen dataclass behind the TOML file and the flags.

A section of the dataclass is a table of the file; names are unique across sections, so that the
flags need none: `fit.learning_rate` is `learning_rate` in the table [fit], and --learning-rate.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

from dgn.errors import BrokenInput, InvalidInput
from dgn.features import ENCODERS
from dgn.unfolding import Fixed, Geometric, Linear, Schedule

MODELS = ("dgn", "encoder", "deep-encoder")


def setting(default: Any, says: str, *, choices: tuple[str, ...] = ()) -> Any:
    """A field that knows its own help text."""
    return field(default=default, metadata={"says": says, "choices": choices})


@dataclass(frozen=True)
class DataConfig:
    """Which features are learned from, and which ones judge."""

    train: tuple[str, ...] = setting((), "folders of features to learn from")
    validation: str = setting("", "a folder of features that chooses the best epoch")
    claims: int = setting(0, "learn from this many claims, drawn by the seed; 0 for all")
    partial: tuple[str, ...] = setting(
        (), "further folders to learn from, whose gold is incomplete (facets)"
    )
    unlabelled: float = setting(
        1.0, "how much a sentence of theirs without a label counts against the gold (facets)"
    )

    def __post_init__(self) -> None:
        _check_least(self, 0, "claims")
        _check_above(self, 0, "unlabelled")


@dataclass(frozen=True)
class NetworkConfig:
    """What is trained, and where it starts."""

    model: str = setting("dgn", "what to train", choices=MODELS)
    encoder: str = setting(
        "pooled",
        "what a DGN sees: pooled vectors, as in the paper, or the claim's words (facets)",
        choices=ENCODERS,
    )
    rank: int = setting(0, "rank of the learned part of the facets' similarity")
    compared: int = setting(0, "units that compare a word with its match (facets)")
    hidden: int = setting(64, "hidden units of the facets' small network")
    more_features: int = setting(16, "features beside the words; 0 for no network (facets)")
    widths: tuple[int, ...] = setting((), "units of each encoder layer; the paper's if left out")
    start: str = setting(
        "random",
        "identity: start exactly at the untrained greedy (or Top-k)",
        choices=("random", "identity"),
    )
    scale: float = setting(1.0, "what the inputs are multiplied with at the start")
    dropout: float = setting(0.0, "share of hidden units left out of a training step")
    layers: int = setting(7, "K, the greedy layers of a DGN in training")
    relaxation: str = setting(
        "softmax", "how a greedy layer chooses", choices=("softmax", "straight-through", "gumbel")
    )
    assignment: str = setting(
        "set", "which gold item is a layer's label", choices=("ordered", "matched", "set")
    )
    positive_weight: float = setting(5.0, "how often gold counts in the encoders' loss")

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_above(self, 0, "scale", "positive_weight")
        _check_least(self, 1, "layers", "hidden")
        _check_least(self, 0, "rank", "compared", "more_features")
        if self.encoder == "facets" and self.model != "dgn":
            raise InvalidInput("encoder", found=f"facets for the {self.model}", allowed="model dgn")
        if not 0 <= self.dropout < 1:
            raise InvalidInput("dropout", found=f"{self.dropout}", allowed="0 ≤ dropout < 1")


@dataclass(frozen=True)
class FitConfig:
    """How it is trained."""

    epochs: int = setting(20, "passes over the training claims, at most")
    patience: int = setting(0, "stop after this many epochs without a better one; 0 for never")
    batch_size: int = setting(256, "claims a step")
    optimizer: str = setting("adam", "adam is the paper's", choices=("adam", "adamw"))
    learning_rate: float = setting(1e-3, "the highest that the schedule reaches")
    schedule: str = setting(
        "constant",
        "the learning rate from the first step to the last",
        choices=("constant", "linear", "cosine"),
    )
    warmup: int = setting(0, "steps over which the learning rate rises from 0")
    weight_decay: float = setting(0.0, "decay towards 0, times the learning rate; for adamw")
    decay_to_start: float = setting(
        0.0, "decay towards the weights of the start, times the learning rate"
    )
    clip: float = setting(0.0, "the largest norm of a gradient; 0 for any")
    average: float = setting(0.0, "decay of a moving average of the weights; 0 for none")
    temperature: float = setting(4.0, "τ of the greedy layers, at the start")
    annealing: str = setting(
        "fixed", "τ from epoch to epoch", choices=("fixed", "geometric", "linear")
    )
    annealing_factor: float = setting(0.9, "what geometric annealing multiplies τ with")
    lowest_temperature: float = setting(0.01, "where annealing ends")
    precision: str = setting(
        "float32", "bfloat16: mixed precision, for GPUs", choices=("float32", "bfloat16")
    )
    judged_at: tuple[int, ...] = setting(
        (1, 3, 5, 7), "the k whose mean validation recall chooses the best epoch"
    )
    never_below_start: str = setting(
        "mean",
        "what the best epoch must hold against the start: its mean recall, or that at every k",
        choices=("mean", "every-k"),
    )
    distill: float = setting(
        0.0, "share of the loss that soft labels have, where there are some (facets)"
    )
    soft_temperature: float = setting(2.0, "what soft labels are divided by before the softmax")
    seed: int = setting(0, "decides the start, the order of claims and dropout")

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_least(self, 1, "epochs", "batch_size")
        _check_least(
            self, 0, "patience", "warmup", "weight_decay", "decay_to_start", "clip", "seed"
        )
        _check_above(self, 0, "learning_rate")
        _check_above(self, 0, "soft_temperature")
        if not 0 <= self.distill <= 1:
            raise InvalidInput("distill", found=f"{self.distill}", allowed="from 0 to 1")
        if self.seed >= 2**63:
            raise InvalidInput("seed", found=str(self.seed), allowed="below 2⁶³")
        if not 0 <= self.average < 1:
            raise InvalidInput("average", found=f"{self.average}", allowed="0 ≤ average < 1")
        if not self.judged_at or min(self.judged_at) < 1:
            raise InvalidInput("judged_at", found=str(self.judged_at), allowed="numbers from 1 on")
        if self.weight_decay and self.optimizer != "adamw":
            raise InvalidInput(
                "weight_decay", found=f"{self.weight_decay} with adam", allowed="optimizer adamw"
            )
        self.temperatures.at(0)

    @property
    def temperatures(self) -> Schedule:
        """τ for every epoch."""
        if self.annealing == "geometric":
            return Geometric(self.temperature, self.annealing_factor, self.lowest_temperature)
        if self.annealing == "linear":
            return Linear(self.temperature, self.lowest_temperature, self.epochs)
        return Fixed(self.temperature)


@dataclass(frozen=True)
class MachineConfig:
    """Where it runs; a run may go on elsewhere."""

    device: str = setting("auto", "auto, cpu, cuda or cuda:N")
    checkpoint_seconds: float = setting(30.0, "how much work a crash may cost, in seconds")

    def __post_init__(self) -> None:
        _check_least(self, 0, "checkpoint_seconds")


@dataclass(frozen=True)
class RunConfig:
    """All that a run is told."""

    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    fit: FitConfig = field(default_factory=FitConfig)
    machine: MachineConfig = field(default_factory=MachineConfig)

    def with_settings(self, settings: Mapping[str, Any]) -> RunConfig:
        """With some settings changed, by their names alone."""
        known = {name: section for section, names in SETTINGS.items() for name in names}
        for name in settings:
            if name not in known:
                raise InvalidInput("settings", found=_unknown(name, known), allowed="known names")
        changed = {
            section: dataclasses.replace(
                getattr(self, section),
                **{
                    name: _converted(name, kind, settings[name])
                    for name, kind in names.items()
                    if name in settings
                },
            )
            for section, names in SETTINGS.items()
        }
        return RunConfig(**changed)

    def as_tables(self) -> dict[str, Any]:
        """As JSON and TOML hold it: a dictionary a section."""
        return {section: dataclasses.asdict(getattr(self, section)) for section in SETTINGS}


SECTIONS = {
    "data": DataConfig,
    "network": NetworkConfig,
    "fit": FitConfig,
    "machine": MachineConfig,
}
SETTINGS: dict[str, dict[str, Any]] = {
    section: {one.name: get_type_hints(kind)[one.name] for one in dataclasses.fields(kind)}
    for section, kind in SECTIONS.items()
}


def read_config(path: Path) -> RunConfig:
    """The settings of a TOML file; what it does not name has its default."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput("config", found=f"no file {path}", allowed="a TOML file") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BrokenInput(path, None, found=str(error), allowed="TOML") from None
    return config_of(tables, path)


def config_of(tables: Mapping[str, Any], source: object) -> RunConfig:
    """The configuration that a file's tables describe; an unknown name is an error."""
    settings: dict[str, Any] = {}
    for section, table in tables.items():
        if section not in SETTINGS or type(table) is not dict:
            raise BrokenInput(
                source, None, found=_unknown(f"[{section}]", SETTINGS), allowed=", ".join(SETTINGS)
            )
        for name, value in cast(dict[str, Any], table).items():
            if name not in SETTINGS[section]:
                allowed = ", ".join(SETTINGS[section])
                found = _unknown(name, SETTINGS[section])
                raise BrokenInput(source, None, found=f"[{section}] {found}", allowed=allowed)
            settings[name] = value
    try:
        return RunConfig().with_settings(settings)
    except InvalidInput as error:
        place = f"{error.argument} = {error.found}"
        raise BrokenInput(source, None, found=place, allowed=error.allowed) from None


def _unknown(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name.strip("[]"), known, n=1)
    return f"unknown {name}" + (f" (did you mean {near[0]}?)" if near else "")


def _converted(name: str, kind: Any, value: Any) -> Any:
    """The value as its type wants it: TOML has no tuples, and 1 is a fine float."""
    if get_origin(kind) is tuple and type(value) in (list, tuple):
        return tuple(_converted(name, get_args(kind)[0], one) for one in value)
    if kind == tuple[str, ...] and type(value) is str:
        return (value,)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        wanted = "a list" if get_origin(kind) is tuple else f"a value of type {kind.__name__}"
        raise InvalidInput(name, found=repr(value), allowed=wanted)
    if kind is float and not math.isfinite(value):
        raise InvalidInput(name, found=str(value), allowed="a finite number")
    return value


def _check_choices(section: Any) -> None:
    for one in dataclasses.fields(section):
        choices, found = one.metadata["choices"], getattr(section, one.name)
        if choices and found not in choices:
            raise InvalidInput(one.name, found=repr(found), allowed=", ".join(choices))


def _check_above(section: Any, bound: float, *names: str) -> None:
    for name in names:
        if not getattr(section, name) > bound:
            raise InvalidInput(name, found=f"{getattr(section, name)}", allowed=f"above {bound}")


def _check_least(section: Any, bound: float, *names: str) -> None:
    for name in names:
        if not getattr(section, name) >= bound:
            raise InvalidInput(name, found=f"{getattr(section, name)}", allowed=f"{bound} or more")
