"""An index gives what `select` gives, in every language."""

from pathlib import Path

import pytest

import dgn
from foreign_texts import PASSAGES
from models import shipped

DOCUMENTS = [
    {
        "id": code,
        "title": question if number % 2 else "",
        "sentences": [answer, other, "1911", answer.split()[0]],
    }
    for number, (code, (question, answer, other)) in enumerate(PASSAGES.items())
] + [{"id": "en", "title": "Bridge", "sentences": ["The bridge opened in 1911.", "A pier"]}]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> dgn.PassageIndex:
    folder: Path = tmp_path_factory.mktemp("index")
    shipped().index(DOCUMENTS).save(folder)
    return shipped().load_index(folder)


@pytest.mark.parametrize("code", [*PASSAGES, "en"])
@pytest.mark.parametrize("language", [None, "de", "en"])
def test_an_index_gives_what_select_gives(
    index: dgn.PassageIndex, code: str, language: str | None
) -> None:
    question = PASSAGES[code][0] if code in PASSAGES else "When did the bridge open?"
    for chosen in (None, [code], [code, "en", "zh"]):
        documents = (
            DOCUMENTS
            if chosen is None
            else [one for name in dict.fromkeys(chosen) for one in DOCUMENTS if one["id"] == name]
        )
        found = index.select(question, documents=chosen, k=4, language=language)
        # An index is read in the language of all its passages, unless another one is named.
        read_in = found.query.read_language
        assert language in (None, read_in)
        expected = shipped().select(question, documents=documents, k=4, language=read_in)
        assert found.texts == expected.texts
        assert found.gains == expected.gains


@pytest.mark.parametrize("code", PASSAGES)
def test_an_index_is_read_in_the_language_of_its_passages(code: str) -> None:
    question, answer, other = PASSAGES[code]
    for passages in ([answer, other], [other, answer]):
        found = shipped().index(passages=passages).select(question, k=2)
        expected = shipped().select(question, passages, k=2)
        assert (found.indices, found.gains) == (expected.indices, expected.gains)


def test_titles_of_german_documents_cover_words() -> None:
    texts = ["Sie wurde im Jahr 1911 gebaut und ist rot.", "Eis hat sie im Winter beschädigt."]
    documents = [
        {"id": "1", "title": "Corranbrücken", "sentences": texts},
        {"id": "2", "title": "Die Häuser", "sentences": ["Es wurde im Jahr 1911 gebaut."]},
    ]
    index = shipped().index(documents)
    for question in ("Wann wurde das Haus gebaut?", "Wann wurden die Corranbrücken gebaut?"):
        expected = shipped().select(question, documents=documents, k=3)
        found = index.select(question, k=3)
        assert (found.indices, found.gains) == (expected.indices, expected.gains)
    assert index.select("Wann wurde das Haus gebaut?", k=1).passages[0].id == "2"
