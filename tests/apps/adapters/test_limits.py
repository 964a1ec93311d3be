"""max_tokens alone selects as many passages as fit, whoever asks: no adapter adds a k."""

from collections.abc import Callable
from typing import Any

import pytest

from dgn import Limits, Selector
from dgn.apps.adapters._chosen import gather_limits
from dgn.apps.jobs import SelectBatch

QUERY = "Who swims, sings, runs, paints, cooks, reads and writes?"
TEXTS = ["Ada swims.", "Bo sings.", "Cy runs.", "Di paints.", "Eli cooks.", "Flo reads."]


def by_select_batch(**limits: Any) -> int:
    batch = SelectBatch(**limits)({"query": [QUERY], "passages": [TEXTS]})
    return len(batch["selected"][0])


def by_langchain(**limits: Any) -> int:
    pytest.importorskip("langchain_core", reason="dgn[langchain] is not installed")
    from langchain_core.documents import Document

    from dgn.apps.adapters.langchain import DGNDocumentCompressor

    documents = [Document(page_content=text) for text in TEXTS]
    return len(DGNDocumentCompressor(**limits).compress_documents(documents, QUERY))


def by_llama_index(**limits: Any) -> int:
    pytest.importorskip("llama_index.core", reason="dgn[llama-index] is not installed")
    from llama_index.core.schema import NodeWithScore, TextNode

    from dgn.apps.adapters.llama_index import DGNNodePostprocessor

    nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in TEXTS]
    return len(DGNNodePostprocessor(**limits).postprocess_nodes(nodes, query_str=QUERY))


def by_haystack(**limits: Any) -> int:
    pytest.importorskip("haystack", reason="dgn[haystack] is not installed")
    from haystack import Document

    from haystack_integrations.components.rankers.dgn import DGNRanker

    documents = [Document(content=text) for text in TEXTS]
    return len(DGNRanker(**limits).run(QUERY, documents)["documents"])


def by_table(**limits: Any) -> int:
    pandas = pytest.importorskip("pandas")
    from dgn.apps.adapters.tables import select_rows

    table = pandas.DataFrame({"id": 1, "query": QUERY, "text": TEXTS})
    return len(select_rows(table, group="id", query="query", text="text", **limits))


@pytest.mark.parametrize(
    "count", [by_select_batch, by_langchain, by_llama_index, by_haystack, by_table]
)
def test_the_limits_of_select_and_no_others(count: Callable[..., int]) -> None:
    selector = Selector.from_pretrained()
    for limits in ({"max_tokens": 1000}, {"stop_at": 1.0}, {}):
        assert count(**limits) == len(selector.select(QUERY, TEXTS, **limits)), limits
    assert count(max_tokens=1000) == len(TEXTS) == 6
    assert count() == 5


def test_limits_are_gathered() -> None:
    assert gather_limits({"max_tokens": 9, "other": 1}) == {
        "limits": Limits(max_tokens=9),
        "other": 1,
    }
    assert gather_limits({"limits": Limits(k=2), "stop_at": 0.5}) == {
        "limits": Limits(k=2, stop_at=0.5)
    }
