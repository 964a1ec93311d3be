"""The experiment of the paper, from FEVER's own files to the report, on a small world."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dgn.core.functions import FeatureCoverage, Items
from dgn.errors import BrokenInput, InvalidInput
from dgn.learn import UnfoldedGreedy, select_all
from experiments.paper.__main__ import main
from experiments.paper.data import example_of, read_claims, read_layout, read_pages
from experiments.paper.features import (
    ONE_PAGE,
    PAPER,
    UNIT,
    ClaimTable,
    embedder,
    joined,
    make_table,
    others_per_gold,
    thinned,
    with_pages,
)
from experiments.paper.measures import (
    Spread,
    claim_groups,
    compared,
    exchanged,
    gold_similarity,
    true_shares,
)
from experiments.paper.networks import (
    CumulativeLoss,
    LastLayerLoss,
    NaiveLogLoss,
    Settings,
    build_network,
    parameter_count,
)
from experiments.paper.plan import (
    IMBALANCES,
    MODELS,
    RECIPES,
    STARTS,
    Effort,
    plan_search,
    plan_tables,
    trials_of,
)
from experiments.paper.published import (
    PARAMETERS,
    TABLE_1,
    cut_of_missed_recall,
    gold_per_claim,
)
from experiments.paper.several_pages import report as several_pages
from experiments.paper.small import write_world
from experiments.paper.stories import STORIES, read_quotes
from experiments.paper.training import read_run, train

SHARED = Path(__file__).parents[3] / "shared"
FEW = ["--trials", "1", "--seeds", "2", "--study-seeds", "1", "--epochs", "1"]
SOME_MODELS = ["Encoder", "Encoder, listwise", "DGN", "Encoder, listwise, tuned", "DGN, tuned"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fever")
    write_world(folder)
    return folder


def test_from_official_files_to_the_report(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = [str(world), "--out", str(out), *FEW, "--models", *SOME_MODELS]
    command += ["--stories", str(world / "paper.tex")]
    assert main(command) == 0
    printed = capsys.readouterr().out
    for name in ("TF-IDF, words", "Top-k", "Encoder, listwise", "DGN, tuned"):
        assert name in printed
    report = (out / "report" / "report.md").read_text()
    assert "reported on paper_test.jsonl" in report
    assert "40 training claims, 12 reported claims" in report
    assert "K = 7 covers 100.0% of the training claims and 100.0% of the reported ones" in report
    for title in (
        "Table 1",
        "Table 2",
        "What the greedy layers add",
        "Class imbalance",
        "Soft",
    ):
        assert f"## {title}" in report
    assert "worked as" not in report, "numbers and plots, no data"
    numbers = json.loads((out / "report" / "report.json").read_text())
    assert set(SOME_MODELS) < set(numbers["rows"])
    assert not set(MODELS).difference(SOME_MODELS) & set(numbers["rows"])
    recall = numbers["rows"]["DGN"]["micro recall"]["7"]
    assert recall["count"] == 2
    assert 0 < recall["mean"] <= 1
    assert len(numbers["imbalance"]) == 4 * len(IMBALANCES)
    assert all(0 < numbers[f"regime {name}"][1]["mean"] < 1 for name in ("DGN", *STARTS))
    figures = ("recall", "epochs", "candidates", "temperature", "imbalance", "weight", "claims")
    for figure in (*figures, "soft", "proofs"):
        assert (out / "report" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / "report" / f"{figure}.svg").read_text().startswith("<?xml")
    stories = (out / "report" / "stories.md").read_text()
    assert all(f"## {story.name}" in stories for story in STORIES)
    assert "harbour" not in stories, "sentences are named, not quoted"
    # The second time nothing is trained, and the report is the same.
    stamp = (out / "runs/table/DGN-seed0/run.json").stat().st_mtime_ns
    assert main(command) == 0
    assert (out / "runs/table/DGN-seed0/run.json").stat().st_mtime_ns == stamp
    assert (out / "report" / "report.md").read_text() == report
    # What was picked on the way is what the saved network selects.
    run = read_run(out / "runs/table/DGN--tuned-seed1")
    features = ClaimTable.load(out / "features" / UNIT / "report.npz")
    picks = select_all(run.network(features.claims.shape[1]), features, 7)[0]
    assert (picks == run.picks()[ONE_PAGE]).all()


@pytest.mark.slow
def test_every_row_and_every_study(world: Path, tmp_path: Path) -> None:
    command = [str(world), "--out", str(tmp_path), "--trials", "1", "--seeds", "1"]
    assert main([*command, "--study-seeds", "1", "--epochs", "1", "--workers", "2"]) == 0
    numbers = json.loads((tmp_path / "report" / "report.json").read_text())
    assert set(MODELS) < set(numbers["rows"])
    ends = {row[0]: row[3] for row in numbers["training"]}
    assert ends["DGN, naive log, τ = .01"] == "not finite in epoch 1"
    assert ends["DGN, τ = .01"] == "all epochs are done"


def test_given_settings_are_not_searched(world: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"DGN": {"widths": [8, 4], "learning_rate": 0.01}}))
    out = tmp_path / "out"
    command = [str(world), "--out", str(out), *FEW, "--models", "DGN", "--no-studies"]
    assert main([*command, "--settings", str(settings), "--claims", "20"]) == 0
    assert not (out / "runs" / "search").exists()
    run = read_run(out / "runs/table/DGN-seed0")
    assert run.settings.widths == (8, 4)
    assert run.settings.claims == 20


def test_studies_and_rows_need_their_models(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [str(world), "--out", str(tmp_path / "out")]
    assert main([*command, "--models", "DGN", "--studies", "imbalance"]) == 1
    assert "need the models Encoder; Encoder, listwise" in capsys.readouterr().err
    assert main([*command, "--models", "DGN, τ = .01", "--no-studies"]) == 1
    assert "need the models DGN" in capsys.readouterr().err
    assert main([*command, "--models", "DGN", "--recipe", UNIT]) == 1
    assert "None of them is in the recipe unit" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_prints_one_line_and_the_rest_continues(world: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.paper", str(world), "--out", str(tmp_path)]
    command += ["--no-studies", *FEW]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where the tests themselves run in the background of a shell, Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        cwd=Path(__file__).parents[2],
        env={**os.environ, "DGN_CHECK_SHAPES": ""},
    ) as run:
        while not list(tmp_path.glob("runs/search/*/run.json")):
            time.sleep(0.05)
        os.killpg(run.pid, signal.SIGINT)
        assert run.stderr is not None
        said = run.stderr.read()
    assert run.returncode == 130
    assert "run the same command again" in said
    assert "Traceback" not in said
    assert main(command[3:]) == 0


def test_evidence_of_several_pages_in_either_spelling(tmp_path: Path) -> None:
    evidence = [[[0, 1, "Cafe\u0301", 0], [0, 2, "B", 1]], [[0, 3, "B", 0]]]
    row = {"id": 7, "claim": "c", "label": "SUPPORTS", "evidence": evidence}
    (tmp_path / "c.jsonl").write_text(json.dumps(row) + "\n")
    [claim] = read_claims(tmp_path / "c.jsonl")
    assert claim.pages == ("Caf\u00e9", "B")
    example = example_of(claim, {"Caf\u00e9": ["x", ""], "B": ["y", "z"]})
    assert example is not None
    assert example.sentences == ["x", "y", "z"], "blank sentences are left out"
    assert example.gold == (True, True, True)
    assert example_of(claim, {"B": ["y"]}) is None, "a page is missing"


def test_pages_of_wikipedia_with_links_and_line_breaks(tmp_path: Path) -> None:
    lines = "0\tA first one .\tlink\tlink\n1\tA sentence\nthat goes on .\tlink\n2\t\n3\tEnd ."
    pages = [{"id": "", "lines": ""}, {"id": "A", "lines": lines}, {"id": "B", "lines": "0\tb"}]
    (tmp_path / "wiki-pages").mkdir()
    text = "".join(json.dumps(page) + "\n" for page in pages)
    (tmp_path / "wiki-pages" / "wiki-001.jsonl").write_text(text)
    assert read_pages(tmp_path, {"A"}) == {
        "A": ["A first one .", "A sentence that goes on .", "", "End ."]
    }


def test_a_page_name_does_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "secret").write_text("no")
    assert read_pages(tmp_path, {"../secret"}) == {}


def test_broken_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": 1, "claim": "c"}\n{"id": 2}\n')
    with pytest.raises(BrokenInput, match=r"c\.jsonl.*line 2"):
        list(read_claims(tmp_path / "c.jsonl"))
    with pytest.raises(InvalidInput, match="no dev claims"):
        read_layout(tmp_path)
    (tmp_path / "w.vec").write_text("2 2\na 1 2\nb 1\n")
    with pytest.raises(BrokenInput, match=r"w\.vec.*line 3"):
        embedder(str(tmp_path / "w.vec"), PAPER, ["a b"])


def rows_of(count: int, pages: int) -> str:
    rows = (
        {
            "id": f"{n}",
            "claim": "c",
            "documents": [{"title": f"P{n % pages}", "sentences": ["a", "b"]}],
        }
        for n in range(count)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_no_page_is_in_two_parts(tmp_path: Path) -> None:
    (tmp_path / "dev.jsonl").write_text(rows_of(120, 60))
    layout = read_layout(tmp_path)
    parts = (layout.learn, layout.choose, layout.report)
    pages = [{title for one in part for title, _ in one.pages} for part in parts]
    assert all(pages)
    assert sum(map(len, pages)) == len(set().union(*pages)) == 60
    assert sum(map(len, parts)) == 120
    (tmp_path / "train.jsonl").write_text(rows_of(200, 100))
    small = read_layout(tmp_path)
    assert len(small.report) == 120, "a small dev file is reported as a whole"
    assert len(small.learn) + len(small.choose) == 200
    (tmp_path / "dev.jsonl").write_text(rows_of(1000, 50))
    large = read_layout(tmp_path)
    assert len(large.learn) == 200
    assert len(large.choose) + len(large.report) == 1000


@pytest.mark.parametrize("suffix", [".vec", ".vec.gz", ".zip"])
def test_vectors_of_words(tmp_path: Path, suffix: str) -> None:
    content = b"4 2\nred 1 0\nRed 9 9\nship 0 1\n. 4 4\n"
    path = tmp_path / f"words{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("words.vec", content)
    else:
        path.write_bytes(gzip.compress(content) if suffix == ".vec.gz" else content)
    texts = ["red SHIP .", "Red", "unknown"]
    assert embedder(str(path), UNIT, texts)(texts).tolist() == [[0.5, 0.5], [9, 9], [0, 0]]
    all_tokens = embedder(str(path), PAPER, texts)(texts)
    assert all_tokens[0] == pytest.approx([5 / 3, 5 / 3]), "punctuation counts"


def small_table(*, unit: bool = False) -> ClaimTable:
    """Four claims about three pages of two or three sentences."""
    random = np.random.default_rng(0)
    claims, sentences = random.random((4, 5)), random.random((8, 5))
    if unit:
        claims /= np.linalg.norm(claims, axis=1, keepdims=True)
    return ClaimTable(
        claims.astype(np.float16),
        sentences.astype(np.float16),
        np.array([0, 3, 5, 8, 11]),
        np.array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2]),
        np.array([1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1], bool),
    )


def test_more_pages_bring_candidates_and_no_gold() -> None:
    table = small_table()
    more = with_pages(table, 3)
    assert more.gold.sum() == table.gold.sum()
    assert (more.lengths == 8).all(), "all three pages"
    for row in range(4):
        of_claim = more.candidates[more.span(row)]
        assert len(set(of_claim.tolist())) == 8
        first = table.candidates[table.span(row)]
        assert of_claim[: len(first)].tolist() == first.tolist(), "its own page comes first"


def test_thinned_claims_have_one_other_sentence_for_each_gold_one() -> None:
    table = small_table()
    few = thinned(table)
    assert few.wanted.sum(axis=1).tolist() == table.wanted.sum(axis=1).tolist()
    # The second claim has two sentences, and the third one three, one of them not gold.
    assert few.lengths.tolist() == [2, 2, 3, 2]
    assert others_per_gold(few) == pytest.approx(4 / 5)


@pytest.mark.parametrize("unit", [False, True])
def test_joined_claims_have_the_gold_of_both(unit: bool) -> None:
    table = small_table(unit=unit)
    both = joined(table)
    assert (both.wanted.sum(axis=1) > table.wanted.sum(axis=1)).all()
    lengths = np.linalg.norm(both.claims.astype(np.float32), axis=1)
    assert np.allclose(lengths, 1, atol=1e-2) == unit


def test_batches_have_every_claim_once_and_x_is_the_product() -> None:
    table = small_table()
    assert sorted(np.concatenate([rows for rows, _ in table.once(2)]).tolist()) == [0, 1, 2, 3]
    batch = table.batch(np.array([1, 2]))
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    expected = table.claims[2].astype(np.float32) * table.sentences[6].astype(np.float32)
    assert batch.x[1, 1].numpy() == pytest.approx(expected)
    assert batch.gold.tolist() == [[False, True, False], [True, True, False]]


def test_the_networks_of_the_paper_have_its_numbers_of_parameters() -> None:
    """Written as the paper writes them; its last layer has 254 features, and 270 in the Encoder."""
    widths = {"Encoder": (300, 270)}
    for name, count in PARAMETERS.items():
        settings = MODELS[name].settings
        settings = replace(settings, widths=widths.get(name, settings.widths))
        network = build_network(settings, 300, 0)
        assert f"{parameter_count(network) / 1000:.0f}K" == count, name
    one_layer = build_network(MODELS["DGN, one layer"].settings, 300, 0)
    assert f"{parameter_count(one_layer) / 1000:.0f}K" == "167K"


def test_settings_survive_json() -> None:
    settings = Settings(widths=(3, 2), loss="cumulative")
    assert Settings.of(json.loads(json.dumps(asdict(settings)))) == settings


def test_a_network_learns_and_keeps_its_best_epoch() -> None:
    random = np.random.default_rng(0)
    claims, sentences = random.random((40, 6)), random.random((200, 6))
    gold = np.zeros((40, 5), bool)
    gold[np.arange(40), (claims[:, None] * sentences.reshape(40, 5, 6))[..., 0].argmax(1)] = True
    table = ClaimTable(
        claims.astype(np.float16),
        sentences.astype(np.float16),
        np.arange(0, 201, 5),
        np.arange(200),
        gold.ravel(),
    )
    settings = Settings(widths=(8, 4), learning_rate=0.02, epochs=12, batch_size=8, patience=0)
    for changes in ({}, {"weight_decay": 0.01, "cosine": True, "ema_decay": 0.9, "annealing": 0.9}):
        network = build_network(replace(settings, **changes), 6, 0)
        epochs, best, stopped = train(network, table, table, replace(settings, **changes), 0)
        assert stopped == "all epochs are done"
        assert len(epochs) == 13
        assert epochs[best].recall == max(epoch.recall for epoch in epochs)
        assert epochs[best].recall > epochs[0].recall
        picks = select_all(network, table, 7)[0]
        assert (picks[:, 0] == gold.argmax(1)).mean() == pytest.approx(epochs[best].recalls[0])


def unfolded(temperature: float, features: torch.Tensor) -> object:
    return UnfoldedGreedy(3, temperature)(FeatureCoverage(), Items(features))


def test_the_readings_of_the_loss() -> None:
    features = torch.rand(4, 6, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    gold = torch.zeros(4, 6, dtype=torch.bool)
    gold[0, 1] = gold[1, 2] = gold[1, 3] = True
    for loss in (CumulativeLoss(), LastLayerLoss(), NaiveLogLoss()):
        value = loss(unfolded(1.0, features), gold)  # pyright: ignore[reportArgumentType]
        value.backward()
        assert value > 0
        assert features.grad is not None
        assert features.grad.isfinite().all()
    naive = NaiveLogLoss()(unfolded(1e-4, 9 * features), gold)  # pyright: ignore
    assert not naive.isfinite(), "the logarithm of zero, as in the paper"


def test_what_a_model_exchanges_against_greedy() -> None:
    gold = np.array([[True, True, False, False], [True, False, False, False]])
    greedy = np.array([[0, 2], [1, 2]])  # misses item 1 of the first and item 0 of the second
    model = np.array([[1, 2], [0, -1]])  # finds both, and loses item 0 of the first
    assert exchanged(2, greedy, [model, greedy], gold) == (0.5, 0.25)
    net = cut_of_missed_recall(1 / 3, (2 / 3 + 1 / 3) / 2)
    assert net == pytest.approx(0.25)


def test_every_model_has_the_same_number_of_trials_and_differs_in_what_it_searches() -> None:
    search = plan_search(Effort(), 16_607, 300)
    searched = [name for name, model in MODELS.items() if model.search is not None]
    assert len({run.folder for run in search}) == len(search) == 20 * len(searched)
    for name in searched:
        trials = trials_of(search, name)
        assert len(trials) == len({run.settings for run in trials}) == 20
        for run in trials:
            assert 0.5 <= run.settings.temperature <= 6
            assert run.kind == MODELS[name].kind
    assert plan_search(Effort(), 16_607, 300) == search, "the same at every call"


def test_the_plan_of_the_tables() -> None:
    best = {name: model.settings for name, model in MODELS.items()}
    plan = plan_tables(Effort(), 16_607, best)
    assert len({run.folder for run in plan}) == len(plan)
    assert sum(run.study == "table" for run in plan) == 5 * len(MODELS)
    few = next(run for run in plan if run.study == "claims" and run.variant == "1038")
    assert few.settings.batch_size == 16
    rates = {run.variant: run.settings.learning_rate for run in plan if run.study == "table"}
    assert rates["DGN, ten times the rate"] == 10 * rates["DGN"]
    tables = plan_tables(Effort(models=RECIPES[UNIT], seeds=1, studies=()), 100, best)
    assert [run.variant for run in tables] == list(RECIPES[UNIT])


def test_groups_of_claims_and_what_gold_has_in_common() -> None:
    random = np.random.default_rng(0)
    count = 60
    table = ClaimTable(
        random.random((count, 4)).astype(np.float16),
        random.random((6 * count, 4)).astype(np.float16),
        np.arange(0, 6 * count + 1, 6),
        np.arange(6 * count),
        np.tile([True, True, False, False, False, False], count),
    )
    best, worst = np.tile(np.arange(6), (count, 1)), np.tile(np.arange(6)[::-1], (count, 1))
    groups = claim_groups(table)
    assert groups["all claims"].sum() == count
    assert "1 gold sentence" not in groups
    tests = compared(table, [best], [worst, worst], groups["2 gold sentences"])
    assert tests[1].difference.mean == pytest.approx(0.5)
    several, among, _ = gold_similarity(table)
    assert several == 1
    unit = table.sentences.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    expected = np.mean([page[0] @ page[1] for page in unit.reshape(count, 6, 4)])
    assert among == pytest.approx(expected, abs=1e-3)


def test_greedy_reaches_a_share_of_the_true_optimum() -> None:
    random = np.random.default_rng(1)
    table = ClaimTable(
        random.random((5, 4)).astype(np.float16),
        random.random((40, 4)).astype(np.float16),
        np.arange(0, 41, 8),
        np.arange(40),
        np.zeros(40, bool),
    )
    network = build_network(Settings(widths=(6,), weights_start=0.1, scale=30.0), 4, 0).eval()
    reached, certified = true_shares(network, table, 3, 4, 8)  # pyright: ignore
    assert len(reached) == 4
    assert all(0.63 < share <= 1 for share in reached)
    assert all(low <= share + 1e-9 for low, share in zip(certified, reached, strict=True))


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


def test_a_spread_depends_on_the_number_of_seeds() -> None:
    assert str(Spread.of([0.5])) == ".500"
    assert str(Spread.of([0.5, 0.6])) == ".550 ±.071"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the paper and its data are not here")
def test_the_real_paper_tells_its_stories() -> None:
    [paper] = (SHARED / "seed").glob("*.txt")
    quotes = read_quotes(paper)
    letters = sum(len(story.sentences) for story in STORIES)
    assert len(quotes) >= letters + len(STORIES)


@pytest.mark.skipif(not SHARED.is_dir(), reason="FEVER is not here")
def test_what_k_covers_of_the_real_claims() -> None:
    data = SHARED / "data"
    vectors = str(data / "vectors" / "english-300d.vec.gz")
    official = data / "fever" / "paper_dev.jsonl"
    lines = list(several_pages([], official, data / "fever-eraser", vectors))
    assert "98.0% of them have at most 7 gold sentences (93.0% in the paper" in lines[4]
    assert "92.9% have at most three" in lines[4]


def test_a_table_survives_a_file(tmp_path: Path) -> None:
    table = small_table()
    table.save(tmp_path / "t.npz")
    loaded = ClaimTable.load(tmp_path / "t.npz")
    assert all(
        (a == b).all()
        for a, b in zip(table.arrays().values(), loaded.arrays().values(), strict=True)
    )


def test_every_page_is_embedded_once(world: Path) -> None:
    layout = read_layout(world)
    embedded: list[str] = []

    def embed(texts: object) -> np.ndarray:
        assert isinstance(texts, list)
        embedded.extend(texts)
        return np.ones((len(texts), 2), np.float32)

    twice = [*layout.choose, *layout.choose]
    table = make_table(twice, embed, unit=True)
    assert len(table) == len(twice)
    sentences = [text for one in layout.choose for text in one.sentences]
    assert len(embedded) == len(twice) + len(sentences)
    assert np.allclose(np.linalg.norm(table.sentences.astype(np.float32), axis=1), 1, atol=1e-3)
