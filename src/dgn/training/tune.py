"""Tuning: many short runs, the best of which tells how to train. By Optuna (`dgn[tune]`).

A study lives in a database, so that it can be stopped, gone on with, and shared by processes and
machines. With the random sampler, a trial's settings depend on the seed and the trial's number and
on nothing else, however many workers there are. A trial that was killed is not done again: its
number is passed over.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dgn.errors import InvalidInput, StudyStopped, require_extra

require_extra("dgn tune", package="optuna", extra="tune")

import optuna
import torch
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.study import MaxTrialsCallback, Study
from optuna.trial import FrozenTrial, Trial, TrialState

from dgn.data.feature_table import read_key
from dgn.files import write_atomically
from dgn.training.config import RunConfig
from dgn.training.devices import find_device
from dgn.training.networks import build_network
from dgn.training.processes import interrupts_ignored, is_orphan
from dgn.training.run_folder import as_toml
from dgn.training.search_space import Dimension, config_of_trial
from dgn.training.tables import Table, batches_of, read_tables
from dgn.training.trainer import EpochReport, Trainer

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class TuneConfig:
    """How to search.

    storage: any of Optuna's, by URL; left out, SQLite in the folder. prune: give up early on a
    trial whose recall is below the median of the others at the same epoch.
    """

    folder: Path
    dimensions: tuple[Dimension, ...]
    trials: int = 20
    workers: int = 1
    storage: str = ""
    study: str = "dgn"
    sampler: str = "random"
    prune: bool = True

    def __post_init__(self) -> None:
        if not self.dimensions:
            raise InvalidInput("search", found="nothing", allowed="at least one setting")
        for name, found in (("trials", self.trials), ("workers", self.workers)):
            if found < 1:
                raise InvalidInput(name, found=str(found), allowed="1 or more")
        if self.sampler not in ("random", "tpe"):
            raise InvalidInput("sampler", found=self.sampler, allowed="random, tpe")

    @property
    def url(self) -> str:
        """The storage's address."""
        return self.storage or f"sqlite:///{(self.folder / 'study.db').resolve()}"


@dataclass(frozen=True)
class TrialResult:
    """A finished trial; recalls at each k, of its best epoch. A pruned one was given up early."""

    number: int
    settings: dict[str, Any]
    recall: float
    recalls: tuple[float, ...]
    pruned: bool


def tune(
    base: RunConfig,
    config: TuneConfig,
    on_trial: Callable[[TrialResult, int], None] = lambda _result, _finished: None,
) -> list[TrialResult]:
    """Search until that many trials are finished, counting those of before; the best first.

    on_trial: called with every trial that finishes and the number of those that have.
    """
    config.folder.mkdir(parents=True, exist_ok=True)
    # A mistake of the user is told here, once, and not by every worker.
    read_tables(base)
    find_device(base.machine.device)
    study = _open_study(config, base.fit.seed)
    _check_same_search(study, base, config)
    told = {result.number for result in finished_trials(study)}
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_work, args=(base, config), daemon=True)
        for _ in range(config.workers)
    ]
    if len(told) < config.trials:
        with interrupts_ignored():
            for worker in workers:
                worker.start()
    try:
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.2)
            told = _tell_new(study, told, on_trial)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
    _tell_new(study, told, on_trial)
    failed = [worker.exitcode for worker in workers if worker.exitcode]
    if failed:
        raise StudyStopped(f"{len(failed)} worker(s) stopped; finished trials are in {config.url}")
    results = sorted(finished_trials(study), key=lambda result: -result.recall)
    _write_best(base, config, results)
    return results


def _check_same_search(study: Study, base: RunConfig, config: TuneConfig) -> None:
    """A study goes on with the very search that it began with, or not at all."""
    tables = base.as_tables()
    asked = {
        "data": {name: read_key(Path(name)) for name in (*base.data.train, base.data.validation)},
        "claims": base.data.claims,
        "network": tables["network"],
        "fit": tables["fit"],
        "search": [asdict(dimension) for dimension in config.dimensions],
    }
    now = {name: json.dumps(value, sort_keys=True) for name, value in asked.items()}
    before = {name: study.user_attrs.get(name) for name in now}
    if not any(before.values()):
        for name, value in now.items():
            study.set_user_attr(name, value)
        return
    changed = [name for name in now if before[name] != now[name]]
    if changed:
        raise InvalidInput(
            "out",
            found=f"a study in {config.url} with another {', '.join(changed)}",
            allowed="the same search, to go on; or another folder, or --study",
        )


def finished_trials(study: Study) -> list[TrialResult]:
    """All that are complete or pruned."""
    return [
        TrialResult(
            trial.number,
            trial.params,
            float(trial.user_attrs["recall"]),
            tuple(trial.user_attrs["recalls"]),
            trial.state is TrialState.PRUNED,
        )
        for trial in study.get_trials(deepcopy=False, states=FINISHED)
    ]


def importances(config: TuneConfig, seed: int) -> dict[str, float]:
    """How much of what separates good trials each setting explains; empty for too few trials."""
    study = _open_study(config, seed)
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < 4 or len({trial.value for trial in complete}) < 2:
        return {}
    # PED-ANOVA needs no regression model, and so no further package.
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
    found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: share for name, share in found.items() if math.isfinite(share)}


class _ByNumber(BaseSampler):
    """Random, but the same for a trial of the same number: order and workers do not matter."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        del study, trial  # every setting is drawn by itself
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        del study, trial, search_space
        return {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        seed = zlib.crc32(f"{self._seed} {trial.number} {param_name}".encode())
        sampler = RandomSampler(seed)
        return sampler.sample_independent(study, trial, param_name, param_distribution)


def _open_study(config: TuneConfig, seed: int) -> Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = _ByNumber(seed) if config.sampler == "random" else TPESampler(seed=seed)
    pruner = (
        optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2)
        if config.prune
        else optuna.pruners.NopPruner()
    )
    try:
        return optuna.create_study(
            storage=config.url,
            study_name=config.study,
            sampler=sampler,
            pruner=pruner,
            direction="maximize",
            load_if_exists=True,
        )
    except Exception as error:
        # SQLAlchemy's drivers each have their own exceptions for an address that does not work.
        reason = str(error).splitlines()[0]
        raise InvalidInput("storage", found=f"{config.url} ({reason})", allowed="a URL") from error


def _work(base: RunConfig, config: TuneConfig) -> None:
    """One process of the search."""
    torch.set_num_threads(max(1, torch.get_num_threads() // config.workers))
    device = find_device(base.machine.device)
    tables = read_tables(base)
    study = _open_study(config, base.fit.seed)
    if len(finished_trials(study)) >= config.trials:
        return
    enough = MaxTrialsCallback(config.trials, states=FINISHED)
    try:
        study.optimize(
            lambda trial: _run_trial(trial, base, config, tables, device), callbacks=[enough]
        )
    except Exception as error:
        # A full disk, a storage that went away: the first cause, in one line.
        cause: BaseException = error
        while cause.__cause__ or cause.__context__:
            cause = cause.__cause__ or cause.__context__ or cause
        print(f"dgn: a worker stopped: {type(cause).__name__}: {cause}", file=sys.stderr)
        raise SystemExit(1) from None


def _run_trial(
    trial: Trial,
    base: RunConfig,
    config: TuneConfig,
    tables: tuple[Table, Table],
    device: torch.device,
) -> float:
    chosen = {one.name: _suggest(trial, one) for one in config.dimensions}
    run = config_of_trial(base, tables[0].dimension, chosen)
    network = build_network(run.network, tables[0].dimension, run.fit.seed).to(device)
    train, validation = (batches_of(table, run, device) for table in tables)
    trainer = Trainer(network, train, validation, run.fit)

    def after_epoch(report: EpochReport) -> None:
        best = trainer.reports[trainer.best_epoch]
        trial.set_user_attr("recall", best.recall)
        trial.set_user_attr("recalls", best.recalls)
        trial.report(report.recall, report.epoch)
        if report.epoch and trial.should_prune():
            raise optuna.TrialPruned
        if is_orphan():
            raise SystemExit(1)

    trainer.run(on_epoch=after_epoch)
    return trainer.reports[trainer.best_epoch].recall


def _suggest(trial: Trial, dimension: Dimension) -> Any:
    if dimension.choices:
        return trial.suggest_categorical(dimension.name, dimension.choices)
    if dimension.is_whole:
        low, high = int(dimension.low), int(dimension.high)
        return trial.suggest_int(dimension.name, low, high, log=dimension.log)
    return trial.suggest_float(dimension.name, dimension.low, dimension.high, log=dimension.log)


def _tell_new(
    study: Study, told: set[int], on_trial: Callable[[TrialResult, int], None]
) -> set[int]:
    new = [result for result in finished_trials(study) if result.number not in told]
    for count, result in enumerate(new, start=len(told) + 1):
        on_trial(result, count)
    return told | {result.number for result in new}


def _write_best(base: RunConfig, config: TuneConfig, results: Sequence[TrialResult]) -> None:
    """The best trial's configuration, ready for `dgn train --config`."""
    inputs = read_tables(base)[0].dimension
    best = config_of_trial(base, inputs, results[0].settings)
    write_atomically(config.folder / "best.toml", "\n".join(as_toml(best.as_tables())) + "\n")
