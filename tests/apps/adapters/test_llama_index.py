import copy

import pytest

pytest.importorskip("llama_index.core", reason="dgn[llama-index] is not installed")

from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from dgn import InvalidInput
from dgn.apps.adapters.llama_index import DGNNodePostprocessor
from retrieved import QUERY, TEXTS, WANTED


@pytest.fixture(scope="module")
def postprocessor() -> DGNNodePostprocessor:
    return DGNNodePostprocessor(k=2)


def nodes() -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(text=text, id_=str(i), metadata={"row": i}), score=0.5)
        for i, text in enumerate(TEXTS)
    ]


def test_selected_nodes_are_copies(postprocessor: DGNNodePostprocessor) -> None:
    given = nodes()
    before = copy.deepcopy(given)
    found = postprocessor.postprocess_nodes(given, query_str=QUERY)
    assert [node.node.metadata["row"] for node in found] == WANTED
    assert [node.node.node_id for node in found] == ["1", "3"]
    assert found[0].node.metadata["dgn_covers"] == ["bridge", "designed", "Voss", "Clara"]
    assert found[0].score == found[0].node.metadata["dgn_relevance"]
    assert given == before, "the retriever's nodes were changed"
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "dgn_" not in found[0].node.get_content(metadata_mode=mode)


def test_scores_and_edges(postprocessor: DGNNodePostprocessor) -> None:
    scored = nodes()
    scored[4].score = 1.0
    chosen = DGNNodePostprocessor(k=1, use_scores=True, selector=postprocessor._selector)
    assert chosen.postprocess_nodes(scored, query_str="Xyzzy?")[0].node.metadata["row"] == 4
    assert postprocessor.postprocess_nodes([], query_str=QUERY) == []
    with pytest.raises(InvalidInput, match="A query is needed"):
        postprocessor.postprocess_nodes(nodes())
    assert DGNNodePostprocessor.class_name() == "DGNNodePostprocessor"
