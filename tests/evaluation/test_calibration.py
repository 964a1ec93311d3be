import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.apps.cli.main import main
from dgn.data import read_examples
from dgn.evaluation.calibration import (
    Facts,
    Reliability,
    best_score_weight,
    cross_validated,
    facts_of,
    fit,
    probabilities,
)
from dgn.selector.calibration import Calibration
from models import shipped

SAMPLES = Path(__file__).parents[2] / "samples" / "claims.jsonl"
RANDOM = np.random.default_rng(0)


def simulated(count: int, coefficients: tuple[float, ...], bias: float) -> Facts:
    """Rows whose labels follow known probabilities."""
    facts = RANDOM.random((count, len(coefficients)))
    p = 1 / (1 + np.exp(-(facts @ np.array(coefficients) + bias)))
    return Facts(facts, RANDOM.random(count) < p, np.arange(count))


def test_the_truth_is_found() -> None:
    found = fit(simulated(40_000, (3.0, -1.0), -1.0))
    assert found.coefficients == pytest.approx((3.0, -1.0), abs=0.15)
    assert found.bias == pytest.approx(-1.0, abs=0.1)
    assert found.rows == 40_000


def test_few_rows_stay_near_their_start() -> None:
    start = Calibration((2.0, 1.0), -1.0, 100)
    few = simulated(1, (0.0, 0.0), 0.0)
    assert fit(few, start).coefficients == pytest.approx((2.0, 1.0), abs=0.4)


def test_probabilities_that_are_right_have_no_error() -> None:
    facts = simulated(20_000, (4.0,), -2.0)
    reliability = cross_validated(facts, None)
    assert reliability.error < 0.02
    assert reliability.auroc > 0.6
    wrong = Reliability.of(np.full(20_000, 0.99), facts.labels)
    assert wrong.error > 0.3
    assert wrong.auroc == 0.5
    assert reliability.counts.sum() == 20_000


def test_auroc_is_the_share_of_pairs_in_order() -> None:
    values, labels = RANDOM.integers(0, 5, 60) / 4, RANDOM.random(60) < 0.4
    pairs = [(a > b) + 0.5 * (a == b) for a in values[labels] for b in values[~labels]]
    assert Reliability.of(values, labels).auroc == pytest.approx(np.mean(pairs))


def test_rows_are_used_with_and_without_their_gold() -> None:
    examples = list(read_examples(SAMPLES))[:40]
    facts = facts_of(shipped(), examples, dgn.Limits(k=5))
    assert len(facts.labels) > len(set(facts.rows.tolist()))
    assert 0.2 < facts.labels.mean() < 0.8
    with_gold = probabilities(shipped().calibration, facts)[facts.labels].mean()
    assert with_gold > probabilities(shipped().calibration, facts)[~facts.labels].mean()


def test_too_few_rows_are_refused() -> None:
    examples = list(read_examples(SAMPLES))[:5]
    with pytest.raises(dgn.InvalidInput, match="needs at least 20"):
        facts_of(shipped(), examples, dgn.Limits(k=5))


def test_a_weight_of_scores_is_chosen_by_recall() -> None:
    examples = []
    for one in list(read_examples(SAMPLES))[:40]:
        pairs = zip(one.query.passages, one.gold, strict=True)
        passages = tuple(replace(p, score=float(gold)) for p, gold in pairs)
        examples.append(replace(one, query=replace(one.query, passages=passages)))
    weight, recalls = best_score_weight(shipped(), examples, dgn.Limits(k=2))
    assert recalls["2"] > recalls["0"]
    assert weight is None or weight >= 0.5
    assert best_score_weight(shipped(), list(read_examples(SAMPLES))[:40], dgn.Limits(k=2)) == (
        None,
        {},
    )


def test_the_command_writes_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(SAMPLES), "--out", str(tmp_path / "m")]) == 0
    printed = capsys.readouterr().out
    assert "rows with evidence" in printed
    assert "AUROC" in printed
    model = dgn.Selector.from_pretrained(tmp_path / "m")
    assert model.calibration != shipped().calibration
    found = model.select("Who swims?", ["Ada swims.", "Bo runs."], k=1)
    assert found.indices == shipped().select("Who swims?", ["Ada swims.", "Bo runs."], k=1).indices
    assert (
        found.sufficiency
        != shipped().select("Who swims?", ["Ada swims.", "Bo runs."], k=1).sufficiency
    )


def test_a_broken_calibration_is_refused(tmp_path: Path) -> None:
    shipped().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for bad in (
        {},
        3,
        {**config["calibration"], "bias": "x"},
        {**config["calibration"], "more": 1},
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, "calibration": bad}))
        with pytest.raises(dgn.BrokenInput, match="calibration"):
            dgn.Selector.from_pretrained(tmp_path)
