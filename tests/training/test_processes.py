"""Several processes that train one network together."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from dgn.cli.main import main
from dgn.training.processes import Processes, interrupts_ignored, is_orphan, join_processes
from training.forked import run_two, start_two


def test_shares_of_a_batch_are_the_batch() -> None:
    rows = np.arange(7)
    shares = [Processes(rank, 3).share(rows) for rank in range(3)]
    assert np.concatenate(shares).tolist() == rows.tolist()
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert Processes().share(rows) is rows
    assert [len(Processes(rank, 3).share(rows[:1])) for rank in range(3)] == [1, 0, 0]


def test_single_process_needs_no_messages() -> None:
    alone = join_processes(torch.device("cpu"))
    assert alone == Processes(0, 1)
    assert alone.writes
    assert not Processes(1, 2).writes
    tensor = torch.ones(3)
    alone.add_up([tensor])
    assert tensor.tolist() == [1.0] * 3
    assert alone.from_first([0.5], torch.device("cpu")) == (0.5,)


def test_interrupts_are_ignored_within_the_block() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts_ignored():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before
    worker = threading.Thread(target=lambda: interrupts_ignored().__enter__())
    worker.start()
    worker.join()
    assert signal.getsignal(signal.SIGINT) is before
    assert not is_orphan()


def command_of(features: tuple[str, str], out: Path, *more: str) -> list[str]:
    settings = ["--epochs", "2", "--batch-size", "8", "--layers", "3", "--dropout", "0.1"]
    data = ["--train", features[0], "--validation", features[1], "--device", "cpu", "--quiet"]
    return ["train", "--out", str(out), *data, *settings, *more]


def torchrun(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command of dgn in two processes that torchrun starts."""
    start = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    return subprocess.run(
        [*start, "--module", "dgn", *command], capture_output=True, text=True, check=False
    )


def assert_same_weights(first: Path, second: Path, tolerance: float) -> None:
    one, two = (load_file(folder / "model.safetensors") for folder in (first, second))
    assert one.keys() == two.keys()
    for name, weight in one.items():
        np.testing.assert_allclose(weight, two[name], atol=tolerance, err_msg=name)


def test_processes_resume_to_the_same_weights(features: tuple[str, str], tmp_path: Path) -> None:
    often = ("--checkpoint-seconds", "0", "--dropout", "0.3")
    whole, parts = (command_of(features, tmp_path / n, *often) for n in ("whole", "parts"))
    assert [code for code, _ in run_two(whole, tmp_path)] == [0, 0]
    killed = start_two(parts, tmp_path)
    while not (tmp_path / "parts" / "checkpoint.safetensors").exists():
        time.sleep(0.01)
    for process in killed:
        process.kill()
        process.join()
    assert [code for code, _ in run_two(parts, tmp_path)] == [0, 0]
    assert_same_weights(tmp_path / "whole", tmp_path / "parts", 1e-6)


def test_mistakes_are_reported_by_one_process(features: tuple[str, str], tmp_path: Path) -> None:
    assert main(command_of(features, tmp_path / "run", "--epochs", "1")) == 0
    (first, said), (second, nothing) = run_two(command_of(features, tmp_path / "run"), tmp_path)
    assert (first, second) == (2, 1)
    assert "contains a run with other settings (fit.epochs)" in said
    assert "dgn:" not in nothing


@pytest.mark.parametrize("model", ["dgn", "encoder"])
def test_two_processes_learn_the_same_as_one(
    features: tuple[str, str], tmp_path: Path, model: str
) -> None:
    more = ("--dropout", "0", "--architecture", model, "--batch-size", "9")
    assert main(command_of(features, tmp_path / "one", *more)) == 0
    command = command_of(features, tmp_path / "two", *more)
    if model == "dgn":
        together = torchrun(command)
        assert together.returncode == 0, together.stderr
    else:
        assert [code for code, _ in run_two(command, tmp_path)] == [0, 0]
    assert_same_weights(tmp_path / "one", tmp_path / "two", 2e-5)
