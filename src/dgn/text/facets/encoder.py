"""The facets at run time: NumPy alone, from texts to a set function over the passages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core import native
from dgn.core.functions import FeatureCoverage, Items, SetFunction
from dgn.core.native.facets import FacetKernel
from dgn.errors import InvalidInput
from dgn.text.encoder import (
    DEFAULT_BREADTH,
    Encoder,
    Facet,
    ReadArrays,
    checked_breadth,
    require_keys,
    require_sizes,
)
from dgn.text.facets.formula import (
    LONGEST_QUERY,
    WHOLE_SCALE,
    FacetSizes,
    FacetWeights,
    encode,
    shapes_of,
    spelling_weights,
    untrained_weights,
)
from dgn.text.facets.index import IndexedWords
from dgn.text.facets.matching import (
    FUNCTION_WORD_SHARE,
    IDF_MIDDLE,
    IDF_SPREAD,
    SAME_STEM,
    SOME_NUMBER,
    TITLE_FROM,
    Matches,
    QueryWords,
    match_query,
)
from dgn.text.facets.reading import read_queries
from dgn.text.languages import ENGLISH, find_language, written_words
from dgn.text.query import Passage, Query
from dgn.text.similarity import Contents, contents_of
from dgn.text.vectors import SubwordVectors, WordLlamaVectors, token_idf
from dgn.text.vocabulary import WordReader, WordTable
from dgn.text.words import FUNCTION_WORDS
from dgn.text.words import stem as english_stem

LANGUAGE_CHOICES = ("english", "any")


@final
class FacetEncoder(Encoder):
    """Coverage of the query, word by word: the default encoder.

    Args:
        weights: What was learned; by default, the untrained weights.
        vectors: The word vectors; by default, wordllama's.
        idf: [tokens], the IDF of every token of the vectors; by default, the one that ships with
            dgn.
        languages: "english" if the weights are for English alone, and other languages use fixed
            ones; "any" if they were learned from other languages, too.
        breadth: What a selector takes if its caller says nothing.
    """

    family = "facets"
    description = (
        "The features are the words of the query, compared with the words of each passage by "
        "spelling, stem and static word vectors (wordllama), how like the query a passage is as a "
        "whole, and how relevant a small network finds it. Words of a title count as covered by "
        "its passages."
    )
    limits = (
        "It compares words, not meanings: a fact in entirely different words is missed, negation "
        "is not understood, and it cannot tell whether a passage supports or refutes a claim. Its "
        "vectors are English; other languages are compared by stems and spelling."
    )

    def __init__(
        self,
        weights: FacetWeights | None = None,
        vectors: SubwordVectors | None = None,
        idf: NDArray[np.float32] | None = None,
        *,
        languages: str = "english",
        breadth: float = DEFAULT_BREADTH,
    ) -> None:
        self.breadth = checked_breadth(breadth)
        self.vectors = default_vectors() if vectors is None else vectors
        self.idf = token_idf() if idf is None else idf
        untrained = untrained_weights(self.vectors.dimension)
        self.weights = weights or untrained
        self._is_trained = weights is not None and not weights.equals(untrained)
        self.reader = WordReader(self.vectors, self.idf)
        if languages not in LANGUAGE_CHOICES:
            allowed = " or ".join(LANGUAGE_CHOICES)
            raise InvalidInput("languages", found=f"{languages!r:.40}", allowed=allowed)
        self._languages = languages
        own, fixed = Formula(self.weights), Formula(spelling_weights(self.vectors.dimension))
        self.formulas = Formulas(own, own if languages == "any" else fixed)

    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        return self.formulas.encode(*read_queries(self.reader, queries))

    def prepare(self, passages: Sequence[Passage]) -> IndexedWords | None:
        if not native.is_available():
            return None
        return IndexedWords.of(self.vectors, self.idf, self.formulas, passages)

    def load_prepared(self, arrays: Mapping[str, NDArray[Any]]) -> IndexedWords | None:
        if not native.is_available():
            return None
        return IndexedWords.load(self.vectors, self.idf, self.formulas, arrays)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(rows) for rows in self.vectors.token_rows(texts)]

    def contents(self, query: Query, indices: NDArray[np.int64]) -> Contents:
        return contents_of(self.reader, query, indices)

    def nearest(self, query: Query, index: int) -> tuple[tuple[str, float], ...]:
        if query.read_language != ENGLISH:
            return ()
        text = query.passages[index].text
        (asked, said), table = self.reader.read([query.text, text])
        return nearest_words(table.vectors[asked], table.vectors[said], text)

    @staticmethod
    def facets(query: Query) -> tuple[Facet, ...]:
        """The words of the query."""
        return word_facets(query)

    @property
    def uses_blas(self) -> bool:
        return not native.is_available()

    @property
    def parameters(self) -> int:
        return sum(w.size for w in vars(self.weights).values()) if self._is_trained else 0

    @property
    def fingerprint(self) -> str:
        return f"{type(self).__name__} {self.vectors.fingerprint} languages 1"

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        # The IDF that ships with dgn is not stored again.
        is_shipped = np.array_equal(self.idf, token_idf())
        description: dict[str, Any] = {
            "family": self.family,
            "vectors": self.vectors.fingerprint,
            "idf": "shipped" if is_shipped else "own",
            "sizes": asdict(self.weights.sizes),
        }
        arrays = {name: np.asarray(w) for name, w in vars(self.weights).items()}
        if self._languages != "english":
            description["languages"] = self._languages
        if self.breadth != DEFAULT_BREADTH:
            description["breadth"] = self.breadth
        return description, arrays if is_shipped else {**arrays, "idf": self.idf}

    @classmethod
    def load(cls, description: Mapping[str, Any], arrays: ReadArrays) -> FacetEncoder:
        extended: dict[str, Any] = {"languages": "english", "breadth": DEFAULT_BREADTH}
        extended |= description
        require_keys(extended, vectors=str, idf=str, sizes=dict, languages=str, breadth=float)
        wanted = facet_sizes(description["sizes"])
        installed = default_vectors()
        if description["vectors"] != installed.fingerprint:
            raise InvalidInput(
                "vectors",
                message=f"The model was trained on the vectors {description['vectors']}, and "
                f"{installed.fingerprint} are installed; install the version of wordllama that it "
                "was trained with.",
            )
        if wanted.dimension != installed.dimension:
            raise InvalidInput(
                "sizes",
                message=f"The model has the dimension {wanted.dimension}, and the vectors have "
                f"{installed.dimension}.",
            )
        extra = {} if description["idf"] == "shipped" else {"idf": (len(installed.table),)}
        weights = arrays({**shapes_of(wanted), **extra})
        idf = weights.pop("idf").astype(np.float32) if extra else None
        languages, breadth = extended["languages"], extended["breadth"]
        own = FacetWeights(**weights)
        return cls(own, installed, idf, languages=languages, breadth=breadth)


def word_facets(query: Query) -> tuple[Facet, ...]:
    """The words of a query, each with the feature that stands for it."""
    code = query.read_language
    found: list[Facet] = []
    for position, word in enumerate(written_words(query.text, code)):
        read, is_function = word.casefold(), False
        if code == ENGLISH:
            is_function, stem = read in FUNCTION_WORDS, english_stem(read)
        else:
            language = find_language(code)
            read = language.read(word)
            is_function, stem = language.facts(read).is_function, language.stem(read)
        found.append(Facet(word, (position,), stem, is_content=not is_function))
    return tuple(found)


def nearest_words(
    asked: NDArray[np.float32], said: NDArray[np.float32], text: str
) -> tuple[tuple[str, float], ...]:
    """For each word of a query, the nearest content word of a text, and its cosine.

    Args:
        asked: [words of the query, dimension], of length 1.
        said: [words of the text, dimension].
        text: The text.
    """
    words = written_words(text)
    content = [n for n, word in enumerate(words) if word.casefold() not in FUNCTION_WORDS]
    if not content or len(words) != len(said):
        return ()
    cosines = np.clip(asked @ said[content].T, 0, 1)
    best: list[int] = cosines.argmax(axis=1).tolist()
    return tuple(
        (words[content[place]], float(cosines[row, place])) for row, place in enumerate(best)
    )


def facet_sizes(sizes: Any) -> FacetSizes:
    """The sizes in the description of a model, or InvalidInput."""
    names = {one.name for one in fields(FacetSizes)}
    if set(sizes) != names:
        allowed = f"a dictionary with {', '.join(sorted(names))}"
        raise InvalidInput("sizes", found=f"{sizes!r:.60}", allowed=allowed)
    require_sizes(list(sizes.values()))
    return FacetSizes(**sizes)


def default_vectors() -> SubwordVectors:
    """The vectors that the facets are made for."""
    return WordLlamaVectors()


@final
class Formula:
    """The formula with its weights; from words to a set function and items.

    Args:
        weights: What was learned, or chosen.
    """

    def __init__(self, weights: FacetWeights) -> None:
        self.weights = weights

    def compute(
        self, words: Sequence[QueryWords], table: WordTable
    ) -> tuple[FeatureCoverage, Items]:
        """The set function of each query, and its passages as items."""
        if native.is_available():
            features, weights, target, mask = self.kernel.compute(
                (table.vectors, table.facts, table.stem), words
            )
            items = Items(features) if len(words) == 1 else Items(features, mask)
            return FeatureCoverage(weights, target=target), items
        matches = Matches.of([match_query(one, table) for one in words], table)
        return encode(self.weights, matches)

    @cached_property
    def kernel(self) -> FacetKernel:
        """The compiled form."""
        w = {name: np.asarray(weight) for name, weight in vars(self.weights).items()}

        def positive(name: str) -> tuple[float, ...]:
            return tuple(np.logaddexp(w[name], 0).tolist())

        arrays = ("word_weight", "projection", "hidden", "hidden_bias", "output")
        has_relevance = len(w["relevance_weight"]) > 0
        numbers = {
            "threshold": w["threshold"].item(),
            "scale": math.exp(w["log_scale"].item()),
            "title": positive("title")[0],
            "likeness": positive("likeness")[0],
            "likeness_from": w["likeness"][1].item(),
            "relevance": positive("relevance_weight")[0] if has_relevance else -1.0,
            "output_bias": w["output_bias"].item(),
            "middle_idf": IDF_MIDDLE,
            "spread_idf": IDF_SPREAD,
            "same_stem": SAME_STEM,
            "some_number": SOME_NUMBER,
            "title_from": TITLE_FROM,
            "function_share": FUNCTION_WORD_SHARE,
            "whole_scale": WHOLE_SCALE,
            "longest_query": LONGEST_QUERY,
        }
        several = {name: positive(name) for name in ("bonus", "neighbours")}
        return FacetKernel({name: w[name] for name in arrays}, numbers, several)


@final
@dataclass(frozen=True, eq=False)
class Formulas:
    """The formula of English, and that of all other languages.

    Attributes:
        english: For queries in English.
        others: For the other queries.
    """

    english: Formula
    others: Formula

    def encode(
        self, words: Sequence[QueryWords], table: WordTable, languages: Sequence[str]
    ) -> tuple[FeatureCoverage, Items]:
        """The set function of each query, and its passages as items.

        Args:
            words: The words of each query.
            table: What is known about the words.
            languages: The language of each query.
        """
        english = [row for row, code in enumerate(languages) if code == ENGLISH]
        others = [row for row, code in enumerate(languages) if code != ENGLISH]
        if not others or not english:
            formula = self.others if others else self.english
            return formula.compute(words, table)
        return joined(
            [
                (rows, *formula.compute([words[row] for row in rows], table))
                for rows, formula in ((english, self.english), (others, self.others))
            ]
        )


def joined(
    parts: Sequence[tuple[Sequence[int], FeatureCoverage, Items]],
) -> tuple[FeatureCoverage, Items]:
    """Several batches as one, given the row of each of their queries; zeros fill up the rows."""
    count = sum(len(rows) for rows, _, _ in parts)
    size = max(items.size for _, _, items in parts)
    width = max(objective.weights.shape[-1] for _, objective, _ in parts)

    def filled(shape: tuple[int, ...], arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        whole = np.zeros((count, *shape), arrays[0].dtype)
        for (rows, _, _), own in zip(parts, arrays, strict=True):
            whole[np.ix_(rows, *map(range, own.shape[1:]))] = own
        return whole

    weights, target = (
        filled((width,), [getattr(objective, name) for _, objective, _ in parts])
        for name in ("weights", "target")
    )
    features = filled((size, width), [items.features for _, _, items in parts])
    mask = filled((size,), [np.asarray(items.mask) for _, _, items in parts])
    return FeatureCoverage(weights, target=target), Items(features, mask)
