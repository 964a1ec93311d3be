"""Questions whose vectors are MiniLM's: for peers that rank by a sentence encoder's cosine."""

from __future__ import annotations

import numpy as np
import torch

from dgn.data.feature_table import FeatureTable
from dgn.data.records import Example
from dgn.evaluation.contenders import Questions
from dgn.text import clean_brackets
from dgn.training.minilm import WordPieces, embed, load_minilm


def with_minilm(examples: tuple[Example, ...], unanswerable: tuple[Example, ...]) -> Questions:
    """The same questions, with MiniLM's vectors of claims and sentences."""
    torch.set_num_threads(2)
    encoder, pieces = load_minilm(dropout=0.0), WordPieces()
    texts = list(dict.fromkeys(c.text for one in examples for c in one.candidates))
    place = {text: number for number, text in enumerate(texts)}
    table = FeatureTable(
        claims=_vectors(encoder, pieces, [one.claim.text for one in examples]),
        sentences=_vectors(encoder, pieces, texts),
        offsets=np.cumsum([0, *(len(one.candidates) for one in examples)]),
        candidates=np.array([place[c.text] for one in examples for c in one.candidates], np.int32),
        gold=np.array([gold for one in examples for gold in one.gold]),
        ids=np.array([one.claim.id for one in examples]),
    )
    return Questions(examples, table, unanswerable=unanswerable)


def _vectors(encoder: object, pieces: WordPieces, texts: list[str]) -> np.ndarray:
    return embed(encoder, pieces, [clean_brackets(text) for text in texts]).numpy()  # type: ignore[arg-type]
