"""Ways to pick that can be compared: each gets the same claims, with the same candidates."""

from dgn.evaluation.contenders.base import Contender, Questions
from dgn.evaluation.contenders.lexical import Bm25, FirstSentences, TfIdf
from dgn.evaluation.contenders.pooled import CosineTopK, UntrainedGreedy

__all__ = [
    "Bm25",
    "Contender",
    "CosineTopK",
    "FirstSentences",
    "Questions",
    "TfIdf",
    "UntrainedGreedy",
]
