"""The reproduction, from FEVER's own files to the report, on a small world of our own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dgn.errors import InvalidInput
from dgn.training import RunConfig, read_config
from experiments.reproduce.__main__ import main
from experiments.reproduce.data import find_layout
from experiments.reproduce.paper import TABLE_1, cut_of_missed_recall
from experiments.reproduce.plan import MODELS, Effort, make_plan
from experiments.reproduce.results import Spread
from fever_files import wiki_row, write_jsonl

PLACES = ("Arden", "Brock", "Calder", "Dunmore", "Elsing", "Farrow", "Garth", "Holme")
TRADES = ("baker", "sailor", "printer", "miller", "weaver", "painter", "doctor", "potter")


def pages() -> dict[str, list[str]]:
    """One page per person: name, place, trade, and two sentences of no use."""
    return {
        f"{place}_{trade.title()}": [
            f"{place} {trade.title()} was born in {place} .",
            f"He worked as a {trade} for thirty years .",
            "The weather was often bad .",
            f"His house in {place} still stands .",
            "Nobody knows why .",
        ]
        for place in PLACES
        for trade in TRADES
    }


def claims(titles: list[str], first_id: int) -> list[object]:
    rows: list[object] = []
    for number, title in enumerate(titles):
        place, trade = title.split("_")
        evidence = [[[0, 0, title, 1]], [[0, 1, title, 0], [0, 2, title, 3]]][number % 2 :]
        claim = f"{place} {trade} worked as a {trade.lower()} and was born in {place}."
        label = "SUPPORTS" if number % 3 else "REFUTES"
        rows.append({"id": first_id + number, "label": label, "claim": claim, "evidence": evidence})
    nothing = [[[0, None, None, None]]]
    unknown = {"label": "NOT ENOUGH INFO", "claim": "Somebody was there.", "evidence": nothing}
    return [*rows, {"id": first_id + 900, **unknown}]


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """FEVER's layout: train, paper_dev and paper_test, and wiki-pages."""
    folder = tmp_path_factory.mktemp("fever")
    world = pages()
    (folder / "wiki-pages").mkdir()
    first = {"id": "", "text": "", "lines": ""}
    rows = [first, *(wiki_row(title, lines) for title, lines in world.items())]
    write_jsonl(folder / "wiki-pages" / "wiki-001.jsonl", rows)
    titles = [list(world)[i] for i in np.random.default_rng(0).permutation(len(world))]
    write_jsonl(folder / "train.jsonl", claims(titles[:40], 1))
    write_jsonl(folder / "paper_dev.jsonl", claims(titles[40:52], 1000))
    write_jsonl(folder / "paper_test.jsonl", claims(titles[52:], 2000))
    return folder


def test_from_official_files_to_the_report(
    official: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = [str(official), "--out", str(out), "--device", "cpu"]
    assert main([*command, "--seeds", "2", "--study-seeds", "1", "--epochs", "1"]) == 0
    printed = capsys.readouterr().out
    for name in ("TF-IDF, words", "Top-k", "Encoder", "DeepEncoder", "DGN"):
        assert name in printed
    report = (out / "report" / "report.md").read_text()
    assert "reported on paper_test.jsonl" in report
    assert "40 training claims, 12 reported claims" in report
    for title in ("Table 1", "Table 2", "Temperature", "Class imbalance", "Ablation", "Soft"):
        assert f"## {title}" in report
    assert "worked as" not in report  # numbers and plots, no data
    numbers = json.loads((out / "report" / "report.json").read_text())
    dgn = next(row for row in numbers["rows"] if row["name"] == "DGN")
    assert dgn["recall"]["7"]["count"] == 2
    assert 0 < dgn["recall"]["7"]["mean"] <= 1
    assert numbers["studies"]["dgn_weights_equal"]
    assert len(numbers["studies"]["soft"]) == 8
    for figure in ("recall", "epochs", "temperature", "imbalance", "claims", "soft", "proofs"):
        assert (out / "report" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / "report" / f"{figure}.svg").read_text().startswith("<?xml")
    # The second time nothing is trained, and the report is the same.
    drawn = (out / "report" / "claims.svg").read_bytes()
    stamp = (out / "runs/table/DGN-seed0/model.safetensors").stat().st_mtime_ns
    assert main([*command, "--seeds", "2", "--study-seeds", "1", "--epochs", "1"]) == 0
    assert (out / "runs/table/DGN-seed0/model.safetensors").stat().st_mtime_ns == stamp
    assert (out / "report" / "report.md").read_text() == report
    assert (out / "report" / "claims.svg").read_bytes() == drawn


def test_ctrl_c_prints_one_line(official: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.reproduce", str(official)]
    command += ["--out", str(tmp_path), "--seeds", "2", "--no-studies", "--device", "cpu"]
    with subprocess.Popen(
        [*command, "--workers", "2"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    ) as run:
        while not (tmp_path / "features" / "second" / "choose").exists():
            time.sleep(0.05)
        time.sleep(1.5)  # the workers are importing, or have just begun
        os.killpg(run.pid, signal.SIGINT)
        assert run.stderr is not None
        said = run.stderr.read()
    assert run.returncode == 130
    assert "run the same command again" in said
    assert "Traceback" not in said


def test_one_file_is_split_by_its_pages(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"{n}",
            "claim": "c",
            "documents": [{"title": f"P{n % 10}", "sentences": ["a", "b"]}],
        }
        for n in range(30)
    ]
    write_jsonl(tmp_path / "dev.jsonl", rows)
    layout = find_layout(tmp_path, tmp_path)
    parts = [layout.train["train"], layout.choose, layout.report]
    titles = [{p.id for e in part.examples() for p in e.query.passages} for part in parts]
    assert [len(part) for part in titles] == [6, 2, 2]
    assert not titles[0] & titles[1]
    assert not titles[1] & titles[2]
    assert sum(len(list(part.examples())) for part in parts) == 30


def test_a_run_of_dgn_train_is_not_written_into(
    official: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert main([str(official), "--out", str(tmp_path)]) == 1
    assert "a run of dgn train" in capsys.readouterr().err


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InvalidInput, match=r"does not exist|no dev claims"):
            find_layout(folder, tmp_path)


def test_the_plan() -> None:
    plan = make_plan(Effort(), 16_607, 256)
    assert len({run.folder for run in plan}) == len(plan)
    assert sum(run.study == "table" for run in plan) == 15
    assert {run.settings["batch_size"] for run in plan if run.study == "table"} == {256}
    small = next(run for run in plan if run.study == "claims" and run.variant == "1038")
    assert small.settings["batch_size"] == 16
    assert len(make_plan(Effort(seeds=1, studies=False), 100, 256)) == 4


def test_the_committed_settings_are_those_of_the_plan() -> None:
    folder = Path(__file__).parents[2] / "experiments" / "results"
    for settings in MODELS.values():
        written = read_config(folder / f"{settings['architecture']}.toml")
        assert written == RunConfig().with_settings(settings)


def test_the_cuts_of_the_paper() -> None:
    cuts = [
        cut_of_missed_recall(TABLE_1["Greedy"][k][0], TABLE_1["DGN"][k][0]) for k in (1, 3, 5, 7)
    ]
    assert cuts == pytest.approx([0.20, 0.31, 0.345, 0.36], abs=0.005)


def test_a_spread_depends_on_the_number_of_seeds() -> None:
    assert str(Spread.of([0.5])) == ".500"
    assert str(Spread.of([0.5, 0.6])) == ".550 ±.071"
