import copy
from dataclasses import replace

import pytest

pytest.importorskip("haystack", reason="dgn[haystack] is not installed")

from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner

from dgn import InvalidInput
from haystack_integrations.components.rankers.dgn import DGNRanker
from retrieved import QUERY, TEXTS, WANTED


def documents() -> list[Document]:
    return [Document(content=text, meta={"row": i}) for i, text in enumerate(TEXTS)]


def test_ranker_returns_copies() -> None:
    given = documents()
    before = copy.deepcopy(given)
    found = DGNRanker(top_k=2).run(query=QUERY, documents=given)["documents"]
    assert [document.meta["row"] for document in found] == WANTED
    assert [document.id for document in found] == [given[i].id for i in WANTED]
    assert found[0].meta["dgn_covers"] == ["bridge", "designed", "Clara", "Voss"]
    assert found[0].score == found[0].meta["dgn_relevance"]
    assert given == before, "the retriever's documents were changed"


def test_a_pipeline_is_saved_and_loaded_again() -> None:
    pipeline = Pipeline()
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.add_component("ranker", DGNRanker(top_k=2, min_relevance=0.1, use_scores=False))
    pipeline.connect("joiner", "ranker.documents")
    loaded = Pipeline.loads(pipeline.dumps())
    assert loaded.get_component("ranker").to_dict() == pipeline.get_component("ranker").to_dict()
    inputs = {"joiner": {"documents": documents()}, "ranker": {"query": QUERY}}
    for one in (pipeline, loaded):
        found = one.run(copy.deepcopy(inputs))["ranker"]["documents"]
        assert [document.meta["row"] for document in found] == WANTED


def test_scores_top_k_and_edges() -> None:
    scores = {4: 1.0, 0: 0.0}  # the others have none, and count as the worst
    given = [replace(one, score=scores.get(one.meta["row"])) for one in documents()]
    ranker = DGNRanker(use_scores=True)
    found = ranker.run(query="Xyzzy?", documents=given, top_k=1)["documents"]
    assert [document.meta["row"] for document in found] == [4]
    assert ranker.run(query=QUERY, documents=[]) == {"documents": []}
    with pytest.raises(InvalidInput, match=r"documents\[0\] has no text"):
        ranker.run(query=QUERY, documents=[Document(content=None)])
