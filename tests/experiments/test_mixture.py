"""Training on several kinds of text: windows, rows that travel, and a short run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.data import read_rows
from dgn.text.facets.encoder import FacetEncoder
from dgn.text.facets.formula import FacetSizes, start_weights
from dgn.text.vocabulary import WordTable
from experiments.mixture import Settings, train, window
from experiments.recall import recalls, recalls_of
from experiments.rows import Kind, Row, directions_of, load, matched, save, shortened, some_passages
from models import untrained

SAMPLES = list(read_rows(Path(__file__).parents[2] / "samples" / "claims.jsonl"))[:30]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    encoder = untrained().encoder
    assert isinstance(encoder, FacetEncoder)
    return matched(encoder, SAMPLES, np.zeros(sum(len(one.gold) for one in SAMPLES)))


def test_window_keeps_the_gold_and_sometimes_loses_the_order(rows: list[Row]) -> None:
    random = np.random.default_rng(0)
    windows = [window(rows[0], random) for _ in range(40)]
    assert all(one.gold.sum() == rows[0].gold.sum() for one in windows)
    ordered = {bool(one.matches["is_ordered"].any()) for one in windows}
    assert ordered == {True, False}
    assert {bool(one.matches["title"].any()) for one in windows} == {True, False}


def test_words_are_hidden(rows: list[Row]) -> None:
    random = np.random.default_rng(0)
    row = next(row for row in rows if len(row.matches["query"]) > 5)
    before = row.matches["similarity"].copy()
    windows = [window(row, random, hidden_words=0.3) for _ in range(40)]
    words = [len(one.matches["query"]) for one in windows]
    assert max(words) > min(words) >= 1
    assert all(
        one.matches["similarity"].shape[1] == n for one, n in zip(windows, words, strict=True)
    )
    assert (row.matches["similarity"] == before).all(), "the row itself is not changed"


@pytest.mark.parametrize("learns", ["network", "all"])
def test_a_short_run_gives_a_model(rows: list[Row], learns: str) -> None:
    settings = Settings(steps=4, batch=6, hidden=4, projection=2, learns=learns)
    weights = train(settings, [rows[:15], rows[15:]])
    start = start_weights(FacetSizes(256, 2, 4), 0)
    assert weights.sizes == FacetSizes(256, 2, 4)
    assert weights.output.any(), "the start has no output"
    assert np.array_equal(weights.threshold, start.threshold) == (learns == "network")
    assert not weights.word_weight[:256].any(), "words are known by facts, not by their vectors"
    selector = dgn.Selector(FacetEncoder(weights))
    found = recalls(selector, SAMPLES)
    assert found.shape == (30, 4)
    np.testing.assert_allclose(recalls_of(weights, rows).mean(0), found.mean(0), atol=0.05)


def test_rows_travel(rows: list[Row], tmp_path: Path) -> None:
    kinds = {"one": Kind(rows[:3], rows[3:5]), "two": Kind(rows[5:9], [])}
    directions = directions_of(kinds, 256)
    save(tmp_path / "rows.xz", kinds, directions)
    found, kept = load(tmp_path / "rows.xz")
    np.testing.assert_array_equal(kept, directions)
    assert {name: (len(own.train), len(own.dev)) for name, own in found.items()} == {
        "one": (3, 2),
        "two": (4, 0),
    }
    before, after = rows[6], found["two"].train[1]
    assert (before.gold == after.gold).all()
    for name, array in before.matches.items():
        if name in ("about", "passages"):
            array = array @ directions
        np.testing.assert_allclose(after.matches[name], array, atol=0.005, err_msg=name)


def test_long_rows_are_shortened(rows: list[Row]) -> None:
    row = rows[0]
    many = np.tile(np.arange(len(row.gold)), 1 + 100 // len(row.gold))
    long = some_passages(row, many)
    long = replace(long, hard=long.hard[:12])
    short = shortened(long, np.random.default_rng(0))
    assert len(short.gold) == 64
    assert short.gold.sum() == min(16, long.gold.sum())


def test_words_of_a_row_are_those_of_its_query(rows: list[Row]) -> None:
    assert isinstance(rows[0].words, WordTable)
    assert len(rows[0].words.facts) <= len(rows[0].matches["query"])
