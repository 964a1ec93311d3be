"""The facets read by a transformer; needs `dgn[minilm]`.

MiniLM reads every text once for the vectors of its words, and every passage once more together with
the query for its relevance; the second reading uses weights that were trained for it. Where the
order of the passages is known, it also sees what stands directly before and after the passage,
which often says what a pronoun means.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.encoders.base import Encoder, Facet
from dgn.encoders.facets.asked import facets_of, with_asked
from dgn.encoders.facets.encoder import default_vectors
from dgn.encoders.facets.formula import encode
from dgn.encoders.facets.matching import Matcher, Matches, TextVectors, WordTable, places_of
from dgn.encoders.facets.weights import FacetSizes, FacetWeights, positive, start_weights
from dgn.encoders.minilm.family import map_names
from dgn.objectives import Items, SetFunction
from dgn.query import Query
from dgn.text import WordReader, title_text, token_idf
from dgn.text.words import normalized, word_spans

_LONGEST_TEXT, _LONGEST_QUERY, _LONGEST_TITLE, _LONGEST_PASSAGE = 254, 48, 16, 96
_TITLE_END = 1012
"""A full stop, as MiniLM's tokenizer writes it."""

_TEXTS_PER_BATCH = 64


def reading_weights() -> FacetWeights:
    """The weights of the facets for contextual vectors.

    Their cosines are higher than those of static vectors, so that less is a match. The numbers were
    chosen by hand, on the dev parts of the ten domains.
    """
    start = start_weights(FacetSizes(dimension=384, projection=0, hidden=0, relevance=1), seed=0)
    chosen = {
        "threshold": [0.4],
        "log_scale": [math.log(10.0)],
        "bonus": [positive(0.1), positive(0.2), positive(0.2)],
        "neighbours": [positive(0.02), positive(0.02)],
        "likeness": [positive(0.15), 0.2],
        "relevance_weight": [positive(0.6)],
    }
    return replace(start, **{name: np.array(w, np.float32) for name, w in chosen.items()})


@final
class MiniLMEncoder(Encoder):
    """Coverage of the query, word by word, as MiniLM reads it.

    Args:
        weights: The weights of the facets, without a network.
        reader: What was trained, by name: for each linear map of the transformer `NAME.down`,
            [rank, inputs], and `NAME.up`, [outputs, rank]; and the two layers that turn a pair into
            a logit.
        around: How many tokens of the passage before and of the passage after are read with a
            passage.
    """

    def __init__(
        self,
        weights: FacetWeights,
        reader: Mapping[str, NDArray[Any]],
        around: tuple[int, int] = (0, 0),
    ) -> None:
        from dgn.encoders.minilm.transformer import (
            CrossEncoder,
            MiniLM,
            WordPieces,
            load_minilm,
        )

        self.weights, self._reader, self._around = weights, dict(reader), around
        changes = {
            name: (reader[f"{name}.up"] @ reader[f"{name}.down"]).astype(np.float32)
            for name in map_names()
        }
        self._plain: MiniLM = load_minilm(0.0).eval()
        self._pairs = CrossEncoder(load_minilm(0.0, changes)).eval()
        self._pairs.load_layers({name: reader[name] for name in self._pairs.layer_names})
        self._pieces = WordPieces()
        self.matcher = Matcher(WordReader(default_vectors(), token_idf()), self._embed)

    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        return self.encode_with(queries, self._relevance(queries))

    def encode_with(
        self, queries: Sequence[Query], relevance: Sequence[NDArray[np.float32]]
    ) -> tuple[SetFunction, Items]:
        """The same with logits of the relevance that are known already."""
        matches, words = self.matcher.match(queries)
        read = zip(matches, relevance, strict=True)
        own = [replace(one, relevance=logits) for one, logits in read]
        # The vectors of the reader's words are not used: only facts about words are.
        facts = WordTable.of(words).facts
        table = WordTable(np.zeros((len(facts), self.weights.sizes.dimension), np.float32), facts)
        return with_asked(queries, *encode(self.weights, Matches.of(own, table)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(tokens) for tokens in self._pieces(texts, 10**9)]

    def facets(self, query: str) -> tuple[Facet, ...]:
        """The words of the query, and what it asks for."""
        return facets_of(query)

    @property
    def parameters(self) -> int:
        return sum(array.size for array in self._reader.values())

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        rank = len(next(a for n, a in self._reader.items() if n.endswith(".down")))
        weights = {f"facets.{name}": np.asarray(w) for name, w in vars(self.weights).items()}
        before, after = self._around
        description = {"family": "minilm", "rank": rank, "before": before, "after": after}
        return description, {**weights, **self._reader}

    def _embed(self, texts: Sequence[str]) -> TextVectors:
        """The vectors of all words of these texts, each different text read once."""
        import torch
        from torch.nn.functional import normalize

        from dgn.encoders.minilm.transformer import pair_batch

        cleaned = [normalized(text) for text in texts]
        different = list(dict.fromkeys(cleaned))
        located = [self._pieces.located(text, _LONGEST_TEXT) for text in different]
        spans = [word_spans(text) for text in different]
        width = self._plain.width
        words = [np.zeros((len(own), width), np.float32) for own in spans]
        wholes = np.zeros((len(different), width), np.float32)
        by_length = sorted(range(len(different)), key=lambda place: len(located[place]))
        for start in range(0, len(different), _TEXTS_PER_BATCH):
            places = by_length[start : start + _TEXTS_PER_BATCH]
            batch = pair_batch([([row for row, _ in located[place]],) for place in places])
            with torch.inference_mode():
                hidden, mask = self._plain(*batch), batch[2][..., None]
                mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
                wholes[places] = normalize(mean, dim=1).numpy()
                vectors = hidden.numpy()
            for row, place in enumerate(places):
                if not spans[place]:
                    wholes[place] = 0
                    continue
                ends = np.array([end for _, end in spans[place]])
                begins = np.array([begin for _, begin in located[place]])
                word = np.searchsorted(ends, begins, side="right")
                inside = word < len(ends)
                inside[inside] &= begins[inside] >= np.array(spans[place])[word[inside], 0]
                np.add.at(words[place], word[inside], vectors[row, 1 : len(begins) + 1][inside])
                lengths = np.linalg.norm(words[place], axis=1, keepdims=True)
                words[place] /= np.maximum(lengths, 1e-6)
        number = {text: place for place, text in enumerate(different)}
        order = [number[text] for text in cleaned]
        return TextVectors(np.concatenate([words[place] for place in order]), wholes[order])

    def _relevance(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        """The logits of the passages of each query."""
        import torch

        from dgn.encoders.minilm.transformer import pair_batch

        pairs: list[tuple[list[int], ...]] = []
        for query in queries:
            asked = self._pieces([normalized(query.text)], _LONGEST_QUERY)[0]
            texts = self._pieces([normalized(text) for text in query.texts], _LONGEST_TEXT)
            names = {passage.title for passage in query.passages if passage.title}
            titles = {name: self._title(name) for name in names}
            around = self._texts_around(texts, places_of(query.passages)[2])
            for passage, text, others in zip(query.passages, texts, around, strict=True):
                read = titles.get(passage.title, []) + text[:_LONGEST_PASSAGE]
                pairs.append((asked, read, *others))
        by_length = sorted(range(len(pairs)), key=lambda place: sum(map(len, pairs[place])))
        logits = np.zeros(len(pairs), np.float32)
        for start in range(0, len(pairs), _TEXTS_PER_BATCH):
            places = by_length[start : start + _TEXTS_PER_BATCH]
            batch = pair_batch([pairs[place] for place in places])
            with torch.inference_mode():
                logits[places] = self._pairs(*batch).numpy()
        ends = itertools.accumulate(len(query.passages) for query in queries)
        return np.split(logits, list(ends)[:-1])

    def _texts_around(
        self, texts: Sequence[list[int]], follows: NDArray[np.bool_]
    ) -> Iterator[list[list[int]]]:
        """For each passage, the end of the passage before it and the start of the one after it."""
        before, after = self._around
        for place in range(len(texts)):
            found: list[list[int]] = []
            if before and follows[place]:
                found.append(texts[place - 1][-before:])
            if after and place + 1 < len(texts) and follows[place + 1]:
                found.append(texts[place + 1][:after])
            yield found

    def _title(self, title: str) -> list[int]:
        return [*self._pieces([normalized(title_text(title))], _LONGEST_TITLE)[0], _TITLE_END]
