"""The demonstration shows what the documentation says."""

import numpy as np
import pytest

import experiments.demo
from experiments.demo import (
    GOLD,
    IRRELEVANT,
    KS,
    PADDING,
    REDUNDANT,
    DemoResult,
    main,
    make_problem,
    run_demo,
)


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run_demo(0, epochs=4)


def test_the_dgn_beats_every_baseline_after_the_first_sentence(result: DemoResult) -> None:
    *baselines, dgn_row = result.rows
    assert [row.name for row in result.rows] == [
        "Top-k",
        "Greedy",
        "Encoder",
        "DeepEncoder",
        "Encoder, listwise",
        "DGN",
    ]
    for row in baselines:
        for k, ours, theirs in zip(KS, dgn_row.recall, row.recall, strict=True):
            if k > 1:
                assert ours > theirs + 0.03, (row.name, k)


def test_the_table_and_an_example_are_printed(
    result: DemoResult, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert result.story is not None
    monkeypatch.setattr(experiments.demo, "run_demo", lambda *_, **__: result)
    assert main(["--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    assert "DeepEncoder" in printed
    assert "±" in printed
    assert "DGN selects, each given those before:" in printed
    assert "its gain falls" in printed


def test_the_same_seed_gives_the_same_problem() -> None:
    one, same, other = (make_problem(s, train=20, validation=5, test=5) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.train.x, same.train.x)
    assert not np.array_equal(one.train.x, other.train.x)


def test_every_facet_of_a_claim_has_one_gold_sentence_and_pages_hold_distractors() -> None:
    claims = make_problem(0, train=200, validation=1, test=1).train
    roles: set[str] = set()
    for claim, facets in enumerate(claims.claim_facets):
        assert 2 <= len(facets) <= 5
        assert sorted(claims.facet[claim][claims.gold[claim]]) == sorted(facets)
        on_page = {claims.role(claim, sentence) for sentence in range(claims.mask.shape[1])}
        assert {GOLD, IRRELEVANT, PADDING} <= on_page | {PADDING}
        roles |= on_page
    assert roles == {GOLD, REDUNDANT, IRRELEVANT, PADDING}
    assert (claims.x[~claims.mask] == 0).all()
    assert not (claims.gold & ~claims.mask).any()


def test_gold_is_the_strongest_sentence_of_its_facet() -> None:
    claims = make_problem(0, train=300, validation=1, test=1).train
    stronger = total = 0
    for claim in range(len(claims)):
        strength = np.linalg.norm(claims.x[claim], axis=1)
        for sentence in np.flatnonzero(claims.gold[claim]):
            same = (claims.facet[claim] == claims.facet[claim, sentence]) & ~claims.gold[claim]
            stronger += int((strength[same] < strength[sentence]).sum())
            total += int(same.sum())
    # All but the few that noise makes stronger.
    assert stronger > 0.95 * total
