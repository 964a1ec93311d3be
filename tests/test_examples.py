"""Every example runs, with the real packages, and prints what it promises."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TRAIN = "The first train crossed the Corran Bridge on 4 May 1911"
EXAMPLES = {
    "langchain_rag": ("langchain_core", TRAIN),
    "llama_index_rag": ("llama_index", TRAIN),
    "haystack_rag": ("haystack", TRAIN),
    "datasets_map": ("datasets", TRAIN),
    "mcp_client": ("mcp", TRAIN),
    "ray_data": ("ray", TRAIN),
    "greedy_in_partitions": ("ray", "% of the value without partitions"),
    "spark_frames": ("pyspark", TRAIN),
    "learn_from_outcomes": ("torch", "findings selected: 0.33 -> 1.00"),
    "tune_on_ray": ("ray", "best settings"),
    "http_client": ("fastapi", TRAIN),
}


def test_every_example_is_tested() -> None:
    files = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert files - {"__init__", "pages"} == set(EXAMPLES)


SLOW = dict.fromkeys(
    ("tune_on_ray", "ray_data", "greedy_in_partitions"),
    pytest.mark.slow,
)
"""Their parts are tested by themselves: the commands that they start, `SelectBatch`, and Ray."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW.get(name, ())) for name in EXAMPLES]
)
def test_example(name: str, tmp_path: Path) -> None:
    package, wanted = EXAMPLES[name]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    variables = {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path),
    }
    plain = {k: v for k, v in os.environ.items() if k != "DGN_CHECK_SHAPES"} | variables
    command = [sys.executable, "-m", f"examples.{name}"]

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, env=plain | more
        )

    if name == "http_client":
        from running_service import started

        with started(tmp_path) as running:
            done = run(DGN_URL=running.url)
    else:
        done = run()
    assert done.returncode == 0, done.stderr
    assert wanted in done.stdout
