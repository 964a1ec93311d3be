"""The generated problem says the truth, and every method learns from what it should."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dgn.learn.outcomes import Outcomes
from experiments.outcomes.generated import GeneratedProblem, make_claims
from experiments.outcomes.methods import METHODS, Method, build, draw_settings, loss_of
from experiments.outcomes.pairs import SCALARS, Pairs
from experiments.outcomes.study import compare, table


def test_the_evidence_of_a_claim_says_whether_it_is_true() -> None:
    (claims,) = make_claims(0, (200,))
    data, side = claims.data, claims.data.passages[..., -1]
    for row in range(200):
        gold = data.gold[row]
        assert int(gold.sum()) == claims.facets[row]
        assert sorted(claims.facet[row, gold]) == list(range(claims.facets[row]))
        # The noise of a side has a deviation of .3, so that .9 of its distance is hardly ever lost.
        denied = (side[row, gold] < 0).sum()
        assert abs(int(denied) - (1 - int(data.outcome[row]))) <= 1
    selected = np.full((200, 4), -1)
    for row, own in enumerate(data.gold):
        places = np.flatnonzero(own)
        selected[row, : len(places)] = places
    assert claims.recall(selected) == 1.0
    assert claims.recall(np.full((200, 4), -1)) == 0.0
    assert 0.35 < float(data.outcome.float().mean()) < 0.65


def test_noise_changes_the_verdicts_of_what_learns_and_not_of_what_is_reported() -> None:
    clean, noisy = (make_claims(3, (400, 50, 100), noise=noise) for noise in (0.0, 0.3))
    changed = (clean[0].data.outcome != noisy[0].data.outcome).float().mean()
    assert 0.22 < float(changed) < 0.38
    assert torch.equal(clean[2].data.outcome, noisy[2].data.outcome)
    assert torch.equal(clean[2].data.x, noisy[2].data.x)


def first_claims() -> Outcomes:
    (claims,) = make_claims(1, (24,))
    return claims.data.rows(torch.arange(24))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_method_learns_from_what_it_says(method: Method) -> None:
    network, data = build(method, GeneratedProblem(), 0), first_claims()
    loss = loss_of(method, network)(data)
    loss.backward()
    assert loss.isfinite()
    learns = [
        one.grad is not None and bool(one.grad.any()) for one in network.selector.parameters()
    ]
    assert any(learns) == (method.outcomes or method.labels)
    assert all(bool(weight.grad.any()) for weight in network.reader.parameters())


def test_all_methods_start_with_the_same_features() -> None:
    data = first_claims()
    greedy, ranked = (
        build(method, GeneratedProblem(), 5)
        for method in (METHODS[0], next(one for one in METHODS if one.name == "soft top-k"))
    )
    first = [one.select(data.x, data.mask, 1).indices for one in (greedy, ranked)]
    assert torch.equal(*first)
    for one, other in zip(greedy.parameters(), ranked.parameters(), strict=True):
        assert torch.equal(one, other)


def test_trials_are_the_same_draws_and_the_usual_settings_come_first() -> None:
    assert draw_settings(5)[:2] == draw_settings(2)
    assert len(set(draw_settings(5))) == 5


def test_results_are_continued_and_printed(tmp_path: Path) -> None:
    problem, path = GeneratedProblem(40), tmp_path / "outcomes.json"
    problem.epochs = 1
    compare(problem, path, 1, 1, METHODS[:1])
    first = json.loads(path.read_text())["generated"]["methods"]["greedy, untrained"]
    section = compare(problem, path, 1, 2, METHODS[:2])
    again = section["methods"]["greedy, untrained"]
    assert again["seeds"][0] == first["seeds"][0]
    assert [len(one["seeds"]) for one in section["methods"].values()] == [2, 2]
    assert "greedy, untrained" in table("generated", section)


def test_fever_is_laid_out_claim_by_claim() -> None:
    from experiments.outcomes.fever import outcomes_of, principal_view

    random = np.random.default_rng(0)
    items = np.array([2, 3])

    def half(rows: int, width: int = 384) -> np.ndarray:
        return random.standard_normal((rows, width)).astype(np.float16)

    pairs = Pairs(
        page=np.array(["A", "B"]),
        true=np.array([1, 0]),
        claim=half(2),
        items=items,
        sentence=half(5),
        shift=half(5),
        worst=half(5),
        instead=half(5),
        scalars=half(5, SCALARS),
        gold=np.array([True, False, False, False, True]),
    )
    views = tuple(principal_view(half(120), width, centre=False) for width in (96, 64, 64, 64))
    data = outcomes_of(pairs, views)
    assert data.mask.tolist() == [[True, True, False], [True, True, True]]
    assert data.gold.tolist() == [[True, False, False], [False, False, True]]
    torch.testing.assert_close(
        data.x[1, 2, -SCALARS:], torch.from_numpy(pairs.scalars[4].astype(np.float32))
    )
    assert not data.passages[0, 2].any()
    assert data.outcome.tolist() == [1, 0]
