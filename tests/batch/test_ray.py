"""The engine Ray, on a real cluster of two nodes: results equal those of one process, exactly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from batch.test_job import contents, inputs, planned
from dgn import InvalidInput
from dgn.batch import run_job

pytest.importorskip("ray", reason="dgn[ray] is not installed")
__all__ = ["inputs"]  # a fixture


def run_cluster(scenario: str, inputs: Path, out: Path) -> str:
    script = Path(__file__).with_name("ray_cluster.py")
    plain = {k: v for k, v in os.environ.items() if k != "DGN_CHECK_SHAPES"}
    done = subprocess.run(
        [sys.executable, script, scenario, f"{inputs}/*", out],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=plain | {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("scenario", ["plain", "worker", "node"])
def test_two_nodes_write_what_one_process_writes(
    scenario: str, inputs: Path, tmp_path: Path
) -> None:
    for copy in range(3):
        lines = (inputs / "a.jsonl").read_bytes()
        (inputs / f"x{copy}.jsonl").write_bytes(lines)
    wanted = run_job(planned(inputs, tmp_path / "here"), workers=1)
    said = run_cluster(scenario, inputs, tmp_path / "ray")
    assert f"rows {wanted.rows}" in said
    if scenario != "plain":
        assert f"killed {scenario}" in said
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")
    left = {path.name for path in (tmp_path / "ray").iterdir()} - set(contents(tmp_path / "ray"))
    assert left == {"manifest.json"} or scenario != "plain"


def test_partitioned_greedy(inputs: Path, tmp_path: Path) -> None:
    run_cluster("greedi", inputs, tmp_path)


def test_an_address_that_does_not_answer(inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No Ray cluster can be reached"):
        run_job(planned(inputs, tmp_path / "out"), engine="ray", address="127.0.0.1:1")
