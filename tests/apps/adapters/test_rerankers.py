import pytest

pytest.importorskip("rerankers", reason="dgn[rerankers] is not installed")

from rerankers.documents import Document

from dgn import InvalidInput
from dgn.apps.adapters.rerankers import DGNRanker
from retrieved import QUERY, TEXTS, WANTED


def test_rank() -> None:
    ranker = DGNRanker()
    ranked = ranker.rank(QUERY, [*TEXTS, TEXTS[1]], doc_ids=list("abcdef"))
    assert [result.document.doc_id for result in ranked.top_k(2)] == ["b", "d"]
    assert [result.rank for result in ranked] == [1, 2, 3, 4, 5, 6]
    assert ranked[5].document.doc_id == "f"  # it repeats another one
    scores = [result.score for result in ranked]
    assert scores == sorted(scores, reverse=True)
    documents = [Document(text, doc_id=i) for i, text in enumerate(TEXTS)]
    assert [r.document.doc_id for r in ranker.rank(QUERY, documents).top_k(2)] == WANTED
    assert ranker.score(QUERY, TEXTS[1]) > ranker.score(QUERY, TEXTS[4])


def test_scores_and_limits() -> None:
    documents = [
        Document(text, doc_id=i, metadata={"s": float(i == 4)}) for i, text in enumerate(TEXTS)
    ]
    scored = DGNRanker(score_key="s", score_weight=10, k=1).rank("Xyzzy?", documents)
    assert [result.score > 0 for result in scored] == [True, False, False, False, False]
    assert scored[0].document.doc_id == 4
    with pytest.raises(InvalidInput, match=r"documents\[0\] has no 't'"):
        DGNRanker(score_key="t").rank(QUERY, documents)
