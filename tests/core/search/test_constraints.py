"""Constraints as callers pass them: every form means the same, and mistakes are explained."""

import numpy as np
import pytest
import torch
from hypothesis import given as given_examples
from hypothesis import settings
from hypothesis import strategies as st

from dgn.core.functions import FeatureCoverage, Items
from dgn.core import budgeted_greedy, exact, greedy, lazy_greedy
from dgn.errors import InvalidInput
from instances import KINDS, constrained_instance


def test_groups_are_numbered_by_callers_as_they_like() -> None:
    features = np.random.default_rng(0).random((6, 4))
    ids = np.array([10**12, 7, 7, -5, 10**12, -5])
    wanted = greedy(FeatureCoverage(), features, 4, groups=[1, 0, 0, -1, 1, -1], max_per_group=1)
    assert greedy(FeatureCoverage(), features, 4, groups=ids, max_per_group=1) == wanted
    free = greedy(FeatureCoverage(), features, 4, groups=[-1] * 6, max_per_group=1)
    assert free.indices == greedy(FeatureCoverage(), features, 4).indices


@settings(max_examples=100)
@given_examples(st.integers(0, 2**32 - 1), st.sampled_from(list(KINDS)))
def test_arrays_of_every_kind_mean_the_same(seed: int, kind: str) -> None:
    problem = constrained_instance(kind, seed, 6)
    f, x, k = problem.instance.objective, problem.instance.features, problem.k
    given, pinned = np.zeros(6, np.bool_), sorted(problem.pinned or [])
    given[problem.given or []] = True
    is_pinned = np.zeros(6, np.bool_)
    is_pinned[pinned] = True
    limits = {"groups": problem.groups, "max_per_group": problem.max_per_group}
    wanted = greedy(f, x, k, given=problem.given, pinned=pinned, **limits)
    assert greedy(f, x, k, given=given, pinned=is_pinned, **limits) == wanted
    assert greedy(f, x, k, given=given.tolist(), pinned=tuple(pinned), **limits) == wanted
    assert greedy(f, x[None], k, given=[given], pinned=[pinned], **limits)[0] == wanted
    if problem.groups is not None:
        limits["groups"] = torch.tensor(problem.groups)
    by_torch = greedy(
        f,
        torch.from_numpy(x),
        k,
        given=torch.from_numpy(given),
        pinned=torch.tensor(pinned, dtype=torch.int64),
        **limits,
    )
    assert by_torch.indices == wanted.indices
    assert by_torch.gains == pytest.approx(wanted.gains, abs=1e-12)
    assert by_torch.certificate.bound == pytest.approx(wanted.certificate.bound, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"given": [3]}, "given must be indices from 0 to 2; got 3"),
        ({"given": [-1]}, "given must be indices from 0 to 2; got -1"),
        ({"given": [0.5]}, "given must be the indices of items, or 3 booleans; got dtype float64"),
        ({"given": 1}, "given must be the indices of items"),
        ({"given": [True, False]}, r"given must be .* got dtype bool and shape \(2,\)"),
        ({"given": [[0], [1]]}, r"given must be .* got dtype int64 and shape \(2, 1\)"),
        ({"given": "a"}, "given must be the indices of items"),
        ({"pinned": [1, 1]}, "pinned contains item 1 more than once"),
        ({"pinned": [1], "given": [1]}, "Item 1 is both given and pinned"),
        ({"pinned": [0, 1, 2]}, "3 items are pinned, more than k, which is 2"),
        ({"groups": [0, 0, 0]}, "groups was passed without max_per_group; pass both or neither"),
        ({"max_per_group": 1}, "max_per_group was passed without groups; pass both or neither"),
        ({"groups": [0, 0], "max_per_group": 1}, r"groups must be integers of shape \(3,\)"),
        ({"groups": [0.0, 0, 1], "max_per_group": 1}, "groups must be integers"),
        ({"groups": [0, 0, 1], "max_per_group": 0}, "max_per_group must be an integer of at least"),
        ({"groups": [0, 0, 1], "max_per_group": True}, "max_per_group must be an integer"),
        ({"groups": [0, 0, 1], "max_per_group": [1, -1]}, "max_per_group must be an integer"),
        ({"groups": [0, 0, 1], "max_per_group": [1.0]}, "max_per_group must be an integer"),
        ({"groups": [0, 0, 1], "max_per_group": [1]}, "has 1 quotas, and groups contains 1"),
        (
            {"groups": [0, 0, 1], "max_per_group": 1, "pinned": [0, 1]},
            "The pinned items are more of one group than max_per_group allows",
        ),
    ],
)
@pytest.mark.parametrize("search", [greedy, lazy_greedy, exact])
def test_constraints_that_are_not_allowed(search: object, options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        search(FeatureCoverage(), np.ones((3, 2)), 2, **options)
    with pytest.raises(InvalidInput, match=message):
        budgeted_greedy(FeatureCoverage(), np.ones((3, 2)), np.ones(3), 9.0, k=2, **options)


def test_constraints_of_a_batch_that_are_not_allowed() -> None:
    items = Items(np.ones((2, 3, 2)), np.array([[True] * 3, [True, False, True]]))
    f = FeatureCoverage()
    with pytest.raises(InvalidInput, match="pinned contains item 1 in set 1, which is padding"):
        greedy(f, items, 2, pinned=[[0], [1]])
    with pytest.raises(InvalidInput, match=r"given must be booleans of shape \(2, 3\)"):
        greedy(f, items, 2, given=[True, False, True])
    with pytest.raises(InvalidInput, match="Item 2 of set 1 is both given and pinned"):
        greedy(f, items, 2, given=[[], [2]], pinned=[[2], [2]])
    with pytest.raises(InvalidInput, match="pinned items of set 1 cost 2, more than the budget, 1"):
        budgeted_greedy(f, items, np.ones((2, 3)), 1.0, pinned=[[0], [0, 2]])
