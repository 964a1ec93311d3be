"""The reader of pairs: the same network and the same pairs as MiniLM's, and a loss to teach it."""

from pathlib import Path

import numpy as np
import torch

from dgn.minilm.transformer import CrossEncoder, MiniLM, pair_batch
from experiments.pairs import Pack
from experiments.read_pairs import Reader, _loss, logits_of

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
    batch = pair_batch(PAIRS)
    with torch.no_grad():
        np.testing.assert_allclose(reader(*batch), encoder(*batch), atol=1e-4)


TEXTS = [[5, 6], [7, 8, 9], [10], [11, 12, 13, 14], [20]]
"""A query, three passages, and the title of the last one."""


def small_pack(folder: Path, context: tuple[int, int]) -> Pack:
    """One example: the second passage follows the first."""
    np.savez(
        folder / "examples.npz",
        tokens=np.concatenate(TEXTS).astype(np.uint16),
        words=np.zeros(sum(map(len, TEXTS)), np.uint8),
        text_lengths=np.array(list(map(len, TEXTS)), np.int32),
        counts=[3],
        queries=[0],
        passages=np.array([1, 2, 3]),
        titles=np.array([-1, -1, 4]),
        gold=np.array([True, False, False]),
        hard=np.array([False, True, False]),
        follows=np.array([False, True, False]),
        names=["domain"],
        domain=np.array([0]),
        is_dev=np.array([0]),
    )
    return Pack(folder, "cpu", context)


def test_a_reader_learns_from_the_pairs_that_the_model_reads(tmp_path: Path) -> None:
    pack = small_pack(tmp_path, (2, 3))
    expected = pair_batch(
        [([5, 6], [7, 8, 9], [10]), ([5, 6], [10], [8, 9]), ([5, 6], [20, 1012, 11, 12, 13, 14])]
    )
    for found, wanted in zip(pack.batch(pack.pairs(0, np.arange(3))), expected, strict=True):
        assert found.tolist() == wanted.tolist()
    alone = pack.batch(pack.pairs(0, np.arange(3), titles=False, neighbours=False))
    assert alone[0].tolist() == pair_batch([([5, 6], text) for text in TEXTS[1:4]])[0].tolist()


def test_reading_in_parts_changes_nothing(tmp_path: Path) -> None:
    pack = small_pack(tmp_path, (2, 3))
    pairs = pack.pairs(0, np.arange(3))
    reader = Reader(weights(), rank=0).eval()
    with torch.no_grad():
        together = reader(*pack.batch(pairs))
        np.testing.assert_allclose(logits_of(reader, pack, pairs, 3), together, atol=0.05)


def test_loss_is_small_if_gold_is_above() -> None:
    golds = [np.array([True, False, False]), np.array([False, True])]
    good, bad = torch.tensor([4.0, -4, -4, -4, 4]), torch.tensor([-4.0, 4, 4, 4, -4])
    assert _loss(good, golds) < 0.2 < _loss(bad, golds)
