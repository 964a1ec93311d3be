"""What MiniLM sees of a claim and of each sentence of its page; no label is used.

Every text is read by itself, by dgn's own kernel. For each sentence there are its vector, how far
each word of the claim finds a like word in it, and what stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.data.dataset import read_examples
from dgn.minilm.package import WordPieces, read_weights
from dgn.minilm.reading import TextReader
from dgn.text.spelling import normalized, title_text
from dgn.text.words import word_spans

SCALARS = 14
_DENIALS = re.compile(
    r"\b(not|never|no|none|only|nothing|without|neither|nor|cannot|failed|refused|unable|incapable"
    r"|yet|exclusively|solely|least|isn't|wasn't|didn't|doesn't|n't)\b"
)
_NUMBER = re.compile(r"\d+")
_TITLE_LIKE = 0.75


@dataclass(frozen=True, eq=False)
class Pairs:
    """Claims, and each sentence of their pages, laid end to end.

    Attributes:
        page: [claims], the page of each claim.
        true: [claims], 1 for SUPPORTS and 0 for REFUTES.
        claim: [claims, 384], the vector of each claim.
        items: [claims], the number of sentences of each claim's page.
        sentence: [pairs, 384], the vector of each sentence.
        shift: [pairs, 384], the mean over the claim's words of their vector minus that of the
            likest word of the sentence.
        worst: [pairs, 384], the word of the claim that is least like any of the sentence's.
        instead: [pairs, 384], the sentence's word that is likest to it.
        scalars: [pairs, SCALARS], how far words, numbers and denials agree.
        gold: [pairs], the evidence labels.
    """

    page: NDArray[np.str_]
    true: NDArray[np.int64]
    claim: NDArray[np.float16]
    items: NDArray[np.int64]
    sentence: NDArray[np.float16]
    shift: NDArray[np.float16]
    worst: NDArray[np.float16]
    instead: NDArray[np.float16]
    scalars: NDArray[np.float16]
    gold: NDArray[np.bool_]


def read_pairs(file: Path, docs: Path, cache: Path) -> Pairs:
    """The pairs of a file of claims; they are computed once and kept in a folder."""
    kept = cache / f"outcomes-{file.stem}.npz"
    if not kept.exists():
        pairs = _compute(read_examples(file, docs))
        cache.mkdir(parents=True, exist_ok=True)
        np.savez(kept, **vars(pairs))
    with np.load(kept) as arrays:
        return Pairs(**{name: arrays[name] for name in arrays.files})


def _compute(examples: Iterable[Example]) -> Pairs:
    by_page: dict[str, list[Example]] = {}
    for example in examples:
        by_page.setdefault(example.claim.evidence_pages[0], []).append(example)
    reader, pieces = TextReader(read_weights()), WordPieces()
    rows: list[dict[str, Any]] = []
    for page, some in by_page.items():
        sentences = [normalized(passage.text) for passage in some[0].query.passages]
        title = normalized(title_text(page))
        texts = [title, *sentences, *(normalized(example.claim.text) for example in some)]
        words, wholes = reader(texts, pieces.tokens_of(texts))
        last = len(sentences) + 1
        for number, example in enumerate(some, start=last):
            compared = _compare(texts[number], words[number], sentences, words[1:last], words[0])
            rows.append(
                {
                    "page": page,
                    "true": int(example.claim.label == "SUPPORTS"),
                    "claim": wholes[number],
                    "items": len(sentences),
                    "sentence": wholes[1:last],
                    "gold": np.array(example.gold),
                    **compared,
                }
            )
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    half = ("sentence", "shift", "worst", "instead", "scalars")
    laid = {name: np.concatenate(columns[name]).astype(np.float16) for name in half}
    return Pairs(
        page=np.array(columns["page"]),
        true=np.array(columns["true"]),
        claim=np.array(columns["claim"]).astype(np.float16),
        items=np.array(columns["items"]),
        gold=np.concatenate(columns["gold"]),
        **laid,
    )


def _compare(
    claim: str,
    own: NDArray[np.float32],
    sentences: Sequence[str],
    theirs: Sequence[NDArray[np.float32]],
    title: NDArray[np.float32],
) -> dict[str, NDArray[np.float32]]:
    in_title = (own @ title.T).max(axis=1, initial=0.0) > _TITLE_LIKE
    weight = np.where(in_title, 0.2, 1.0)
    long = np.array([end - start > 3 for start, end in word_spans(claim)])
    weight = weight * np.where(long, 1.0, 0.3)
    weight /= weight.sum()
    denies, numbers = _denies(claim), set(_NUMBER.findall(claim))
    found: dict[str, list[NDArray[np.float32]]] = {
        name: [] for name in ("shift", "worst", "instead", "scalars")
    }
    for position, (text, words) in enumerate(zip(sentences, theirs, strict=True)):
        if not len(words):
            words = np.zeros((1, own.shape[1]), np.float32)
        cosines = own @ words.T
        best, place = cosines.max(axis=1), cosines.argmax(axis=1)
        worst = int(np.argmin(np.where(weight >= np.median(weight), best, 2.0)))
        others = set(_NUMBER.findall(text))
        missing = len(numbers - others) / max(1, len(numbers))
        ordered = np.sort(best)
        found["shift"].append(weight @ (own - words[place]))
        found["worst"].append(own[worst])
        found["instead"].append(words[place[worst]])
        found["scalars"].append(
            np.array(
                [
                    weight @ best,
                    best[worst],
                    ordered[0],
                    ordered[min(1, len(ordered) - 1)],
                    (best > 0.8) @ weight,
                    float(bool(numbers)),
                    missing,
                    float(bool(numbers) and bool(others) and missing > 0),
                    float(denies),
                    float(_denies(text)),
                    float(denies != _denies(text)),
                    float(position == 0),
                    np.log1p(position) / 3,
                    np.log1p(len(words)) / 4,
                ],
                np.float32,
            )
        )
    return {name: np.stack(some).astype(np.float32) for name, some in found.items()}


def _denies(text: str) -> bool:
    return _DENIALS.search(text.lower()) is not None
