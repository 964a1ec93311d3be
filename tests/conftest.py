"""What all tests share: threads, a cache of their own, and the pass in which shapes are checked."""

import atexit
import contextlib
import importlib.util
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from running_service import Running, started

# One thread per worker: two workers with two threads each would compete for two cores.
os.environ["OMP_NUM_THREADS"] = "1"
# apricot, with which we compare, takes longer to compile than to run.
os.environ["NUMBA_DISABLE_JIT"] = "1"

# The tests have a cache of their own, which is removed at the end.
os.environ["DGN_CACHE"] = tempfile.mkdtemp(prefix="dgn-tests-")
atexit.register(shutil.rmtree, os.environ["DGN_CACHE"], ignore_errors=True)

# The same examples every time, so that a failure can be repeated.
PROFILE = {"derandomize": True, "deadline": None, "print_blob": True}
settings.register_profile("repeatable", **PROFILE)
settings.register_profile("few", max_examples=10, **PROFILE)

TESTS = Path(__file__).parent
CHECKS_SHAPES = bool(os.environ.get("DGN_CHECK_SHAPES"))
"""Whether jaxtyping's annotations are enforced by beartype: DGN_CHECK_SHAPES=1 pytest -m shapes."""

# The modules that compute with arrays; files and records have no shapes to check.
CHECKED = (
    *("core", "selector.coverage", "text.vectors", "text.vocabulary", "text.facets"),
    *("evaluation.metrics", "learn.layers", "learn.networks", "learn.losses"),
    *("learn.relaxations", "learn.batches", "learn.facets", "learn.fit"),
)
# Small tests that call every checked function; the hook makes each of them several times as slow.
SHAPES = (
    *("core/functions", "core/test_greedy.py", "core/test_selection.py", "core/test_numerics.py"),
    *("text/test_vectors.py", "text/test_vocabulary.py", "text/facets/test_formula.py"),
    *("text/facets/test_matching.py", "text/facets/test_encoder.py"),
    *("evaluation/test_metrics.py", "learn/test_layers.py", "learn/test_losses.py"),
    *("learn/test_networks.py", "learn/test_relaxations.py", "learn/test_batches.py"),
    "test_shapes.py",
)

settings.load_profile("few" if CHECKS_SHAPES else "repeatable")
if CHECKS_SHAPES:
    from jaxtyping import install_import_hook

    install_import_hook([f"dgn.{module}" for module in CHECKED], "checking.check")

collect_ignore: list[str] = []

# Where torch is not installed, the tests of everything else run all the same.
if importlib.util.find_spec("torch") is None:
    _TORCH = re.compile(
        r"^\s*(import torch|from torch|from (instances|models|small_features) )", re.M
    )
    collect_ignore += [
        str(path)
        for path in TESTS.rglob("*.py")
        if path.name != "conftest.py" and _TORCH.search(path.read_text(encoding="utf-8"))
    ]


def _has_shapes(path: Path) -> bool:
    """Whether the tests of a file, or of some file in a folder, are those of the shapes."""
    name = path.relative_to(TESTS).as_posix()
    if path.is_dir():
        name += "/"
        return any(one.startswith(name) or name.startswith(f"{one}/") for one in SHAPES)
    return any(name == one or name.startswith(f"{one}/") for one in SHAPES)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Where shapes are checked, the other files are not even imported."""
    is_test = collection_path.is_relative_to(TESTS) and collection_path != TESTS
    return True if CHECKS_SHAPES and is_test and not _has_shapes(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of SHAPES: of a parametrized test, the first two alone."""
    counts: Counter[object] = Counter()
    for item in items:
        test = getattr(item, "obj", None)
        if item.path.is_relative_to(TESTS) and _has_shapes(item.path) and counts[test] < 2:
            counts[test] += 1
            item.add_marker(pytest.mark.shapes)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """`dgn serve` in processes of its own, on a free port; one for all tests."""
    pytest.importorskip("fastapi", reason="dgn[serve] is not installed")
    with started(tmp_path_factory.mktemp("service"), "--workers", "2") as running:
        yield running


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., contextlib.AbstractContextManager[Running]]:
    """Start a service with options of the test's own."""
    return lambda *options, **variables: started(tmp_path, *options, **variables)
