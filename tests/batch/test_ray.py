"""The engine Ray, on a real cluster of two nodes: results equal those of one process, exactly."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from batch.test_job import contents, inputs, planned
from dgn import InvalidInput
from dgn.batch import plan_job, run_job

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


def test_the_command_finds_a_cluster_by_its_address(inputs: Path, tmp_path: Path) -> None:
    said = run_cluster("command", inputs, tmp_path / "ray")
    assert f"selections: {tmp_path / 'ray'}" in said
    job = plan_job(f"{inputs}/*", tmp_path / "here", limits={"k": 3, "min_relevance": 0.0})
    run_job(job, workers=1)
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")


def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    """An input ten times as large as another one, both far larger than a batch."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    row = json.dumps({"query": "Who swims?", "passages": ["Ada swims. " * 400] * 3}) + "\n"

    def peak(rows: int) -> int:
        folder = tmp_path / str(rows)
        folder.mkdir()
        (folder / "a.jsonl").write_text(row * rows)
        said = run_cluster("memory", folder, tmp_path / f"out-{rows}")
        assert f"rows {rows}" in said
        return int(said.split("peak ")[1].split()[0])

    small, large = peak(300), peak(3000)  # 4 and 40 MB
    assert large - small < 20, f"{small} MiB for 4 MB and {large} MiB for 40 MB"


def test_partitioned_greedy(inputs: Path, tmp_path: Path) -> None:
    run_cluster("greedi", inputs, tmp_path)


def test_an_address_that_does_not_answer(inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No Ray cluster can be reached"):
        run_job(planned(inputs, tmp_path / "out"), engine="ray", address="127.0.0.1:1")
