"""How much is selected: k, max_tokens and coverage, alone and combined."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.errors import InvalidInput
from dgn.selector.coverage import coverage_after
from models import shipped, untrained

SAMPLES = Path(__file__).parents[2] / "samples" / "claims.jsonl"
MORE = dgn.Document(
    "The cathedral stands on a hill. Its windows were made by Tamsett! It is cold.", "Cathedral"
)
MODELS = {"shipped": shipped, "untrained": untrained}


@pytest.fixture(params=MODELS)
def selector(request: pytest.FixtureRequest) -> dgn.Selector:
    return MODELS[request.param]()


def test_max_tokens_is_respected_and_used(selector: dgn.Selector) -> None:
    counts = selector.encoder.count_tokens(PAGE)
    for limit in (15, 30, 60, 500):
        selection = selector.select(CLAIM, PAGE, max_tokens=limit)
        assert sum(counts[index] for index in selection.indices) <= limit
    assert len(selector.select(CLAIM, PAGE, max_tokens=1)) == 0


def test_large_budget_selects_all_that_is_useful() -> None:
    assert len(untrained().select(CLAIM, PAGE, max_tokens=500)) >= 4


def test_k_and_max_tokens_both_hold(selector: dgn.Selector) -> None:
    counts = selector.encoder.count_tokens(PAGE)
    for k, limit in itertools.product((1, 2, 3), (15, 30, 60, 500)):
        selection = selector.select(CLAIM, PAGE, k=k, max_tokens=limit)
        assert len(selection) <= k
        assert sum(counts[index] for index in selection.indices) <= limit
    assert len(selector.select(CLAIM, PAGE, k=2, max_tokens=500)) == 2


def test_tokens_are_counted_by_the_users_function() -> None:
    asked: list[str] = []

    def characters(text: str) -> int:
        asked.append(text)
        return len(text)

    selection = untrained().select(CLAIM, PAGE, max_tokens=60, count_tokens=characters)
    assert asked == PAGE
    assert 0 < sum(map(len, selection.texts)) <= 60
    nothing = untrained().select(CLAIM, PAGE, max_tokens=60, count_tokens=lambda _: 61)
    assert len(nothing) == 0
    (many,) = untrained().select_many(
        [{"query": CLAIM, "passages": PAGE}], max_tokens=60, count_tokens=len
    )
    assert many.indices == selection.indices


@pytest.mark.parametrize("count", [2.5, "3", None, -1])
def test_counts_that_are_not_integers_are_refused(count: Any) -> None:
    with pytest.raises(InvalidInput, match=r"count_tokens\(text\) must be an integer"):
        untrained().select(CLAIM, PAGE, max_tokens=20, count_tokens=lambda _: count)


def test_numpy_integers_as_counts() -> None:
    plain = untrained().select(CLAIM, PAGE, max_tokens=60, count_tokens=len)
    counted = untrained().select(
        CLAIM, PAGE, max_tokens=60, count_tokens=lambda t: np.int64(len(t))
    )
    assert counted == plain


def test_budget_does_not_buy_short_passages_that_state_nothing() -> None:
    passages = [*PAGE, "It is so.", "He did.", "No one knew."]
    selection = shipped().select(CLAIM, passages, max_tokens=40, titles=TITLE)
    assert set(selection.indices) >= {1, 3}


@pytest.mark.parametrize("count", [1, 2])
def test_budget_buys_the_only_passage(selector: dgn.Selector, count: int) -> None:
    passages = ["The bridge opened in 1890."] * count
    selection = selector.select("The bridge opened in 1890", passages, max_tokens=100)
    assert len(selection) >= 1


def test_coverage_gives_the_smallest_prefix_that_is_enough() -> None:
    whole = untrained().select(CLAIM, PAGE, k=5)
    shares = coverage_after(whole.objective, whole.items, whole.indices)
    assert (np.diff(shares) >= -1e-12).all()
    assert shares[0] == 0
    for share in (0.2, 0.6, 0.9, 1.0):
        selection = untrained().select(CLAIM, PAGE, stop_at=share)
        count = len(selection)
        assert selection.indices == whole.indices[:count]
        assert shares[count] >= share * shares[-1] - 1e-6
        assert count == 1 or shares[count - 1] < share * shares[-1]
        assert selection == untrained().select(CLAIM, PAGE, k=count), "the certificate too"
    assert len(untrained().select(CLAIM, PAGE, stop_at=1.0, k=1)) == 1


def test_coverage_stops_early(selector: dgn.Selector) -> None:
    page = ["Oriel Tamsett studied chemistry and made windows for the cathedral.", *PAGE]
    assert selector.select(CLAIM, page, stop_at=0.9).indices == (0,)
    assert len(selector.select(CLAIM, page * 3, stop_at=0.9)) == 1


def test_coverage_can_be_combined_with_k_and_max_tokens(selector: dgn.Selector) -> None:
    counts = selector.encoder.count_tokens(PAGE)
    for share, k, limit in itertools.product((0.3, 0.9), (None, 1, 3), (None, 25, 60)):
        selection = selector.select(CLAIM, PAGE, stop_at=share, k=k, max_tokens=limit)
        whole = selector.select(CLAIM, PAGE, k=k or 5, max_tokens=limit)
        assert len(selection) <= min(k or 5, len(whole))
        assert sum(counts[index] for index in selection.indices) <= (limit or 500)
        achievable = coverage_after(selection.objective, selection.items, range(5))[-1]
        assert selection.coverage >= min(share * achievable, whole.coverage) - 1e-6


def test_coverage_works_without_named_features() -> None:
    facility = dgn.Selector(untrained().encoder, objective=dgn.FacilityLocation())
    assert len(facility.select(CLAIM, PAGE, stop_at=1.0)) > 1


@pytest.mark.parametrize("limits", [{}, {"max_tokens": 40}], ids=str)
@pytest.mark.parametrize("stop_at", [0.2, 0.5, 0.8, 1.0])
def test_coverage_limit_keeps_the_first_passages(stop_at: float, limits: dict[str, int]) -> None:
    full = untrained().select(CLAIM, PAGE, k=5, **limits)
    cut = untrained().select(CLAIM, PAGE, k=5, stop_at=stop_at, **limits)
    assert cut.indices == full.indices[: len(cut.indices)]
    assert cut.gains == full.gains[: len(cut.indices)]
    assert 0 < cut.certificate.ratio <= 1
