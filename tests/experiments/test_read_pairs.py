"""The reader of pairs: the same network as MiniLM's, and a loss that teaches it."""

import numpy as np
import torch

from dgn.encoders.minilm.transformer import CrossEncoder, MiniLM
from experiments.read_pairs import Reader, _loss, padded

WIDTH, WORDS = 384, 60


def weights() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)

    def some(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random) * 0.05

    found = {
        "embeddings.word_embeddings.weight": some(WORDS + 1024, WIDTH),
        "embeddings.position_embeddings.weight": some(64, WIDTH),
        "embeddings.token_type_embeddings.weight": some(2, WIDTH),
    }
    norms = ["embeddings"]
    for layer in (f"encoder.layer.{number}" for number in range(6)):
        for part in ("query", "key", "value"):
            found[f"{layer}.attention.self.{part}.weight"] = some(WIDTH, WIDTH)
            found[f"{layer}.attention.self.{part}.bias"] = some(WIDTH)
        for name, outputs, inputs in (
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", 1536, WIDTH),
            ("output.dense", WIDTH, 1536),
        ):
            found[f"{layer}.{name}.weight"] = some(outputs, inputs)
            found[f"{layer}.{name}.bias"] = some(outputs)
        norms += [f"{layer}.attention.output", f"{layer}.output"]
    for name in norms:
        found[f"{name}.LayerNorm.weight"] = torch.ones(WIDTH)
        found[f"{name}.LayerNorm.bias"] = torch.zeros(WIDTH)
    return found


PAIRS = [([5, 6], [7, 8, 9]), ([5, 6], [10]), ([5, 6], [11, 12])]


def test_the_reader_that_trains_is_the_one_that_reads() -> None:
    reader = Reader(weights(), rank=2).eval()
    for name, weight in reader.low.items():
        if name.endswith("/up"):
            torch.nn.init.normal_(weight, std=0.01)
    merged = dict(weights())
    for name in list(reader.low):
        if name.endswith("/up"):
            base = name.removesuffix("/up")
            change = reader.low[name] @ reader.low[f"{base}/down"]
            merged[f"{base.replace('/', '.')}.weight"] += change.detach()
    encoder = CrossEncoder(MiniLM(merged, dropout=0.0)).eval()
    encoder.load_layers({n: reader.get_parameter(n).detach().numpy() for n in encoder.layer_names})
    batch = padded(PAIRS, "cpu")
    with torch.no_grad():
        np.testing.assert_allclose(reader(*batch), encoder(*batch), atol=1e-4)


def test_pairs_are_padded_and_marked() -> None:
    tokens, kinds, mask = padded(PAIRS, "cpu")
    assert tokens[1].tolist() == [101, 5, 6, 102, 10, 102, 0, 0]
    assert kinds[1].tolist() == [0, 0, 0, 0, 1, 1, 0, 0]
    assert mask.sum(dim=1).tolist() == [8, 6, 7]


def test_loss_is_small_if_gold_is_above() -> None:
    gold = torch.tensor([True, False, False])
    good, bad = torch.tensor([4.0, -4, -4]), torch.tensor([-4.0, 4, 4])
    assert _loss(good, gold) < 0.2 < _loss(bad, gold)
