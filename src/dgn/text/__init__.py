"""What do words mean? Tokens, sentences, word vectors, inverse document frequencies."""

from dgn.text.idf import Idf, token_idf
from dgn.text.sentences import SentenceSpan, split_sentences
from dgn.text.tokens import (
    FUNCTION_WORDS,
    clean_brackets,
    has_words,
    split_tokens,
    split_words,
    title_text,
)
from dgn.text.vectors import (
    PooledVectors,
    SubwordVectors,
    TokenVectors,
    open_vectors,
    unit_rows,
)
from dgn.text.words import (
    StoredWords,
    WordReader,
    WordTokens,
    same_text_key,
    stem,
    stems_of,
    written_words,
)

__all__ = [
    "FUNCTION_WORDS",
    "Idf",
    "PooledVectors",
    "SentenceSpan",
    "StoredWords",
    "SubwordVectors",
    "TokenVectors",
    "WordReader",
    "WordTokens",
    "clean_brackets",
    "has_words",
    "open_vectors",
    "same_text_key",
    "split_sentences",
    "split_tokens",
    "split_words",
    "stem",
    "stems_of",
    "title_text",
    "token_idf",
    "unit_rows",
    "written_words",
]
