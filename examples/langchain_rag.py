"""LangChain: BM25 retrieves 10 sentences, dgn keeps the 2 that together answer; a prompt is built.

In a clone: pip install '.[langchain]' langchain-classic bm25s && python -m examples.langchain_rag
"""

from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever

from dgn.apps.adapters.langchain import DGNDocumentCompressor
from examples.pages import QUESTION, Bm25, sentences


class Bm25Retriever(BaseRetriever):
    """BM25 as a retriever of LangChain."""

    search: Bm25
    model_config = {"arbitrary_types_allowed": True}

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(one.text, metadata={"title": one.title, "bm25": score})
            for one, score in self.search.search(query, k=10)
        ]


retriever = ContextualCompressionRetriever(
    base_compressor=DGNDocumentCompressor(k=2),
    base_retriever=Bm25Retriever(search=Bm25(sentences())),
)
prompt = ChatPromptTemplate.from_template("Answer from these sentences:\n{context}\n\n{question}")
documents = retriever.invoke(QUESTION)
for document in documents:
    print(f"{document.page_content}  (covers {', '.join(document.metadata['dgn_covers'])})")
context = "\n".join(document.page_content for document in documents)
print(prompt.invoke({"context": context, "question": QUESTION}).to_string())
