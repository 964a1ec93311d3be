"""The facets in torch: what they learn is what NumPy computes at run time."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dgn.data import Example, read_examples
from dgn.encoders.facets.asked import asked_of
from dgn.encoders.facets.matching import Matches, WordTable
from dgn.encoders.facets.network import FacetModule
from dgn.encoders.facets.weights import FacetSizes
from dgn.evaluation import SelectorBaseline
from dgn.unfolding import DifferentiableGreedyNetwork
from models import matcher, shipped

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
    queries = [one.query for one in examples if asked_of(one.query.text) is None]
    assert len(queries) > 80
    matches, words = matcher().match(queries)
    batch = Matches.of(matches, WordTable.of(words)).placed(torch.from_numpy)
    under_torch = network.select(batch, k=7).indices.numpy()
    ours = SelectorBaseline("facets", shipped()).select(queries, 7)
    assert np.array_equal(ours, under_torch)


def test_parameters_are_the_weights_of_the_formula() -> None:
    module = FacetModule(SIZES, seed=1)
    assert module.weights.sizes == SIZES
    assert set(module.state_dict()) == set(vars(module.weights))
    same, other = FacetModule(SIZES, seed=1), FacetModule(SIZES, seed=2)
    assert torch.equal(module.weights.hidden, same.weights.hidden)
    assert not torch.equal(module.weights.hidden, other.weights.hidden)


def test_dropout_acts_in_training_only(examples: list[Example]) -> None:
    matches, words = matcher().match([example.query for example in examples[:3]])
    batch = Matches.of(matches, WordTable.of(words)).placed(torch.from_numpy)
    module = FacetModule(SIZES, dropout=0.5, seed=1)
    with torch.no_grad():
        module.get_parameter("output").normal_(generator=torch.Generator().manual_seed(0))
        torch.manual_seed(0)
        one, other = (module(batch)[1].features for _ in range(2))
        assert not torch.equal(one, other)
        module.eval()
        one, other = (module(batch)[1].features for _ in range(2))
        assert torch.equal(one, other)
