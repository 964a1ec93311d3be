import itertools

import numpy as np
import pytest
from hypothesis import given

from dgn.errors import InvalidInput
from dgn.explanation import explain
from dgn.maximizers import greedy
from dgn.objectives import FeatureCoverage, Items
from instances import Instance, instances


@given(instances(smallest=2))
def test_the_replay_agrees_with_the_search(instance: Instance) -> None:
    picked = greedy(instance.objective, instance.features, 3)[0]
    told = explain(instance.objective, instance.features, picked)
    assert [step.index for step in told.steps] == list(picked.indices)
    assert [step.gain for step in told.steps] == pytest.approx(picked.gains, abs=1e-12)
    for step in told.steps:
        assert sum(step.contributions) == pytest.approx(step.gain, abs=1e-12)
        assert step.runner_up not in picked.indices[: told.steps.index(step) + 1]
        if step.runner_up is not None:
            assert step.runner_up_gain <= step.gain + 1e-12
    for item in range(instance.size):
        history = told.history(item)
        assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(history))


def test_the_last_item_of_a_set_has_no_runner_up_and_padding_is_none() -> None:
    features, mask = np.ones((3, 2)), np.array([True, True, False])
    picked = greedy(FeatureCoverage(), Items(features, mask), 3)[0]
    told = explain(FeatureCoverage(), Items(features, mask), picked)
    assert [step.runner_up for step in told.steps] == [1, None]


def test_one_set_at_a_time() -> None:
    picked = greedy(FeatureCoverage(), np.ones((2, 3, 2)), 1)
    with pytest.raises(InvalidInput, match="items: found a batch of 2 sets"):
        explain(FeatureCoverage(), np.ones((2, 3, 2)), picked[0])
