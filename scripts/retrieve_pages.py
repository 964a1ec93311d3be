"""Finds pages for claims with BM25: what `--retrieved` takes.

python -m scripts.retrieve_pages dev.jsonl docs retrieved.jsonl [pages a claim, default 5]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import bm25s

from dgn.data.sources import read_claims
from dgn.files import write_atomically
from dgn.text import split_words
from dgn.text.tokens import title_words


def retrieve(claims: Path, docs: Path, count: int) -> list[dict[str, object]]:
    """For every claim the pages whose title and text have its words, the best first."""
    pages = sorted(path.name for path in docs.iterdir())
    texts = [(docs / page).read_text(encoding="utf-8") for page in pages]
    index = bm25s.BM25()
    corpus = [
        _words(f"{title_words(page)} {text}") for page, text in zip(pages, texts, strict=True)
    ]
    index.index(corpus, show_progress=False)
    asked = list(read_claims(claims))
    found, _ = index.retrieve([_words(claim.text) for claim in asked], k=count, show_progress=False)
    return [
        {"id": claim.id, "pages": [pages[place] for place in places]}
        for claim, places in zip(asked, found.tolist(), strict=True)
    ]


def _words(text: str) -> list[str]:
    return [word.lower() for word in split_words(text)]


if __name__ == "__main__":
    claims, docs, out = (Path(name) for name in sys.argv[1:4])
    rows = retrieve(claims, docs, int(sys.argv[4]) if len(sys.argv) > 4 else 5)
    write_atomically(out, "".join(json.dumps(row) + "\n" for row in rows))
    print(f"{out}: {len(rows):,} claims")
