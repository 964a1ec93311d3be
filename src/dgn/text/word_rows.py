"""From texts to rows of a table of words, fast: what was split and looked up once is remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dgn.text.tokens import split_words

_MOST_REMEMBERED = 1_000_000


class WordRows:
    """Remembers, for every piece of text between two spaces, the rows of its words.

    No word spans a space, so splitting piece by piece gives the words of the whole; and pieces
    repeat so often that almost every one is a single look-up.

    row_of: the row of a word, or −1 where there is none.
    """

    def __init__(self, row_of: Callable[[str], int]) -> None:
        self._row_of = row_of
        self._remembered: dict[str, tuple[int, ...]] = {}

    def rows(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """For every text, the rows of its known words, in order."""
        remembered = self._remembered
        rows: list[Sequence[int]] = []
        for text in texts:
            pieces = text.split()
            try:
                rows.append([row for piece in pieces for row in remembered[piece]])
            except KeyError:
                self._remember(pieces)
                rows.append([row for piece in pieces for row in remembered[piece]])
        return rows

    def tokens(self, text: str) -> list[tuple[str, int]]:
        """The words of a text, each with its row, or −1."""
        return [(word, self._row_of(word)) for word in split_words(text)]

    def _remember(self, pieces: list[str]) -> None:
        if len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.clear()
        for piece in pieces:
            if piece not in self._remembered:
                found = [self._row_of(word) for word in split_words(piece)]
                self._remembered[piece] = tuple(row for row in found if row >= 0)
