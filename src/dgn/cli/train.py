"""`dgn train`: from features to a trained model, with a bar to watch."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from dgn.errors import require_extra

if TYPE_CHECKING:
    from dgn.training import EpochReport, RunConfig, RunResult, Trainer

_REFRESH_SECONDS = 0.5


def add_parser(commands: Any) -> None:
    """Add `train`. Its settings are read only when it is the command: they need torch."""
    train = commands.add_parser(
        "train",
        help="train a DGN, an Encoder or a DeepEncoder on features",
        add_help=False,
    )
    train.set_defaults(run=_run, more=[])


def add_settings(parser: argparse.ArgumentParser) -> None:
    """A flag for every setting of a run, by sections; what is not given is not in the result."""
    from dgn.training.config import SECTIONS, SETTINGS

    for section, kind in SECTIONS.items():
        group = parser.add_argument_group(f"[{section}] of the TOML file")
        for one in dataclasses.fields(kind):
            group.add_argument(
                f"--{one.name.replace('_', '-')}",
                dest=one.name,
                default=argparse.SUPPRESS,
                choices=one.metadata["choices"] or None,
                metavar=None if one.metadata["choices"] else one.name.upper(),
                help=f"{one.metadata['says']} (default {_shown(one.default)})",
                **_type_of(SETTINGS[section][one.name]),
            )


def config_from(options: argparse.Namespace) -> RunConfig:
    """The TOML file's settings, with the flags' over them."""
    from dgn.training.config import SETTINGS, RunConfig, read_config

    config = read_config(options.config) if options.config else RunConfig()
    names = [name for settings in SETTINGS.values() for name in settings]
    return config.with_settings(
        {name: getattr(options, name) for name in names if hasattr(options, name)}
    )


def _type_of(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is tuple:
        return {"type": get_args(kind)[0], "nargs": "+"}
    return {"type": kind}


def _shown(default: Any) -> str:
    shown = (
        " ".join(map(str, default))
        if not isinstance(default, str) and hasattr(default, "__len__")
        else str(default)
    )
    return shown or "none"


def _run(options: argparse.Namespace) -> int:
    for package in ("torch", "safetensors", "rich", "tensorboardX", "matplotlib"):
        require_extra("dgn train", package=package, extra="train")
    parser = argparse.ArgumentParser(
        prog="dgn train",
        description="Train on features. A run that was stopped goes on: give the same command.",
    )
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    parser.add_argument("--config", type=Path, metavar="TOML", help="settings; flags override them")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="say nothing but errors")
    shown.add_argument("--json", action="store_true", help="a JSON row for every epoch")
    add_settings(parser)
    options = parser.parse_args(options.more)
    config = config_from(options)
    if options.quiet:
        _train(config, options.out, _Watcher())
    elif options.json:
        result = _train(config, options.out, _JsonRows())
        if result.speaks:
            print(json.dumps(_summary(result)))
    else:
        with _Bars(config) as bars:
            result = _train(config, options.out, bars)
        if result.speaks:
            _tell(result, config)
    return 0


def _train(config: RunConfig, out: Path, watcher: _Watcher) -> RunResult:
    from dgn.training import train

    try:
        return train(config, out, watcher.step, watcher.epoch)
    except KeyboardInterrupt:
        print(f"dgn: stopped; the same command goes on in {out}", file=sys.stderr)
        raise SystemExit(130) from None


class _Watcher:
    """Sees every step and epoch, and says nothing."""

    def step(self, trainer: Trainer) -> None:
        """After a step."""

    def epoch(self, report: EpochReport) -> None:
        """After an epoch."""


class _JsonRows(_Watcher):
    def epoch(self, report: EpochReport) -> None:
        print(json.dumps({**dataclasses.asdict(report), "recall": report.recall}), flush=True)


class _Bars(_Watcher):
    """A bar over all epochs, and a line for each that is done."""

    def __init__(self, config: RunConfig) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._epochs = config.fit.epochs
        self._console = Console(stderr=True, highlight=False)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeRemainingColumn(),
        )
        self._progress = Progress(
            *columns, console=self._console, disable=not self._console.is_terminal, transient=True
        )
        self._task = self._progress.add_task("preparing", total=None)
        self._recall, self._refreshed = 0.0, 0.0

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def step(self, trainer: Trainer) -> None:
        now = time.monotonic()
        if now - self._refreshed < _REFRESH_SECONDS:
            return
        self._refreshed = now
        position, steps = trainer.position, trainer.batches_in_an_epoch
        self._progress.update(
            self._task,
            total=self._epochs * steps,
            completed=position.epoch * steps + position.batch,
            description=f"epoch {position.epoch + 1}/{self._epochs}  loss "
            f"{trainer.running_loss:.4f}  recall {self._recall:.4f}  "
            f"{trainer.claims_per_second:,.0f} claims/s",
        )

    def epoch(self, report: EpochReport) -> None:
        self._recall = report.recall
        recalls = " / ".join(f"{recall:.4f}" for recall in report.recalls)
        learned = "start" if report.loss is None else f"loss {report.loss:.4f}"
        speed = f"{report.claims_per_second:,.0f} claims/s" if report.loss is not None else ""
        self._console.print(f"epoch {report.epoch:>3}  {learned:<12} recall {recalls}  {speed}")


def _summary(result: RunResult) -> dict[str, Any]:
    best = result.reports[result.best_epoch]
    return {
        "folder": str(result.folder),
        "best_epoch": result.best_epoch,
        "recalls": best.recalls,
        "epochs": len(result.reports) - 1,
        "stopped": result.stopped,
        "resumed_at": result.resumed_at,
    }


def _tell(result: RunResult, config: RunConfig) -> None:
    best = result.reports[result.best_epoch]
    if result.was_finished:
        print(f"{result.folder}: finished before, nothing to do")
    elif result.resumed_at is not None:
        print(f"went on from epoch {result.resumed_at}")
    if not result.was_finished:
        print(f"stopped: {result.stopped}")
    ks = " / ".join(map(str, config.fit.judged_at))
    recalls = " / ".join(f"{recall:.4f}" for recall in best.recalls)
    print(f"best epoch {result.best_epoch}: validation recall {recalls} at k = {ks}")
    print(f"model, card, metrics and curves: {result.folder}")
