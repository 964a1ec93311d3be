from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dgn
from dgn.core.functions import FeatureCoverage, Items, SetFunction
from dgn.errors import InvalidInput
from dgn.text.encoder import Encoder, require_keys, require_sizes
from dgn.text.query import Query


class Lengths(Encoder):
    """An encoder of a user: a passage offers its number of letters."""

    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        longest = max(len(query.passages) for query in queries)
        features = np.zeros((len(queries), longest, 1))
        mask = np.zeros((len(queries), longest), bool)
        for row, query in enumerate(queries):
            features[row, : len(query.passages), 0] = [len(text) for text in query.texts]
            mask[row, : len(query.passages)] = True
        return FeatureCoverage(), Items(features, mask)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def test_two_methods_are_enough_for_a_selector() -> None:
    selector = dgn.Selector(Lengths())
    assert selector.encoder.parameters == 0
    assert selector.encoder.facets(Query("a query", ())) == ()
    selection = selector.select("a query", ["aa", "aaaa", "a"], k=2)
    assert selection.indices == (1, 0)
    assert len(selector.select("a query", ["aa", "aaaa", "a"], max_tokens=5)) >= 1
    assert selection.explain().words == ()


def test_encoder_without_a_family_cannot_be_saved(tmp_path) -> None:
    with pytest.raises(InvalidInput, match="Lengths cannot be saved"):
        dgn.Selector(Lengths()).save_pretrained(tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"family": "f"}, "a description with the keys family, size; got family"),
        ({"family": "f", "size": 1, "more": 2}, "got family, more, size"),
        ({"family": "f", "size": "1"}, "size must be a int; got '1'"),
        ({"family": "f", "size": True}, "size must be a int; got True"),
    ],
)
def test_descriptions_are_checked(description: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        require_keys(description, size=int)
    assert message in str(raised.value)


@pytest.mark.parametrize("sizes", [[-1], [4097], [1.0], [True], ["3"], [1, None]])
def test_sizes_are_checked(sizes: list[Any]) -> None:
    require_sizes([0, 4096])
    with pytest.raises(InvalidInput, match="integers from 0 to 4096"):
        require_sizes(sizes)
