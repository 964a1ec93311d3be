"""Soft labels from a stronger model: a cross-encoder, fine-tuned on other pages than it judges.

Every claim's sentences get a logit from a cross-encoder that was never trained on a claim of the
same page. Where gold is incomplete, the logits say which other sentences may be evidence too.
"""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from dgn.data.records import Example
from dgn.encoders.match_table import SOFT_LABELS, MatchTable
from dgn.errors import InvalidInput
from dgn.features import ExampleSource
from dgn.files import write_atomically
from dgn.numerics import lowest_log
from dgn.text.tokens import clean_brackets, title_words
from dgn.training.minilm import CrossEncoder, MiniLM, WordPieces, pair_batch

_LONGEST_CLAIM, _LONGEST_TITLE, _LONGEST_SENTENCE = 48, 16, 90
_CLAIMS_AT_ONCE = 32
_BINARY_SHARE = 0.3
"""What the loss of each sentence by itself counts, beside that of the page: it makes the logits
mean something also where a page has two gold sentences or none."""


@dataclass(frozen=True)
class TeachConfig:
    """How the cross-encoders are fine-tuned. folds: how many parts the pages are cut into."""

    folds: int = 4
    epochs: int = 2
    batch_size: int = 32
    learning_rate: float = 6e-5
    unlabelled: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("folds", 2), ("epochs", 1), ("batch_size", 1), ("seed", 0)):
            if getattr(self, name) < least:
                found = str(getattr(self, name))
                raise InvalidInput(name, found=found, allowed=f"at least {least}")


@dataclass(frozen=True)
class Lesson:
    """Claims, the folder of their features, and whether their gold is complete."""

    source: ExampleSource
    features: Path
    complete: bool = True


@dataclass(frozen=True, eq=False)
class _Pairs:
    """A claim as tokens, with each of its sentences and their titles."""

    claim: list[int]
    sentences: list[tuple[list[int], list[int]]]
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
    """Write soft labels into each lesson's folder of features."""
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
        write_atomically(lesson.features / SOFT_LABELS, stream.getvalue())
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
                _loss(network, batch, config.unlabelled, device).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()
                schedule.step()
    return network.eval()


@torch.no_grad()
def score(
    network: CrossEncoder, pairs: Sequence[_Pairs], device: torch.device
) -> list[NDArray[np.float32]]:
    """The logits of each claim's sentences."""
    scores: list[NDArray[np.float32]] = []
    for start in range(0, len(pairs), _CLAIMS_AT_ONCE):
        batch = pairs[start : start + _CLAIMS_AT_ONCE]
        logits = np.asarray(_logits(network, batch, device).float().cpu())
        cuts = np.cumsum([len(one.sentences) for one in batch])[:-1]
        scores += np.split(logits, cuts)
    return scores


def _loss(
    network: CrossEncoder, batch: Sequence[_Pairs], unlabelled: float, device: torch.device
) -> Tensor:
    logits = _logits(network, batch, device).float()
    gold = torch.tensor([flag for one in batch for flag in one.gold], device=device)
    rival = [1.0 if one.complete else unlabelled for one in batch for _ in one.gold]
    weights = torch.where(gold, 1.0, torch.tensor(rival, device=device))
    single = binary_cross_entropy_with_logits(logits, gold.float(), weights, reduction="sum")
    sizes = [len(one.sentences) for one in batch]
    pages: tuple[Tensor, ...] = torch.split(logits, sizes)
    of_page: tuple[Tensor, ...] = torch.split(gold, sizes)
    listed: list[Tensor] = [
        torch.logsumexp(page, 0) - torch.logsumexp(torch.where(right, page, lowest_log(page)), 0)
        for page, right in zip(pages, of_page, strict=True)
        if bool(right.any())
    ]
    return (sum(listed, start=logits.new_zeros(())) + _BINARY_SHARE * single) / len(batch)


def _logits(network: CrossEncoder, batch: Sequence[_Pairs], device: torch.device) -> Tensor:
    texts = [(one.claim, *sentence) for one in batch for sentence in one.sentences]
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        return network(*pair_batch(texts, device))


def _parts_of(pairs: Sequence[_Pairs], folds: int) -> list[int]:
    """The part of each claim: claims that share a page, directly or through others, share it."""
    root: dict[str, str] = {}

    def find(page: str) -> str:
        while root.setdefault(page, page) != page:
            page = root[page]
        return page

    for one in pairs:
        first, *others = sorted(one.pages)
        for page in others:
            root[find(page)] = find(first)
    # The same on every machine and for every order of the claims.
    parts = [zlib.crc32(find(min(one.pages)).encode()) % folds for one in pairs]
    if len(set(parts)) < 2:
        raise InvalidInput(
            "claims", found="claims that all share pages", allowed="pages that fall into parts"
        )
    return parts


def _pairs_of(lesson: Lesson, pieces: WordPieces) -> list[_Pairs]:
    examples = [example for example in lesson.source.examples() if example.candidates]
    table = MatchTable.load(lesson.features)
    if table.ids.tolist() != [example.claim.id for example in examples] or table.gold.tolist() != [
        gold for example in examples for gold in example.gold
    ]:
        raise InvalidInput(
            "features", found=f"{lesson.features}: other claims", allowed="those of its claims"
        )
    return [_as_pairs(example, pieces, lesson.complete) for example in examples]


def _as_pairs(example: Example, pieces: WordPieces, complete: bool) -> _Pairs:
    candidates = example.candidates
    titles = [title_words(candidate.page) for candidate in candidates]
    sentences = [clean_brackets(candidate.text) for candidate in candidates]
    (claim,) = pieces([clean_brackets(example.claim.text)], _LONGEST_CLAIM)
    return _Pairs(
        claim,
        list(
            zip(pieces(titles, _LONGEST_TITLE), pieces(sentences, _LONGEST_SENTENCE), strict=True)
        ),
        list(example.gold),
        complete,
        frozenset(candidate.page for candidate in candidates),
    )
