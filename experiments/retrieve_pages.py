"""Finds pages for claims with BM25, as `--retrieved` takes them.

python -m experiments.retrieve_pages dev.jsonl docs retrieved.jsonl [PAGES_PER_CLAIM, default 5]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s

from dgn.apps.cli.options import new_file, positive
from dgn.data import read_claims
from dgn.files import write_atomically
from dgn.text.spelling import title_text
from dgn.text.words import split_words


def retrieve(queries: Path, docs: Path, count: int) -> list[dict[str, object]]:
    """For every claim, the pages whose title and text contain its words, the best first."""
    pages = sorted(path.name for path in docs.iterdir())
    texts = [(docs / page).read_text(encoding="utf-8") for page in pages]
    index: Any = bm25s.BM25()
    corpus = [_words(f"{title_text(page)} {text}") for page, text in zip(pages, texts, strict=True)]
    index.index(corpus, show_progress=False)
    claims = list(read_claims(queries))
    words = [_words(claim.text) for claim in claims]
    found, _ = index.retrieve(words, k=count, show_progress=False)
    return [
        {"id": claim.id, "pages": [pages[place] for place in places]}
        for claim, places in zip(claims, found.tolist(), strict=True)
    ]


def _words(text: str) -> list[str]:
    return [word.lower() for word in split_words(text)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages of every claim, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.retrieve_pages",
        description="Find pages for claims with BM25, for --retrieved.",
    )
    parser.add_argument("queries", type=Path, metavar="QUERIES")
    parser.add_argument("docs", type=Path, metavar="DOCS", help="folder with one file per page")
    parser.add_argument("out", type=new_file, metavar="OUT")
    parser.add_argument("count", nargs="?", type=positive, default=5, help="pages (default 5)")
    options = parser.parse_args(arguments)
    rows = retrieve(options.queries, options.docs, options.count)
    write_atomically(options.out, "".join(json.dumps(row) + "\n" for row in rows))
    print(f"{options.out}: {len(rows):,} claims")
    return 0


if __name__ == "__main__":
    sys.exit(main())
