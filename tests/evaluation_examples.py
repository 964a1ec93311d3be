"""Queries made of a few words, for comparisons."""

import numpy as np

from dgn.data import Example
from dgn.text.query import Passage, Query

WORDS = (
    "ship harbour storm captain sank rose in 1901 1902 the a of and was crew lost".split()  # noqa: SIM905
)


def make_examples(count: int = 25) -> tuple[Example, ...]:
    random = np.random.default_rng(0)

    def sentence() -> str:
        return " ".join(random.choice(WORDS, random.integers(3, 12))).capitalize() + "."

    examples = []
    for number in range(count):
        sentences = [sentence() for _ in range(random.integers(2, 9))]
        gold = int(random.integers(len(sentences)))
        passages = tuple(
            Passage(text, f"P{number}", 0, position, id=f"P{number}")
            for position, text in enumerate(sentences)
        )
        query = Query(sentence(), passages, str(number))
        examples.append(Example(query, tuple(index == gold for index in range(len(passages)))))
    return tuple(examples)
