"""The engine Ray, on a real cluster of two nodes: results equal those of one process, exactly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dgn import InvalidInput, Limits
from dgn.apps.jobs import plan_job, run_job
from dgn.apps.jobs.engines import connected
from job_files import contents, planned

pytest.importorskip("ray", reason="dgn[ray] is not installed")


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


def with_more(inputs: Path) -> Path:
    for copy in range(3):
        lines = (inputs / "a.jsonl").read_bytes()
        (inputs / f"x{copy}.jsonl").write_bytes(lines)
    return inputs


@pytest.mark.slow
def test_two_nodes_do_what_one_process_does(inputs: Path, tmp_path: Path) -> None:
    wanted = run_job(planned(with_more(inputs), tmp_path / "here"), workers=1)
    said = run_cluster("healthy", inputs, tmp_path / "ray")
    assert f"rows {wanted.rows}" in said
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")
    left = {path.name for path in (tmp_path / "ray").iterdir()} - set(contents(tmp_path / "ray"))
    assert left == {"manifest.json"}
    assert "partitions are the same" in said
    small, large = (int(line.split()[1]) for line in said.splitlines() if "peak" in line)
    assert large - small < 20, f"{small} MiB for 4 MB and {large} MiB for 40 MB"
    # The command knew the cluster by its address alone.
    assert f"selections: {tmp_path / 'by-command'}" in said
    job = plan_job(f"{inputs}/*", tmp_path / "whole", limits=Limits(k=3))
    run_job(job, workers=1)
    assert contents(tmp_path / "by-command") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_what_dies_is_done_again(inputs: Path, tmp_path: Path) -> None:
    wanted = run_job(planned(with_more(inputs), tmp_path / "here"), workers=1)
    printed = run_cluster("dying", inputs, tmp_path / "ray")
    assert printed.count(f"rows {wanted.rows}") == 2
    for kind in ("worker", "node"):
        assert f"killed {kind}" in printed
        assert contents(tmp_path / kind) == contents(tmp_path / "here")


@pytest.mark.slow
def test_a_cluster_of_its_own_listens_on_loopback(inputs: Path, tmp_path: Path) -> None:
    printed = run_cluster("alone", inputs, tmp_path / "ray")
    assert "rows 100" in printed
    assert "listens on loopback" in printed


def test_a_cluster_that_asks_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a real one, each refusal takes twenty seconds; here Ray's part is replaced."""
    import ray

    modes: list[str | None] = []

    def init(address: str, **_: object) -> None:
        modes.append(os.environ.get("RAY_AUTH_MODE"))
        if "RAY_AUTH_MODE" not in os.environ or address.endswith("2"):
            raise ConnectionError("Failed to connect")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr("dgn.apps.jobs.engines._check_reachable", lambda _: None)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    monkeypatch.setenv("RAY_AUTH_MODE", "")  # so that what Ray sets is undone
    monkeypatch.delenv("RAY_AUTH_MODE")
    connected("10.0.0.1:1")
    assert modes == [None, "token"]
    with pytest.raises(InvalidInput, match=r"refused the connection.*RAY_AUTH_TOKEN"):
        connected("10.0.0.1:2")
    assert modes == [None, "token", "token"]


def test_an_address_that_does_not_answer(inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No Ray cluster can be reached"):
        run_job(planned(inputs, tmp_path / "out"), engine="ray", address="127.0.0.1:1")
