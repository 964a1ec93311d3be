"""The tests of the service need its extra."""

import importlib.util

import pytest

pytest.importorskip("fastapi", reason="dgn[serve] is not installed")
if importlib.util.find_spec("schemathesis") is None:
    collect_ignore = ["schemathesis_hooks.py"]
