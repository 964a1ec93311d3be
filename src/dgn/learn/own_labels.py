"""Train on your own labels: from labelled rows to a model folder, without a further setting.

    result = train_on_rows(["rows.jsonl"], Path("my-model"))

Steps, rate and patience come from the size of the data. How good the model is, and how many epochs
are best, is found out by cross-validation. If the recall is not clearly better than that of the
start, the start is kept. The same call continues a run that was interrupted, and more epochs
continue one that is finished.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example, Problems, read_examples
from dgn.errors import InvalidInput
from dgn.evaluation import Bm25, EvaluationSet, SelectorBaseline
from dgn.evaluation.metrics import Interval, bootstrap_interval
from dgn.files import fingerprint_of, only_writer
from dgn.learn.config import RunConfig
from dgn.learn.cross_validation import CrossValidation, RowsEpoch
from dgn.learn.report import rows_card
from dgn.learn.run import CHECKPOINT
from dgn.learn.setup import choose_threads
from dgn.learn.starts import DEFAULT, Start, open_start
from dgn.selector import Selector
from dgn.selector.model_folder import (
    CONFIG,
    ModelConfig,
    hash_of,
    read_config,
    save_model,
    write_config,
)
from dgn.text.words import has_words

LEAST_ROWS = 10
SETTINGS = (
    *("epochs", "patience", "batch_size", "learning_rate", "decay_to_start", "ema_decay"),
    *("max_grad_norm", "dropout", "layers", "temperature", "eval_ks", "seed", "threads"),
)
"""The settings of a run that may be given."""

_KIND = "own labels"
_PASSAGES_PER_RUN = 4_000_000


def settings_for(rows: int, passages: int, given: Mapping[str, Any]) -> RunConfig:
    """The settings for data of this size; those that are given take precedence.

    They were chosen on six sets that the shipped model was not trained on, with 20 to 200 rows of
    each (docs/training.md). Fewer rows are learned in smaller batches and stay nearer to the start.

    Args:
        rows: The number of rows.
        passages: The number of their passages.
        given: Some of SETTINGS.
    """
    for name in given:
        if name not in SETTINGS:
            flags = ", ".join(f"--{one.replace('_', '-')}" for one in SETTINGS)
            raise InvalidInput(
                name,
                message=f"--{name.replace('_', '-')} is a setting of training on folders of "
                f"features (--train); with rows, the settings are {flags}.",
            )
    chosen: dict[str, Any] = {
        "encoder": "facets",
        "dropout": 0.5,
        "layers": 4,
        "assignment": "set",
        "temperature": 0.1,
        "ema_decay": 0.97,
        "batch_size": 8 if rows < 100 else 16 if rows < 1000 else 32 if rows < 4000 else 64,
        "decay_to_start": min(10.0, 200 / max(rows, 1)),
        "epochs": int(np.clip(_PASSAGES_PER_RUN // max(passages, 1), 10, 40)),
        # Who asks for more epochs gets them.
        "patience": 0 if "epochs" in given else 12,
    }
    return RunConfig().with_settings({**chosen, **given})


@dataclass(frozen=True)
class Measured:
    """The recall of one way to select, on rows that it has not learned from.

    Attributes:
        name: "start", "BM25" or "trained".
        recalls: At each k, with its bootstrap interval.
        gains: At each k, what the trained model has more than this one on the same rows.
    """

    name: str
    recalls: tuple[Interval, ...]
    gains: tuple[Interval, ...]


@dataclass(frozen=True, eq=False)
class RowsResult:
    """A run on rows that is finished.

    Attributes:
        folder: The model folder.
        rows: The number of rows that were learned from.
        left_out: The number of rows that were not, by reason.
        ks: The k at which recall is measured.
        table: The start, BM25 and the trained model.
        epochs: The start, and every epoch.
        best_epoch: The epoch whose weights were kept; 0 if the start was kept.
        chosen_epoch: The epoch with the highest recall, even if the start was kept.
        stopped: Why training stopped.
        note: How the rows were divided, if not by document.
    """

    folder: Path
    rows: int
    left_out: dict[str, int]
    ks: tuple[int, ...]
    table: tuple[Measured, ...]
    epochs: tuple[RowsEpoch, ...]
    best_epoch: int
    chosen_epoch: int
    stopped: str
    note: str = ""


def train_on_rows(
    paths: Sequence[Path | str],
    folder: Path,
    *,
    start: str = DEFAULT,
    given: Mapping[str, Any] | None = None,
    pages: Path | None = None,
    problems: Problems | None = None,
    on_read: Callable[[int, int], None] = lambda _read, _of: None,
    on_epoch: Callable[[RowsEpoch, int], None] = lambda _epoch, _of: None,
) -> RowsResult:
    """Train on labelled rows, or continue, in this folder.

    Args:
        paths: Files of rows with evidence, in any format that `read_examples` reads.
        folder: The model folder to write.
        start: What to start from: "default", "untrained", "minilm", or a model folder.
        given: Settings that take precedence over those chosen by the size of the data.
        pages: The pages of the rows, if they do not include their passages.
        problems: What to do about broken rows; by default, the first one is raised.
        on_read: Called with the number of rows that were read, and that of all.
        on_epoch: Called after every epoch, and once for the start, with the largest number of
            epochs.

    Returns:
        The result; the model is in the folder.
    """
    files = [Path(path) for path in paths]
    examples = [one for path in files for one in read_examples(path, pages, problems)]
    own, used, left_out = _usable(start, examples)
    passages = sum(len(one.gold) for one in used)
    chosen = {"learning_rate": own.learning_rate, **(given or {})}
    config = settings_for(len(used), passages, chosen)
    ran_on = {path.name: fingerprint_of(path) for path in files}
    training = {
        "kind": _KIND,
        "rows": ran_on,
        "examples": len(used),
        "start": start,
        "start_hash": hash_of(own.selector.encoder, None),
        **{
            name: tables
            for name, tables in config.to_tables().items()
            if name in ("network", "fit")
        },
    }
    _check_folder(folder, training)
    with only_writer(folder):
        # Before the first epoch is done, the folder is already known as that of this run.
        if not (folder / CONFIG).is_file():
            save_model(own.selector.encoder, folder, calibration=own.selector.calibration)
        _write_training(folder, training)
        choose_threads(config.machine.threads, passages / len(used) * config.fit.batch_size * 2e4)
        table = own.table(used, lambda read: on_read(read, len(used)))
        run = CrossValidation(own, config, table, used, folder / CHECKPOINT)
        run.learn(on_epoch)
        found, is_better = _compared(own, run, EvaluationSet(tuple(used)), config.fit.eval_ks)
        best = run.picks[0].epoch
        result = RowsResult(
            folder,
            len(used),
            left_out,
            config.fit.eval_ks,
            found,
            tuple(run.epochs),
            best if is_better else 0,
            best,
            run.stopped,
            run.note,
        )
        encoder, calibration = own.selector.encoder, own.selector.calibration
        if result.best_epoch:
            # Probabilities of the start are not those of other weights: dgn calibrate fits them.
            encoder, calibration = own.encoder(run.picks[0].arrays), None
        save_model(encoder, folder, rows_card(result, training, type(encoder)), calibration)
        facts = {"best_epoch": result.best_epoch, "epochs_done": len(result.epochs) - 1}
        recall = {one.name: [asdict(interval) for interval in one.recalls] for one in found}
        _write_training(folder, {**training, **facts, "recall": recall})
    return result


def _compared(
    start: Start, run: CrossValidation, data: EvaluationSet, ks: Sequence[int]
) -> tuple[tuple[Measured, ...], bool]:
    """The start, BM25 and the trained networks on the same rows, and whether training helped.

    Training helped if the mean gain over the start is larger than its standard error.
    """
    trained = np.zeros((len(data.examples), max(ks)), np.int64)
    for pick in run.picks[1:]:
        rows = np.flatnonzero(pick.reports)
        baseline = SelectorBaseline("trained", Selector(start.encoder(pick.arrays)))
        trained[rows] = baseline.select([data.examples[row].query for row in rows], max(ks))
    others = (SelectorBaseline("start", start.selector), Bm25())
    indices = {one.name: one.select(data.queries, max(ks)) for one in others}
    reported = np.any([pick.reports for pick in run.picks], axis=0)
    recalls = {
        name: np.stack([data.recalls_at(k, own)[reported] for k in ks])
        for name, own in {**indices, "trained": trained}.items()
    }
    gain = (recalls["trained"] - recalls["start"]).mean(axis=0)
    is_better = bool(gain.mean() > gain.std() / math.sqrt(len(gain)))
    return tuple(_measured(n, own, recalls["trained"]) for n, own in recalls.items()), is_better


def _usable(start: str, examples: Sequence[Example]) -> tuple[Start, list[Example], dict[str, int]]:
    """The start, the examples to learn from, and how many are left out for which reason."""
    labelled = [one for one in examples if any(one.gold) and has_words(one.query.text)]
    own = open_start(start, labelled)
    used = own.usable(labelled)
    left_out = {
        "no evidence among the passages": len(examples) - len(labelled),
        "another language": len(labelled) - len(used),
    }
    if len(used) < LEAST_ROWS:
        raise InvalidInput(
            "rows",
            message=f"{len(used)} of {len(examples)} rows can be learned from; training needs at "
            f"least {LEAST_ROWS} rows with evidence among their passages, and is useful from about "
            "50 on.",
        )
    return own, used, {reason: count for reason, count in left_out.items() if count}


def _check_folder(folder: Path, training: Mapping[str, Any]) -> None:
    """Raise InvalidInput unless the folder is new, or that of the same run."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("out", message=f"{folder} is a file; choose a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    if all(path.name.startswith(".") for path in folder.iterdir()):
        return
    before = read_config(folder).training if (folder / CONFIG).is_file() else None
    if before is None or before.get("kind") != _KIND:
        raise InvalidInput(
            "out",
            message=f"{folder} contains other files; choose a new folder, or that of a run on the "
            "same rows.",
        )
    was, now = _comparable(before), _comparable(training)
    changed = [name for name in now if was.get(name) != now[name]]
    if changed:
        raise InvalidInput(
            "out",
            message=f"{folder} contains a run with other rows or settings ({', '.join(changed)}); "
            "use the same ones to continue it, or choose another folder.",
        )


def _comparable(training: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same to continue a run: everything but its length."""
    names = ("rows", "examples", "start_hash", "network")
    fit = {k: v for k, v in training["fit"].items() if k not in ("epochs", "patience")}
    # JSON has lists and no tuples.
    return json.loads(json.dumps({**{name: training[name] for name in names}, **fit}))


def _measured(name: str, recalls: NDArray[Any], trained: NDArray[Any]) -> Measured:
    values = (
        tuple(bootstrap_interval(own, seed=0) for own in some)
        for some in (recalls, trained - recalls)
    )
    return Measured(name, *values)


def _write_training(folder: Path, training: dict[str, Any]) -> None:
    described = read_config(folder)
    write_config(folder, ModelConfig(described.encoder, training, described.calibration))
