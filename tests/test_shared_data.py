"""The readers on real FEVER data, where it lies beside the project (../shared/data)."""

from collections import Counter
from pathlib import Path

import pytest

from dgn.data.eraser import EraserDocs, read_eraser_claims
from dgn.data.examples import make_examples
from dgn.data.fever import read_fever_claims
from dgn.data.lines import Problems
from dgn.text.vec_file import VecFile

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
