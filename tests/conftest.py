"""Shape checks are on in the tests: jaxtyping's annotations, enforced by beartype."""

import atexit
import importlib.util
import os
import re
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from jaxtyping import install_import_hook

os.environ["DGN_CHECK_SHAPES"] = "1"
# One thread per worker: two workers with two threads each would compete for two cores.
os.environ["OMP_NUM_THREADS"] = "1"

# The tests have a cache of their own, which is removed at the end.
os.environ["DGN_CACHE"] = tempfile.mkdtemp(prefix="dgn-tests-")
atexit.register(shutil.rmtree, os.environ["DGN_CACHE"], ignore_errors=True)

# The modules that compute with arrays; files and records have no shapes to check.
CHECKED = (
    *("core.numerics", "core.functions", "core", "selector.coverage", "text.vectors"),
    *(
        "text.vocabulary",
        "text.facets",
        "text.explanation",
        "data.batches",
        "evaluation.metrics",
        "learn.layers",
        "learn.networks",
    ),
    *("learn.losses", "learn.relaxations", "learn.batches", "learn.facets", "learn.fit"),
)
install_import_hook([f"dgn.{module}" for module in CHECKED], "checking.check")

# The same examples every time, so that a failure can be repeated.
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")

collect_ignore: list[str] = []

# Where torch is not installed, the tests of everything else run all the same.
if importlib.util.find_spec("torch") is None:
    _TORCH = re.compile(
        r"^\s*(import torch|from torch|from (instances|models|small_features) )", re.M
    )
    collect_ignore += [
        str(path)
        for path in Path(__file__).parent.rglob("*.py")
        if path.name != "conftest.py" and _TORCH.search(path.read_text(encoding="utf-8"))
    ]
