from __future__ import annotations

import pytest

from small_features import write_table


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Folders of features to train and to validate with."""
    folder = tmp_path_factory.mktemp("features")
    return write_table(folder / "train", 90, 1), write_table(folder / "validation", 40, 2)
