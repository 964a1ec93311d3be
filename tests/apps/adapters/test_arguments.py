"""Every argument of a query means the same, whoever asks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgn import InvalidInput
from dgn.apps.batch import SelectBatch
from dgn.apps.cli.main import main
from models import shipped
from retrieved import QUERY, TEXTS

VECTORS = np.random.default_rng(0).normal(size=(6, 8)).round(3)
CASES: list[dict[str, Any]] = [
    {"k": 2, "given": [TEXTS[1]]},
    {"k": 2, "pinned": [4]},
    {"k": 3, "groups": ["a", "a", "a", "b", None], "max_per_group": 1},
    {
        "k": 3,
        "query_embedding": VECTORS[0].tolist(),
        "embeddings": VECTORS[1:].tolist(),
        "score_weight": 2.0,
    },
    {"max_tokens": 30, "given": ["A train."], "pinned": [0]},
]


def with_metadata(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """What documents carry: their group, and whether they are pinned."""
    groups = arguments.get("groups", [None] * len(TEXTS))
    pinned = arguments.get("pinned", [])
    return [{"source": groups[i], "must": i in pinned, "row": i} for i in range(len(TEXTS))]


def limits_of(arguments: dict[str, Any]) -> dict[str, Any]:
    names = ("k", "max_tokens", "max_per_group", "score_weight")
    return {name: arguments[name] for name in names if name in arguments}


def by_langchain(arguments: dict[str, Any]) -> list[int]:
    pytest.importorskip("langchain_core", reason="dgn[langchain] is not installed")
    from langchain_core.documents import Document

    from dgn.apps.adapters.langchain import DGNDocumentCompressor

    class Known:
        def embed_query(self, _: str) -> Any:
            return arguments["query_embedding"]

        def embed_documents(self, _: Any) -> Any:
            return arguments["embeddings"]

    compressor = DGNDocumentCompressor(
        **limits_of(arguments),
        group_key="source" if "groups" in arguments else None,
        pinned_key="must",
        given=arguments.get("given", []),
        embeddings=Known() if "embeddings" in arguments else None,
    )
    assert "embeddings" not in json.loads(compressor.model_dump_json())
    rows = with_metadata(arguments)
    documents = [Document(text, metadata=row) for text, row in zip(TEXTS, rows, strict=True)]
    found = compressor.compress_documents(documents, QUERY)
    return [one.metadata["row"] for one in found]


def by_llama_index(arguments: dict[str, Any]) -> list[int]:
    pytest.importorskip("llama_index.core", reason="dgn[llama-index] is not installed")
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    from dgn.apps.adapters.llama_index import DGNNodePostprocessor

    vectors = arguments.get("embeddings", [None] * len(TEXTS))
    parts = zip(TEXTS, with_metadata(arguments), vectors, strict=True)
    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata=row, embedding=vector))
        for text, row, vector in parts
    ]
    processor = DGNNodePostprocessor(
        **limits_of(arguments),
        group_key="source" if "groups" in arguments else None,
        pinned_key="must",
        given=arguments.get("given", []),
        use_embeddings="embeddings" in arguments,
    )
    asked = QueryBundle(QUERY, embedding=arguments.get("query_embedding"))
    found = processor.postprocess_nodes(nodes, asked)
    return [one.node.metadata["row"] for one in found]


def by_haystack(arguments: dict[str, Any]) -> list[int]:
    pytest.importorskip("haystack", reason="dgn[haystack] is not installed")
    from haystack import Document

    from haystack_integrations.components.rankers.dgn import DGNRanker

    vectors = arguments.get("embeddings", [None] * len(TEXTS))
    parts = zip(TEXTS, with_metadata(arguments), vectors, strict=True)
    documents = [Document(content=t, meta=row, embedding=vector) for t, row, vector in parts]
    limits = limits_of(arguments)
    ranker = DGNRanker(
        top_k=limits.pop("k", None),
        group_field="source" if "groups" in arguments else None,
        pinned_field="must",
        **limits,
    )
    found = ranker.run(
        QUERY,
        documents,
        query_embedding=arguments.get("query_embedding"),
        given=arguments.get("given"),
    )["documents"]
    return [one.meta["row"] for one in found]


def by_service(arguments: dict[str, Any]) -> list[int]:
    pytest.importorskip("fastapi", reason="dgn[serve] is not installed")
    from starlette.testclient import TestClient

    from dgn.apps.service import create_app

    body = {"query": QUERY, "passages": TEXTS, **arguments, "context": True}
    with TestClient(create_app(shipped()), base_url="http://localhost") as client:
        answer = client.post("/v1/select", json=body).json()
    assert answer["context"].startswith("[")
    return [one["index"] for one in answer["selected"]]


def by_batch(arguments: dict[str, Any]) -> list[int]:
    limits = limits_of(arguments)
    own = {name: [value] for name, value in arguments.items() if name not in limits}
    columns = {name: name for name in own} | {"passages": "passages"}
    batch = {"query": [QUERY], "passages": [TEXTS], **own}
    return SelectBatch(columns=columns, **limits)(batch)["selected"][0]


def by_rows(arguments: dict[str, Any], tmp_path: Path) -> list[int]:
    limits = limits_of(arguments)
    own = {name: value for name, value in arguments.items() if name not in limits}
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text(json.dumps({"query": QUERY, "passages": TEXTS, **own}) + "\n")
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
    assert main(["select", "--queries", str(rows), "--out", str(out), *flags]) == 0
    row = json.loads(out.read_text())
    return [one["index"] for one in row["selected"]]


@pytest.mark.parametrize("arguments", CASES, ids=lambda one: " ".join(one))
@pytest.mark.parametrize(
    "ask", [by_langchain, by_llama_index, by_haystack, by_service, by_batch, by_rows]
)
def test_the_same_is_selected_everywhere(
    ask: Callable[..., list[int]], arguments: dict[str, Any], tmp_path: Path
) -> None:
    wanted = shipped().select(QUERY, TEXTS, **arguments)
    found = ask(arguments, tmp_path) if ask is by_rows else ask(arguments)
    assert found == list(wanted.indices)


def test_a_missing_embedding_is_named() -> None:
    pytest.importorskip("llama_index.core", reason="dgn[llama-index] is not installed")
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    from dgn.apps.adapters.llama_index import DGNNodePostprocessor

    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    processor = DGNNodePostprocessor(k=2, use_embeddings=True)
    with pytest.raises(InvalidInput, match=r"nodes\[0\] has no embedding"):
        processor.postprocess_nodes(nodes, QueryBundle(QUERY, embedding=[1.0]))
