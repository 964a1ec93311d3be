"""The configuration of a run: one frozen dataclass behind the TOML file and the flags.

A section of the dataclass is a table of the file. Names are unique across the sections of a run,
so that flags need no prefix: `fit.learning_rate` is `learning_rate` in the table [fit], and
--learning-rate. The settings of an encoder family form a table with the family's name, for example
[facets]. How the temperature changes from epoch to epoch is a `Schedule`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, final

from dgn.errors import BrokenInput, InvalidInput
from dgn.learn.families import FAMILIES, family_names, find_family
from dgn.learn.families.pooled import PooledFamily
from dgn.learn.named_parts import LOSSES, RELAXATIONS
from dgn.parts import did_you_mean, import_parts
from dgn.settings import check_above, check_at_least, check_choices, convert, setting, types_of

ARCHITECTURES = ("dgn", "encoder", "deep-encoder")


class Schedule(ABC):
    """A temperature for every epoch; the first epoch is 0."""

    @abstractmethod
    def at(self, epoch: float) -> float:
        """The temperature of this epoch."""


@final
@dataclass(frozen=True)
class Fixed(Schedule):
    """The same temperature for all epochs; the paper found 3 to 6 best."""

    temperature: float = 4.0

    def __post_init__(self) -> None:
        _check_temperature(self.temperature)

    def at(self, epoch: float) -> float:  # noqa: ARG002
        return self.temperature


@final
@dataclass(frozen=True)
class Geometric(Schedule):
    """Multiplied by `factor` per epoch, down to `lowest`; 0.9 is the paper's annealing by 10%."""

    start: float = 4.0
    factor: float = 0.9
    lowest: float = 0.01

    def __post_init__(self) -> None:
        _check_temperature(self.start)
        _check_temperature(self.lowest)
        if not 0 < self.factor <= 1:
            raise InvalidInput(
                "factor", found=f"{self.factor}", allowed="greater than 0 and at most 1"
            )

    def at(self, epoch: float) -> float:
        return max(self.lowest, self.start * self.factor**epoch)


@final
@dataclass(frozen=True)
class Linear(Schedule):
    """From `start` to `end` in equal steps over `epochs`, then `end`."""

    start: float
    end: float
    epochs: int

    def __post_init__(self) -> None:
        _check_temperature(self.start)
        _check_temperature(self.end)
        if self.epochs < 1:
            raise InvalidInput("epochs", found=str(self.epochs), allowed="at least 1")

    def at(self, epoch: float) -> float:
        return self.start + (self.end - self.start) * min(1.0, epoch / self.epochs)


def _check_temperature(temperature: float) -> None:
    if not 0 < temperature < math.inf:
        raise InvalidInput("temperature", found=f"{temperature}", allowed="greater than 0")


@dataclass(frozen=True)
class DataConfig:
    """The features to learn from, and those that choose the best epoch."""

    train: tuple[str, ...] = setting((), "folders of features to learn from")
    validation: str = setting("", "folder of features that chooses the best epoch")
    max_queries: int = setting(0, "learn from this many queries, drawn by the seed; 0 for all")
    partial: tuple[str, ...] = setting(
        (), "further folders to learn from, whose gold is incomplete (facets)"
    )
    negative_weight: float = setting(
        1.0, "how much other passages of these folders count against the gold (facets)"
    )

    def __post_init__(self) -> None:
        check_at_least(self, 0, "max_queries")
        check_above(self, 0, "negative_weight")

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders of features."""
        return (*self.train, *self.partial, self.validation)


@dataclass(frozen=True)
class NetworkConfig:
    """What is trained."""

    architecture: str = setting("dgn", "what to train", choices=ARCHITECTURES)
    encoder: str = setting(
        "pooled",
        "what the network sees: pooled vectors, as in the paper, or the query's words",
        parts=FAMILIES,
    )
    dropout: float = setting(0.0, "share of hidden units left out of a training step")
    layers: int = setting(7, "K, the number of greedy layers of a DGN in training")
    relaxation: str = setting("softmax", "how a greedy layer chooses", parts=RELAXATIONS)
    loss: str = setting("layerwise", "what the greedy layers learn from", parts=LOSSES)
    assignment: str = setting(
        "matched",
        "which gold item is the label of a layer (loss layerwise); ordered and matched are the "
        "paper's loss, set leaves the choice to the network, cumulative compares the soft set "
        "after each layer",
        choices=("ordered", "matched", "set", "cumulative"),
    )
    encoder_loss: str = setting(
        "pointwise",
        "what the encoders learn from: each passage by itself, as in the paper, or all of them, "
        "with the loss of the DGN",
        choices=("pointwise", "listwise"),
    )
    positive_weight: float = setting(5.0, "how often gold counts in the pointwise loss")

    def __post_init__(self) -> None:
        check_choices(self)
        if self.encoder_loss == "listwise" and self.architecture == "dgn":
            raise InvalidInput(
                "encoder_loss",
                message="encoder_loss is a setting of the architectures encoder and deep-encoder; "
                "the loss of a DGN is always listwise.",
            )
        check_above(self, 0, "positive_weight")
        check_at_least(self, 1, "layers")
        if not 0 <= self.dropout < 1:
            raise InvalidInput("dropout", found=f"{self.dropout}", allowed="at least 0 and below 1")


@dataclass(frozen=True)
class FitConfig:
    """How it is trained."""

    epochs: int = setting(20, "largest number of passes over the training queries")
    patience: int = setting(0, "stop after this many epochs without an improvement; 0 for never")
    batch_size: int = setting(256, "queries per step")
    optimizer: str = setting("adam", "the paper uses adam", choices=("adam", "adamw"))
    learning_rate: float = setting(1e-3, "largest value of the learning rate")
    schedule: str = setting(
        "constant",
        "how the learning rate changes from the first step to the last",
        choices=("constant", "linear", "cosine"),
    )
    warmup: int = setting(0, "steps over which the learning rate rises from 0")
    weight_decay: float = setting(0.0, "decay towards 0, times the learning rate; for adamw")
    decay_to_start: float = setting(
        0.0, "decay towards the weights at the start, times the learning rate"
    )
    max_grad_norm: float = setting(0.0, "largest norm of the gradient; 0 for no limit")
    ema_decay: float = setting(0.0, "decay of a moving average of the weights; 0 for none")
    temperature: float = setting(4.0, "τ of the greedy layers at the start")
    annealing: str = setting(
        "fixed", "how τ changes from epoch to epoch", choices=("fixed", "geometric", "linear")
    )
    annealing_factor: float = setting(0.9, "what geometric annealing multiplies τ with per epoch")
    min_temperature: float = setting(0.01, "where annealing ends")
    precision: str = setting(
        "float32", "bfloat16: mixed precision, for GPUs", choices=("float32", "bfloat16")
    )
    eval_ks: tuple[int, ...] = setting(
        (1, 3, 5, 7), "the k whose mean validation recall chooses the best epoch"
    )
    never_below_start: str = setting(
        "mean",
        "mean: the best epoch is at least as good as the start on average over k; every-k: only "
        "epochs that are at least as good at every k count",
        choices=("mean", "every-k"),
    )
    distill_weight: float = setting(
        0.0, "share of the loss that the teacher's logits have, where there are some (facets)"
    )
    distill_temperature: float = setting(2.0, "what the teacher's logits are divided by")
    seed: int = setting(0, "determines the start, the order of queries and dropout")

    def __post_init__(self) -> None:
        check_choices(self)
        check_at_least(self, 1, "epochs", "batch_size")
        check_at_least(
            self, 0, "patience", "warmup", "weight_decay", "decay_to_start", "max_grad_norm", "seed"
        )
        check_above(self, 0, "learning_rate", "distill_temperature")
        if not 0 <= self.distill_weight <= 1:
            found = f"{self.distill_weight}"
            raise InvalidInput("distill_weight", found=found, allowed="from 0 to 1")
        if self.seed >= 2**63:
            raise InvalidInput("seed", found=str(self.seed), allowed="below 2⁶³")
        if not 0 <= self.ema_decay < 1:
            found = f"{self.ema_decay}"
            raise InvalidInput("ema_decay", found=found, allowed="at least 0 and below 1")
        if not self.eval_ks or min(self.eval_ks) < 1:
            found = str(self.eval_ks)
            raise InvalidInput("eval_ks", found=found, allowed="integers of at least 1")
        if self.weight_decay and self.optimizer != "adamw":
            raise InvalidInput(
                "weight_decay",
                message="weight_decay has no effect with the optimizer adam; use adamw.",
            )
        self.temperatures.at(0)

    @property
    def temperatures(self) -> Schedule:
        """τ for every epoch."""
        if self.annealing == "geometric":
            return Geometric(self.temperature, self.annealing_factor, self.min_temperature)
        if self.annealing == "linear":
            return Linear(self.temperature, self.min_temperature, self.epochs)
        return Fixed(self.temperature)


@dataclass(frozen=True)
class MachineConfig:
    """Where it runs; a run may be resumed elsewhere."""

    device: str = setting("auto", "auto, cpu, cuda or cuda:N")
    threads: int = setting(0, "CPU threads; 0 chooses by the size of a step and the machine's load")
    checkpoint_seconds: float = setting(30.0, "seconds of work that a crash may lose")

    def __post_init__(self) -> None:
        check_at_least(self, 0, "checkpoint_seconds", "threads")


SECTIONS: dict[str, type] = {
    "data": DataConfig,
    "network": NetworkConfig,
    "fit": FitConfig,
    "machine": MachineConfig,
}
"""The sections that every run has; the settings of its encoder family are one more."""


@dataclass(frozen=True)
class RunConfig:
    """The whole configuration of a run.

    Attributes:
        encoder: The settings of the encoder family that `network.encoder` names.
    """

    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    encoder: Any = field(default_factory=PooledFamily.settings)
    fit: FitConfig = field(default_factory=FitConfig)
    machine: MachineConfig = field(default_factory=MachineConfig)

    def with_settings(self, settings: Mapping[str, Any]) -> RunConfig:
        """The configuration with some settings changed, by their names alone."""
        name = settings.get("encoder", self.network.encoder)
        family = find_family(convert("encoder", str, name))
        if "encoder" in settings:  # module:Class is known by its own name from now on
            settings = {**settings, "encoder": family.name}
        same = family.name == self.network.encoder
        sections: dict[str, Any] = {section: getattr(self, section) for section in SECTIONS}
        sections["encoder"] = self.encoder if same else family.settings()
        kinds = {section: types_of(one.__class__) for section, one in sections.items()}
        known = {name: section for section, names in kinds.items() for name in names}
        for setting_name in settings:
            if setting_name not in known:
                raise _unknown_setting(setting_name, family.name, known)
        changed: dict[str, Any] = {}
        for section, one in sections.items():
            values = {
                key: convert(key, kinds[section][key], value)
                for key, value in settings.items()
                if known[key] == section
            }
            changed[section] = dataclasses.replace(one, **values)
        return RunConfig(**changed)

    def to_tables(self) -> dict[str, Any]:
        """The configuration as JSON and TOML hold it: one dictionary per section."""
        tables = {section: dataclasses.asdict(getattr(self, section)) for section in SECTIONS}
        return {**tables, self.network.encoder: dataclasses.asdict(self.encoder)}

    def to_toml(self) -> str:
        """The configuration as a TOML file."""
        # JSON writes our kinds of values as TOML does.
        return "\n".join(
            line
            for section, settings in self.to_tables().items()
            for line in (
                f"[{section}]",
                *(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in settings.items()),
            )
        )


def read_config(path: Path) -> RunConfig:
    """The settings of a TOML file; what it does not name has its default."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput("config", message=f"The file {path} does not exist.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BrokenInput(path, None, message=f"the file is not valid TOML: {error}.") from None
    try:
        import_named({name: one for table in tables.values() for name, one in _items(table)})
    except InvalidInput as error:
        raise BrokenInput(path, None, message=str(error)) from None
    return config_of(tables, path)


def import_named(settings: Mapping[str, Any]) -> None:
    """Import the modules of the parts that settings of the user name as module:Class.

    Settings that come with a model must not be passed: its files may come from elsewhere.
    """
    import_parts([settings.get("encoder")])
    name = settings.get("encoder", "pooled")
    kinds = [*SECTIONS.values(), *([find_family(name).settings] if type(name) is str else [])]
    fields = [one for kind in kinds for one in dataclasses.fields(kind)]
    import_parts([settings.get(one.name) for one in fields if one.metadata["parts"] is not None])


def _items(table: object) -> Iterable[tuple[str, Any]]:
    return cast("dict[str, Any]", table).items() if type(table) is dict else ()


def config_of(tables: Mapping[str, Any], source: object) -> RunConfig:
    """The configuration that the tables of a file describe; an unknown name is an error."""
    network: Any = tables.get("network")
    named = cast("dict[str, Any]", network) if type(network) is dict else {}
    name: Any = named.get("encoder", RunConfig().network.encoder)
    settings: dict[str, Any] = {}
    try:
        family = find_family(convert("encoder", str, name))
        sections = {**SECTIONS, family.name: family.settings}
        for section, table in tables.items():
            if section in family_names() and section != family.name:
                raise InvalidInput(
                    section,
                    message=f"[{section}] belongs to the encoder {section}; this configuration "
                    f"uses {family.name}.",
                )
            if section not in sections or type(table) is not dict:
                raise InvalidInput(
                    section,
                    message=f"[{section}] is not a section of a run"
                    f"{did_you_mean(section, sections)}; the sections are {', '.join(sections)}.",
                )
            kinds = types_of(sections[section])
            for key, value in cast("dict[str, Any]", table).items():
                if key not in kinds:
                    raise InvalidInput(
                        key,
                        message=f"{key} is not a setting of [{section}]"
                        f"{did_you_mean(key, kinds)}; the settings are {', '.join(kinds)}.",
                    )
                settings[key] = value
        return RunConfig().with_settings(settings)
    except InvalidInput as error:
        raise BrokenInput(source, None, message=str(error)) from None


def _unknown_setting(name: str, family: str, known: Mapping[str, Any]) -> InvalidInput:
    for other in family_names():
        if other != family and name in types_of(find_family(other).settings):
            return InvalidInput(
                name,
                message=f"{name} is a setting of the encoder {other}; this run uses {family}.",
            )
    return InvalidInput(
        name, message=f"{name} is not a setting of a run{did_you_mean(name, known)}."
    )
