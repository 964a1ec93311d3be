"""Explanations: they add up, they are true of the search, and they can be read."""

import json

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE
from dgn.encoders import FacetEncoder
from dgn.errors import InvalidInput
from dgn.text.rarity import default_rarity
from dgn.text.wordllama import WordLlamaVectors

TITLE = "Oriel Tamsett"


@pytest.fixture(scope="module")
def picked() -> dgn.SentenceSelection:
    selector = dgn.Selector(FacetEncoder(WordLlamaVectors(), default_rarity()))
    return selector.select(CLAIM, PAGE, k=3, title=TITLE)


def test_reasons_are_those_of_the_search(picked: dgn.SentenceSelection) -> None:
    reasons = picked.explain()
    assert tuple(pick.index for pick in reasons.picks) == picked.indices
    assert [pick.gain for pick in reasons.picks] == pytest.approx(list(picked.gains), rel=1e-5)
    for pick in reasons.picks:
        assert pick.runner_up is not None
        assert pick.runner_up_gain <= pick.gain + 1e-9
    assert {one.index for one in reasons.passed} | set(picked.indices) == set(range(5))
    for one in reasons.passed:
        assert len(one.gains) == 3
        assert list(one.gains) == sorted(one.gains, reverse=True), "gains never grow"
        assert one.like in picked.indices
        assert 0 <= one.overlap <= 1


def test_coverage_is_told_in_whole_words(picked: dgn.SentenceSelection) -> None:
    reasons = picked.explain()
    assert reasons.words == tuple(CLAIM[:-1].split())
    assert sum(reasons.weights) == pytest.approx(1)
    assert (np.diff(reasons.cover, axis=0) >= -1e-12).all()
    assert (reasons.cover[0] == 0).all()
    assert reasons.cover.max() <= 1
    last = 0.0
    for number, pick in enumerate(reasons.picks):
        assert pick.covered == pytest.approx(reasons.cover[number + 1] @ reasons.weights)
        assert pick.covered >= last
        last = pick.covered
    covered = {one.word for pick in reasons.picks for one in pick.covers}
    assert {"chemistry", "windows", "cathedral", "Oriel", "Tamsett"} <= covered


def test_a_repeated_sentence_is_passed_over_and_it_is_said_why() -> None:
    selector = dgn.Selector(FacetEncoder(WordLlamaVectors(), default_rarity()))
    page = [PAGE[3], "She made the seven windows of the cathedral.", PAGE[1]]
    picked = selector.select(CLAIM, page, k=2)
    why = picked.explain().why_not(next(i for i in (0, 1) if i not in picked.indices))
    assert why.overlap > 0.9
    assert why.gains[1] < 0.5 * why.gains[0]
    with pytest.raises(InvalidInput, match="which was picked"):
        picked.explain().why_not(2)
    with pytest.raises(InvalidInput, match="from 0 to 2"):
        picked.explain().why_not(9)


def test_a_claim_that_nothing_speaks_of_is_covered_by_nothing() -> None:
    selector = dgn.Selector(FacetEncoder(WordLlamaVectors(), default_rarity()))
    picked = selector.select("Bananas ripen", ["Postgres stores rows."], k=1)
    assert picked.as_dict()["covered"] < 0.2
    assert "of the claim is covered" in str(picked.explain())
    assert "less than half said: Bananas, ripen" in str(picked.explain())


def test_reasons_as_text_json_and_picture(picked: dgn.SentenceSelection, tmp_path, capsys) -> None:
    reasons = picked.explain()
    text = str(reasons)
    assert CLAIM in text
    for sentence in picked.texts:
        assert sentence in text
    assert "covers" in text
    assert "not picked" in text
    reasons.print()
    assert capsys.readouterr().out.split() == text.split()
    again = json.loads(json.dumps(reasons.as_dict()))
    assert [word["word"] for word in again["words"]] == list(reasons.words)
    assert again["picks"][0]["sentence"]["title"] == TITLE
    for name in ("why.png", "why.svg"):
        reasons.draw(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
