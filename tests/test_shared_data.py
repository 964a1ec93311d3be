"""Readers, scores and training on real data, if it is next to the project (../shared/data)."""

import json
from collections import Counter
from pathlib import Path

import pytest

from dgn.data import Dataset, Problems, make_examples, read_examples
from dgn.data.eraser import EraserDocs, read_eraser_claims
from dgn.data.fever import read_fever_claims
from dgn.evaluation import (
    Bm25,
    EvaluationSet,
    PooledTopK,
    SelectorBaseline,
    run_comparison,
    untrained_greedy,
)
from dgn.learn import RunConfig, train
from dgn.learn.families import FeatureOptions
from dgn.learn.features import build_features
from dgn.selector import Selector
from dgn.text import open_vectors
from dgn.text.word_files import VecFile
from models import shipped

DATA = Path(__file__).parents[2] / "shared" / "data"
FEVER = DATA / "fever-eraser"
VECTORS = DATA / "vectors" / "english-300d.vec.gz"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not next to this clone"),
]


@pytest.mark.parametrize(
    ("name", "claims"), [("train", 4180), ("dev", 1942), ("train_partial", 12427)]
)
def test_fever_eraser_is_read_and_its_evidence_found(name: str, claims: int) -> None:
    path, problems, docs = FEVER / f"{name}.jsonl", Problems(), EraserDocs(FEVER / "docs")
    examples = list(make_examples(read_eraser_claims(path, problems), docs, problems))
    assert len(examples) == claims
    assert not any(example.missing for example in examples)
    assert all(any(example.gold) for example in examples)
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            for group in json.loads(line)["evidences"]:
                for span in group:
                    page = docs.get(span["docid"])
                    assert page is not None
                    sentences = page.sentences[span["start_sentence"] : span["end_sentence"]]
                    assert " ".join(sentences) == span["text"]


def test_official_rows_have_their_labels() -> None:
    claims = list(read_fever_claims(DATA / "fever" / "paper_dev.jsonl"))
    assert len(claims) == 7987
    assert Counter(claim.label for claim in claims) == {
        "NOT ENOUGH INFO": 3328,
        "SUPPORTS": 2331,
        "REFUTES": 2328,
    }


def test_multirc_is_read() -> None:
    examples = list(read_examples(DATA / "multirc" / "dev.jsonl", DATA / "multirc" / "docs"))
    assert len(examples) == 3214
    assert not any(example.missing for example in examples)


@pytest.mark.parametrize(
    ("name", "train", "dev", "passages", "gold"),
    [
        ("contractnli", 377, 237, 88, 2.0),
        ("entailmentbank", 1313, 187, 25, 4.4),
        ("evinf", 500, 150, 270, 1.7),
        ("politihop", 434, 158, 32, 2.6),
        ("qmsum", 200, 60, 395, 16),
        ("selqa", 495, 290, 12, 1.2),
        ("tatqa", 235, 129, 11, 1.0),
    ],
)
def test_evidence_sets_are_read(
    name: str, train: int, dev: int, passages: float, gold: float
) -> None:
    """The numbers are those of the README of the sets, which are means over both parts."""
    folder = DATA / "evidence" / name
    parts = [list(read_examples(folder / f"{part}.jsonl")) for part in ("train", "dev")]
    assert [len(part) for part in parts] == [train, dev]
    for example in (examples := parts[0] + parts[1]):
        assert not example.missing
        assert 0 < sum(example.gold) < len(example.gold), "neither nothing nor everything is gold"
        assert all(passage.position is not None for passage in example.query.passages)
    count = len(examples)
    assert sum(len(e.gold) for e in examples) / count == pytest.approx(passages, rel=0.15)
    assert sum(sum(e.gold) for e in examples) / count == pytest.approx(gold, rel=0.15)


def test_real_vectors_can_be_opened(tmp_path: Path) -> None:
    vectors = VecFile(VECTORS, cache=tmp_path)
    assert (len(vectors), vectors.dimension) == (63_569, 300)
    assert vectors.row_of("the") >= 0
    assert vectors.row_of("xqzzv") == -1


@pytest.mark.slow
def test_training_is_better_than_untrained_greedy_on_real_claims(tmp_path: Path) -> None:
    """Three epochs on 4,180 claims, and the scores of the untrained baselines in README.md."""
    dev = Dataset(FEVER / "dev.jsonl", FEVER / "docs")
    options = FeatureOptions(str(VECTORS), unit=True)
    for name in ("train", "dev"):
        build_features(Dataset(FEVER / f"{name}.jsonl", FEVER / "docs"), tmp_path / name, options)
    config = RunConfig().with_settings(
        {
            "train": [str(tmp_path / "train")],
            "validation": str(tmp_path / "dev"),
            "scale": 3.0,
            "dropout": 0.1,
            "layers": 3,
            "learning_rate": 4.5e-3,
            "schedule": "cosine",
            "epochs": 3,
            "batch_size": 64,
            "device": "cpu",
        }
    )
    train(config, tmp_path / "run")
    vectors = open_vectors(VECTORS)
    baselines = [
        PooledTopK(vectors),
        untrained_greedy(vectors, 3.0),
        Bm25(),
        SelectorBaseline("DGN", Selector.from_pretrained(tmp_path / "run")),
    ]
    results = run_comparison(baselines, EvaluationSet.of(dev), (1, 3, 5, 7))
    top_k, greedy, bm25, dgn = ([one.macro.recall for one in r.at] for r in results)
    assert top_k == pytest.approx([0.558, 0.781, 0.882, 0.933], abs=0.001)
    assert greedy == pytest.approx([0.556, 0.787, 0.888, 0.931], abs=0.001)
    assert bm25 == pytest.approx([0.682, 0.869, 0.935, 0.962], abs=0.001)
    assert all(ours > theirs for ours, theirs in zip(dgn, greedy, strict=True))


def test_top_k_on_the_features_of_the_paper_has_its_precision() -> None:
    """Means over all tokens, not scaled: .322 / .244 / .205 / .179 in the paper."""
    dev = EvaluationSet.of(Dataset(FEVER / "dev.jsonl", FEVER / "docs"))
    top_k = PooledTopK(open_vectors(f"all-tokens:{VECTORS}"), unit=False)
    indices = top_k.select(dev.queries, 7)
    precision = [dev.hits_at(k, indices).micro.precision for k in (1, 3, 5, 7)]
    assert precision == pytest.approx([0.331, 0.243, 0.209, 0.184], abs=0.001)


def test_shipped_selector_has_the_scores_of_its_card() -> None:
    rows = shipped().card.splitlines()
    (row,) = (line for line in rows if line.endswith("|") and "this model" in line)
    expected = [float(cell) for cell in row.split("|")[2:6]]
    dev = EvaluationSet.of(Dataset(FEVER / "dev.jsonl", FEVER / "docs"))
    indices = SelectorBaseline("facets", shipped()).select(dev.queries, 7)
    found = [dev.recalls_at(k, indices).mean() for k in (1, 3, 5, 7)]
    assert found == pytest.approx(expected, abs=0.0006)


@pytest.mark.parametrize("titles", [True, False])
def test_many_queries_are_answered_as_each_alone_on_real_claims(titles: bool) -> None:
    queries = []
    for example in list(read_examples(FEVER / "dev.jsonl", FEVER / "docs"))[:200]:
        passages = example.query.passages
        document = {"sentences": example.query.texts, "title": passages[0].title if titles else ""}
        queries.append({"query": example.query.text, "documents": [document]})
    for query, found in zip(queries, shipped().select_many(queries, k=7), strict=True):
        alone = shipped().select(**query, k=7)
        assert found.indices == alone.indices
        assert found.gains == pytest.approx(alone.gains, abs=1e-5)
