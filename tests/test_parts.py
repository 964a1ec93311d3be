"""Parts by name: what is found, what is refused, and that nothing is imported by itself."""

import os
import sys
from pathlib import Path

import pytest

from dgn import parts
from dgn.core.functions import CONCAVE, Concave, Log1p, Power, Saturated
from dgn.errors import InvalidInput
from dgn.parts import Registry, import_modules, import_parts, split_arguments, with_argument

SOURCE = """
from dgn.core.functions import Concave

class Root(Concave):
    def __init__(self, power=0.5):
        self.power = power

    def of(self, x):
        return x**self.power

    def increase(self, x, step):
        return (x + step) ** self.power - x**self.power

class Unfinished(Concave):
    pass
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder, which nobody has imported."""
    (tmp_path / "parts_of_mine.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(CONCAVE, "_parts", dict(CONCAVE._parts))
    monkeypatch.setenv(parts.IMPORTS, "")
    monkeypatch.delitem(sys.modules, "parts_of_mine", raising=False)
    return "parts_of_mine"


def test_parts_of_dgn_have_names_and_arguments() -> None:
    assert CONCAVE.build("log") == Log1p()
    assert CONCAVE.build("power(exponent=0.3)") == Power(0.3)
    assert CONCAVE.build("saturated(cap=2)") == Saturated(2)
    assert CONCAVE.build("saturated") == Saturated()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lgo", r"concave must be one of log, .* got 'lgo' \(did you mean log\?\)\."),
        ("power", r"The concave power needs exponent: write power\(exponent=VALUE\)\."),
        ("saturated(kap=2)", r"has no argument kap \(did you mean cap\?\); it has cap\."),
        ("log(cap=2)", r"The concave log has no argument cap\."),
        ("power(0.3)", "a name with arguments"),
        ("power(exponent=open('x'))", "a name with arguments"),
        ("power(exponent=1", "a name with arguments"),
        ("power(exponent=1)(exponent=1)", "a name with arguments"),
        ("nowhere:Root", "the module nowhere is not imported. If you trust it, pass --import"),
        ("os:system", "os:system is not a concave: it must be a class that derives from Concave"),
        ("dgn.core.functions:FeatureCoverage", "is not a concave"),
        ("dgn.core.functions:Concave", "has all of its methods"),
        ("dgn.core.functions:Sqr", r"has no class Sqr \(did you mean Sqrt\?\)"),
    ],
)
def test_what_is_not_a_part_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        CONCAVE.build(text)


def test_a_module_is_imported_only_for_names_that_the_user_typed(own_module: str) -> None:
    with pytest.raises(InvalidInput, match=f"the module {own_module} is not imported"):
        CONCAVE.check(f"{own_module}:Root")
    assert own_module not in sys.modules
    import_parts(["log", "power(exponent=0.3)", f"{own_module}:Root(power=0.25)", "sqlite:///x", 3])
    assert CONCAVE.build(f"{own_module}:Root(power=0.25)").of(16.0) == 2.0
    assert os.environ[parts.IMPORTS] == own_module
    with pytest.raises(InvalidInput, match=r"Unfinished is not a concave: .* all of its methods"):
        CONCAVE.build(f"{own_module}:Unfinished")


def test_worker_processes_import_what_their_parent_imported(
    own_module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(parts.IMPORTS, own_module)
    assert CONCAVE.build(f"{own_module}:Root").of(4.0) == 2.0


@pytest.mark.parametrize(
    ("source", "reason"),
    [("import nothing_like_it", "No module named 'nothing_like_it'"), ("x = (", "SyntaxError: ")],
)
def test_a_module_that_cannot_be_imported_is_named(
    own_module: str, source: str, reason: str
) -> None:
    Path(f"{own_module}.py").write_text(source)
    with pytest.raises(InvalidInput, match=f"module {own_module} cannot be imported: {reason}"):
        import_modules([own_module])
    with pytest.raises(InvalidInput, match="cannot be imported: No module named 'not_there'"):
        import_modules(["not_there"])


def test_an_installed_package_names_parts_by_entry_points(
    own_module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "roots-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: roots\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[dgn.concave]\nroot = {own_module}:Root\nlost = {own_module}:Lost\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert CONCAVE.build("root(power=0.25)").of(16.0) == 2.0
    with pytest.raises(InvalidInput, match=r"The concave lost .* cannot be imported"):
        CONCAVE.find("lost")


def test_registered_parts_are_found_under_their_name() -> None:
    registry = Registry("concave", "dgn.nothing", Concave, {"log": Log1p})
    registry.register("root", Power)
    assert registry.names == ("log", "root")
    assert registry.find("root") is Power
    with pytest.raises(InvalidInput, match="is not a concave"):
        registry.register("root", int)


def test_arguments_are_read_and_written() -> None:
    assert split_arguments("x", "my.parts:Two(a=1, b=[2.5, 'c'])") == (
        "my.parts:Two",
        {"a": 1, "b": [2.5, "c"]},
    )
    assert with_argument("x", "power", "exponent", 0.5) == "power(exponent=0.5)"
    assert with_argument("x", "f(a=1, b='c')", "a", 2) == "f(a=2, b='c')"
