"""What do the words mean? Tokens, sentences, word vectors, IDF."""

from dgn.text.idf import Idf
from dgn.text.sentences import SentenceSpan, split_sentences
from dgn.text.tokens import clean_brackets, has_words, split_words
from dgn.text.vectors import PooledVectors, TokenVectors, open_vectors

__all__ = [
    "Idf",
    "PooledVectors",
    "SentenceSpan",
    "TokenVectors",
    "clean_brackets",
    "has_words",
    "open_vectors",
    "split_sentences",
    "split_words",
]
