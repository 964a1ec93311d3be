r"""Teacher logits: a cross-encoder, fine-tuned on other pages than those that it scores.

    python -m experiments.teach --pages docs --train train.jsonl facets/train \\
        --partial train_partial.jsonl facets/train_partial

Every passage gets a logit from a cross-encoder that was never trained on a claim of the same page.
Where gold is incomplete, the logits show which other passages may be evidence too. A GPU helps.
"""

from __future__ import annotations

import argparse
import io
import math
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from dgn.learn.families.facets_table import MatchTable
from dgn.learn.features import TEACHER_LOGITS
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from dgn.core.numerics import lowest_log
from dgn.data import Dataset, Example
from dgn.errors import DGNError, InvalidInput
from dgn.files import write_atomically
from dgn.learn import find_device
from dgn.minilm.transformer import (
    CrossEncoder,
    MiniLM,
    WordPieces,
    load_minilm,
    pair_batch,
)
from dgn.text.spelling import clean_brackets, title_text

_LONGEST_CLAIM, _LONGEST_TITLE, _LONGEST_PASSAGE = 48, 16, 90
_CLAIMS_PER_BATCH = 32
_BINARY_SHARE = 0.3
"""The weight of the pointwise loss next to the listwise one. It keeps the logits meaningful on
pages with two gold passages or none."""


@dataclass(frozen=True)
class TeachConfig:
    """How the cross-encoders are fine-tuned; `folds` is the number of parts of the pages."""

    folds: int = 4
    epochs: int = 2
    batch_size: int = 32
    learning_rate: float = 6e-5
    negative_weight: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("folds", 2), ("epochs", 1), ("batch_size", 1), ("seed", 0)):
            if getattr(self, name) < least:
                found = str(getattr(self, name))
                raise InvalidInput(name, found=found, allowed=f"at least {least}")


@dataclass(frozen=True)
class Lesson:
    """Claims, the folder of their features, and whether their gold is complete."""

    dataset: Dataset
    features: Path
    complete: bool = True


@dataclass(frozen=True, eq=False)
class _Pairs:
    """A claim as tokens, with each of its passages and their titles."""

    claim: list[int]
    passages: list[tuple[list[int], list[int]]]
    gold: list[bool]
    complete: bool
    pages: frozenset[str]


def teach(
    lessons: Sequence[Lesson],
    encoder: Callable[[], MiniLM],
    pieces: WordPieces,
    config: TeachConfig,
    device: torch.device,
    on_fold: Callable[[int], None] = lambda _: None,
) -> None:
    """Write teacher logits into the folder of features of each lesson."""
    pairs: list[_Pairs] = []
    sizes: list[int] = []
    for lesson in lessons:
        own = _pairs_of(lesson, pieces)
        pairs += own
        sizes.append(len(own))
    parts = _parts_of(pairs, config.folds)
    logits: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(pairs)
    for fold in range(config.folds):
        others = [one for one, part in zip(pairs, parts, strict=True) if part != fold]
        held_out = [number for number, part in enumerate(parts) if part == fold]
        if not held_out:
            continue
        network = fine_tune(others, encoder, config, device)
        scores = score(network, [pairs[number] for number in held_out], device)
        for number, own_scores in zip(held_out, scores, strict=True):
            logits[number] = own_scores
        on_fold(fold + 1)
    start = 0
    for lesson, size in zip(lessons, sizes, strict=True):
        stream = io.BytesIO()
        np.save(stream, np.concatenate(logits[start : start + size]))
        write_atomically(lesson.features / TEACHER_LOGITS, stream.getvalue())
        start += size


def fine_tune(
    pairs: Sequence[_Pairs],
    encoder: Callable[[], MiniLM],
    config: TeachConfig,
    device: torch.device,
) -> CrossEncoder:
    """A cross-encoder that has learned from these claims."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(config.seed)
        network = CrossEncoder(encoder()).to(device).train()
        optimizer = torch.optim.AdamW(network.parameters(), config.learning_rate)
        random = np.random.default_rng(config.seed)
        steps = config.epochs * math.ceil(len(pairs) / config.batch_size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            config.learning_rate,
            total_steps=max(steps, 2),
            pct_start=0.1,
            anneal_strategy="linear",
        )
        for _ in range(config.epochs):
            order: list[int] = random.permutation(len(pairs)).tolist()
            for start in range(0, len(order), config.batch_size):
                batch = [pairs[number] for number in order[start : start + config.batch_size]]
                optimizer.zero_grad()
                _loss(network, batch, config.negative_weight, device).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()
                schedule.step()
    return network.eval()


@torch.no_grad()
def score(
    network: CrossEncoder, pairs: Sequence[_Pairs], device: torch.device
) -> list[NDArray[np.float32]]:
    """The logits of the passages of each claim."""
    scores: list[NDArray[np.float32]] = []
    for start in range(0, len(pairs), _CLAIMS_PER_BATCH):
        batch = pairs[start : start + _CLAIMS_PER_BATCH]
        logits = np.asarray(_logits(network, batch, device).float().cpu())
        cuts = np.cumsum([len(one.passages) for one in batch])[:-1]
        scores += np.split(logits, cuts)
    return scores


def _loss(
    network: CrossEncoder, batch: Sequence[_Pairs], negative_weight: float, device: torch.device
) -> Tensor:
    logits = _logits(network, batch, device).float()
    gold = torch.tensor([flag for one in batch for flag in one.gold], device=device)
    others = [1.0 if one.complete else negative_weight for one in batch for _ in one.gold]
    weights = torch.where(gold, 1.0, torch.tensor(others, device=device))
    single = binary_cross_entropy_with_logits(logits, gold.float(), weights, reduction="sum")
    sizes = [len(one.passages) for one in batch]
    pages: tuple[Tensor, ...] = torch.split(logits, sizes)
    of_page: tuple[Tensor, ...] = torch.split(gold, sizes)
    listed: list[Tensor] = [
        torch.logsumexp(page, 0) - torch.logsumexp(torch.where(right, page, lowest_log(page)), 0)
        for page, right in zip(pages, of_page, strict=True)
        if bool(right.any())
    ]
    return (sum(listed, start=logits.new_zeros(())) + _BINARY_SHARE * single) / len(batch)


def _logits(network: CrossEncoder, batch: Sequence[_Pairs], device: torch.device) -> Tensor:
    texts = [(one.claim, *passage) for one in batch for passage in one.passages]
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        return network(*pair_batch(texts, device))


def _parts_of(pairs: Sequence[_Pairs], folds: int) -> list[int]:
    """The part of each claim: claims that share a page, directly or not, are in the same part."""
    root: dict[str, str] = {}

    def find(page: str) -> str:
        while root.setdefault(page, page) != page:
            page = root[page]
        return page

    for one in pairs:
        first, *others = sorted(one.pages)
        for page in others:
            root[find(page)] = find(first)
    # The same on every machine and in every order of the claims.
    parts = [zlib.crc32(find(min(one.pages)).encode()) % folds for one in pairs]
    if len(set(parts)) < 2:
        raise InvalidInput(
            "claims", message="All claims share pages; they cannot be divided into parts."
        )
    return parts


def _pairs_of(lesson: Lesson, pieces: WordPieces) -> list[_Pairs]:
    examples = [one for one in lesson.dataset.examples() if one.query.passages]
    table = MatchTable.load(lesson.features)
    if table.ids.tolist() != [example.claim.id for example in examples] or table.gold.tolist() != [
        gold for example in examples for gold in example.gold
    ]:
        raise InvalidInput(
            "features",
            message=f"{lesson.features} contains the features of other claims than "
            f"{lesson.dataset.queries}.",
        )
    return [_as_pairs(example, pieces, lesson.complete) for example in examples]


def _as_pairs(example: Example, pieces: WordPieces, complete: bool) -> _Pairs:
    passages = example.query.passages
    titles = [title_text(passage.title) for passage in passages]
    texts = [clean_brackets(passage.text) for passage in passages]
    (claim,) = pieces([clean_brackets(example.query.text)], _LONGEST_CLAIM)
    return _Pairs(
        claim,
        list(zip(pieces(titles, _LONGEST_TITLE), pieces(texts, _LONGEST_PASSAGE), strict=True)),
        list(example.gold),
        complete,
        frozenset(passage.id or "" for passage in passages),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write teacher logits, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.teach",
        description="Fine-tune MiniLM on claims, part by part, and write its logits for the "
        "passages of the other parts into their folders of features (--encoder facets).",
    )
    parser.add_argument("--pages", type=Path, help="page store, or folder of pages")
    for name, what in (("train", "complete"), ("partial", "incomplete")):
        parser.add_argument(
            f"--{name}",
            nargs=2,
            action="append",
            default=[],
            type=Path,
            metavar=("QUERIES", "FEATURES"),
            help=f"claims whose gold is {what}, and the folder of their features; repeatable",
        )
    parser.add_argument("--folds", type=int, default=4, help="parts of the pages (default 4)")
    parser.add_argument("--epochs", type=int, default=2, help="(default 2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    options = parser.parse_args(arguments)
    try:
        lessons = [
            Lesson(Dataset(queries, options.pages), features, complete)
            for pairs, complete in ((options.train, True), (options.partial, False))
            for queries, features in pairs
        ]
        if not lessons:
            parser.error("pass --train QUERIES FEATURES")
        config = TeachConfig(folds=options.folds, epochs=options.epochs, seed=options.seed)
        teach(
            lessons,
            load_minilm,
            WordPieces(),
            config,
            find_device(options.device),
            lambda fold: print(f"part {fold} of {config.folds}", flush=True),
        )
    except DGNError as error:
        print(f"teach: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("teach: interrupted; nothing was written", file=sys.stderr)
        return 130
    for lesson in lessons:
        print(f"teacher logits: {lesson.features / TEACHER_LOGITS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
