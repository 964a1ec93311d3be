"""max_tokens alone selects as many passages as fit, whoever asks: no adapter adds a k."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from dgn import InvalidInput, Limits, Selector
from dgn.apps.adapters._chosen import gather_limits, limits_of
from dgn.apps.batch import SelectBatch

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


@pytest.mark.parametrize("count", [by_select_batch, by_langchain, by_llama_index, by_haystack])
def test_the_limits_of_select_and_no_others(count: Callable[..., int]) -> None:
    selector = Selector.from_pretrained()
    for limits in ({"max_tokens": 1000}, {"stop_at": 1.0}, {}):
        assert count(**limits) == len(selector.select(QUERY, TEXTS, **limits)), limits
    assert count(max_tokens=1000) == len(TEXTS) == 6
    assert count() == 5


GIVEN: dict[str, Any] = {
    "k": 2,
    "max_tokens": 7,
    "stop_at": 0.3,
    "min_relevance": 0.9,
    "count_tokens": lambda _: 6,
    "score_weight": 3.0,
    "breadth": 1.0,
}
"""A value of each limit that makes a difference."""


@pytest.mark.parametrize("count", [by_select_batch, by_langchain, by_llama_index, by_haystack])
def test_every_limit_is_accepted(count: Callable[..., int]) -> None:
    selector = Selector.from_pretrained()
    for one in fields(Limits):
        if one.name in ("max_per_document", "max_per_group"):
            continue  # they need titles or groups: test_arguments.py
        limits = {one.name: GIVEN[one.name]}
        if one.name == "count_tokens":
            limits["max_tokens"] = 12.0
        elif one.name in ("score_weight", "min_relevance", "breadth"):
            limits["k"] = 3
        if count is by_haystack and "k" in limits:
            limits["top_k"] = limits.pop("k")
        wanted = {("k" if name == "top_k" else name): value for name, value in limits.items()}
        assert count(**limits) == len(selector.select(QUERY, TEXTS, **wanted)), limits


def test_limits_are_gathered() -> None:
    assert gather_limits({"max_tokens": 9, "other": 1}) == {
        "limits": Limits(max_tokens=9),
        "other": 1,
    }
    assert gather_limits({"limits": Limits(k=2), "stop_at": 0.5}) == {
        "limits": Limits(k=2, stop_at=0.5)
    }
    every = {one.name: getattr(Limits(), one.name) for one in fields(Limits)}
    assert gather_limits(every) == {"limits": Limits()}
    assert gather_limits({"limits": {"k": 2}, "stop_at": 0.5})["limits"] == Limits(k=2, stop_at=0.5)
    with pytest.raises(InvalidInput, match="kk"):
        limits_of({"kk": 2})
    with pytest.raises(InvalidInput, match="Limits or a dictionary"):
        limits_of(5)
