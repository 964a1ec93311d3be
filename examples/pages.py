"""Shared by the examples: our sample pages as sentences, and a small BM25 search over them."""

from pathlib import Path
from typing import NamedTuple

from dgn.text import split_sentences

QUESTION = "Who designed the Corran Bridge, and when did the first train cross it?"
_FOLDER = Path(__file__).parents[1] / "samples" / "pages"


class Sentence(NamedTuple):
    """A sentence of a page."""

    text: str
    title: str


def sentences() -> list[Sentence]:
    """All sentences of the sample pages."""
    return [
        Sentence(span.text, page.stem.replace("_", " "))
        for page in sorted(_FOLDER.glob("*.txt"))
        for span in split_sentences(page.read_text(encoding="utf-8"))
    ]


class Bm25:
    """The sentences with the highest BM25 scores, titles included."""

    def __init__(self, corpus: list[Sentence]) -> None:
        import bm25s

        self._corpus, self._tokenize = corpus, bm25s.tokenize
        self._index = bm25s.BM25()
        texts = [f"{one.title} {one.text}" for one in corpus]
        self._index.index(self._tokenize(texts, show_progress=False), show_progress=False)

    def search(self, query: str, k: int) -> list[tuple[Sentence, float]]:
        """The k best sentences with their scores."""
        asked = self._tokenize([query], show_progress=False)
        found, scores = self._index.retrieve(asked, k=k, show_progress=False)
        pairs = zip(found[0].tolist(), scores[0].tolist(), strict=True)
        return [(self._corpus[index], score) for index, score in pairs]
