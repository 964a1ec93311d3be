"""Queries: every form of input becomes the same passages, and mistakes are named."""

from typing import Any

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE
from dgn.errors import InvalidInput

TEXT = "The cathedral stands on a hill. Its windows were made by Tamsett! It is cold."
MORE = dgn.Document(TEXT, "Cathedral")


def test_loose_passages_have_no_document_and_no_position() -> None:
    query = dgn.Query.of(CLAIM, PAGE, id="q")
    assert (query.text, query.id, query.texts) == (CLAIM, "q", PAGE)
    assert query.scores is None
    for passage in query.passages:
        assert (passage.document, passage.position, passage.start) == (None, None, None)
        assert (passage.title, passage.id, dict(passage.metadata)) == ("", None, {})


@pytest.mark.parametrize("kind", ["tuple", "generator", "array", "objects", "series", "dict keys"])
def test_passages_may_be_any_iterable_of_strings(kind: str) -> None:
    given: Any = {
        "tuple": lambda: tuple(PAGE),
        "generator": lambda: (text for text in PAGE),
        "array": lambda: np.array(PAGE),
        "objects": lambda: np.array(PAGE, dtype=object),
        "series": lambda: pytest.importorskip("pandas").Series(PAGE),
        "dict keys": lambda: dict.fromkeys(PAGE).keys(),
    }[kind]()
    query = dgn.Query.of(np.str_(CLAIM), given)
    assert query == dgn.Query.of(CLAIM, PAGE)
    assert {type(text) for text in (query.text, *query.texts)} == {str}


def test_titles_and_scores_may_be_arrays() -> None:
    plain = dgn.Query.of(CLAIM, PAGE, titles=["T"] * 5, scores=[0.0, 1.0, 2.0, 3.0, 4.0])
    arrays = dgn.Query.of(CLAIM, PAGE, titles=np.array(["T"] * 5), scores=np.arange(5))
    assert plain == arrays == dgn.Query.of(CLAIM, PAGE, titles="T", scores=iter(range(5)))
    assert plain.scores == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_sentences_of_documents_know_position_and_span() -> None:
    documents = [dgn.Document(" ".join(PAGE), "Oriel Tamsett"), MORE, {"sentences": ["A cow."]}]
    passages = dgn.Query.of(CLAIM, documents=documents).passages
    assert [passage.text for passage in passages[:5]] == PAGE
    assert [(p.document, p.position) for p in passages] == [
        *((0, n) for n in range(5)),
        *((1, n) for n in range(3)),
        (2, 0),
    ]
    for passage in passages[:8]:
        document = documents[passage.document]
        assert document.text[passage.start : passage.end] == passage.text
        assert passage.title == document.title
    assert passages[8] == dgn.Passage("A cow.", "", 2, 0)
    assert passages[8].start is None


def test_further_keys_of_dictionaries_are_metadata() -> None:
    document = {
        "text": TEXT,
        "title": "Cathedral",
        "id": "c-1",
        "url": "https://example.org",
        "metadata": {"year": 1901},
    }
    for passage in dgn.Query.of(CLAIM, documents=[document]).passages:
        assert passage.id == "c-1"
        assert passage.metadata == {"url": "https://example.org", "year": 1901}
    assert "url" in document, "the dictionary is not changed"


def test_documents_may_be_texts_dictionaries_and_documents() -> None:
    forms = [TEXT, {"text": TEXT}, dgn.Document(TEXT), {"text": TEXT, "title": None, "id": None}]
    queries = [dgn.Query.of(CLAIM, documents=[one]) for one in forms]
    assert all(query == queries[0] for query in queries)
    many = dgn.Query.of(CLAIM, documents=(one for one in forms))
    assert [passage.document for passage in many.passages] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


def test_blank_sentences_keep_their_place() -> None:
    query = dgn.Query.of(CLAIM, documents=[{"sentences": ["a", "", "b"]}])
    assert query.texts == ["a", "", "b"]
    assert [passage.position for passage in query.passages] == [0, 1, 2]


def test_queries_are_frozen() -> None:
    query = dgn.Query.of(CLAIM, PAGE)
    for name, one in (("text", query), ("title", query.passages[0]), ("title", MORE)):
        with pytest.raises(AttributeError):
            setattr(one, name, "other")


MISTAKES = [
    ({"query": " "}, "query", "query must be a text with a word in it; got ' '"),
    ({"query": "?!"}, "query", "a text with a word"),
    ({"query": 5}, "query", "query must be a string; got 5"),
    ({"query": "A \ud800 claim"}, "query", "half of a Unicode character"),
    ({"passages": None}, "passages", "passages and documents are both missing"),
    ({"documents": [MORE]}, "passages", "passages and documents are both given"),
    ({"passages": []}, "passages", "passages contains no passage"),
    ({"passages": "one string"}, "passages", "documents=[text] to split"),
    ({"passages": [3]}, "passages[0]", "a string, a Passage or a dictionary; got 3"),
    ({"passages": [*PAGE, None]}, "passages[5]", "got None"),
    (
        {"passages": ["half \udc00"]},
        "passages",
        "half of a Unicode character in text 0",
    ),
    ({"passages": {"a": 1}}, "passages", "an iterable of strings; got dict"),
    ({"passages": 5}, "passages", "an iterable of strings; got int"),
    ({"titles": 3}, "titles", "an iterable of strings"),
    ({"titles": ["T"]}, "titles", "titles has 1 entries for 5 passages; pass one title for each"),
    ({"titles": [1] * 5}, "titles", "got 1 at position 0"),
    ({"scores": "12345"}, "scores", "a list of numbers"),
    ({"scores": 3}, "scores", "a list of numbers; got 3"),
    ({"scores": [1.0]}, "scores", "scores has 1 entries for 5 passages; pass one score for each"),
    ({"scores": [0, 0, float("nan"), 0, 0]}, "scores", "got nan at position 2"),
    ({"scores": [0, float("inf"), 0, 0, 0]}, "scores", "got inf at position 1"),
    ({"scores": [0, 0, 0, 0, "1"]}, "scores", "got '1' at position 4"),
    ({"scores": [None] * 5}, "scores", "got None at position 0"),
    ({"scores": [10**400] * 5}, "scores", "at position 0"),
]
DOCUMENT_MISTAKES = [
    ([""], "documents", "documents contains no passage"),
    ([], "documents", "documents contains no passage"),
    ("text", "documents", "a list of documents; got a single str"),
    (MORE, "documents", "a list of documents; got a single Document"),
    ({"text": TEXT}, "documents", "a list of documents; got a single dict"),
    (5, "documents", "a list of documents; got a single int"),
    ([{"body": "x"}], "documents[0]", "neither text nor sentences"),
    ([TEXT, 5], "documents[1]", "a Document, a dictionary or a string; got 5"),
    ([{"text": 5}], "documents[0].text", "got 5"),
    ([{"text": TEXT, "title": 3}], "documents[0].title", "got 3"),
    ([{"sentences": "abc"}], "documents[0].sentences", "a list of strings"),
    ([{"sentences": ["a", 1]}], "documents[0].sentences", "got 1 at position 1"),
    ([{"sentences": 5}], "documents[0].sentences", "an iterable of strings; got int"),
    ([{"text": TEXT, "sentences": ["a"]}], "documents[0]", "both text and sentences"),
    ([{"text": TEXT, "id": 1.5}], "documents[0].id", "a string; got 1.5"),
    ([{"text": TEXT, "metadata": 3}], "documents[0].metadata", "a dictionary; got 3"),
]


@pytest.mark.parametrize(("change", "argument", "message"), MISTAKES)
def test_mistakes_are_named(change: dict[str, Any], argument: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        dgn.Query.of(**{"query": CLAIM, "passages": PAGE} | change)
    assert raised.value.argument == argument
    assert message in str(raised.value)


@pytest.mark.parametrize(("documents", "argument", "message"), DOCUMENT_MISTAKES)
def test_mistakes_in_documents_are_named(documents: Any, argument: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        dgn.Query.of(CLAIM, documents=documents)
    assert raised.value.argument == argument
    assert message in str(raised.value)


def test_titles_cannot_be_combined_with_documents() -> None:
    with pytest.raises(InvalidInput, match="each document has its own title") as raised:
        dgn.Query.of(CLAIM, documents=[MORE], titles="T")
    assert raised.value.argument == "titles"


def test_dictionary_of_scores_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a list of numbers"):
        dgn.Query.of(CLAIM, PAGE, scores=dict.fromkeys(range(5), 0.5))


def test_table_is_not_a_list_of_passages() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"a": ["x"], "b": ["y"]})
    with pytest.raises(InvalidInput, match="an iterable of strings; got DataFrame"):
        dgn.Query.of(CLAIM, frame)


def test_passages_in_all_their_forms_are_the_same() -> None:
    plain = dgn.Query.of(CLAIM, PAGE, titles="T", scores=[0.0, 1.0, 2.0, 3.0, 4.0])
    given = [
        dgn.Passage(text, "T", score=number) if number % 2 else {"text": text, "title": "T"}
        for number, text in enumerate(PAGE)
    ]
    assert dgn.Query.of(CLAIM, given, scores=range(5)).passages == plain.passages
    loose = dgn.Query.of(CLAIM, [{"text": "a", "score": 2}, "b", dgn.Passage("c", score=-1.0)])
    assert loose.scores == [2.0, -1.0, -1.0], "a passage without a score counts as the worst"
    assert dgn.Query.of(CLAIM, [{"text": "a", "id": 7, "metadata": {"x": 1}}]).passages[0].id == "7"


@pytest.mark.parametrize(
    ("passage", "message"),
    [
        ({"title": "T"}, r"passages\[1\] has no text; the keys are id, metadata, score, text"),
        ({"text": "a", "titel": "T"}, r"passages\[1\] has the unknown key 'titel'"),
        ({"text": 3}, r"passages\[1\]\.text must be strings"),
        ({"text": "a", "score": "high"}, r"passages\[1\]\.score must be finite numbers"),
        ({"text": "a", "metadata": 3}, r"passages\[1\]\.metadata must be a dictionary"),
        (dgn.Passage("a", id=3.5), r"passages\[1\]\.id must be a string"),
    ],
)
def test_mistakes_in_passages_are_named(passage: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        dgn.Query.of(CLAIM, ["fine", passage])


def test_documents_are_split_by_the_rules_of_their_language() -> None:
    text = "Am 3. Oktober wurde z. B. die Brücke eröffnet, und es war kalt. Dann kam das Eis."
    query = dgn.Query.of("Wann?", documents=[text, "It was on Oct. 3. Then came the ice."])
    texts = [passage.text for passage in query.passages if passage.document == 0]
    assert texts == [text[:63], text[64:]]
