"""Runs a job on a real Ray cluster of two nodes, some of which are killed; see test_ray.py.

python ray_cluster.py SCENARIO INPUTS OUT
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import ray
from ray.cluster_utils import Cluster

import dgn
from dgn.batch import partitioned_greedy, plan_job, run_job


def workers() -> list[int]:
    """The processes that run tasks of ours."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                title = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::run_partition"):
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


def main(scenario: str, inputs: str, out: Path) -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    assert len([node for node in ray.nodes() if node["Alive"]]) == 2
    if scenario == "greedi":
        features = np.random.default_rng(0).random((5000, 16))
        f = dgn.FeatureCoverage(np.ones(16))
        here = partitioned_greedy(f, features, 8, partitions=4, seed=1)
        assert partitioned_greedy(f, features, 8, partitions=4, seed=1, engine="ray") == here
    else:
        job = plan_job(inputs, out, limits={"k": 3}, partition_bytes=20_000)
        thread = threading.Thread(
            target=kill_when_running, args=(scenario, cluster, second, out), daemon=True
        )
        if scenario in {"worker", "node"}:
            thread.start()
        print("rows", run_job(job, engine="ray").rows)
        if scenario in {"worker", "node"}:
            thread.join(60)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
