"""A small data set that is made up: queries with some facets, passages of one facet each."""

import numpy as np
import torch

from dgn.learn.batches import DenseTable
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.networks import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    LearnedWeights,
)

FACETS = 6


def dense_table(
    queries: int, seed: int, dimension: int = 12, *, inverted: bool = False
) -> DenseTable:
    """X = query ⊙ passage; inverted, all other passages are gold."""
    random = np.random.default_rng(seed)
    facets = np.random.default_rng(99).standard_normal((FACETS, dimension))
    lengths = random.integers(3, 9, queries)
    mask = np.arange(lengths.max()) < lengths[:, None]
    about = random.integers(0, FACETS, mask.shape)
    wanted = random.random((queries, FACETS)) < 0.35
    wanted[np.arange(queries), about[:, 0]] = True
    passages = facets[about] + 0.3 * random.standard_normal((*mask.shape, dimension))
    gold = np.take_along_axis(wanted, about, axis=1) & mask
    if inverted:
        gold = ~gold & mask
    x = ((wanted @ facets)[:, None, :] * passages * mask[..., None]).astype(np.float32)
    return DenseTable(torch.from_numpy(x), torch.from_numpy(gold), torch.from_numpy(mask))


def identity_network(layers: int = 4, temperature: float = 2.0) -> DifferentiableGreedyNetwork:
    """The paper's network on this data, which begins as the untrained greedy."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = FeatureEncoder(FeedForward((12, 24, 12), dropout=0.2), LearnedWeights(12))
    encoder.start_as_identity()
    return DifferentiableGreedyNetwork(encoder, UnfoldedGreedy(layers, temperature))
