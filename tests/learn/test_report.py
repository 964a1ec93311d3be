"""What a run leaves for people: metrics, events, curves, a summary and a model card."""

import json
import struct
from pathlib import Path

import pytest
import torch
from tensorboardX.proto.event_pb2 import Event

from dgn.errors import BrokenInput
from dgn.learn import EpochReport, RunConfig, read_config, train
from dgn.learn.report import (
    Events,
    RunSummary,
    draw_curves,
    read_metrics,
    read_summary,
    write_card,
    write_metrics,
    write_summary,
)
from small_features import small_run

REPORTS = [
    EpochReport(0, None, (0.5, 0.6), 0.1, 4.0, 0.0),
    EpochReport(1, 2.5, (0.7, 0.8), 0.1, 4.0, 100.0),
    EpochReport(2, 1.5, (0.6, 0.8), 0.1, 4.0, 120.0),
]


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


def card_of(tmp_path: Path, **settings: object) -> str:
    run = RunConfig().with_settings({"eval_ks": [1, 3], "train": ["a"], **settings})
    write_card(tmp_path, run, {"a": {"made": "by hand"}}, REPORTS, 1, 12_345)
    return (tmp_path / "README.md").read_text()


def test_metrics_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_metrics(tmp_path, REPORTS)
    assert read_metrics(tmp_path) == REPORTS
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0, 1, 2]


def test_summary_is_read_as_it_was_written(tmp_path: Path) -> None:
    summary = RunSummary(3, "all epochs are done", 12, "a machine")
    write_summary(tmp_path, summary)
    assert read_summary(tmp_path) == summary
    (tmp_path / "summary.json").write_text('{"best_epoch": 3}')
    with pytest.raises(BrokenInput, match=r"summary\.json: expected the summary of a finished run"):
        read_summary(tmp_path)


def test_events_of_a_resumed_run_replace_the_old_ones(tmp_path: Path) -> None:
    for known in (1, 2):
        events = Events(tmp_path, (1, 3), REPORTS[:known])
        for report in REPORTS[known:]:
            events.add(report)
        events.close()
        found = read_events(tmp_path)
        assert found["train/loss"] == [2.5, 1.5]
        assert found["train/queries_per_second"] == [100.0, 120.0]
        assert found["validation/recall_at_3"] == pytest.approx([0.6, 0.8, 0.8])


def test_curves_are_a_png(tmp_path: Path) -> None:
    draw_curves(tmp_path, (1, 3), REPORTS, 1)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_reports_of_a_run(features: tuple[str, str], tmp_path: Path) -> None:
    result = train(small_run(features), tmp_path / "run")
    assert read_metrics(tmp_path / "run") == list(result.reports)
    events = read_events(tmp_path / "run")
    losses = [report.loss for report in result.reports[1:]]
    assert events["train/loss"] == pytest.approx(losses)
    assert len(events["validation/recall_at_3"]) == 4
    card = (tmp_path / "run/README.md").read_text()
    assert f"| {result.reports[result.best_epoch].recalls[0]:.4f} |" in card
    assert "90 queries, seed 1" in card


def test_card_has_scores_data_and_size(tmp_path: Path) -> None:
    card = card_of(tmp_path)
    assert "| 1 | 0.5000 | 0.7000 |" in card
    assert "| 3 | 0.6000 | 0.8000 |" in card
    assert "12,345 learned parameters" in card
    assert "2 epochs; the weights are those of epoch 1" in card
    assert '- a: {"made": "by hand"}' in card


def test_card_of_pooled_vectors_is_about_pooled_vectors(tmp_path: Path) -> None:
    card = card_of(tmp_path)
    assert "# A differentiable greedy network on pooled features" in card
    assert "mean word vectors of query and passage" in card
    assert "one mean vector per text" in card
    assert "words of the query" not in card
    assert "# A pointwise encoder on pooled" in card_of(tmp_path, architecture="encoder")
    assert "# A deep pointwise encoder on pooled" in card_of(tmp_path, architecture="deep-encoder")


def test_card_of_facets_is_about_the_words_of_the_query(tmp_path: Path) -> None:
    card = card_of(tmp_path, encoder="facets")
    assert "# A differentiable greedy network on facets features" in card
    assert "The features are the words of the query" in card
    assert "It compares words, not meanings" in card
    assert "mean word vectors" not in card
    assert "one mean vector" not in card


@pytest.mark.parametrize(
    "settings", [{"dropout": 0.1}, {"architecture": "encoder", "ema_decay": 0.5}]
)
def test_toml_of_the_card_trains_the_same_weights(
    features: tuple[str, str], tmp_path: Path, settings: dict
) -> None:
    first = train(small_run(features, **settings), tmp_path / "first")
    card = (tmp_path / "first/README.md").read_text()
    (tmp_path / "again.toml").write_text(card.partition("```toml\n")[2].partition("```")[0])
    again = read_config(tmp_path / "again.toml")
    assert again == small_run(features, **settings)
    second = train(again, tmp_path / "second")
    for name, weight in first.network.state_dict().items():
        assert torch.equal(weight, second.network.state_dict()[name])
