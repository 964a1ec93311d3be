"""The samples of the page show what they were chosen for, with the shipped model.

They were written and chosen so that only dgn finds all parts: this is no measure of quality.
"""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

import dgn.apps.service
from running_service import Running

SAMPLES: list[dict[str, Any]] = json.loads(
    (Path(dgn.apps.service.__file__).parent / "page/samples.json").read_text(encoding="utf-8")
)
OTHERS = ("one by one", "BM25", "top-k", "MMR")


def documents(text: str) -> list[dict[str, str]]:
    """As the page makes them: a line that begins with "#" is a title."""
    pieces = re.split(r"^# (.*)\n", text, flags=re.M)
    return [
        {"title": title, "text": body}
        for title, body in zip(pieces[1::2], pieces[2::2], strict=True)
    ]


def parts_found(service: Running, sample: dict[str, Any], given: list[dict[str, str]]) -> Any:
    """For each method, the names of the parts of the query that its sentences answer."""
    body = {"query": sample["query"], "documents": given, "k": int(sample["k"])}
    if sample["max_tokens"]:
        body["max_tokens"] = int(sample["max_tokens"])
    passages = httpx.post(f"{service.url}/v1/explain", json=body).json()["passages"]
    texts = [passage["text"] for passage in passages]
    methods = httpx.post(f"{service.url}/v1/compare", json=body).json()["methods"]
    return {
        row["method"]: {
            part["name"]
            for part in sample["parts"]
            if any(quote in texts[i] for quote in part["evidence"] for i in row["indices"])
        }
        for row in methods
    }


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["name"])
def test_only_dgn_finds_all_parts(service: Running, sample: dict[str, Any]) -> None:
    every = {part["name"] for part in sample["parts"]}
    assert len(every) >= 3
    for part in sample["parts"]:
        assert all(quote in sample["text"] for quote in part["evidence"])
    found = parts_found(service, sample, documents(sample["text"]))
    assert found["dgn"] == every
    for method in OTHERS:
        assert found[method] < every, method


def test_opening_sample_does_not_hang_on_one_sentence(service: Running) -> None:
    sample = SAMPLES[0]
    every = {part["name"] for part in sample["parts"]}
    needed = [part["evidence"][0] for part in sample["parts"] if len(part["evidence"]) == 1]
    (document,) = documents(sample["text"])
    sentences = re.findall(r"[^\s][^.]*\.", document["text"])
    others = [one for one in sentences if not any(quote in one for quote in needed)]
    assert len(others) >= 10
    for one in others:
        shorter = {**document, "text": document["text"].replace(one, "")}
        found = parts_found(service, sample, [shorter])
        assert found["dgn"] == every, one
        assert all(found[method] < every for method in OTHERS), one
