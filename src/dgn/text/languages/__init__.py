"""Which language is a text in, and what are its words?

| module | what it holds |
| --- | --- |
| `language` | the words, stems and numbers of a language other than English |
| `function_words` | the words without content, and the words that ask, by language |
| `detection` | the language of a text, found in the text |

English is read by `dgn.text.words`; the functions here take any language.
"""

from __future__ import annotations

from dgn.text import words as english
from dgn.text.languages.detection import found_language, query_language
from dgn.text.languages.language import (
    ENGLISH,
    LANGUAGE_CODES,
    Language,
    checked_language,
    find_language,
    spelling_vectors,
)

__all__ = [
    "ENGLISH",
    "LANGUAGE_CODES",
    "Language",
    "checked_language",
    "find_language",
    "found_language",
    "query_language",
    "spelling_vectors",
    "stems_of",
    "written_words",
]


def written_words(text: str, language: str = ENGLISH) -> list[str]:
    """The words of a text as they are written, in order.

    Examples:
        >>> written_words("L'eau de l'étang, 20 000 litres", "fr")
        ['L', 'eau', 'de', 'l', 'étang', '20000', 'litres']
    """
    if language == ENGLISH:
        return english.written_words(text)
    own = find_language(language)
    return [word for piece in own.pieces(english.pieces_of(text)) for word in own.written(piece)]


def stems_of(text: str, language: str = ENGLISH) -> frozenset[str]:
    """The stems of all words of a text."""
    if language == ENGLISH:
        return english.stems_of(text)
    own = find_language(language)
    return frozenset(own.stem(own.read(word)) for word in written_words(text, language))
