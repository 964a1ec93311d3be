"""What do words and passages say? Queries, words, vectors, encoders and explanations.

| module | what it holds |
| --- | --- |
| `query` | `Query`, `Passage` and `Document`: what is asked, and of which texts |
| `sentences` | the sentences of a text, with their positions |
| `words` | what is one word, and when two words are the same |
| `languages` | the same for languages other than English, and which language a text is in |
| `vocabulary` | what is known about words: vectors, rarity, stems |
| `vectors` | word and text vectors, wherever they come from |
| `encoder` | the contract: from a query and its passages to a set function over the passages |
| `facets` | the shipped encoder |
| `explanation` | why a passage was selected, or was not |
"""

from dgn.text.query import Document, Passage, Query
from dgn.text.sentences import SentenceSpan, split_sentences
from dgn.text.vectors import (
    PooledVectors,
    SubwordVectors,
    TokenVectors,
    WordLlamaVectors,
    token_idf,
)
from dgn.text.vocabulary import WordReader

__all__ = [
    "Document",
    "Passage",
    "PooledVectors",
    "Query",
    "SentenceSpan",
    "SubwordVectors",
    "TokenVectors",
    "WordLlamaVectors",
    "WordReader",
    "split_sentences",
    "token_idf",
]
