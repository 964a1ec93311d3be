"""Claims on several pages: which sentences of FEVER are found on ERASER's pages."""

import json
from pathlib import Path

import pytest

from experiments.several_pages import find

SHARED = Path(__file__).parents[3] / "shared" / "data"


def eraser(claim: str, page: str, lines: list[int]) -> dict[str, object]:
    spans = [{"docid": page, "start_sentence": n, "end_sentence": n + 1} for n in lines]
    return {"annotation_id": claim, "query": "c", "docids": [page], "evidences": [spans]}


def fever(claim: int, *groups: list[tuple[str, int]]) -> dict[str, object]:
    evidence = [[[0, 0, page, sentence] for page, sentence in group] for group in groups]
    return {"id": claim, "label": "SUPPORTS", "claim": "c", "evidence": evidence}


def test_only_sentences_whose_line_is_certain_are_used(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for page in ("A", "B", "C"):
        (tmp_path / "docs" / page).write_text("\n".join(f"{page} {n} ." for n in range(6)))
    dev = [eraser("1", "A", [2, 4]), eraser("2", "B", [1])]
    (tmp_path / "dev.jsonl").write_text("\n".join(map(json.dumps, dev)))
    (tmp_path / "train.jsonl").write_text(json.dumps(eraser("3", "C", [0])))
    official = [
        fever(1, [("A", 2), ("A", 5)]),  # a blank line between them: 5 is line 4
        fever(2, [("B", 1)]),
        fever(4, [("A", 1), ("B", 0)], [("A", 5)]),  # before 2, and the first; 5 is line 4
        fever(5, [("A", 3), ("B", 0)]),  # 3 may be line 3 or 2
        fever(6, [("A", 0), ("C", 0)]),
        fever(7, [("A", 0), ("D", 0)]),  # D is not at hand
        fever(8, *([("A", n)] for n in range(8))),
        {"id": 9, "label": "NOT ENOUGH INFO", "claim": "c", "evidence": [[[0, 0, None, None]]]},
    ]
    (tmp_path / "official").write_text("\n".join(map(json.dumps, official)))
    found = find(tmp_path / "official", tmp_path)
    assert found.claims == 7
    assert found.covered == pytest.approx(6 / 7)
    assert (found.several, found.needed) == pytest.approx((4 / 7, 3 / 7))
    assert found.complete == 3
    assert [one.claim.id for one in found.examples] == ["4", "6"]
    assert [one.claim.id for one in found.unseen] == ["4"], "a training claim is about C"
    gold = [n for n, is_gold in enumerate(found.examples[0].gold) if is_gold]
    assert gold == [1, 4, 6]


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared is not next to this clone")
def test_what_the_notes_say_of_paper_dev() -> None:
    found = find(SHARED / "fever" / "paper_dev.jsonl", SHARED / "fever-eraser")
    assert found.covered == pytest.approx(0.980, abs=0.0005)
    assert found.several == pytest.approx(0.165, abs=0.0005)
    assert len(found.examples) == 89
