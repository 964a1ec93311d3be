import pytest

from dgn.encoders import (
    FacetFamily,
    PooledFamily,
    family_names,
    find_family,
    register_family,
    registry,
)
from dgn.errors import InvalidInput


def test_families_are_found_by_name() -> None:
    assert family_names() == ("pooled", "facets", "minilm")
    assert isinstance(find_family("pooled"), PooledFamily)
    assert isinstance(find_family("facets"), FacetFamily)


def test_unknown_family_is_named_with_those_that_exist() -> None:
    with pytest.raises(InvalidInput, match="one of pooled, facets, minilm; got 'other'"):
        find_family("other")


def test_registered_family_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_FAMILIES", dict(registry._FAMILIES))
    family = PooledFamily()
    monkeypatch.setattr(family, "name", "mine", raising=False)
    register_family(family)
    assert find_family("mine") is family
    assert "mine" in family_names()
