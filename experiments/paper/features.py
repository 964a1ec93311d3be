"""The features of the paper: mean word vectors of claims and sentences, and X = claim ⊙ sentence.

There are two kinds. PAPER is what the numbers of the paper are nearest to: the mean over all
tokens, punctuation too, as it is. UNIT is what works better: words alone, and vectors of length 1.
"""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.errors import BrokenInput
from dgn.files import open_atomically
from dgn.learn import Batch, Table
from dgn.text import WordLlamaVectors
from experiments.paper.data import Example

PAPER, UNIT = "paper", "unit"
_WORD = r"\w+(?:['’.\-]\w+)*"
_TOKENS = {PAPER: re.compile(rf"{_WORD}|[^\w\s]"), UNIT: re.compile(_WORD)}
_BRACKETS = dict(zip(("-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-"), "()[]{}", strict=True))

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""The vectors of some texts, [texts, dimension]; zeros for a text without a known word."""


class ClaimTable(Table):
    """The vectors of claims and sentences; X is formed where it is needed and never stored.

    Args:
        claims: [claims, dimension], float16.
        sentences: [sentences, dimension], float16; every page once.
        offsets: [claims + 1]; the candidates of claim i go from offsets[i] to offsets[i + 1].
        candidates: Rows of `sentences`.
        gold: For each candidate, whether it is gold.
        device: Where batches are formed.
    """

    def __init__(
        self,
        claims: NDArray[Any],
        sentences: NDArray[Any],
        offsets: NDArray[np.int64],
        candidates: NDArray[np.int64],
        gold: NDArray[np.bool_],
        device: str = "cpu",
    ) -> None:
        super().__init__(np.diff(offsets))
        self.claims, self.sentences, self.offsets = claims, sentences, offsets
        self.candidates, self.gold, self._device = candidates, gold, device
        self._tensors = [
            torch.from_numpy(array).to(device) for array in (claims, sentences, candidates, gold)
        ]

    def arrays(self) -> dict[str, Any]:
        """The arrays that it is made of, by name."""
        names = ("claims", "sentences", "offsets", "candidates", "gold")
        return {name: getattr(self, name) for name in names}

    def changed(self, **changes: Any) -> ClaimTable:
        """The same table with other arrays, or on another device."""
        return ClaimTable(**{**self.arrays(), **changes})

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The batch of these claims: X = claim ⊙ sentence."""
        claims, sentences, candidates, gold = self._tensors
        lengths = self.lengths[rows]
        position = np.arange(int(lengths.max()))
        index = np.where(position < lengths[:, None], self.offsets[rows][:, None] + position, 0)
        where, mask = (
            torch.from_numpy(array).to(self._device)
            for array in (index, position < lengths[:, None])
        )
        of_claims = claims[torch.from_numpy(rows).to(self._device)].to(torch.float32)
        x = of_claims[:, None, :] * sentences[candidates[where]]
        return Batch(x, gold[where] & mask, mask)

    @property
    def wanted(self) -> NDArray[np.bool_]:
        """[claims, candidates], the gold; False for padding."""
        gold = np.zeros((len(self), int(self.lengths.max())), np.bool_)
        gold[np.arange(gold.shape[1]) < self.lengths[:, None]] = self.gold
        return gold

    def rows(self, rows: NDArray[np.int64]) -> ClaimTable:
        """Some of the claims, with all their candidates."""
        return self.with_candidates([self.span(row) for row in rows], claims=self.claims[rows])

    def span(self, row: int | np.int64) -> NDArray[np.int64]:
        """The candidates of a claim, as numbers of all candidates."""
        return np.arange(int(self.offsets[row]), int(self.offsets[row + 1]))

    def with_candidates(self, parts: Sequence[NDArray[Any]], **changes: NDArray[Any]) -> ClaimTable:
        """A claim for each part, which has the numbers of its candidates among all of these."""
        index = np.concatenate(parts)
        return self.changed(
            offsets=np.cumsum([0, *map(len, parts)]),
            candidates=self.candidates[index],
            gold=self.gold[index],
            **changes,
        )

    def unit(self, row: int) -> NDArray[np.float32]:
        """The vectors of the candidates of a claim, each of length 1."""
        return unit_rows(self.sentences[self.candidates[self.span(row)]].astype(np.float32))

    def save(self, path: Path) -> None:
        """Write the table into one file."""
        with open_atomically(path) as stream:
            np.savez(stream, **self.arrays())

    @classmethod
    def load(cls, path: Path) -> ClaimTable:
        """Read what `save` wrote."""
        with np.load(path) as arrays:
            return cls(**{name: arrays[name] for name in arrays.files})


def make_table(examples: Sequence[Example], embed: Embed, *, unit: bool) -> ClaimTable:
    """Embed every claim and every page once."""
    first: dict[object, int] = {}
    texts: list[str] = []
    candidates: list[int] = []
    for example in examples:
        for page in example.pages:
            if page not in first:
                first[page] = len(texts)
                texts += page[1]
            candidates += range(first[page], first[page] + len(page[1]))

    def vectors(of: Sequence[str]) -> NDArray[np.float16]:
        embedded = embed(of)
        return (unit_rows(embedded) if unit else embedded).astype(np.float16)

    return ClaimTable(
        vectors([example.text for example in examples]),
        vectors(texts),
        np.cumsum([0, *(len(example.gold) for example in examples)]),
        np.array(candidates, np.int64),
        np.array([gold for example in examples for gold in example.gold], np.bool_),
    )


def embedder(source: str, kind: str, texts: Iterable[str]) -> Embed:
    """What embeds these texts, with the tokens of a kind of features.

    Args:
        source: A file of word vectors (.vec, .vec.gz, or .zip with one .vec), or
            "wordllama", whose vectors come with dgn.
        kind: PAPER or UNIT.
        texts: All texts that will be embedded: of a file, only their words are kept.
    """
    if source == "wordllama":
        pooled = WordLlamaVectors().pooled
        return lambda some: np.asarray(pooled(some), np.float32)
    needed = {form for text in texts for word in _split(text, kind) for form in _forms(word)}
    words, vectors = _read_vectors(Path(source), needed)

    def embed(some: Sequence[str]) -> NDArray[np.float32]:
        means = np.zeros((len(some), vectors.shape[1]), np.float32)
        for row, text in enumerate(some):
            tokens = [_row_of(word, words) for word in _split(text, kind)]
            if rows := [token for token in tokens if token is not None]:
                means[row] = vectors[rows].mean(axis=0)
        return means

    return embed


def unit_rows(matrix: NDArray[Any]) -> NDArray[Any]:
    """Each row divided by its length; rows of zeros stay zeros."""
    lengths = np.linalg.norm(matrix, axis=-1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1)


def _split(text: str, kind: str) -> list[str]:
    for spelled, bracket in _BRACKETS.items():
        text = text.replace(spelled, bracket)
    return _TOKENS[kind].findall(text)


def _forms(word: str) -> tuple[str, ...]:
    """A missing word is looked up in lower case, and dropped if that fails, too."""
    return (word, word.lower())


def _row_of(word: str, rows: dict[str, int]) -> int | None:
    return next((rows[form] for form in _forms(word) if form in rows), None)


def _read_vectors(path: Path, needed: set[str]) -> tuple[dict[str, int], NDArray[np.float32]]:
    """The vectors of the words that are needed; the first of two equal words counts."""
    words: dict[str, int] = {}
    vectors: list[NDArray[np.float32]] = []
    with _opened(path) as stream:
        header = stream.readline().split()
        if len(header) != 2 or not all(field.isdigit() for field in header):
            raise BrokenInput(path, 1, message="expected the number of words and the dimension.")
        for number, line in enumerate(stream, start=2):
            word, _, numbers = line.rstrip().partition(b" ")
            if (text := word.decode(errors="replace")) in needed and text not in words:
                try:
                    vector = np.array(numbers.split(), np.float32)
                except ValueError:
                    vector = np.empty(0, np.float32)
                if len(vector) != int(header[1]) or not np.isfinite(vector).all():
                    raise BrokenInput(path, number, message="expected a word and its vector.")
                words[text] = len(vectors)
                vectors.append(vector)
    if not vectors:
        raise BrokenInput(path, None, message="no word of the data has a vector.")
    return words, np.stack(vectors)


@contextmanager
def _opened(path: Path) -> Generator[IO[bytes]]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".vec")]
            with archive.open(name) as member:
                yield io.BufferedReader(cast("io.RawIOBase", member))
    else:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            yield cast("IO[bytes]", stream)


# Claims with more or fewer candidates. The claims of the paper have all pages of their evidence,
# and 16.5% of them need more than one; ERASER's have one.

ONE_PAGE, JOINED = "1 page", "2 claims joined"
PAGES = (2, 3, 4, 6)


def harder_sets(table: ClaimTable) -> dict[str, ClaimTable]:
    """The claims as they are, with more pages, and joined, by name."""
    more = {f"{pages} pages": with_pages(table, pages) for pages in PAGES}
    return {ONE_PAGE: table, **more, JOINED: joined(table)}


def thinned(table: ClaimTable, seed: int = 0) -> ClaimTable:
    """Every claim with its gold, and at most as many other sentences, drawn at random."""
    random = np.random.default_rng(seed)
    parts: list[NDArray[np.int64]] = []
    for start, end in pairwise(table.offsets):
        gold = table.gold[start:end]
        others = np.flatnonzero(~gold)
        few = random.choice(others, min(len(others), max(1, int(gold.sum()))), replace=False)
        parts.append(start + np.sort(np.concatenate([np.flatnonzero(gold), few])))
    return table.with_candidates(parts)


def with_pages(table: ClaimTable, pages: int, seed: int = 0) -> ClaimTable:
    """Every claim with the sentences of `pages` − 1 claims about other pages, none of them gold."""
    random = np.random.default_rng(seed)
    groups = [[row, *_others(table, row, pages - 1, random)] for row in range(len(table))]
    return _combined(table, groups, only_first_is_gold=True)


def joined(table: ClaimTable, seed: int = 0) -> ClaimTable:
    """Every claim joined with one about another page: the candidates and the gold of both.

    The vector of the joined claim is the mean of both.
    """
    random = np.random.default_rng(seed)
    groups = [[row, *_others(table, row, 1, random)] for row in range(len(table))]
    vectors = table.claims.astype(np.float32)
    mean = (vectors + vectors[[group[-1] for group in groups]]) / 2
    lengths = np.linalg.norm(vectors, axis=1)
    if np.allclose(lengths[lengths > 0], 1, atol=1e-2):  # unit vectors stay unit vectors
        mean = unit_rows(mean)
    both = _combined(table, groups, only_first_is_gold=False)
    return both.changed(claims=mean.astype(np.float16))


def others_per_gold(table: ClaimTable) -> float:
    """The number of sentences that are not gold, for each one that is."""
    return float((~table.gold).sum() / max(1, table.gold.sum()))


def _others(table: ClaimTable, row: int, count: int, random: np.random.Generator) -> list[int]:
    """Other claims, each about a page of its own; a page is known by its first sentence."""
    starts = table.candidates[table.offsets[:-1]]
    used, rows = {int(starts[row])}, list[int]()
    for other in random.permutation(len(table)).tolist():
        if len(rows) == count:
            break
        if int(starts[other]) not in used:
            used.add(int(starts[other]))
            rows.append(other)
    return rows


def _combined(
    table: ClaimTable, groups: Sequence[Sequence[int]], *, only_first_is_gold: bool
) -> ClaimTable:
    parts = [np.concatenate([table.span(row) for row in rows]) for rows in groups]
    combined = table.with_candidates(parts)
    if only_first_is_gold:
        first = np.repeat(combined.offsets[:-1] + table.lengths, combined.lengths)
        gold = combined.gold & (np.arange(len(first)) < first)
        combined = combined.changed(gold=gold)
    return combined
