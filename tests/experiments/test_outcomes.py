"""Learning from outcomes: the problem is what it says, and every method learns."""

import numpy as np
import pytest
import torch

from experiments import outcomes
from experiments.outcomes import METHODS, K, Learner, Settings, make_claims, measure


def test_the_verdict_follows_from_the_statements_and_from_nothing_less() -> None:
    learn, _, report = make_claims(3)
    assert 0.45 < float(report.verdict.float().mean()) < 0.55
    side = learn.seen[..., -1].numpy()
    for claim in range(50):
        stated = learn.facet[claim] >= 0
        denied = (side[claim][stated] < 0).mean() if stated.any() else 0
        assert (denied > 0.05) != bool(learn.verdict[claim]) or denied < 0.4
        gold = learn.gold[claim].numpy()
        assert sorted(learn.facet[claim][gold]) == list(range(learn.facets[claim]))
    everything = np.tile(np.arange(learn.mask.shape[1]), (len(learn.mask), 1))
    assert learn.recall(everything) == 1
    assert learn.recall(np.full((len(learn.mask), K), -1)) == 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_and_is_measured(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    for name, value in (("TRAIN", 120), ("EPOCHS", 2), ("READER_EPOCHS", 1)):
        monkeypatch.setattr(outcomes, name, value)
    learn, choose, report = make_claims(0)
    learner = Learner(method, Settings(), 0)
    missed = learner.fit(learn, choose)
    assert 0 < missed < 2
    scores = measure(learner, report)
    assert all(0 <= score <= 1 for score in scores)
    assert scores[0] < scores[1] < scores[2], "more sentences state more facets"
