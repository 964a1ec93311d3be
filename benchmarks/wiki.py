"""A generated `wiki-pages` folder in FEVER's exact format, of any size."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

PAGES_A_FILE = 50_000


def write_wiki_pages(folder: Path, pages: int, seed: int = 0) -> None:
    """Files `wiki-001.jsonl`, …, with the empty first row, blank sentences and links of FEVER's."""
    random = np.random.default_rng(seed)
    words = make_words()
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, pages, PAGES_A_FILE), start=1):
        with (folder / f"wiki-{number:03}.jsonl").open("wb") as stream:
            stream.write(msgspec.json.encode({"id": "", "text": "", "lines": ""}) + b"\n")
            for page in range(start, min(start + PAGES_A_FILE, pages)):
                stream.write(msgspec.json.encode(_page(random, words, page)) + b"\n")


def make_words(count: int = 60_000) -> list[str]:
    """That many different words that mean nothing, the same ones every time."""
    random = np.random.default_rng(0)
    words: dict[str, None] = {}
    while len(words) < count:
        letters = random.integers(97, 123, random.integers(3, 11))
        words["".join(map(chr, letters))] = None
    return list(words)


def title_of(page: int) -> str:
    """The title of a generated page."""
    return f"Page_{page:07}_-LRB-generated-RRB-"


def _page(random: np.random.Generator, words: list[str], page: int) -> dict[str, str]:
    # FEVER's introductions have about 7 sentences (blank ones among them) of about 25 words.
    lengths = random.poisson(25, max(1, random.poisson(6)))
    picked = (len(words) * random.random(int(lengths.sum())) ** 3).astype(int)
    sentences: list[str] = []
    start = 0
    for length in lengths:
        sentences.append(" ".join(words[i] for i in picked[start : start + length]))
        start += length
    if len(sentences) > 3:
        sentences[3] = ""
    lines = [
        f"{n}\t{text}" + (f"\t{words[n]}\t{words[n + 1]}" if text else "")
        for n, text in enumerate(sentences)
    ]
    return {"id": title_of(page), "text": " ".join(sentences), "lines": "\n".join([*lines, ""])}
