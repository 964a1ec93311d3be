"""A run: features and a configuration in, a model folder out; it can be killed and resumed."""

import json
import random
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dgn.apps.cli.main import main
from dgn.errors import BrokenInput, InvalidInput
from dgn.learn import EpochReport, is_finished, load_network, open_run, train
from dgn.learn.run import read_checkpoint, write_checkpoint
from forked import start
from small_features import small_run, write_table


class Stopped(Exception):
    pass


def stop_after(steps: int) -> object:
    """A function for on_step that stops a run after this many steps."""
    left = steps

    def stop(_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Stopped

    return stop


def assert_same_weights(one: torch.nn.Module, other: torch.nn.Module) -> None:
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, other.state_dict()[name]), name


def test_run_leaves_a_complete_folder(features: tuple[str, str], tmp_path: Path) -> None:
    seen: list[EpochReport] = []
    result = train(small_run(features), tmp_path / "run", on_epoch=seen.append)
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
    assert result.resumed_at is None
    assert not result.was_finished
    assert_same_weights(result.network, load_network(tmp_path / "run"))


def test_finished_run_is_not_run_again(features: tuple[str, str], tmp_path: Path) -> None:
    first = train(small_run(features), tmp_path / "run")
    assert is_finished(small_run(features), tmp_path / "run")
    again = train(small_run(features, device="auto"), tmp_path / "run", on_epoch=pytest.fail)
    assert again.was_finished
    assert (again.reports, again.best_epoch) == (first.reports, first.best_epoch)
    opened = open_run(tmp_path / "run")
    assert (opened.reports, opened.stopped) == (first.reports, "all epochs are done")
    assert_same_weights(first.network, opened.network)


def test_folder_with_other_settings_is_not_changed(
    features: tuple[str, str], tmp_path: Path
) -> None:
    train(small_run(features, epochs=1), tmp_path / "run")
    with pytest.raises(
        InvalidInput, match=r"contains a run with other settings \(fit\.epochs, fit\.seed\)"
    ):
        train(small_run(features, epochs=2, seed=1), tmp_path / "run")
    with pytest.raises(InvalidInput, match=r"other settings \(pooled\.scale\)"):
        train(small_run(features, epochs=1, scale=2.0), tmp_path / "run")


def test_folder_with_other_files_is_not_changed(features: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="contains other files; choose a new folder"):
        train(small_run(features), tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.txt"]


def test_model_of_something_else_is_not_changed(features: tuple[str, str], tmp_path: Path) -> None:
    train(small_run(features, epochs=1), tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    described = json.loads(path.read_text())
    del described["training"]
    path.write_text(json.dumps(described))
    with pytest.raises(InvalidInput, match="contains a model that dgn train did not write"):
        train(small_run(features, epochs=1), tmp_path / "run")
    with pytest.raises(InvalidInput, match="was not written by dgn train"):
        load_network(tmp_path / "run")


def test_features_that_have_changed(features: tuple[str, str], tmp_path: Path) -> None:
    changed = write_table(tmp_path / "train", 80, 5)
    train(small_run((changed, features[1]), epochs=1), tmp_path / "run")
    meta = Path(changed, "meta.json")
    meta.write_text(meta.read_text().replace("seed 5", "seed 6"))
    with pytest.raises(InvalidInput, match=r"other settings \(features\)"):
        train(small_run((changed, features[1]), epochs=1), tmp_path / "run")


def test_part_of_the_queries(features: tuple[str, str], tmp_path: Path) -> None:
    result = train(small_run(features, max_queries=20, epochs=1), tmp_path / "run")
    assert len(result.reports) == 2
    with pytest.raises(InvalidInput, match="max_queries must be at most 90; got 1,000"):
        train(small_run(features, max_queries=1000), tmp_path / "more")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": []}, "train is not set"),
        ({"train": ["nowhere"]}, "contains no features"),
        ({"device": "teapot"}, "device must be auto, cpu, cuda or cuda:N; got 'teapot'"),
        ({"device": "cuda:99"}, "The device cuda:99 is not available"),
        (
            {"architecture": "encoder", "widths": [3]},
            "widths must be 2 layers for the encoder",
        ),
    ],
)
def test_mistakes_are_found_before_anything_is_written(
    features: tuple[str, str], tmp_path: Path, settings: dict, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        train(small_run(features, **settings), tmp_path / "run")
    assert not list(tmp_path.glob("run/*"))


def test_loading_is_strict(features: tuple[str, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(InvalidInput, match=r"is not a model folder: it has no config\.json"):
        load_network(run)
    train(small_run(features, epochs=1), run)
    weights = load_file(run / "model.safetensors")
    save_file({**weights, "extra": torch.zeros(1)}, run / "model.safetensors")
    with pytest.raises(BrokenInput, match="extra"):
        load_network(run)
    (run / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(BrokenInput, match=r"model\.safetensors: expected a safetensors file"):
        load_network(run)
    (run / "model.safetensors").unlink()
    with pytest.raises(BrokenInput, match="it is not finished: run the same command again"):
        load_network(run)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"import": {"name": "os"}}, r"\[import\] is not a section of a run"),
        ({"fit": {"epoch": 3}}, "did you mean epochs"),
        ({"features": None}, "has no valid inputs or features"),
    ],
)
def test_configuration_of_a_run_is_read_strictly(
    features: tuple[str, str], tmp_path: Path, changes: dict, message: str
) -> None:
    train(small_run(features, epochs=1), tmp_path)
    described = json.loads((tmp_path / "config.json").read_text())
    changed = {k: v for k, v in {**described["training"], **changes}.items() if v is not None}
    (tmp_path / "config.json").write_text(json.dumps({**described, "training": changed}))
    with pytest.raises(BrokenInput, match=message) as error:
        load_network(tmp_path)
    assert "config.json" in str(error.value)


def test_broken_checkpoint_says_what_to_do(features: tuple[str, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(small_run(features, epochs=1), run)
    (run / "summary.json").unlink()
    (run / "checkpoint.safetensors").write_bytes(b"half a file")
    with pytest.raises(BrokenInput, match="delete the file to start again"):
        train(small_run(features, epochs=1), run)


def test_one_process_per_folder(features: tuple[str, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / ".config.json.77.partial").write_text("{")

    def begin_again(_: object) -> None:
        with pytest.raises(InvalidInput, match="Another process is writing to"):
            train(small_run(features), run)

    train(small_run(features), run, on_step=begin_again)
    assert not list(run.glob(".*"))


def test_resumed_run_says_where_it_was_resumed(features: tuple[str, str], tmp_path: Path) -> None:
    settings = small_run(features, checkpoint_seconds=0.0, dropout=0.1)
    whole = train(settings, tmp_path / "whole")
    with pytest.raises(Stopped):
        train(settings, tmp_path / "parts", on_step=stop_after(8))
    resumed = train(settings, tmp_path / "parts")
    assert resumed.resumed_at == 1
    assert_same_weights(whole.network, resumed.network)


def test_resumed_run_keeps_its_number_of_threads(features: tuple[str, str], tmp_path: Path) -> None:
    before = torch.get_num_threads()
    used: list[int] = []

    def watch(_: object) -> None:
        used.append(torch.get_num_threads())

    try:
        first = small_run(features, threads=2, checkpoint_seconds=0.0)
        with pytest.raises(Stopped):
            train(first, tmp_path, on_step=stop_after(3))
        torch.set_num_threads(1)
        train(small_run(features, threads=0), tmp_path, on_step=watch)
        assert set(used) == {2}
    finally:
        torch.set_num_threads(before)


def test_threads_of_the_user_take_precedence_over_the_checkpoint(
    features: tuple[str, str], tmp_path: Path
) -> None:
    before = torch.get_num_threads()
    used: list[int] = []
    try:
        with pytest.raises(Stopped):
            train(
                small_run(features, threads=2, checkpoint_seconds=0.0),
                tmp_path,
                on_step=stop_after(3),
            )
        train(
            small_run(features, threads=1),
            tmp_path,
            on_step=lambda _: used.append(torch.get_num_threads()),
        )
        assert set(used) == {1}
    finally:
        torch.set_num_threads(before)


def command_of(features: tuple[str, str], out: Path, *more: str) -> list[str]:
    settings = ["--epochs", "4", "--batch-size", "8", "--layers", "3", "--dropout", "0.1"]
    data = ["--train", features[0], "--validation", features[1], "--device", "cpu"]
    return ["train", "--out", str(out), *data, *settings, *more]


def test_sigkill_at_random_moments_changes_no_bit(
    features: tuple[str, str], tmp_path: Path
) -> None:
    often = ("--checkpoint-seconds", "0", "--ema-decay", "0.9", "--quiet")
    assert main(command_of(features, tmp_path / "undisturbed", *often)) == 0
    out, moments = tmp_path / "killed", random.Random(0)
    kills = 0
    while True:
        run = start(command_of(features, out, *often))
        checkpoint = out / "checkpoint.safetensors"
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        while run.is_alive() and kills < 5:
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns != before:
                time.sleep(moments.uniform(0, 0.03))
                run.kill()
                run.join()
                kills += run.exitcode == -9
            time.sleep(0.001)
        run.join()
        if run.exitcode == 0:
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


def output_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_run_without_an_improvement_says_so(
    features: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--epochs", "1", "--learning-rate", "1e-12")
    said = output_of(command_of(features, tmp_path, *few), capsys)
    assert "best epoch 0" in said
    assert "training did not improve the validation recall; the model is the start" in said
    again = output_of(command_of(features, tmp_path, *few), capsys)
    assert "already finished, nothing to do" in again
    assert "training did not improve the validation recall" in again


def test_run_with_an_improvement_does_not_say_so(
    features: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = output_of(command_of(features, tmp_path, "--learning-rate", "0.01"), capsys)
    assert "did not improve" not in said


@pytest.mark.parametrize(
    ("at_best", "expected"),
    [
        ((0.4, 0.9), "below the start: recall fell from 0.5000 to 0.4000 at k = 1"),
        ((0.5, 0.9), None),
        ((0.45, 0.59), "recall fell from 0.5000 to 0.4500 at k = 1, 0.6000 to 0.5900 at k = 3"),
    ],
)
def test_recall_that_falls_at_some_k_is_printed(
    features: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    at_best: tuple[float, float],
    expected: str | None,
) -> None:
    command = command_of(features, tmp_path, "--epochs", "1", "--eval-ks", "1", "3")
    assert main([*command, "--quiet"]) == 0
    rows = [
        {"epoch": epoch, "loss": None, "recalls": recalls, "learning_rate": 0.1}
        | {"temperature": 4.0, "queries_per_second": 1.0}
        for epoch, recalls in enumerate([(0.5, 0.6), at_best])
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = json.loads((tmp_path / "summary.json").read_text())
    (tmp_path / "summary.json").write_text(json.dumps({**summary, "best_epoch": 1}))
    said = output_of(command, capsys)
    if expected is None:
        assert "below the start" not in said
    else:
        assert expected in said


VALUES = {"position": {"epoch": 1, "batch": 2}, "reports": [{"loss": None}], "stopped": "é"}


def test_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    tensors = {
        "weight": torch.randn(3, 4).T,
        "losses": torch.zeros(2, dtype=torch.float64),
        "random": torch.get_rng_state(),
    }
    write_checkpoint(tmp_path / "state", tensors, VALUES)
    found, values = read_checkpoint(tmp_path / "state")
    assert values == VALUES
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize("content", [b"", b"half a file", b"\x00" * 100, b"\x05" * 9])
def test_broken_checkpoint_says_what_to_do_checkpoint(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(BrokenInput, match="delete the file to start again"):
        read_checkpoint(tmp_path / "state")


def test_truncated_checkpoint_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "state", {"weight": torch.zeros(100)}, VALUES)
    content = (tmp_path / "state").read_bytes()
    (tmp_path / "state").write_bytes(content[:-10])
    with pytest.raises(BrokenInput, match="expected a checkpoint of dgn train"):
        read_checkpoint(tmp_path / "state")
