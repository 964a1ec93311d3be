"""The facets in torch: what they learn is what NumPy computes at run time."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dgn.data import Example, read_examples
from dgn.evaluation import SelectorBaseline
from dgn.learn.families.modules import FacetModule, PooledScorer
from dgn.learn.networks import DifferentiableGreedyNetwork, FeedForward
from dgn.text.facets.formula import FacetSizes
from dgn.text.facets.questions import asked_of
from models import matches_of, shipped

SAMPLES = Path(__file__).parents[3] / "samples" / "claims.jsonl"
SIZES = FacetSizes(256, 2, 5)


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return list(read_examples(SAMPLES))


def test_numpy_selects_what_torch_selects(examples: list[Example]) -> None:
    encoder = shipped().encoder
    module = FacetModule(encoder.weights.sizes)
    module.load_state_dict({n: torch.from_numpy(w) for n, w in vars(encoder.weights).items()})
    network = DifferentiableGreedyNetwork(module).eval()
    # What questions ask for is not a part of the network.
    queries = [one.query for one in examples if not asked_of(one.query.text)]
    assert len(queries) > 80
    batch = matches_of(queries).moved(torch.from_numpy)
    under_torch = network.select(batch, k=7).indices.numpy()
    ours = SelectorBaseline("dgn", shipped()).select(queries, 7)
    assert np.array_equal(ours, under_torch)


def test_parameters_are_the_weights_of_the_formula() -> None:
    module = FacetModule(SIZES, seed=1)
    assert module.weights.sizes == SIZES
    assert set(module.state_dict()) == set(vars(module.weights))
    same, other = FacetModule(SIZES, seed=1), FacetModule(SIZES, seed=2)
    assert torch.equal(module.weights.hidden, same.weights.hidden)
    assert not torch.equal(module.weights.hidden, other.weights.hidden)


def test_dropout_acts_in_training_only(examples: list[Example]) -> None:
    batch = matches_of([example.query for example in examples[:3]]).moved(torch.from_numpy)
    module = FacetModule(SIZES, dropout=0.5, seed=1)
    with torch.no_grad():
        module.get_parameter("output").normal_(generator=torch.Generator().manual_seed(0))
        torch.manual_seed(0)
        one, other = (module(batch)[1].features for _ in range(2))
        assert not torch.equal(one, other)
        module.eval()
        one, other = (module(batch)[1].features for _ in range(2))
        assert torch.equal(one, other)


def test_padding_changes_neither_scores_nor_gradients() -> None:
    scorer = PooledScorer(FeedForward((4, 3)))
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    dirty = torch.where(mask[..., None], x, torch.nan)
    scores = scorer(dirty, mask)
    assert torch.equal(scores[mask], scorer(x, mask)[mask])
    scores[mask].sum().backward()
    assert all(torch.isfinite(weight.grad).all() for weight in scorer.parameters())


def test_identity_scores_by_the_sum_of_positive_inputs() -> None:
    scorer = PooledScorer(FeedForward((4, 4)))
    scorer.start_as_identity(2.0)
    x = torch.randn(1, 5, 4, generator=torch.Generator().manual_seed(1))
    expected = torch.relu(2.0 * x).sum(dim=-1)
    torch.testing.assert_close(scorer(x), expected)
