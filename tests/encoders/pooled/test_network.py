import torch

from dgn.encoders.pooled.network import PooledScorer
from dgn.unfolding import FeedForward


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
