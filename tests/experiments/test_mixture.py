"""Training on several domains: windows, networks joined into one, and a short run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.core.native.facets import WordTable
from dgn.data import read_examples
from dgn.text.encoders.facets.encoder import FacetEncoder
from dgn.text.encoders.facets.formula import FacetSizes, FacetWeights, compute_facets, start_weights
from dgn.text.encoders.facets.matching import Matches
from experiments.coverage import auroc
from experiments.mixture import Row, Settings, joined, matched, recalls, train, window
from models import untrained

SAMPLES = list(read_examples(Path(__file__).parents[2] / "samples" / "claims.jsonl"))[:30]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    encoder = untrained().encoder
    assert isinstance(encoder, FacetEncoder)
    return matched(encoder, SAMPLES, np.zeros(sum(len(one.gold) for one in SAMPLES)))


def network(seed: int) -> FacetWeights:
    random = np.random.default_rng(seed)
    weights = vars(start_weights(FacetSizes(256, 3, 5), seed))
    learned = ("projection", "hidden", "hidden_bias", "output", "output_bias")
    return FacetWeights(
        **{
            name: (w + random.standard_normal(w.shape)).astype(np.float32) if name in learned else w
            for name, w in weights.items()
        }
    )


def test_joined_networks_have_the_mean_logits(rows: list[Row]) -> None:
    parts = [network(seed) for seed in range(3)]
    matches = Matches.of([rows[0].matches], rows[0].words)
    each = [compute_facets(part, matches).logits for part in parts]
    together = compute_facets(joined(parts), matches).logits
    np.testing.assert_allclose(together, np.mean(each, axis=0), rtol=1e-4, atol=1e-5)


def test_window_keeps_the_gold_and_sometimes_loses_the_order(rows: list[Row]) -> None:
    random = np.random.default_rng(0)
    windows = [window(rows[0], random) for _ in range(40)]
    assert all(one.gold.sum() == rows[0].gold.sum() for one in windows)
    ordered = {bool(one.matches["is_ordered"].any()) for one in windows}
    assert ordered == {True, False}
    assert {bool(one.matches["title"].any()) for one in windows} == {True, False}


def test_words_are_hidden_and_titles_invented(rows: list[Row]) -> None:
    random = np.random.default_rng(0)
    untitled = next(row for row in rows if len(row.matches["query"]) > 5)
    plain = {**untitled.matches, "title": np.zeros_like(untitled.matches["title"])}
    row = replace(untitled, matches=plain)
    windows = [window(row, random, 0.3, 0.5) for _ in range(40)]
    words = [len(one.matches["query"]) for one in windows]
    assert max(words) > min(words) >= 1
    assert all(
        one.matches["similarity"].shape[1] == n for one, n in zip(windows, words, strict=True)
    )
    assert {bool(one.matches["title"].any()) for one in windows} == {True, False}
    assert not plain["title"].any(), "the row itself is not changed"


def test_a_short_run_gives_a_model(rows: list[Row]) -> None:
    settings = Settings(steps=4, batch=6, hidden=4, projection=2, networks=2)
    weights = train(settings, [rows[:15], rows[15:]])
    assert weights.sizes == FacetSizes(256, 4, 8)
    assert weights.output.any(), "the start has no output"
    selector = dgn.Selector(FacetEncoder(weights))
    found = recalls(selector, SAMPLES)
    assert found.shape == (30, 4)
    assert (np.diff(found, axis=1) >= 0).all()


def test_auroc() -> None:
    assert auroc([2, 3], [0, 1]) == 1
    assert auroc([1, 1], [1, 1]) == 0.5
    assert auroc([0], [1]) == 0


def test_words_of_a_row_are_those_of_its_query(rows: list[Row]) -> None:
    assert isinstance(rows[0].words, WordTable)
    assert len(rows[0].words.facts) <= len(rows[0].matches["query"])
