import itertools

import numpy as np
import pytest
from hypothesis import given

from dgn.core import explain, greedy
from dgn.core.functions import FeatureCoverage, Items
from dgn.errors import InvalidInput
from instances import KINDS, Instance, constrained_instance, instances


@given(instances(smallest=2))
def test_replay_agrees_with_the_search(instance: Instance) -> None:
    selection = greedy(instance.objective, instance.features, 3)
    steps = explain(instance.objective, instance.features, selection)
    assert [step.index for step in steps] == list(selection.indices)
    assert [step.gain for step in steps] == pytest.approx(selection.gains, abs=1e-12)
    for number, step in enumerate(steps):
        assert sum(step.contributions) == pytest.approx(step.gain, abs=1e-12)
        assert step.runner_up not in selection.indices[: number + 1]
        if step.runner_up is not None:
            assert step.runner_up_gain <= step.gain + 1e-12
    for item in range(instance.size):
        history = [step.gains[item] for step in steps]
        assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(history))


def test_last_item_has_no_runner_up_and_padding_is_none() -> None:
    features, mask = np.ones((3, 2)), np.array([True, True, False])
    selection = greedy(FeatureCoverage(), Items(features, mask), 3)
    steps = explain(FeatureCoverage(), Items(features, mask), selection)
    assert [step.runner_up for step in steps] == [1, None]
    assert steps[-1].runner_up_gain == 0


def test_context_is_replayed_too() -> None:
    f, features = FeatureCoverage(), np.array([[1.0, 0.0], [0.0, 1.0]])
    items = Items(features)
    context = f.add(items, f.empty(items), np.array([[1.0, 0.0]]))
    selection = greedy(f, features, 2, context=context)
    steps = explain(f, features, selection, context=context)
    assert [step.gain for step in steps] == pytest.approx(selection.gains)
    assert steps[0].index == 1


def test_steps_are_those_of_one_set() -> None:
    selections = greedy(FeatureCoverage(), np.ones((2, 3, 2)), 1)
    with pytest.raises(InvalidInput, match="items must be one set; got a batch of 2 sets"):
        explain(FeatureCoverage(), np.ones((2, 3, 2)), selections[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_runner_up_was_allowed_at_its_step(kind: str) -> None:
    for seed in range(40):
        problem = constrained_instance(kind, seed, 7)
        f, features, options = problem.instance.objective, problem.instance.features, {}
        if seed % 2:
            options = {"costs": problem.costs, "budget": problem.budget}
        selection = greedy(f, features, problem.k, **options, **problem.options)
        steps = explain(f, features, selection, **options, **problem.options)
        assert [step.index for step in steps] == list(selection.indices)
        assert [step.gain for step in steps] == pytest.approx(selection.gains, abs=1e-12)
        pinned = problem.pinned or []
        assert [step.is_pinned for step in steps] == [one in pinned for one in selection.indices]
        for number, step in enumerate(steps):
            before = selection.indices[:number]
            allowed = [
                one
                for one in range(7)
                if one != step.index and problem.allows((*before, one), budget=bool(options))
            ]
            if step.is_pinned or not allowed:
                assert step.runner_up is None
            else:
                best = max(step.gains[one] for one in allowed)
                assert step.runner_up in allowed
                assert step.runner_up_gain == best


def test_costs_and_budget_are_replayed_together() -> None:
    selection = greedy(FeatureCoverage(), np.ones((3, 2)), 1)
    with pytest.raises(InvalidInput, match="costs was passed without budget; pass both"):
        explain(FeatureCoverage(), np.ones((3, 2)), selection, costs=np.ones(3))
