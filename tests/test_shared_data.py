"""Readers and scores on real data, if it is next to the project (../shared/data)."""

from pathlib import Path

import pytest

from dgn.data import read_rows
from dgn.evaluation import EvaluationSet, SelectorBaseline
from experiments.domains import read_domain, read_eraser
from models import shipped

DATA = Path(__file__).parents[2] / "shared" / "data"
FEVER = DATA / "fever-eraser"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not next to this clone"),
]


@pytest.mark.parametrize(
    ("name", "claims"), [("train", 4180), ("dev", 1942), ("train_partial", 12427)]
)
def test_fever_eraser_is_read_and_its_evidence_found(name: str, claims: int) -> None:
    examples = list(read_eraser(FEVER / f"{name}.jsonl"))
    assert len(examples) == claims
    assert all(any(example.gold) for example in examples)


def test_multirc_is_read() -> None:
    folder = DATA / "multirc"
    assert len(list(read_eraser(folder / "dev.jsonl"))) == 3214
    domain = read_domain("multirc")
    assert len(domain.train) + len(domain.dev) == 3214


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
    parts = [list(read_rows(folder / f"{part}.jsonl")) for part in ("train", "dev")]
    assert [len(part) for part in parts] == [train, dev]
    for example in (examples := parts[0] + parts[1]):
        assert not example.missing
        assert 0 < sum(example.gold) < len(example.gold), "neither nothing nor everything is gold"
        assert all(passage.position is not None for passage in example.query.passages)
    count = len(examples)
    assert sum(len(e.gold) for e in examples) / count == pytest.approx(passages, rel=0.15)
    assert sum(sum(e.gold) for e in examples) / count == pytest.approx(gold, rel=0.15)


def test_shipped_selector_has_the_scores_of_its_card() -> None:
    rows = shipped().card.splitlines()
    (row,) = (line for line in rows if line.endswith("|") and "this model" in line)
    expected = [float(cell) for cell in row.split("|")[2:6]]
    dev = EvaluationSet(tuple(read_eraser(FEVER / "dev.jsonl")))
    indices = SelectorBaseline("facets", shipped()).select(dev.queries, 7)
    found = [dev.recalls_at(k, indices).mean() for k in (1, 3, 5, 7)]
    assert found == pytest.approx(expected, abs=0.0006)


@pytest.mark.parametrize("titles", [True, False])
def test_many_queries_are_answered_as_each_alone_on_real_claims(titles: bool) -> None:
    queries = []
    for example in list(read_eraser(FEVER / "dev.jsonl"))[:200]:
        passages = example.query.passages
        document = {"sentences": example.query.texts, "title": passages[0].title if titles else ""}
        queries.append({"query": example.query.text, "documents": [document]})
    for query, found in zip(queries, shipped().select_many(queries, k=7), strict=True):
        alone = shipped().select(**query, k=7)
        assert found.indices == alone.indices
        assert found.gains == pytest.approx(alone.gains, abs=1e-5)
