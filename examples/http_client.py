"""The HTTP service: start it with `dgn serve`, then ask it, also in the shape of rerank APIs.

In a clone: pip install '.[serve]' httpx && python -m examples.http_client
"""

import os

import httpx

from examples.pages import QUESTION, sentences

url = os.environ.get("DGN_URL", "http://127.0.0.1:8000")
passages = [{"text": one.text, "title": one.title} for one in sentences()]
answer = httpx.post(f"{url}/v1/select", json={"query": QUESTION, "passages": passages, "k": 2})
for one in answer.json()["selected"]:
    print(f"{one['gain']:.2f}  {one['text']}")

documents = [one.text for one in sentences()]
answer = httpx.post(f"{url}/rerank", json={"query": QUESTION, "documents": documents, "top_n": 2})
for one in answer.json()["results"]:
    print(f"{one['relevance_score']:.2f}  {documents[one['index']]}")
