"""Hyperparameter search with Optuna (`dgn[tune]`): many short runs, of which the best is kept.

A study is stored in a database, so that it can be stopped, resumed, and shared by processes and
machines. With the random sampler, the settings of a trial depend only on the seed and the number
of the trial, however many workers there are. A trial that was killed is not repeated: its number
is skipped.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
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

from dgn.files import save_figure, write_atomically
from dgn.learn.config import RunConfig
from dgn.learn.families import Table
from dgn.learn.search_space import Dimension, config_of_trial
from dgn.learn.setup import batches_of, build_network, feature_keys, find_device, read_tables
from dgn.learn.trainer import EpochReport, Trainer
from dgn.parallel import available_cores, interrupts_ignored, is_orphan

_PAUSE = 0.5
"""Seconds before a storage is opened again."""

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class TuneConfig:
    """How to search.

    Args:
        folder: The folder of the results.
        dimensions: What to vary.
        trials: The number of finished trials to reach.
        workers: The number of processes.
        storage: The URL of an Optuna storage; by default, an SQLite file in the folder.
        study: The name of the study in the storage.
        sampler: "random" or "tpe".
        prune: Whether to stop a trial early if its recall is below the median of the others at
            the same epoch.
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
                raise InvalidInput(name, found=str(found), allowed="at least 1")
        if self.sampler not in ("random", "tpe"):
            raise InvalidInput("sampler", found=self.sampler, allowed="random or tpe")

    @property
    def url(self) -> str:
        """The URL of the storage."""
        return self.storage or f"sqlite:///{(self.folder / 'study.db').resolve()}"


@dataclass(frozen=True)
class TrialResult:
    """A finished trial, with the recalls of its best epoch; a pruned one was stopped early."""

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
    """Search until enough trials are finished, including those of earlier calls.

    Args:
        base: The settings of every trial, apart from those that vary.
        config: How to search.
        on_trial: Called with every finished trial and the number of finished trials.

    Returns:
        The finished trials, the best first.
    """
    config.folder.mkdir(parents=True, exist_ok=True)
    # Mistakes of the user are reported here, once, and not by every worker.
    inputs = read_tables(base)[0].dimension
    some = {one.name: one.choices[0] if one.choices else one.least for one in config.dimensions}
    build_network(config_of_trial(base, inputs, some), inputs)
    find_device(base.machine.device)
    study = _open_study(config, base.fit.seed)
    _check_same_search(study, base, config)
    reported = {result.number for result in finished_trials(study)}
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_work, args=(base, config), daemon=True)
        for _ in range(config.workers)
    ]
    if len(reported) < config.trials:
        with interrupts_ignored():
            for worker in workers:
                worker.start()
    try:
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.2)
            reported = _report_new(study, reported, on_trial)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
    _report_new(study, reported, on_trial)
    failed = [worker.exitcode for worker in workers if worker.exitcode]
    if failed:
        raise StudyStopped(
            f"{len(failed)} of the workers stopped; the finished trials are in {config.url}."
        )
    results = sorted(finished_trials(study), key=lambda result: -result.recall)
    _write_best(base, config, results)
    return results


def _check_same_search(study: Study, base: RunConfig, config: TuneConfig) -> None:
    """Raise InvalidInput unless the study was begun with the same search."""
    tables = base.to_tables()
    asked = {
        "data": feature_keys(base),
        "max_queries": base.data.max_queries,
        "network": tables["network"],
        "encoder": tables[base.network.encoder],
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
            message=f"{config.url} contains a study with other settings ({', '.join(changed)}); "
            "use the same settings to resume it, or choose another folder or --study.",
        )


def finished_trials(study: Study) -> list[TrialResult]:
    """All trials that are complete or pruned."""
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
    """The importance of each setting for the recall; empty if there are too few trials."""
    study = _open_study(config, seed)
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < 4 or len({trial.value for trial in complete}) < 2:
        return {}
    # PED-ANOVA needs no regression model and therefore no further package.
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
    found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: share for name, share in found.items() if math.isfinite(share)}


class _ByNumber(BaseSampler):
    """Random, and the same for a trial with the same number, whatever the order and the workers."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        del study, trial  # every setting is drawn independently
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


def _open_study(config: TuneConfig, seed: int, attempts: int = 4) -> Study:
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
        # Of several processes that create the same tables or study, one succeeds; the others find
        # them the next time. Each driver of SQLAlchemy has its own exceptions.
        if attempts > 1:
            time.sleep(_PAUSE)
            return _open_study(config, seed, attempts - 1)
        reason = str(error).splitlines()[0]
        raise InvalidInput(
            "storage", message=f"The storage {config.url} cannot be opened: {reason}"
        ) from error


def _work(base: RunConfig, config: TuneConfig) -> None:
    """One process of the search."""
    torch.set_num_threads(base.machine.threads or max(1, available_cores() // config.workers))
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
        # A full disk or a lost storage: the first cause, in one line.
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
    network = build_network(run, tables[0].dimension).to(device)
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


def _report_new(
    study: Study, reported: set[int], on_trial: Callable[[TrialResult, int], None]
) -> set[int]:
    new = [result for result in finished_trials(study) if result.number not in reported]
    for count, result in enumerate(new, start=len(reported) + 1):
        on_trial(result, count)
    return reported | {result.number for result in new}


def _write_best(base: RunConfig, config: TuneConfig, results: Sequence[TrialResult]) -> None:
    """Write the configuration of the best trial, for `dgn train --config`."""
    inputs = read_tables(base)[0].dimension
    best = config_of_trial(base, inputs, results[0].settings)
    write_atomically(config.folder / "best.toml", best.to_toml() + "\n")


def draw_search(
    path: Path, results: Sequence[TrialResult], shares: Mapping[str, float], logs: set[str]
) -> None:
    """Draw the importance of the settings, and the recall against each setting.

    Args:
        path: The PNG file.
        results: The finished trials.
        shares: The importance of each setting.
        logs: The settings with a logarithmic axis.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    names = sorted(results[0].settings, key=lambda name: -shares.get(name, 0.0))
    figure = Figure(figsize=(3.2 * (len(names) + 1), 3.2), layout="constrained")
    bars, *others = figure.subplots(1, len(names) + 1)
    bars.barh(names[::-1], [shares.get(name, 0.0) for name in names[::-1]], color="#4c72b0")
    bars.set(title="importance", xlabel="share" if shares else "too few trials")
    best = max(results, key=lambda result: result.recall)
    for axes, name in zip(others, names, strict=True):
        for pruned, colour, label in (
            (True, "#c0c0c0", "stopped early"),
            (False, "#4c72b0", "finished"),
        ):
            shown = [result for result in results if result.pruned is pruned]
            values: list[Any] = [result.settings[name] for result in shown]
            axes.scatter(values, [r.recall for r in shown], s=16, color=colour, label=label)
        axes.scatter([best.settings[name]], [best.recall], s=60, facecolors="none", edgecolors="r")
        axes.set(title=name, ylabel="mean validation recall" if axes is others[0] else "")
        if name in logs:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
    others[-1].legend(frameon=False, fontsize="small")
    for axes in (bars, *others):
        axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path, dpi=150)
