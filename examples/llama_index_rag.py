"""LlamaIndex: BM25 retrieves 10 nodes, and dgn keeps the 2 that together answer.

In a clone: pip install '.[llama-index]' bm25s && python -m examples.llama_index_rag
"""

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from dgn.apps.adapters.llama_index import DGNNodePostprocessor
from examples.pages import QUESTION, Bm25, sentences


class Bm25Retriever(BaseRetriever):
    """BM25 as a retriever of LlamaIndex."""

    def __init__(self, search: Bm25) -> None:
        self._search = search
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(text=one.text, metadata={"title": one.title}), score=score)
            for one, score in self._search.search(query_bundle.query_str, k=10)
        ]


nodes = Bm25Retriever(Bm25(sentences())).retrieve(QUESTION)
kept = DGNNodePostprocessor(k=2).postprocess_nodes(nodes, query_str=QUESTION)
for node in kept:
    print(f"{node.score:.2f}  {node.text}  (covers {', '.join(node.metadata['dgn_covers'])})")
