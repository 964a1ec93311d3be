"""Labelled rows that are made up: a question, and sentences of which some answer it.

The gold sentence is the one with a word that questions do not have, so that only learning finds it.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

_WORDS = ("harbour", "glass", "river", "violin", "winter", "copper", "bridge", "garden", "letter")


def write_jsonl(path: Path, rows: Iterable[object]) -> Path:
    """Write one row per line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_rows(path: Path, count: int, seed: int = 0, *, is_random: bool = False) -> Path:
    """Write rows of six sentences; if random, nothing can be learned from their evidence."""
    random = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            asked, *others = random.permutation(_WORDS)[:4].tolist()
            sentences = [f"The {asked} and the {other} are old." for other in others]
            sentences += [f"Somebody saw the {asked} near {number}." for _ in range(2)]
            gold = int(random.integers(6)) if is_random else 5
            sentences.append(f"By decree, a permit for the {asked} is refused.")
            order = random.permutation(6).tolist()
            row = {
                "query": f"What about the {asked}?",
                "passages": [sentences[place] for place in order],
                "evidence": [[order.index(gold)]],
            }
            stream.write(json.dumps(row) + "\n")
    return path
