"""Selecting and training while other processes keep every core busy.

Each row is measured in a process of its own, with the threads that dgn chooses and with the
defaults of the numerical libraries, idle and next to one busy process per core.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measure import print_table

_SELECT = """
import contextlib, sys, time
import dgn, dgn.selector.selector as module
from dgn.data import read_examples
if sys.argv[1] == "defaults":
    module.single_threaded_blas = contextlib.nullcontext
    import dgn.text.vectors
    dgn.text.vectors._SERIAL_TEXTS = 0
queries = [example.query for example in read_examples(sys.argv[2])]
selector = dgn.Selector.from_pretrained()
selector.select_queries(queries[:5])
started = time.perf_counter()
for query in queries:
    selector.select_queries([query])
print((time.perf_counter() - started) / len(queries))
"""
_TRAIN = """
import os, sys, time
if sys.argv[1] != "defaults":
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
import numpy as np, torch
from dgn.data import DenseBatches, Position
from dgn.learn import RunConfig, Trainer, build_network, to_device
from dgn.learn.setup import choose_threads
config = RunConfig()
random = np.random.default_rng(0)
x = random.random((1024, 11, 300), dtype=np.float32)
gold = random.random((1024, 11)) < 0.1
batches = DenseBatches(x, gold, np.ones_like(gold), 256, 0, to_device("cpu"))
network = build_network(config, 300)
if sys.argv[1] != "defaults":
    choose_threads(0, 167_008 * 256 * 11)
trainer = Trainer(network, batches, batches, config.fit)
rows = [rows for _, rows in batches.rows_from(Position())]
trainer._step(rows[0])
started, steps = time.perf_counter(), 0
while time.perf_counter() - started < 5:
    trainer._step(rows[steps % len(rows)])
    steps += 1
print((time.perf_counter() - started) / steps)
"""


def run() -> None:
    rows: list[tuple[object, ...]] = []
    for name, code in (("select, one query per call", _SELECT), ("training step", _TRAIN)):
        for threads in ("dgn", "defaults"):
            idle = _measure(code, threads)
            busy = _measure_next_to_load(code, threads)
            rows.append(
                (name, threads, f"{1e3 * idle:.2f}", f"{1e3 * busy:.2f}", f"{busy / idle:.1f}×")
            )
    print_table(
        f"{os.cpu_count()} cores; busy: {os.cpu_count()} other processes",
        ("work", "threads", "idle, ms", "busy, ms", "slower by"),
        rows,
    )


def _measure(code: str, threads: str) -> float:
    samples = Path(__file__).parents[1] / "samples" / "claims.jsonl"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "OPENBLAS_"))}
    command = [sys.executable, "-c", code, threads, str(samples)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def _measure_next_to_load(code: str, threads: str) -> float:
    load = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for process in load:
        process.start()
    time.sleep(1)  # until all of them run
    try:
        return _measure(code, threads)
    finally:
        for process in load:
            process.terminate()
            process.join()


def _spin() -> None:
    while True:
        pass
