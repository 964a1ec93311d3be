"""The facets in training agree with the encoder at run time."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from dgn.core import greedy
from dgn.data import Example, read_rows
from dgn.learn.facets import FacetModule, FacetNetwork, MatchTable
from dgn.learn.fit import select_all
from dgn.learn.layers import UnfoldedGreedy
from dgn.text.facets import FacetEncoder
from dgn.text.facets.formula import FacetSizes, start_weights
from models import shipped

SAMPLES = Path(__file__).parents[2] / "samples" / "claims.jsonl"


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return list(itertools.islice(read_rows(SAMPLES), 20))


@pytest.fixture(scope="module")
def encoder() -> FacetEncoder:
    encoder = shipped().encoder
    assert isinstance(encoder, FacetEncoder)
    return encoder


@pytest.fixture(scope="module")
def table(encoder: FacetEncoder, examples: list[Example]) -> MatchTable:
    read: list[int] = []
    table = MatchTable.of(encoder.reader, examples, read.append)
    assert read == [20]
    return table


def test_a_batch_has_the_features_of_the_encoder(
    encoder: FacetEncoder, examples: list[Example], table: MatchTable
) -> None:
    rows = np.arange(6)
    batch = table.batch(rows)
    objective, items = FacetModule(encoder.weights).eval()(batch.x)
    alone, wanted = encoder.encode([examples[row].query for row in rows])
    gains = objective.gains(items, objective.empty(items)).detach().numpy()
    expected = alone.gains(wanted, alone.empty(wanted))
    # The largest arrays of the table are kept in half precision.
    np.testing.assert_allclose(gains, np.where(wanted.mask, expected, gains), atol=3e-3)
    for row in rows:
        assert batch.gold[row][batch.mask[row]].tolist() == list(examples[row].gold)


def test_padding_changes_nothing(encoder: FacetEncoder, table: MatchTable) -> None:
    module = FacetModule(encoder.weights).eval()
    together = module.facets(table.batch(np.arange(8)).x)
    for row in range(8):
        alone = module.facets(table.rows(np.array([row])).batch(np.array([0])).x)
        items = alone.logits.shape[1]
        torch.testing.assert_close(together.logits[row, :items], alone.logits[0], atol=1e-4, rtol=0)


def test_the_network_selects_what_the_encoder_does(
    encoder: FacetEncoder, examples: list[Example], table: MatchTable
) -> None:
    network = FacetNetwork(FacetModule(encoder.weights), UnfoldedGreedy(3))
    chosen, gold = select_all(network, table, 3, batch_size=7)
    same = 0
    for row, example in enumerate(examples):
        objective, items = encoder.encode([example.query])
        same += chosen[row].tolist() == list(greedy(objective, items, 3)[0].indices)
        assert gold[row].sum() == sum(example.gold)
    assert same >= 18, "half precision may change near ties"


def test_every_weight_learns_and_comes_back(encoder: FacetEncoder, table: MatchTable) -> None:
    network = FacetNetwork(FacetModule(encoder.weights), UnfoldedGreedy(4, 0.1))
    batch = table.batch(np.arange(16))
    loss = network.loss(batch.x, batch.gold, batch.mask)
    loss.backward()
    module = network.encoder
    assert isinstance(module, FacetModule)
    assert all(weight.grad is not None and weight.grad.any() for weight in module.parameters())
    assert module.learned().equals(encoder.weights)
    with torch.no_grad():
        module.get_parameter("threshold").add_(0.1)
    assert not module.learned().equals(encoder.weights)


def test_without_words_the_network_alone_learns() -> None:
    module = FacetModule(start_weights(FacetSizes(256, 2, 4), 0), learns_words=False)
    network, function = module.network_parameters()
    assert len(network) == 5
    assert not function
    assert sum(weight.requires_grad for weight in module.parameters()) == 5
