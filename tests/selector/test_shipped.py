"""The model inside the package: its size, its card, and that NumPy picks what torch picks."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import dgn
from dgn.data.sources import read_examples
from dgn.encoders import FacetEncoder, FacetSizes, as_batch, word_table
from dgn.encoders.matcher import Matcher
from dgn.errors import BrokenInput, InvalidInput
from dgn.evaluation.contenders import Questions
from dgn.evaluation.contenders.facets import ClaimFacets
from dgn.evaluation.contest import recalls_at
from dgn.features.queries import query_of
from dgn.selector.pretrained import SHIPPED, sizes_of
from dgn.text.word_tokens import WordReader
from dgn.training.facet_network import FacetNetwork

SAMPLES = Path(__file__).parents[2] / "samples" / "claims.jsonl"


@pytest.fixture(scope="module")
def questions() -> Questions:
    return Questions(tuple(read_examples(SAMPLES)))


@pytest.fixture(scope="module")
def selector() -> dgn.Selector:
    return dgn.Selector.from_pretrained()


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 3_000_000


def test_it_has_the_scores_of_its_card(questions: Questions) -> None:
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| samples/claims.jsonl.*$", card, re.MULTILINE)
    said = [float(cell) for cell in row.split("|")[2:6]]
    picks = ClaimFacets.pretrained().pick(questions, 7)
    found = [recalls_at(k, questions, picks).mean() for k in (1, 3, 5, 7)]
    assert found == pytest.approx(said, abs=0.0006)


def test_the_untrained_one_can_be_had_by_name(questions: Questions) -> None:
    first = questions.examples[0]
    sentences = [candidate.text for candidate in first.candidates]
    by_name = dgn.Selector.from_pretrained("untrained").select(first.claim.text, sentences, k=7)
    by_hand = ClaimFacets.untrained(titles=False).pick(questions, 7)[0]
    assert list(by_name.indices) == by_hand.tolist()


def test_numpy_picks_what_torch_picks(questions: Questions, selector: dgn.Selector) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, FacetEncoder)
    network = FacetNetwork(sizes_of(encoder.weights))
    network.load_state_dict(
        {f"facets.{name}": torch.from_numpy(w) for name, w in vars(encoder.weights).items()}
    )
    matcher = Matcher(WordReader(encoder.vectors, encoder.rarity))
    queries = [query_of(example) for example in questions.examples]
    matches, words = matcher.match(queries)
    batch = as_batch(matches, word_table(words)).placed(torch.from_numpy)
    under_torch = network.eval().select(batch, k=7).indices.numpy()
    assert np.array_equal(ClaimFacets.pretrained().pick(questions, 7), under_torch)


def test_saved_and_loaded_it_is_the_same(selector: dgn.Selector, tmp_path: Path) -> None:
    selector.save_pretrained(tmp_path / "mine")
    assert (tmp_path / "mine" / "README.md").read_text() == (SHIPPED / "README.md").read_text()
    again = dgn.Selector.from_pretrained(tmp_path / "mine")
    page = ["It sank in 1901.", "It was raised.", "It sank again."]
    assert again.select("It sank twice", page) == selector.select("It sank twice", page)


def test_a_name_on_the_hub_that_is_out_of_reach_is_said(monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InvalidInput, match="nobody/nothing"):
        dgn.Selector.from_pretrained("nobody/nothing")
    for name in ("missing", "../missing", Path("a/b")):
        with pytest.raises(InvalidInput, match="no folder"):
            dgn.Selector.from_pretrained(name)


def test_the_hub_selector_saves_and_opens_folders(selector: dgn.Selector, tmp_path: Path) -> None:
    from dgn.selector.hub import HubSelector

    HubSelector(selector.encoder).save_pretrained(tmp_path / "mine")
    again = HubSelector.from_pretrained(tmp_path / "mine")
    assert again.select("It sank", ["It sank.", "No."], k=1).indices == (0,)
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {
        "README.md",
        "config.json",
        "model.safetensors",
    }


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="a folder with"):
        dgn.Selector.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BrokenInput, match="no selector"):
        dgn.Selector.from_pretrained(tmp_path)


def test_sizes_are_read_off_the_weights(selector: dgn.Selector) -> None:
    encoder = selector.encoder
    assert isinstance(encoder, FacetEncoder)
    assert sizes_of(encoder.weights) == FacetSizes(256, 16, 16, 16, 64)
