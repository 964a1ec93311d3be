"""The package rerankers: dgn behind the same call as any other ranker.

In a clone: pip install '.[rerankers]' bm25s && python -m examples.rerankers_ranker
"""

from dgn.apps.adapters.rerankers import DGNRanker
from examples.pages import QUESTION, Bm25, sentences

found = [sentence.text for sentence, _ in Bm25(sentences()).search(QUESTION, k=10)]
ranked = DGNRanker().rank(QUESTION, found, doc_ids=list(range(10)))
for result in ranked.top_k(2):
    print(f"{result.score:.2f}  {result.document.text}")
