"""The reproduction, from FEVER's own files to the report, on a small world of our own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.data import Dataset
from dgn.errors import InvalidInput
from dgn.evaluation import EvaluationSet
from dgn.learn import RunConfig, build_network, parameter_count
from dgn.learn.families.pooled_table import PooledTable
from dgn.selector import Selector
from experiments.reproduce.__main__ import main
from experiments.reproduce.analysis import (
    differences_by_group,
    exchanged,
    gold_of,
    gold_similarity,
)
from experiments.reproduce.candidates import ONE_PAGE, joined, others_per_gold, thinned, with_pages
from experiments.reproduce.data import DataLayout, find_layout
from experiments.reproduce.paper import PARAMETERS, TABLE_1, cut_of_missed_recall, gold_per_claim
from experiments.reproduce.plan import (
    IMBALANCE_MODELS,
    MODELS,
    RECIPES,
    STARTS,
    UNIT,
    Effort,
    plan_search,
    plan_tables,
    trials_of,
)
from experiments.reproduce.results import Spread, read_run
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
            "The street is narrow .",
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


FEW = ["--trials", "2", "--seeds", "2", "--study-seeds", "1", "--epochs", "1", "--workers", "2"]
SOME_MODELS = [
    "Encoder",
    "Encoder, listwise",
    "DGN",
    "DGN, start searched",
    "Encoder, listwise, tuned",
    "DGN, tuned",
]


def test_from_official_files_to_the_report(
    official: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = [str(official), "--out", str(out), "--device", "cpu", *FEW]
    command += ["--models", *SOME_MODELS]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert re.match(r"Training: at most \d+ (seconds|minutes) on .* for (\d+) of \2 runs", printed)
    for name in ("TF-IDF, words", "Top-k", "Encoder, listwise", "DGN, tuned"):
        assert name in printed
    report = (out / "report" / "report.md").read_text()
    assert "reported on paper_test.jsonl" in report
    assert "40 training claims, 12 reported claims" in report
    assert "K = 7 covers 100% of the training claims and 100% of the reported ones" in report
    for title in (
        "Table 1",
        "Table 2",
        "What the greedy layers add",
        "Class imbalance in the data",
        "Temperature",
        "Soft",
    ):
        assert f"## {title}" in report
    assert "worked as" not in report  # numbers and plots, no data
    numbers = json.loads((out / "report" / "report.json").read_text())
    rows = {row["name"]: row for row in numbers["rows"]}
    assert set(SOME_MODELS) < set(rows)
    assert not set(MODELS).difference(SOME_MODELS) & set(rows)
    assert rows["DGN"]["micro_recall"]["7"]["count"] == 2
    assert 0 < rows["DGN"]["micro_recall"]["7"]["mean"] <= 1
    assert all(one["trials"] == 2 for one in numbers["searched"].values())
    assert numbers["studies"]["dgn_weights_equal"]
    assert [one["name"] for one in numbers["harder"]][-1] == "2 claims joined"
    regimes = {one["variant"]: one for one in numbers["layers"]["paper"]["regimes"]}
    assert set(STARTS) | {"DGN", "DGN, start searched"} == set(regimes)
    assert all(0 < one["kept"]["mean"] < 1 < one["alone"]["mean"] for one in regimes.values())
    imbalance = numbers["studies"]["imbalance"]
    assert [one["model"] for one in imbalance[::3]] == list(IMBALANCE_MODELS)
    others = [one["others_per_gold"] for one in imbalance[:3]]
    assert others[0] < others[1] < others[2]
    figures = ("recall", "epochs", "candidates", "temperature", "imbalance", "weight", "soft")
    for figure in (*figures, "proofs"):
        assert (out / "report" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / "report" / f"{figure}.svg").read_text().startswith("<?xml")
    # The second time nothing is trained, and the report is the same.
    drawn = (out / "report" / "claims.svg").read_bytes()
    stamp = (out / "runs/table/DGN-seed0/model.safetensors").stat().st_mtime_ns
    assert main(command) == 0
    assert "runs are finished" in capsys.readouterr().out
    assert (out / "runs/table/DGN-seed0/model.safetensors").stat().st_mtime_ns == stamp
    assert (out / "report" / "report.md").read_text() == report
    assert (out / "report" / "claims.svg").read_bytes() == drawn
    # What was picked on the way is what the saved model selects.
    picks = read_run(out / "runs/table/DGN--tuned-seed1").picks()[ONE_PAGE]
    selector = Selector.from_pretrained(out / "runs/table/DGN--tuned-seed1")
    queries = EvaluationSet.of(Dataset(official / "paper_test.jsonl", out / "pages.db")).queries
    selected = selector.select_queries(queries, dgn.Limits(k=7))
    assert [list(one.indices) for one in selected] == [row[row >= 0].tolist() for row in picks]


@pytest.mark.slow
def test_a_part_of_the_models_and_broken_rows(
    official: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "fever", tmp_path / "out"
    shutil.copytree(official, data)
    for name, broken in (("train", "{"), ("paper_dev", '{"id": 7, "claim": ""}')):
        with (data / f"{name}.jsonl").open("a") as stream:
            stream.write(f"{broken}\n")
    command = [str(data), "--out", str(out), "--device", "cpu", *FEW, "--claims", "20"]
    command += ["--models", "Encoder, tuned", "--no-studies"]
    assert main(command) == 1
    assert "line 42" in capsys.readouterr().err
    for _ in range(2):  # the second time nothing is read again that was skipped
        assert main([*command, "--skip-bad"]) == 0
        said = capsys.readouterr()
        assert "skipped 2 broken rows in all" in said.err
        assert "line 42" in said.err
    report = (out / "report" / "report.md").read_text()
    assert "2 broken rows of the data were skipped." in report
    assert "Every run learns from 20 of the training claims" in report
    assert "greedy layers add" not in report, "there is no DGN"


def test_studies_need_their_models(
    official: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [str(official), "--out", str(tmp_path / "out"), "--models", "DGN"]
    assert main([*command, "--studies", "imbalance"]) == 1
    assert "need the models Encoder; Encoder, listwise" in capsys.readouterr().err
    assert main([*command, "--recipe", "tuned"]) == 1
    assert "None of the models is in the recipe tuned" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_prints_one_line(official: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.reproduce", str(official)]
    command += ["--out", str(tmp_path), "--no-studies", "--device", "cpu"]
    with subprocess.Popen(
        [*command, *FEW],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where the tests themselves run in the background of a shell, Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        cwd=Path(__file__).parents[2],
    ) as run:
        while not (tmp_path / "features" / "unit" / "report").exists():
            time.sleep(0.05)
        time.sleep(1.5)  # the workers are importing, or have just begun
        os.killpg(run.pid, signal.SIGINT)
        assert run.stderr is not None
        said = run.stderr.read()
    assert run.returncode == 130
    assert "run the same command again" in said
    assert "Traceback" not in said


def rows_of(count: int, pages: int) -> list[object]:
    return [
        {
            "id": f"{n}",
            "claim": "c",
            "documents": [{"title": f"P{n % pages}", "sentences": ["a", "b"]}],
        }
        for n in range(count)
    ]


def pages_of(part: Dataset) -> set[str | None]:
    return {p.id for e in part.examples() for p in e.query.passages}


def check_apart(layout: DataLayout) -> None:
    parts = [*layout.train.values(), layout.choose, layout.report]
    pages = [pages_of(part) for part in parts]
    assert all(pages)
    assert sum(map(len, pages)) == len(set().union(*pages)), "no page is in two parts"


def test_one_file_is_divided_by_its_pages(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "dev.jsonl", rows_of(120, 60))
    layout = find_layout(tmp_path, tmp_path)
    check_apart(layout)
    parts = [layout.train["train"], layout.choose, layout.report]
    assert sum(len(list(part.examples())) for part in parts) == 120


def test_a_large_dev_file_is_divided_and_a_small_one_is_not(tmp_path: Path) -> None:
    train = [{**row, "documents": [{"title": "T", "sentences": ["x"]}]} for row in rows_of(9, 9)]
    write_jsonl(tmp_path / "train.jsonl", train)
    write_jsonl(tmp_path / "dev.jsonl", rows_of(1000, 50))
    large = find_layout(tmp_path, tmp_path)
    check_apart(large)
    assert large.choose.queries == large.report.queries
    write_jsonl(tmp_path / "train.jsonl", rows_of(200, 100))
    dev = [{**row, "documents": [{"title": "D", "sentences": ["x"]}]} for row in rows_of(9, 9)]
    write_jsonl(tmp_path / "dev.jsonl", dev)
    small = find_layout(tmp_path, tmp_path)
    check_apart(small)
    assert small.report == Dataset(tmp_path / "dev.jsonl")


def small_table(unit: bool) -> PooledTable:
    """Four claims about three pages of two or three passages."""
    random = np.random.default_rng(0)
    queries, passages = random.random((4, 5)), random.random((8, 5))
    if unit:
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    return PooledTable(
        queries.astype(np.float16),
        passages.astype(np.float16),
        np.array([0, 3, 5, 8, 11]),
        np.array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2], np.int32),
        np.array([1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1], bool),
        np.array(["a", "b", "c", "d"]),
    )


def test_more_pages_bring_candidates_and_no_gold() -> None:
    table = small_table(unit=False)
    more = with_pages(table, 3)
    assert more.gold.sum() == table.gold.sum()
    assert (more.lengths == 8).all(), "all three pages"
    for row in range(4):
        own = more.candidates[more.offsets[row] : more.offsets[row + 1]]
        assert len(set(own.tolist())) == 8
        first = table.candidates[table.offsets[row] : table.offsets[row + 1]]
        assert own[: len(first)].tolist() == first.tolist(), "the claim's own page comes first"


def test_thinned_claims_have_one_other_passage_for_each_gold_one() -> None:
    table = small_table(unit=False)
    few = thinned(table)
    assert gold_of(few).sum(axis=1).tolist() == gold_of(table).sum(axis=1).tolist()
    # The second claim has two passages, and the third one three, one of them not gold.
    assert few.lengths.tolist() == [2, 2, 3, 2]
    assert others_per_gold(few) == pytest.approx(4 / 5)
    for row in range(4):
        own = few.candidates[few.offsets[row] : few.offsets[row + 1]]
        page = table.candidates[table.offsets[row] : table.offsets[row + 1]]
        assert set(own.tolist()) <= set(page.tolist())


def test_what_a_model_exchanges_against_greedy() -> None:
    gold = np.array([[True, True, False, False], [True, False, False, False]])
    greedy = np.array([[0, 2], [1, 2]])  # misses item 1 of the first and item 0 of the second
    model = np.array([[1, 2], [0, -1]])  # finds both, and loses item 0 of the first
    found = exchanged(2, greedy, [model, greedy], gold)
    assert (found.found, found.lost) == (0.5, 0.25)
    net = cut_of_missed_recall(1 / 3, (2 / 3 + 1 / 3) / 2)
    assert found.found - found.lost == pytest.approx(net)


@pytest.mark.parametrize("unit", [False, True])
def test_joined_claims_have_the_gold_of_both(unit: bool) -> None:
    table = small_table(unit)
    both = joined(table)
    gold = gold_of(both).sum(axis=1)
    assert (gold > gold_of(table).sum(axis=1)).all()
    lengths = np.linalg.norm(both.queries.astype(np.float32), axis=1)
    assert np.allclose(lengths, 1, atol=1e-2) == unit


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


def test_every_model_has_the_same_number_of_trials_and_differs_in_what_it_searches() -> None:
    search = plan_search(Effort(), 16_607, 300)
    assert len({run.folder for run in search}) == len(search) == 20 * len(MODELS)
    for name, model in MODELS.items():
        trials = trials_of(search, name)
        assert len(trials) == 20
        assert len({json.dumps(run.settings) for run in trials}) == 20
        for run in trials:
            assert 0.5 <= run.settings.get("temperature", 1) <= 6 or model.features == UNIT
            config = RunConfig().with_settings(run.settings)
            assert config.encoder.widths[-1] <= 300
            assert run.features == model.features
    again = plan_search(Effort(), 16_607, 300)
    assert again == search, "the same at every call"


def test_the_plan_of_the_tables() -> None:
    best = {
        name: trials_of(plan_search(Effort(), 16_607, 300), name)[0].settings for name in MODELS
    }
    plan = plan_tables(Effort(), 16_607, best)
    assert len({run.folder for run in plan}) == len(plan)
    assert sum(run.study == "table" for run in plan) == 5 * len(MODELS)
    assert all(run.is_reported == (run.study in ("table", "start", "imbalance")) for run in plan)
    small = next(run for run in plan if run.study == "claims" and run.variant == "1038")
    assert small.settings["batch_size"] == 16
    tables = plan_tables(Effort(models=RECIPES["tuned"], seeds=1, studies=()), 100, best)
    assert [run.variant for run in tables] == list(RECIPES["tuned"])


def test_groups_of_claims_and_what_gold_has_in_common() -> None:
    random = np.random.default_rng(0)
    count = 60
    table = PooledTable(
        random.random((count, 4)).astype(np.float16),
        random.random((6 * count, 4)).astype(np.float16),
        np.arange(0, 6 * count + 1, 6),
        np.arange(6 * count, dtype=np.int32),
        np.tile([True, True, False, False, False, False], count),
        np.arange(count).astype(str),
    )
    best, worst = np.tile(np.arange(6), (count, 1)), np.tile(np.arange(6)[::-1], (count, 1))
    groups = {one.group: one for one in differences_by_group(table, [best], [worst, worst])}
    assert groups["all claims"].claims == count
    assert groups["2 gold passages"].at[1].difference.mean == pytest.approx(0.5)
    assert "1 gold passage" not in groups
    found = gold_similarity(table)
    assert found.several == 1
    unit = table.passages.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    pages = unit.reshape(count, 6, 4)
    expected = np.mean([page[0] @ page[1] for page in pages])
    assert found.among_gold == pytest.approx(expected, abs=1e-3)


def test_the_cuts_of_the_paper() -> None:
    cuts = [
        cut_of_missed_recall(TABLE_1["Greedy"][k][0], TABLE_1["DGN"][k][0]) for k in (1, 3, 5, 7)
    ]
    assert cuts == pytest.approx([0.20, 0.31, 0.345, 0.36], abs=0.005)


def test_the_gold_per_claim_that_the_table_implies() -> None:
    """Recall and precision agree at k = 1 and 3, where every claim has k candidates."""
    for name in TABLE_1:
        assert gold_per_claim(name, 1) == pytest.approx(1.665, abs=0.01)
        assert gold_per_claim(name, 3) == pytest.approx(1.67, abs=0.01)
        assert 1.70 < gold_per_claim(name, 5) < 1.72
        assert 1.76 < gold_per_claim(name, 7) < 1.79


def test_the_networks_of_the_paper_have_its_numbers_of_parameters() -> None:
    """Written as the paper writes them; its last layer has 254 features, and 270 in the Encoder."""
    widths = {"DGN": [300, 254], "Deep DGN": [1439, 1439, 1439, 254], "Encoder": [300, 270]}
    for name, count in PARAMETERS.items():
        settings = {**MODELS[name].settings, **({"widths": widths[name]} if name in widths else {})}
        network = build_network(RunConfig().with_settings(settings), 300)
        assert f"{parameter_count(network) / 1000:.0f}K" == count, name


def test_a_spread_depends_on_the_number_of_seeds() -> None:
    assert str(Spread.of([0.5])) == ".500"
    assert str(Spread.of([0.5, 0.6])) == ".550 ±.071"
