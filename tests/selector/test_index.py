"""An index of passages: the same selections as without it, from memory and from a folder."""

import os
import pickle
from pathlib import Path

import pytest

from dgn import BrokenInput, InvalidInput, Selector
from dgn.selector import PassageIndex

PAGES = [
    {
        "id": "corran",
        "title": "Corran Bridge",
        "text": "It was designed by Clara Voss. The bridge "
        "is 412 metres long. The first train crossed it in 1911.",
    },
    {
        "id": "voss",
        "title": "Clara Voss",
        "sentences": [
            "Clara Voss was an engineer.",
            "She designed the Corran Bridge.",
            "She was born in 1870.",
        ],
    },
    {"id": "empty", "title": "Nothing", "sentences": ["", "She designed the Corran Bridge!"]},
]
QUERIES = ["Clara Voss designed the bridge that a train crossed in 1911.", "Who was born in 1870?"]


@pytest.fixture(scope="module")
def selector() -> Selector:
    return Selector.from_pretrained()


@pytest.fixture(scope="module")
def index(selector: Selector) -> PassageIndex:
    return selector.index(PAGES)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("limits", [{"k": 3}, {"max_tokens": 15}, {"stop_at": 0.5}])
@pytest.mark.parametrize("pages", [None, [1], [2, 0]])
def test_the_same_as_without_an_index(
    selector: Selector, index: PassageIndex, query: str, limits: dict, pages: list | None
) -> None:
    wanted = selector.select(
        query, documents=PAGES if pages is None else [PAGES[n] for n in pages], **limits
    )
    found = index.select(query, documents=pages, **limits)
    assert found.texts == wanted.texts
    assert found.gains == wanted.gains
    assert found.certificate == wanted.certificate
    assert found.relevance == wanted.relevance
    assert str(found.explain()) == str(wanted.explain())


def test_documents_by_their_ids(index: PassageIndex) -> None:
    assert len(index) == 8
    assert index.select(QUERIES[0], documents=["voss"], k=9) == index.select(
        QUERIES[0], documents=[1], k=9
    )
    with pytest.raises(InvalidInput, match="'nowhere'"):
        index.select(QUERIES[0], documents=["nowhere"])
    with pytest.raises(InvalidInput, match="at least one document"):
        index.select(QUERIES[0], documents=[])
    with pytest.raises(InvalidInput, match="a list of ids"):
        index.select(QUERIES[0], documents="voss")
    with pytest.raises(InvalidInput, match="query"):
        index.select("...")


def test_loose_passages(selector: Selector) -> None:
    texts = [sentence for page in PAGES for sentence in page.get("sentences", [])]
    index = selector.index(passages=texts, titles="Clara Voss")
    found = index.select(QUERIES[1], k=2)
    assert found.texts == selector.select(QUERIES[1], texts, titles="Clara Voss", k=2).texts


def test_saved_and_loaded(selector: Selector, index: PassageIndex, tmp_path: Path) -> None:
    index.save(tmp_path)
    again = selector.load_index(tmp_path)
    assert again.passages == index.passages
    for query in (*QUERIES, "Neverseen words like zyxwv and qwertz"):
        assert again.select(query, k=4) == index.select(query, k=4)
    # The files stay as they were, although new words were met.
    assert selector.load_index(tmp_path).select(QUERIES[0]) == index.select(QUERIES[0])
    small = pickle.dumps(again.select(QUERIES[0], documents=["voss"]))
    assert len(small) < 20_000, "a result does not carry the index"


def test_many_new_words_are_forgotten_again(
    selector: Selector, index: PassageIndex, tmp_path: Path
) -> None:
    index.save(tmp_path)
    again = selector.load_index(tmp_path)
    wanted = again.select(QUERIES[0], k=4)
    for number in range(3):
        again.select(" ".join(f"w{number}x{word}" for word in range(2000)), k=1)
        assert again.select(QUERIES[0], k=4) == wanted


def test_without_kernels_the_texts_are_read_again(
    selector: Selector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("dgn.core.native.is_available", lambda: False)
    plain = Selector.from_pretrained().index(PAGES)
    assert (
        plain.select(QUERIES[0], k=3).indices
        == selector.index(PAGES).select(QUERIES[0], k=3).indices
    )
    plain.save(tmp_path)
    loaded, wanted = (
        selector.load_index(tmp_path).select(QUERIES[0], k=3),
        plain.select(QUERIES[0], k=3),
    )
    assert loaded.indices == wanted.indices
    assert loaded.gains == pytest.approx(wanted.gains, rel=1e-5)


def test_integer_ids_are_ids(selector: Selector) -> None:
    pages = [{"id": n, "text": f"The {name} is here."} for n, name in ((1, "bridge"), (0, "lake"))]
    index = selector.index(pages)
    assert index.select("bridge", documents=[1]).texts == ("The bridge is here.",)
    assert index.select("bridge", documents=["0"]).texts == ("The lake is here.",)
    with pytest.raises(InvalidInput, match="2"):
        index.select("bridge", documents=[2])


def test_another_encoder_is_refused(
    selector: Selector, index: PassageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.save(tmp_path)
    monkeypatch.setattr(type(selector.encoder), "fingerprint", "another")
    with pytest.raises(InvalidInput, match="other word vectors"):
        selector.load_index(tmp_path)


def test_metadata_that_json_cannot_hold(selector: Selector, tmp_path: Path) -> None:
    index = selector.index([{"text": "A bridge.", "size": {1, 2}}])
    with pytest.raises(InvalidInput, match="cannot be saved as JSON"):
        index.save(tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_a_pipe_and_a_file_in_place_of_a_folder_are_refused(tmp_path: Path) -> None:
    selector = Selector.from_pretrained()
    index = selector.index(passages=["Ada swims.", "Bo runs."])
    file = tmp_path / "file"
    file.write_text("kept")
    with pytest.raises(InvalidInput, match="is a file; choose a folder"):
        index.save(file)
    assert file.read_text() == "kept"
    if hasattr(os, "mkfifo"):
        folder = tmp_path / "pipe"
        index.save(folder)
        (content,) = folder.iterdir()
        content.unlink()
        os.mkfifo(content)
        with pytest.raises(BrokenInput, match="it is not a file"):
            selector.load_index(folder)
