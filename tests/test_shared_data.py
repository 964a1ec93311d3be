"""Readers, scores and training on real data, where it lies beside the project (../shared/data)."""

from collections import Counter
from pathlib import Path

import pytest

from dgn.data.eraser import EraserDocs, read_eraser_claims
from dgn.data.examples import make_examples
from dgn.data.fever import read_fever_claims
from dgn.data.lines import Problems
from dgn.evaluation import run_contest
from dgn.evaluation.contenders import Bm25, CosineTopK, Questions, UntrainedGreedy
from dgn.evaluation.contenders.facets import ClaimFacets
from dgn.evaluation.contest import recalls_at
from dgn.evaluation.questions import read_questions
from dgn.features import ExampleSource, FeatureOptions
from dgn.reproduction.plan import DGN
from dgn.selector.pretrained import SHIPPED
from dgn.text.vec_file import VecFile
from dgn.training import RunConfig, train
from dgn.training.contender import TrainedNetwork

DATA = Path(__file__).parents[2] / "shared" / "data"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not beside this clone"),
]


@pytest.mark.parametrize(
    ("name", "claims"), [("train", 4180), ("dev", 1942), ("train_partial", 12427)]
)
def test_every_claim_of_fever_eraser_is_read_and_its_evidence_found(name: str, claims: int) -> None:
    import json

    folder, problems = DATA / "fever-eraser", Problems()
    path = folder / f"{name}.jsonl"
    docs = EraserDocs(folder / "docs")
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


def test_official_rows_and_their_labels() -> None:
    claims = list(read_fever_claims(DATA / "fever" / "paper_dev.jsonl"))
    assert len(claims) == 7987
    assert Counter(claim.label for claim in claims) == {
        "NOT ENOUGH INFO": 3328,
        "SUPPORTS": 2331,
        "REFUTES": 2328,
    }


def test_multirc_is_read() -> None:
    folder = DATA / "multirc"
    claims = read_eraser_claims(folder / "dev.jsonl")
    examples = list(make_examples(claims, EraserDocs(folder / "docs")))
    assert len(examples) == 3214
    assert not any(example.missing for example in examples)


def test_real_vectors_open(tmp_path: Path) -> None:
    vectors = VecFile(DATA / "vectors" / "english-300d.vec.gz", cache=tmp_path)
    assert (len(vectors), vectors.dimension) == (63_569, 300)
    assert vectors.row_of("the") >= 0
    assert vectors.row_of("xqzzv") == -1


def test_training_beats_untrained_greedy_on_real_claims(tmp_path: Path) -> None:
    """Three epochs on 4,180 claims; and the scores that README gives the untrained."""
    folder, vectors = DATA / "fever-eraser", str(DATA / "vectors" / "english-300d.vec.gz")
    options = FeatureOptions(vectors, unit=True)
    source = ExampleSource(folder / "dev.jsonl", folder / "docs")
    questions = read_questions(source, tmp_path / "dev", options)
    learned_from = ExampleSource(folder / "train.jsonl", folder / "docs")
    learned_from.build_features(tmp_path / "train", options)
    config = RunConfig().with_settings(
        {
            **DGN,
            "train": [str(tmp_path / "train")],
            "validation": str(tmp_path / "dev"),
            "epochs": 3,
            "batch_size": 64,
            "average": 0.0,
            "device": "cpu",
        }
    )
    train(config, tmp_path / "run")
    trained = TrainedNetwork.from_folder(tmp_path / "run")
    contenders = [CosineTopK(), UntrainedGreedy(3.0), Bm25(), trained]
    results = run_contest(contenders, questions, (1, 3, 5, 7))
    top_k, greedy, bm25, dgn = ([one.macro.recall for one in r.at] for r in results)
    assert top_k == pytest.approx([0.558, 0.781, 0.882, 0.933], abs=0.001)
    assert greedy == pytest.approx([0.556, 0.787, 0.888, 0.931], abs=0.001)
    assert bm25 == pytest.approx([0.682, 0.869, 0.935, 0.962], abs=0.001)
    assert all(ours > theirs for ours, theirs in zip(dgn, greedy, strict=True))


def test_the_shipped_selector_has_the_scores_of_its_card() -> None:
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    (row,) = (line for line in card.splitlines() if line.endswith("|") and "this model" in line)
    said = [float(cell) for cell in row.split("|")[2:6]]
    source = ExampleSource(DATA / "fever-eraser" / "dev.jsonl", DATA / "fever-eraser" / "docs")
    questions = Questions(tuple(source.examples()))
    picks = ClaimFacets.pretrained().pick(questions, 7)
    found = [recalls_at(k, questions, picks).mean() for k in (1, 3, 5, 7)]
    assert found == pytest.approx(said, abs=0.0006)
