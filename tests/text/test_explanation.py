import builtins
import importlib.util
import re

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from models import shipped, untrained


@pytest.fixture
def selection() -> dgn.PassageSelection:
    return untrained().select(CLAIM, documents=[{"sentences": PAGE, "title": TITLE}], k=3)


def test_text_contains_query_passages_and_reasons(selection: dgn.PassageSelection) -> None:
    text = str(selection.explain())
    assert CLAIM in text
    for passage in selection.texts:
        assert passage in text
    assert "covers" in text
    assert "not selected (gain at each step):" in text
    assert f"{selection.coverage:.0%} of the query is covered" in text
    assert str(selection.certificate) in text


def test_passages_are_numbered_from_0_everywhere(selection: dgn.PassageSelection) -> None:
    text = str(selection.explain())
    blocks = re.findall(r"^\[(\d+)\] (.*?)  \(Oriel Tamsett, sentence (\d+)\)$", text, re.MULTILINE)
    assert [int(number) for number, _, _ in blocks] == list(selection.indices)
    for number, shown, position in blocks:
        assert PAGE[int(number)] == shown
        assert number == position
    passed = re.findall(r"^    \[(\d+)\] (.*?)  \d", text, re.MULTILINE)
    assert passed
    for number, shown in passed:
        assert PAGE[int(number)] == shown
    reasons = selection.explain()
    runners_up = [int(number) for number in re.findall(r"next best: \[(\d+)\]", text)]
    assert runners_up == [one.runner_up for one in reasons.selected]
    alike = [int(number) for number in re.findall(r"is covered by \[(\d+)\], too", text)]
    assert alike == [reasons.why_not(int(number)).like for number, _ in passed]


def test_documents_without_a_title_are_numbered_from_0() -> None:
    documents = [{"sentences": ["A cow."]}, {"sentences": ["No.", "The bridge opened in 1890."]}]
    found = untrained().select("The bridge opened in 1890", documents=documents, k=1)
    assert "(document 1, sentence 1)" in str(found.explain())


def test_passage_that_adds_no_word_is_described_as_such() -> None:
    page = ["The bridge opened in 1890.", "The bridge opened in 1890.", "Cows."]
    text = str(untrained().select("The bridge opened in 1890.", page, k=2, pinned=[2]).explain())
    pinned = text.split("\n\n")[1]
    assert pinned.splitlines()[2].strip() == "contains no content word of the query"


def test_passage_that_adds_function_words_only_is_described_as_such() -> None:
    page = ["Bridge opened 1890.", "It was in the end."]
    selection = untrained().select("The bridge opened in 1890", page, k=2)
    assert selection.indices == (0, 1)
    lines = str(selection.explain()).splitlines()
    assert "    contains no content word of the query" in lines
    assert not any("“" in line for line in lines), "function words are not listed"


def test_passage_that_repeats_words_is_described_as_such() -> None:
    page = ["The old bridge opened in 1890.", "A bridge is closed.", "Bridges, bridges."]
    found = untrained().select("The bridge opened in 1890", page, k=3)
    assert found.indices[0] == 0
    reasons = found.explain()
    text = str(reasons)
    assert text.count("    repeats what is covered already: bridge\n") == 2
    documents = [{"title": "Orr Bridge", "sentences": ["It opened in 1890.", "It has piers."]}]
    found = untrained().select("The Orr Bridge opened in 1890.", documents=documents, k=2)
    assert "    its title repeats what is covered already: Orr, Bridge\n" in str(found.explain())


def test_what_each_passage_covers_by_itself_is_known(selection: dgn.PassageSelection) -> None:
    reasons = selection.explain()
    best = np.maximum.accumulate(reasons.alone, axis=0)
    np.testing.assert_allclose(best, reasons.coverage[1:])
    for index, alone in zip(selection.indices, reasons.alone, strict=True):
        (single,) = untrained().select(CLAIM, [PAGE[index]], titles=TITLE, k=1).explain().alone
        assert (alone >= single - 0.05).all(), "neighbours can only add"
    assert "alone" not in reasons.to_dict()


def test_the_passages_that_are_not_listed_are_counted() -> None:
    lakes = [f"The bridge of the lake {name}." for name in ("Orr", "Hest", "Corran", "Lann", "Tay")]
    page = ["The bridge opened in 1890.", "THE BRIDGE opened in 1890!", *lakes, "Cows."]
    text = str(untrained().select("The bridge opened in 1890", page, k=1, breadth=0).explain())
    assert len(re.findall(r"^    \[\d\]", text, re.MULTILINE)) == 3
    assert text.splitlines()[-1].startswith("    and 2 more with smaller gains; ")
    assert text.endswith("1 repeated another one")
    assert text.lower().count("the bridge opened in 1890") == 2, "the query, and the selected one"
    found = untrained().select("The bridge opened in 1890", page, k=1, min_relevance=0.9)
    assert str(found.explain()).splitlines()[-1] == (
        "not selected: 1 repeated another one; 6 had less relevance than min_relevance"
    )


def test_long_lists_of_words_say_how_many_are_left_out() -> None:
    query = "Granite, slate, iron, copper, timber, rope, brick and glass were sold"
    text = str(untrained().select(query, [query + "."], k=1).explain())
    assert re.search(r"covers .*, and 3 more$", text, re.MULTILINE)


def test_function_words_are_not_listed_as_covered(selection: dgn.PassageSelection) -> None:
    text = str(selection.explain())
    for line in re.findall(r"^    covers (.*)$", text, re.MULTILINE):
        words = {part.split()[0] for part in line.split(", ")}
        assert not words & {"and", "for", "the"}


def test_long_passages_are_shortened() -> None:
    long = "The bridge opened in 1890 " + "and then again " * 100
    other = "Cows and bridges " + "graze " * 100
    reasons = untrained().select("The bridge opened", [long, other, "No."], k=1).explain()
    text = str(reasons)
    assert max(map(len, text.splitlines())) < 420
    assert "…" in text
    assert long[:300] in text
    (passed,) = [line for line in text.splitlines() if line.startswith("    [1]")]
    assert len(passed) < 140
    assert reasons.passages[0].text == long, "the data are complete"


def test_line_breaks_of_passages_do_not_break_lines() -> None:
    reasons = untrained().select("The bridge opened", ["The bridge\n\nopened."], k=1).explain()
    assert "[0] The bridge opened." in str(reasons)


def test_selection_without_a_gain_is_described_as_such() -> None:
    found = untrained().select("Bananas ripen", ["Postgres stores rows."], k=1, breadth=0)
    assert found.to_dict()["coverage"] < 0.2
    text = str(found.explain())
    assert "nothing was selected" in text
    assert "not selected: 1 would have added nothing" in text


def test_empty_selection_is_described() -> None:
    assert "nothing was selected" in str(shipped().select(CLAIM, PAGE, max_tokens=1).explain())


def test_objective_without_coverage_is_described_without_it() -> None:
    facility = dgn.Selector(untrained().encoder, objective=dgn.FacilityLocation())
    text = str(facility.select(CLAIM, PAGE, k=2).explain())
    assert "covered" not in text
    assert "the selection reaches at least" in text


def test_printed_text_is_the_same_without_a_terminal(
    selection: dgn.PassageSelection, capsys: pytest.CaptureFixture[str]
) -> None:
    selection.explain().print()
    assert capsys.readouterr().out.split() == str(selection.explain()).split()


def test_printing_works_without_rich(
    selection: dgn.PassageSelection,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain_find, plain_import = importlib.util.find_spec, builtins.__import__

    def find(name: str, *more: object) -> object:
        return None if name == "rich" else plain_find(name, *more)

    def load(name: str, *more: object) -> object:
        if name.partition(".")[0] == "rich":
            raise ImportError(name)
        return plain_import(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    monkeypatch.setattr(builtins, "__import__", load)
    selection.explain().print()
    assert capsys.readouterr().out == str(selection.explain()) + "\n"


def test_brackets_in_passages_are_not_colours(capsys: pytest.CaptureFixture[str]) -> None:
    text = "The [bold]bridge[/bold] opened [red]."
    untrained().select("The bridge opened", [text], k=1).explain().print()
    assert text in capsys.readouterr().out
