import math
from pathlib import Path

import pytest

from dgn.errors import BrokenInput
from dgn.text import Idf


def test_rare_words_weigh_more_and_unseen_ones_most(tmp_path: Path) -> None:
    idf = Idf.of([["a", "b", "a"], ["a"], ["a", "c"]])
    often, seldom, never = idf.weights(["a", "b", "zzz"]).tolist()
    assert often == pytest.approx(math.log(4 / 4) + 1)
    assert seldom == pytest.approx(math.log(4 / 2) + 1)
    assert never == pytest.approx(math.log(4 / 1) + 1)
    idf.save(tmp_path / "idf.json")
    assert Idf.load(tmp_path / "idf.json") == idf


@pytest.mark.parametrize("content", ["", "[]", '{"documents": 3}', '{"documents": 1, "counts": 2}'])
def test_a_file_that_is_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "idf.json"
    path.write_text(content)
    with pytest.raises(BrokenInput, match="found no IDF"):
        Idf.load(path)
