"""Haystack: a pipeline of BM25, dgn and a prompt, saved and loaded again.

In a clone: pip install '.[haystack]' && python -m examples.haystack_rag
"""

from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from examples.pages import QUESTION, sentences
from haystack_integrations.components.rankers.dgn import DGNRanker

TEMPLATE = """Answer from these sentences:
{% for document in documents %}{{ document.content }}
{% endfor %}
{{ question }}"""

store = InMemoryDocumentStore()
store.write_documents([Document(content=o.text, meta={"title": o.title}) for o in sentences()])
pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=10))
pipeline.add_component("ranker", DGNRanker(top_k=2))
pipeline.add_component(
    "prompt", PromptBuilder(TEMPLATE, required_variables=["documents", "question"])
)
pipeline.connect("retriever", "ranker")
pipeline.connect("ranker", "prompt.documents")

saved = pipeline.dumps()
ranker = Pipeline.loads(saved).get_component("ranker")
assert ranker.to_dict() == pipeline.get_component("ranker").to_dict()

answer = pipeline.run(
    {
        "retriever": {"query": QUESTION},
        "ranker": {"query": QUESTION},
        "prompt": {"question": QUESTION},
    },
    include_outputs_from={"ranker"},
)
for document in answer["ranker"]["documents"]:
    print(f"{document.content}  (covers {', '.join(document.meta['dgn_covers'])})")
print(answer["prompt"]["prompt"])
