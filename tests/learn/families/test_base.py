import pytest

from dgn.errors import InvalidInput
from dgn.learn.families import base as registry
from dgn.learn.families import family_names, find_family, register_family
from dgn.learn.families.facets import FacetFamily
from dgn.learn.families.pooled import PooledFamily
from dgn.text.pooled import PooledEncoder
from dgn.text.encoder import ENCODERS


def test_families_are_found_by_name() -> None:
    assert family_names() == ("pooled", "facets")
    assert isinstance(find_family("pooled"), PooledFamily)
    assert isinstance(find_family("facets"), FacetFamily)


def test_unknown_family_is_named_with_those_that_exist() -> None:
    with pytest.raises(InvalidInput, match=r"one of pooled, facets, .* got 'other'"):
        find_family("other")


def test_registered_family_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_FAMILIES", dict(registry._FAMILIES))
    monkeypatch.setattr(registry.FAMILIES, "_parts", dict(registry.FAMILIES._parts))
    monkeypatch.setattr(ENCODERS, "_parts", dict(ENCODERS._parts))
    family = PooledFamily()
    monkeypatch.setattr(family, "encoder", type("Mine", (PooledEncoder,), {"family": "mine"}))
    register_family(family)
    assert find_family("mine") is family
    assert "mine" in family_names()
