from pathlib import Path

import pytest

from dgn.data import Problems
from dgn.data.inspection import inspect_claims, plot_inspection
from dgn.data.store import build_store
from fever_files import write_claims, write_jsonl, write_wiki


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rows = [
        {"claim": "c", "label": "yes", "sentences": ["x", "y"], "evidence": [[0], [1]]},
        {"claim": "d", "sentences": ["x", "", "y"], "evidence": [[1, 7]]},
        {"claim": 5},
    ]
    return write_jsonl(tmp_path / "mine.jsonl", rows)


def test_rows_are_counted_and_missing_evidence_is_named(rows: Path) -> None:
    problems = Problems(skip=True)
    found = inspect_claims(rows, None, problems)
    assert (found.format, found.claims, found.examples) == ("rows", 2, 2)
    assert found.labels == {"yes": 1, "no label": 1}
    assert found.evidence_sizes == {2: 2}
    assert found.group_counts == {2: 1, 1: 1}
    assert found.page_counts == {1: 2}
    assert found.passages == {2: 2}
    assert found.missing == ["claim 2: sentence 1 of ''", "claim 2: sentence 7 of ''"]
    assert problems.count == 1


def test_claims_are_counted_without_and_with_pages(tmp_path: Path) -> None:
    claims = write_claims(tmp_path / "dev.jsonl")
    alone = inspect_claims(claims, None, Problems())
    assert (alone.format, alone.claims, alone.examples) == ("fever", 3, 0)
    build_store(write_wiki(tmp_path / "wiki-pages"), tmp_path / "pages.db")
    found = inspect_claims(claims, tmp_path / "pages.db", Problems())
    assert (found.claims, found.examples, found.missing) == (3, 2, [])
    assert found.passages == {5: 1, 1: 1}


@pytest.mark.parametrize("name", ["plot.png", "plot.svg", "plot.pdf"])
def test_plot_is_written_completely(rows: Path, name: str) -> None:
    found = inspect_claims(rows, None, Problems(skip=True))
    plot_inspection(found, rows.parent / name)
    assert (rows.parent / name).stat().st_size > 1000
    assert not list(rows.parent.glob(".*partial"))
