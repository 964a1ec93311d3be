"""Runs a job on a real Ray cluster of two nodes, some of which are killed; see test_ray.py.

python ray_cluster.py SCENARIO INPUTS OUT
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import ray
from ray.cluster_utils import Cluster

import dgn
from dgn.apps.jobs import partitioned_greedy, plan_job, run_job


def workers(title_starts: bytes = b"ray::run_partition") -> list[int]:
    """The processes of Ray that run tasks of ours."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                title = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(title_starts):
                found.append(int(folder.name))
    return found


def kill_when_running(kill: str, cluster: Cluster, second: object, out: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(list(out.glob("part-*"))) >= 2 and workers():
            break
        time.sleep(0.01)
    if kill == "worker":
        os.kill(workers()[0], signal.SIGKILL)
    else:
        cluster.remove_node(second, allow_graceful=False)
    print("killed", kill, flush=True)


def peak_memory(process: int) -> int:
    """The most memory that a process has used, in MiB."""
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0


def select_by_command(address: str, inputs: str, out: Path) -> None:
    """A process of its own that knows the cluster by its address alone."""
    command = ["select", "--queries", inputs, "--out", str(out), "-k", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "dgn", *command, "--engine", "ray", "--address", address],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(done.stderr)


def search_in_partitions() -> None:
    features = np.random.default_rng(0).random((5000, 16))
    f = dgn.FeatureCoverage(np.ones(16))
    here = partitioned_greedy(f, features, 8, partitions=4, seed=1)
    assert partitioned_greedy(f, features, 8, partitions=4, seed=1, engine="ray") == here
    print("partitions are the same")


def measure_memory(folder: Path) -> None:
    """An input ten times as large as another one, both far larger than a batch."""
    row = json.dumps({"query": "Who swims?", "passages": ["Ada swims. " * 400] * 3}) + "\n"
    for rows in (300, 3000):  # 4 and 40 MB
        file = folder / f"{rows}.jsonl"
        file.write_text(row * rows, encoding="utf-8")
        job = plan_job(str(file), folder / f"out-{rows}", partition_bytes=2**20, batch_size=8)
        assert run_job(job, engine="ray").rows == rows
        print(f"peak {max(map(peak_memory, workers(b'ray::')))} MiB")


def listening_addresses() -> set[str]:
    """Where processes of Ray's session accept connections, as /proc writes it."""
    session = ray.get_runtime_context().gcs_address.encode()
    sockets: set[str] = set()
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes()
            if session in command or command.startswith(b"ray::"):
                sockets |= {os.readlink(file) for file in (folder / "fd").iterdir()}
        except OSError:
            continue
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.add(fields[1].partition(":")[0])
    return found


def run_alone(inputs: str, out: Path) -> None:
    """A cluster that a job starts for itself is not for others."""
    job = plan_job(inputs, out, limits=dgn.Limits(k=3), partition_bytes=20_000)
    print("rows", run_job(job, engine="ray").rows)
    assert ray.nodes()[0]["NodeManagerAddress"] == "127.0.0.1"
    found = listening_addresses()
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}, found
    print("listens on loopback")
    ray.shutdown()


def main(scenario: str, inputs: str, out: Path) -> None:
    if scenario == "alone":
        run_alone(inputs, out)
        return
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    assert len([node for node in ray.nodes() if node["Alive"]]) == 2
    job = plan_job(inputs, out, limits=dgn.Limits(k=3), partition_bytes=20_000)
    if scenario == "healthy":
        print("rows", run_job(job, engine="ray").rows)
        search_in_partitions()
        measure_memory(out.parent)
        select_by_command(cluster.address, inputs, out.with_name("by-command"))
    else:
        for kill in ("worker", "node"):
            own = out.with_name(kill)
            job = plan_job(inputs, own, limits=dgn.Limits(k=3), partition_bytes=20_000)
            thread = threading.Thread(
                target=kill_when_running, args=(kill, cluster, second, own), daemon=True
            )
            thread.start()
            print("rows", run_job(job, engine="ray").rows)
            thread.join(60)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
