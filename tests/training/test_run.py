import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tensorboardX.proto.event_pb2 import Event

from dgn.errors import BrokenInput, InvalidInput
from dgn.training import RunConfig, load_network, train
from small_features import write_table

DGN = str(Path(sys.executable).with_name("dgn"))


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("features")
    return write_table(folder / "train", 90, 1), write_table(folder / "validation", 40, 2)


def config(features: tuple[str, str], **settings: object) -> RunConfig:
    few = {"epochs": 3, "batch_size": 16, "layers": 3, "judged_at": [1, 3], "learning_rate": 0.01}
    machine = {"device": "cpu", "train": [features[0]], "validation": features[1]}
    return RunConfig().with_settings({**few, **machine, **settings})


def read_events(folder: Path) -> dict[str, list[float]]:
    """The scalars of TensorBoard's records: length, its checksum, the event, its checksum."""
    (path,) = (folder / "tensorboard").iterdir()
    content, place = path.read_bytes(), 0
    scalars: dict[str, list[float]] = {}
    while place < len(content):
        (length,) = struct.unpack_from("<Q", content, place)
        event = Event.FromString(content[place + 12 : place + 12 + length])
        for value in event.summary.value:
            scalars.setdefault(value.tag, []).append(value.simple_value)
        place += 16 + length
    return scalars


def test_a_run_leaves_a_complete_folder(features: tuple[str, str], tmp_path: Path) -> None:
    seen = []
    result = train(config(features), tmp_path / "run", on_epoch=seen.append)
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == [
        "README.md",
        "config.json",
        "curves.png",
        "metrics.jsonl",
        "model.safetensors",
        "summary.json",
        "tensorboard",
    ]
    assert seen == list(result.reports)
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]
    events = read_events(tmp_path / "run")
    losses = [report.loss for report in result.reports[1:]]
    assert events["train/loss"] == pytest.approx(losses)
    assert len(events["validation/recall_at_3"]) == 4
    card = (tmp_path / "run/README.md").read_text()
    assert f"| {result.reports[result.best_epoch].recalls[0]:.4f} |" in card
    assert "90 claims, seed 1" in card
    loaded = load_network(tmp_path / "run")
    for name, weight in result.network.state_dict().items():
        assert torch.equal(weight, loaded.state_dict()[name])


def test_the_cards_toml_is_the_run_again(features: tuple[str, str], tmp_path: Path) -> None:
    first = train(config(features, dropout=0.1), tmp_path / "first")
    card = (tmp_path / "first/README.md").read_text()
    (tmp_path / "again.toml").write_text(card.partition("```toml\n")[2].partition("```")[0])
    command = [DGN, "train", "--config", tmp_path / "again.toml", "--out", tmp_path / "second"]
    subprocess.run([*command, "--quiet"], check=True)
    second = load_network(tmp_path / "second")
    for name, weight in first.network.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name])


def test_a_finished_run_is_not_run_again(features: tuple[str, str], tmp_path: Path) -> None:
    first = train(config(features), tmp_path / "run")
    again = train(config(features, device="auto"), tmp_path / "run", on_epoch=pytest.fail)
    assert again.was_finished
    assert (again.reports, again.best_epoch) == (first.reports, first.best_epoch)


def test_a_folder_of_something_else_is_left_alone(
    features: tuple[str, str], tmp_path: Path
) -> None:
    train(config(features, epochs=1), tmp_path / "run")
    with pytest.raises(InvalidInput, match=r"another fit\.epochs, fit\.seed; allowed"):
        train(config(features, epochs=2, seed=1), tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="other files"):
        train(config(features), tmp_path / "other")
    changed = write_table(tmp_path / "train", 80, 5)
    train(config((changed, features[1]), epochs=1), tmp_path / "third")
    meta = Path(changed, "meta.json")
    meta.write_text(meta.read_text().replace("seed 5", "seed 6"))
    with pytest.raises(InvalidInput, match="the features"):
        train(config((changed, features[1]), epochs=1), tmp_path / "third")


def test_part_of_the_claims(features: tuple[str, str], tmp_path: Path) -> None:
    result = train(config(features, claims=20, epochs=1), tmp_path / "run")
    assert len(result.reports) == 2
    with pytest.raises(InvalidInput, match="claims: found 1,000"):
        train(config(features, claims=1000), tmp_path / "more")


def test_bad_input(features: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="train: found no folder"):
        train(RunConfig(), tmp_path / "run")
    with pytest.raises(InvalidInput, match="no features in"):
        train(config(("nowhere", features[1])), tmp_path / "run")
    other = write_table(tmp_path / "other", 10, 1, dimension=5)
    with pytest.raises(InvalidInput, match="vectors of 5 dimensions"):
        train(config((features[0], other)), tmp_path / "run")
    for device in ("teapot", "meta", "cuda:99"):
        with pytest.raises(InvalidInput, match=f"device: found {device}"):
            train(config(features, device=device), tmp_path / "run")
    broken = write_table(tmp_path / "broken", 10, 1)
    Path(broken, "gold.npy").write_bytes(Path(broken, "gold.npy").read_bytes()[:-3])
    with pytest.raises(BrokenInput, match=r"gold\.npy"):
        train(config((broken, features[1])), tmp_path / "run")
    Path(broken, "meta.json").write_text("{")
    with pytest.raises(BrokenInput):
        train(config((broken, features[1])), tmp_path / "run")
    with pytest.raises(InvalidInput, match="2 layers for the encoder"):
        train(config(features, model="encoder", widths=[3]), tmp_path / "run")


def test_loading_is_strict(features: tuple[str, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(InvalidInput, match="allowed: a folder of dgn train"):
        load_network(run)
    train(config(features, epochs=1), run)
    weights = load_file(run / "model.safetensors")
    save_file({**weights, "extra": torch.zeros(1)}, run / "model.safetensors")
    with pytest.raises(BrokenInput, match="extra"):
        load_network(run)
    (run / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(BrokenInput, match=r"model\.safetensors"):
        load_network(run)
    (run / "model.safetensors").unlink()
    with pytest.raises(InvalidInput, match="a finished run"):
        load_network(run)
    described = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**described, "import": "os"}))
    with pytest.raises(BrokenInput, match="unknown"):
        load_network(run)


def test_a_broken_checkpoint_says_what_to_do(features: tuple[str, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(config(features, epochs=1), run)
    (run / "summary.json").unlink()
    (run / "checkpoint.safetensors").write_bytes(b"half a file")
    with pytest.raises(BrokenInput, match="delete the file to train anew"):
        train(config(features, epochs=1), run)


def test_one_process_at_a_time_and_what_a_killed_one_left(
    features: tuple[str, str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / ".config.json.77.partial").write_text("{")

    def begin_again(_: object) -> None:
        with pytest.raises(InvalidInput, match="another process at work"):
            train(config(features), run)

    train(config(features), run, on_step=begin_again)
    assert not list(run.glob(".*"))


def command_of(features: tuple[str, str], out: Path, *more: str) -> list[str]:
    settings = ["--epochs", "4", "--batch-size", "8", "--layers", "3", "--dropout", "0.1"]
    data = ["--train", features[0], "--validation", features[1], "--device", "cpu", "--quiet"]
    return [DGN, "train", "--out", str(out), *data, *settings, *more]


def test_sigkill_at_random_points_changes_no_bit(features: tuple[str, str], tmp_path: Path) -> None:
    often = ("--checkpoint-seconds", "0", "--average", "0.9")
    subprocess.run(command_of(features, tmp_path / "undisturbed", *often), check=True)
    out, moments = tmp_path / "killed", random.Random(0)
    kills = 0
    while True:
        run = subprocess.Popen(command_of(features, out, *often))
        checkpoint = out / "checkpoint.safetensors"
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        while run.poll() is None and kills < 5:
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns != before:
                time.sleep(moments.uniform(0, 0.03))
                run.send_signal(signal.SIGKILL)
                kills += run.wait() == -signal.SIGKILL
        if run.wait() == 0:
            break
    assert kills >= 3
    undisturbed, killed = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("undisturbed", "killed")
    )
    assert killed == undisturbed
    losses = [
        [json.loads(row)["loss"] for row in (folder / "metrics.jsonl").read_text().splitlines()]
        for folder in (tmp_path / "undisturbed", out)
    ]
    assert losses[0] == losses[1]
    assert not list(out.glob(".*"))


def test_several_processes_go_on_and_say_their_mistakes_once(
    features: tuple[str, str], tmp_path: Path
) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]

    def together(out: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = [*torchrun, "--no-python", *command_of(features, tmp_path / out, *more)]
        return subprocess.run(command, capture_output=True, text=True)

    often = ("--checkpoint-seconds", "0", "--dropout", "0.3", "--epochs", "2")
    assert together("whole", *often).returncode == 0
    command = [*torchrun, "--no-python", *command_of(features, tmp_path / "parts", *often)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as run:
        while not (tmp_path / "parts" / "checkpoint.safetensors").exists():
            time.sleep(0.01)
        os.killpg(run.pid, signal.SIGKILL)
    assert together("parts", *often).returncode == 0
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    for name, weight in whole.items():
        np.testing.assert_allclose(weight, parts[name], atol=1e-6, err_msg=name)
    other = together("whole", *often, "--seed", "5")
    assert other.returncode != 0
    assert other.stderr.count("dgn: out: found a run") == 1


@pytest.mark.parametrize("model", ["dgn", "encoder"])
def test_two_processes_learn_what_one_does(
    features: tuple[str, str], tmp_path: Path, model: str
) -> None:
    more = ("--dropout", "0", "--model", model, "--batch-size", "9")
    subprocess.run(command_of(features, tmp_path / "one", *more), check=True)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    together = subprocess.run(
        [*torchrun, "--no-python", *command_of(features, tmp_path / "two", *more)],
        capture_output=True,
        text=True,
    )
    assert together.returncode == 0, together.stderr
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, weight in one.items():
        np.testing.assert_allclose(weight, two[name], atol=2e-5, err_msg=name)
