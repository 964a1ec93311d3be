"""Queries made of a few words, for comparisons."""

import numpy as np

from dgn.data import Claim, Evidence, Example, Page, example_of
from dgn.data.records import passages_of

WORDS = (
    "ship harbour storm captain sank rose in 1901 1902 the a of and was crew lost".split()  # noqa: SIM905
)


def make_examples(count: int = 25) -> tuple[Example, ...]:
    random = np.random.default_rng(0)

    def sentence() -> str:
        return " ".join(random.choice(WORDS, random.integers(3, 12))).capitalize() + "."

    examples = []
    for number in range(count):
        page = Page(f"P{number}", tuple(sentence() for _ in range(random.integers(2, 9))))
        evidence = Evidence(page.title, int(random.integers(len(page.sentences))))
        claim = Claim(str(number), sentence(), "SUPPORTS", ((evidence,),))
        examples.append(example_of(claim, passages_of([page])))
    return tuple(examples)
