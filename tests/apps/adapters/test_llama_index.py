import copy
import json

import pytest

pytest.importorskip("llama_index.core", reason="dgn[llama-index] is not installed")

from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from dgn import InvalidInput, Limits, Selector
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
    assert found[0].node.metadata["dgn_covers"] == ["bridge", "designed", "Clara", "Voss"]
    assert found[0].score == found[0].node.metadata["dgn_relevance"]
    assert given == before, "the retriever's nodes were changed"
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "dgn_" not in found[0].node.get_content(metadata_mode=mode)


def test_what_it_is_made_of_is_kept() -> None:
    made = DGNNodePostprocessor(model="untrained", k=2, score_weight=0.5, title_key="name")
    saved = made.to_dict()
    assert saved["model"] == "untrained"
    again = DGNNodePostprocessor.from_dict(json.loads(json.dumps(saved)))
    assert again.to_dict() == saved
    assert again.limits == Limits(k=2, score_weight=0.5)
    assert again._selector.encoder.parameters == 0
    assert DGNNodePostprocessor.from_json(made.to_json()).to_dict() == saved
    found, same = (one.postprocess_nodes(nodes(), query_str=QUERY) for one in (made, again))
    assert found == same


def test_a_selector_without_a_name_is_never_read_as_the_default() -> None:
    own = Selector.from_pretrained("untrained")
    saved = DGNNodePostprocessor(own, max_tokens=9, count_tokens=len).to_dict()
    json.dumps(saved)  # the function is left out
    with pytest.raises(InvalidInput, match="a selector that has no name"):
        DGNNodePostprocessor.from_dict(dict(saved))
    again = DGNNodePostprocessor.from_dict(dict(saved), selector=own)
    assert again.limits == Limits(max_tokens=9)


def test_scores_and_edges(postprocessor: DGNNodePostprocessor) -> None:
    scored = nodes()
    scored[4].score, scored[3].score = 1.0, None
    chosen = DGNNodePostprocessor(k=1, use_scores=True, selector=postprocessor._selector)
    assert chosen.postprocess_nodes(scored, query_str="Xyzzy?")[0].node.metadata["row"] == 4
    assert postprocessor.postprocess_nodes([], query_str=QUERY) == []
    with pytest.raises(InvalidInput, match="A query is needed"):
        postprocessor.postprocess_nodes(nodes())
    assert DGNNodePostprocessor.class_name() == "DGNNodePostprocessor"
