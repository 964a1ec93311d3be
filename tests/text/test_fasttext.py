from pathlib import Path

import numpy as np
import pytest

from dgn.errors import BrokenInput
from dgn.text import open_vectors

gensim = pytest.importorskip("gensim.models.fasttext", reason="gensim is in dgn[fasttext]")


def test_unseen_words_have_the_vectors_of_their_parts(tmp_path: Path) -> None:
    sentences = [["harbour", "ship", "sailor", "harbours"], ["bread", "baker", "flour"]] * 20
    model = gensim.FastText(sentences, vector_size=8, min_count=1, epochs=2, workers=1, seed=1)
    path = tmp_path / "tiny.bin"
    gensim.save_facebook_model(model, str(path))
    vectors = open_vectors(path)
    assert vectors.dimension == 8
    seen, unseen = vectors.pooled(["harbour", "harbourmaster"])
    np.testing.assert_allclose(seen, model.wv["harbour"], atol=1e-5)
    assert np.linalg.norm(unseen) > 0
    both = vectors.pooled(["harbour ship"])[0]
    np.testing.assert_allclose(both, (model.wv["harbour"] + model.wv["ship"]) / 2, atol=1e-5)


@pytest.mark.parametrize("name", ["bad.bin", "none.bin"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.bin").write_bytes(b"not a model")
    with pytest.raises(BrokenInput, match=rf"{name}: expected a fastText \.bin file"):
        open_vectors(tmp_path / name)
