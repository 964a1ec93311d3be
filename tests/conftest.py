"""Shape checks are on in the tests: jaxtyping's annotations, enforced by beartype."""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings
from jaxtyping import install_import_hook

os.environ["DGN_CHECK_SHAPES"] = "1"
# One thread a worker: two workers with two threads each fight over two cores, and both lose.
os.environ["OMP_NUM_THREADS"] = "1"

# What the tests cache is theirs, and gone with them.
os.environ["DGN_CACHE"] = tempfile.mkdtemp(prefix="dgn-tests-")
atexit.register(shutil.rmtree, os.environ["DGN_CACHE"], ignore_errors=True)

# The rooms that hold arrays; files and records have no shapes to check.
ROOMS = (
    *("numerics", "objectives", "maximizers", "unfolding", "explanation", "data.batches", "text"),
    "encoders",
)
install_import_hook([f"dgn.{room}" for room in ROOMS], "checking.check")

# The same examples every time: a test that fails now and then teaches nobody anything.
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")
