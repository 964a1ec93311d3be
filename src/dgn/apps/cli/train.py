"""`dgn train`: from labelled rows, or from features, to a trained model, with its progress."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from dgn.apps.cli.options import PAGES_HELP, QUERIES_HELP
from dgn.errors import InvalidInput, require_extra
from dgn.learn.config import SECTIONS, RunConfig, read_config
from dgn.learn.families import family_names, find_family
from dgn.settings import types_of

if TYPE_CHECKING:
    from dgn.learn import EpochReport, RunResult, Trainer

_REFRESH_SECONDS = 0.5
_LINE_SECONDS = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn train`."""
    parser.description = (
        "Train on labelled rows (dgn train rows.jsonl --out my-model), which needs no further "
        "setting; or on folders of features (--train, --validation). Run the same command again "
        "to resume a run; with rows, a larger --epochs continues it."
    )
    parser.epilog = "example: dgn train rows.jsonl --out my-model"
    parser.add_argument("rows", type=Path, nargs="*", metavar="ROWS", help=QUERIES_HELP)
    parser.add_argument(
        "--from",
        dest="from_model",
        metavar="MODEL",
        help="what rows are learned from: default (the shipped model), untrained, minilm, or a "
        "model folder (default default)",
    )
    parser.add_argument("--pages", type=Path, help=PAGES_HELP)
    parser.add_argument("--skip-bad", action="store_true", help="skip broken rows and list them")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="model folder")
    parser.add_argument(
        "--config", type=Path, metavar="TOML", help="settings; flags take precedence"
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="print nothing but errors")
    shown.add_argument("--json", action="store_true", help="print a JSON row for every epoch")
    add_settings(parser)
    parser.set_defaults(run=_run, parser=parser)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting of a run; flags that are not given are not in the result."""
    sections = {**SECTIONS, **{name: find_family(name).settings for name in family_names()}}
    added: set[str] = set()
    for section, kind in sections.items():
        group = parser.add_argument_group(f"[{section}] of the TOML file")
        kinds = types_of(kind)
        for one in dataclasses.fields(kind):
            if one.name in added:  # two families may share a flag
                continue
            added.add(one.name)
            group.add_argument(
                f"--{one.name.replace('_', '-')}",
                dest=one.name,
                default=argparse.SUPPRESS,
                choices=one.metadata["choices"] or None,
                metavar=None if one.metadata["choices"] else one.name.upper(),
                help=_help_of(one).replace("%", "%%"),
                **_type_of(kinds[one.name]),
            )


def _help_of(one: dataclasses.Field[Any]) -> str:
    parts = one.metadata["parts"]
    known = "" if parts is None else f": {', '.join(parts.names)}, or module:Class of your own"
    return f"{one.metadata['help']}{known} (default {_shown(one.default)})"


def config_from(options: argparse.Namespace) -> RunConfig:
    """The settings of the TOML file, and those of the flags, which take precedence."""
    config = read_config(options.config) if options.config else RunConfig()
    return config.with_settings(given_settings(options))


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings whose flags were given."""
    kinds = [*SECTIONS.values(), *(find_family(name).settings for name in family_names())]
    names = [name for kind in kinds for name in types_of(kind)]
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


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


def require_training(command: str) -> None:
    """Raise MissingExtra unless everything that training needs is installed."""
    for package in ("torch", "safetensors", "tensorboardX", "matplotlib"):
        require_extra(command, package=package, extra="train")
    # Waiting threads of OpenMP sleep instead of spinning, which matters on a busy machine. It
    # must be set before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _run(options: argparse.Namespace) -> int:
    if options.rows:
        return _run_on_rows(options)
    config = config_from(options)
    _check_features(options, config)
    require_training("dgn train")
    if options.quiet:
        _train(config, options.out, _Watcher())
    elif options.json:
        result = _train(config, options.out, _JsonRows())
        print(json.dumps(_summary(result)))
    else:
        with _Lines(config) as lines:
            result = _train(config, options.out, lines)
        _print_result(result, config)
    return 0


def _run_on_rows(options: argparse.Namespace) -> int:
    given = given_settings(options)
    if options.config is not None or {"train", "validation", "partial"} & set(given):
        raise InvalidInput(
            "rows",
            message="Rows cannot be combined with --train, --validation, --partial or --config: "
            "pass labelled rows, or folders of features.",
        )
    require_training("dgn train")
    from dgn.apps.cli.train_rows import run

    return run(options, given)


def _check_features(options: argparse.Namespace, config: RunConfig) -> None:
    if not config.data.train and not config.data.validation:
        raise InvalidInput(
            "rows",
            message="There is nothing to learn from: pass labelled rows (dgn train rows.jsonl "
            "--out my-model), or folders of features (--train and --validation).",
        )
    for name, flag in (("from_model", "--from"), ("pages", "--pages"), ("skip_bad", "--skip-bad")):
        if getattr(options, name):
            raise InvalidInput(name, message=f"{flag} belongs to labelled rows; pass some.")


def _train(config: RunConfig, out: Path, watcher: _Watcher) -> RunResult:
    from dgn.learn import train

    try:
        return train(config, out, watcher.step, watcher.epoch)
    except KeyboardInterrupt:
        print(f"dgn: interrupted; run the same command again to resume {out}", file=sys.stderr)
        raise SystemExit(130) from None


class _Watcher:
    """Sees every step and epoch, and prints nothing."""

    def step(self, trainer: Trainer) -> None:
        """After a step."""

    def epoch(self, report: EpochReport) -> None:
        """After an epoch."""


class _JsonRows(_Watcher):
    def epoch(self, report: EpochReport) -> None:
        print(json.dumps({**dataclasses.asdict(report), "recall": report.recall}), flush=True)


class _Lines(_Watcher):
    """A line for every epoch, and a bar on a terminal; without one, a line now and then."""

    def __init__(self, config: RunConfig) -> None:
        self._epochs = config.fit.epochs
        self._recall, self._refreshed = 0.0, time.monotonic()
        self._progress: Any = None
        if sys.stderr.isatty() and importlib.util.find_spec("rich") is not None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TimeRemainingColumn(),
                console=Console(stderr=True, highlight=False),
                transient=True,
            )
            self._task = self._progress.add_task("preparing", total=None)

    def __enter__(self) -> _Lines:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def step(self, trainer: Trainer) -> None:
        now = time.monotonic()
        pause = _LINE_SECONDS if self._progress is None else _REFRESH_SECONDS
        if now - self._refreshed < pause:
            return
        self._refreshed = now
        position, steps = trainer.position, trainer.steps_per_epoch
        text = (
            f"epoch {position.epoch + 1} of {self._epochs}, step {position.batch} of {steps}: "
            f"loss {trainer.running_loss:.4f}, recall {self._recall:.4f}, "
            f"{trainer.queries_per_second:,.0f} queries/s"
        )
        if self._progress is None:
            self._print(text)
        else:
            done = position.epoch * steps + position.batch
            total = self._epochs * steps
            self._progress.update(self._task, total=total, completed=done, description=text)

    def epoch(self, report: EpochReport) -> None:
        self._recall, self._refreshed = report.recall, time.monotonic()
        recalls = " / ".join(f"{recall:.4f}" for recall in report.recalls)
        learned = "start" if report.loss is None else f"loss {report.loss:.4f}"
        speed = f"{report.queries_per_second:,.0f} queries/s" if report.loss is not None else ""
        self._print(f"epoch {report.epoch:>3}  {learned:<12} recall {recalls}  {speed}")

    def _print(self, text: str) -> None:
        if self._progress is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._progress.console.print(text)


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


def _print_result(result: RunResult, config: RunConfig) -> None:
    best, start = result.reports[result.best_epoch], result.reports[0]
    if result.was_finished:
        print(f"{result.folder}: already finished, nothing to do")
    else:
        if result.resumed_at is not None:
            print(f"resumed at epoch {result.resumed_at}")
        print(f"stopped: {result.stopped}")
    ks = " / ".join(map(str, config.fit.eval_ks))
    recalls = " / ".join(f"{recall:.4f}" for recall in best.recalls)
    print(f"best epoch {result.best_epoch}: validation recall {recalls} at k = {ks}")
    if result.best_epoch == 0:
        print("training did not improve the validation recall; the model is the start")
    else:
        pairs = zip(config.fit.eval_ks, start.recalls, best.recalls, strict=True)
        lower = [f"{then:.4f} to {now:.4f} at k = {k}" for k, then, now in pairs if now < then]
        if lower:
            print(f"below the start: recall fell from {', '.join(lower)}")
    print(f"model, card, metrics and curves: {result.folder}")
