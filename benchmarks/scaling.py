"""Many queries and large sets: jobs with several workers and on Ray, and greedy in partitions.

DGN_LARGE=1 adds ten million items of 64 features, out of core (2.6 GB in a temporary folder).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import dgn
from benchmarks.measure import print_table
from dgn.apps.jobs import partitioned_greedy, plan_job, run_job
from dgn.data import read_examples
from dgn.selector import Selector

SAMPLES = Path(__file__).parents[1] / "samples" / "claims.jsonl"
COPIES, FILES, K = 25, 8, 5
ITEMS, WIDTH, SELECTED = 1_000_000, 64, 50


def run() -> None:
    with tempfile.TemporaryDirectory() as name:
        _jobs(Path(name))
    _partitions()
    if os.environ.get("DGN_LARGE"):
        with tempfile.TemporaryDirectory() as name:
            _out_of_core(Path(name))


def _jobs(folder: Path) -> None:
    lines = SAMPLES.read_bytes()
    (folder / "in").mkdir()
    for file in range(FILES):
        (folder / "in" / f"{file}.jsonl").write_bytes(lines * COPIES)
    queries = [example.query for example in read_examples(SAMPLES)]
    selector = Selector.from_pretrained()
    count = 100 * COPIES * FILES
    started = time.perf_counter()
    for _ in range(COPIES):
        for start in range(0, 100, 64):
            for one in selector.select_queries(queries[start : start + 64], dgn.Limits(k=K)):
                one.relevance, one.coverage  # noqa: B018
    costs = {"in one process, no files": (time.perf_counter() - started) * FILES}
    for workers in (1, 2):
        costs[f"{workers} workers of this machine"] = _seconds(folder, f"local{workers}", workers)
    import ray

    for workers in (1, 2):
        package: Any = ray
        package.init(address="local", num_cpus=workers, logging_level="ERROR", log_to_driver=False)
        name = f"Ray, {workers} CPUs, workers not yet started"
        costs[name] = _seconds(folder, f"ray{workers}", None, "ray")
        costs[f"Ray, {workers} CPUs, again"] = _seconds(folder, f"again{workers}", None, "ray")
        package.shutdown()
    first = costs["1 workers of this machine"]
    print_table(
        f"A job of {count:,} queries in {FILES} files, 11.5 passages each, k = {K}",
        ("who", "seconds", "queries/s", "speed relative to one worker"),
        [
            (who, f"{cost:.1f}", f"{count / cost:,.0f}", f"{first / cost:.2f}×")
            for who, cost in costs.items()
        ],
    )
    rate = count / costs["2 workers of this machine"] / 2
    hours = 1e9 / rate / 3600
    print(
        f"\nA billion such queries at {rate:,.0f} queries/s and core take {hours:,.0f} core hours: "
        f"{hours / 64:,.1f} hours on 64 cores, if workers do not disturb each other further, if "
        "inputs are read as fast as here, and if every core is as fast as one of these."
    )


def _seconds(folder: Path, name: str, workers: int | None, engine: str = "local") -> float:
    job = plan_job(f"{folder}/in/*", folder / name, limits=dgn.Limits(k=K))
    started = time.perf_counter()
    run_job(job, workers=workers, engine=engine)
    return time.perf_counter() - started


def _partitions() -> None:
    features = np.random.default_rng(0).random((ITEMS, WIDTH), np.float32)
    f = dgn.FeatureCoverage(np.ones(WIDTH, np.float32))
    rows: list[tuple[str, float, Any]] = []

    def measure(name: str, search: Any) -> None:
        started = time.perf_counter()
        found = search()
        rows.append((name, time.perf_counter() - started, found))

    measure("lazy greedy", lambda: dgn.lazy_greedy(f, features, SELECTED))
    measure("stochastic greedy", lambda: dgn.stochastic_greedy(f, features, SELECTED, seed=0))
    for seed in (None, 0):
        kind = "consecutive" if seed is None else "random"
        measure(
            f"8 {kind} partitions, 2 workers",
            lambda seed=seed: partitioned_greedy(
                f, features, SELECTED, partitions=8, seed=seed, workers=2
            ),
        )
    best = rows[0][2].certificate.value
    print_table(
        f"{ITEMS:,} items of {WIDTH} features, k = {SELECTED}, in memory",
        ("search", "seconds", "value relative to lazy greedy", "certificate"),
        [
            (name, f"{cost:.2f}", f"{found.certificate.value / best:.4f}", str(found.certificate))
            for name, cost, found in rows
        ],
    )


def _out_of_core(folder: Path) -> None:
    items = 10 * ITEMS
    shape = (items, WIDTH)
    matrix = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, shape)
    random = np.random.default_rng(0)
    for start in range(0, items, ITEMS // 10):
        matrix[start : start + ITEMS // 10] = random.random((ITEMS // 10, WIDTH), np.float32)
    matrix.flush()
    del matrix
    code = (
        "import numpy as np, dgn, time; from dgn.apps.jobs import partitioned_greedy\n"
        f"f = dgn.FeatureCoverage(np.ones({WIDTH}, np.float32)); t = time.perf_counter()\n"
        f"s = partitioned_greedy(f, {str(folder / 'x.npy')!r}, {SELECTED}, partitions=10)\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "peak = next(int(line.split()[1]) for line in lines if line.startswith('VmHWM')) / 2**10\n"
        "print(f'{time.perf_counter() - t:.1f} s, {peak:,.0f} MiB at most, {s.certificate}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    size = items * WIDTH * 4 / 2**20
    print(
        f"\n{items:,} items of {WIDTH} features, {size:,.0f} MiB in a file: {done.stdout.strip()}"
    )
