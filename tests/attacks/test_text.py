"""Attacks on words: opposites, numbers, names, marks, lines of numbers, forks, endless quotes."""

import math
import os
import signal
import threading
import time

import pytest

import dgn
from dgn.text import split_sentences


@pytest.fixture(scope="module")
def selector() -> dgn.Selector:
    return dgn.Selector.from_pretrained()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p > 0.05 for mortality", "p < 0.05 for mortality"),
        ("The fee is $5", "The fee is €5"),
        ("It was −5 degrees", "It was 5 degrees"),
        ("5% of the crew", "5 of the crew"),
        ("C++ is used", "C# is used"),
        ("Hepatitis A", "Hepatitis"),
        ("10² cells", "102 cells"),
    ],
)
def test_opposites_can_both_be_selected(selector: dgn.Selector, one: str, other: str) -> None:
    assert set(selector.select(one, [one, other, "A lake."], k=2).indices) == {0, 1}


def covered(selector: dgn.Selector, query: str, passage: str) -> dict[str, float]:
    explanation = selector.select(query, [passage], k=1).explain()
    return dict(zip(explanation.words, explanation.coverage[-1].tolist(), strict=True))


@pytest.mark.parametrize(
    ("query", "word", "passage"),
    [
        ("The WHO approved the vaccine", "WHO", "The FDA approved the vaccine"),
        ("World War I ended", "I", "World War II ended"),
        ("Hepatitis A is mild", "A", "Hepatitis C is mild"),
        ("लड़की घर में है", "लड़की", "लड़का घर में है"),
        ("Dose of 10² units", "10^2", "Dose of 102 units"),
        ("Dose of 5½ units", "5.5", "Dose of 51 units"),
        ("Dose of 1,5 units", "1,5", "Dose of 15 units"),
        ("Dose of -5 units", "-5", "Dose of 5 units"),
        ("It opened in 1911", "1911", "It has 1,911 people"),
    ],
)
def test_a_word_is_not_covered_by_its_opposite(
    selector: dgn.Selector, query: str, word: str, passage: str
) -> None:
    found = covered(selector, query, passage)
    assert found[word] < 0.8, found
    selection = selector.select(query, [passage, query], k=1)
    assert selection.indices == (1,)
    assert f"{word} 100%" not in str(selector.select(query, [passage], k=1).explain())


def test_how_many_is_answered_by_a_count(selector: dgn.Selector) -> None:
    passages = ["No one knows how the soldiers died.", "1500 soldiers died in the battle."]
    assert selector.select("How many soldiers died?", passages, k=1).indices == (1,)


def test_loose_lines_of_numbers_change_nothing(selector: dgn.Selector) -> None:
    query = "The bridge was designed by Clara Voss, and trains have crossed it since 1911."
    passages = [
        "The Corran Bridge stands on four piers of grey granite.",
        "The bridge was designed by the engineer Clara Voss.",
        "Voss, who designed the bridge, also designed two smaller bridges.",
        "In 1911 the first train crossed the river.",
        "Ice damaged a pier in 1947.",
        "Trains of the coast line use it every hour.",
    ]
    wanted = selector.select(query, passages, k=3, breadth=0)
    for line in ("1.", "17", "3.14", "1, 2, 3"):
        found = selector.select(query, [*passages, line], k=3, breadth=0)
        assert (found.indices, found.gains) == (wanted.indices, wanted.gains), line
        # With breadth, the line is one more passage to be represented.
        assert selector.select(query, [*passages, line], k=3).indices == wanted.indices


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It’s the captain’s ship", "It's the captain's ship"),
        ("co\u00adoperation", "cooperation"),
        ("zero\u200bwidth", "zerowidth"),
        ("Fish &amp; chips", "Fish & chips"),
        ("Große Straße", "GROSSE STRASSE"),
    ],
)
def test_spellings_of_the_same_text_are_repeats(
    selector: dgn.Selector, one: str, other: str
) -> None:
    selection = selector.select("a ship of fish", [one, other, "A ship."], k=3)
    assert len(selection) == 2
    assert covered(selector, one, other) == dict.fromkeys(
        selector.select(one, [other]).explain().words, 1.0
    )


def test_the_order_of_repeats_does_not_matter(selector: dgn.Selector) -> None:
    long, short = "The ship sank" + "!" * 60, "The ship sank."
    for passages in ([long, short], [short, long]):
        selection = selector.select("The ship sank", [*passages, "A lake."], max_tokens=8)
        assert short in selection.texts
    rows = [{"text": "The ship sank.", "score": 0.0}, {"text": "The ship sank!", "score": 1.0}]
    for order in (rows, rows[::-1]):
        passages = [*order, {"text": "A lake.", "score": 0.5}]
        assert selector.select("A lake", passages, k=2).texts == ("A lake.", "The ship sank!")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_reads_new_words(selector: dgn.Selector) -> None:
    is_over = threading.Event()

    def read_new_words() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            selector.select(f"query{number}", [f"w{number}x{word}" for word in range(50)])

    reading = threading.Thread(target=read_new_words)
    reading.start()
    try:
        for _ in range(10):
            time.sleep(0.005)
            child = os.fork()
            if child == 0:
                selector.select("The ship sank", ["The ship sank.", "Entirely new words"])
                os._exit(0)
            deadline = time.monotonic() + 20
            ended = 0
            while not ended and time.monotonic() < deadline:
                ended, status = os.waitpid(child, os.WNOHANG)
                time.sleep(0.005)
            if not ended:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            assert ended, "the child hangs"
            assert status == 0
    finally:
        is_over.set()
        reading.join()


@pytest.mark.parametrize(
    "text",
    ["```\n", "```a\n", "|a|b|\n", "- x\n", "## h\n", "a\tb\n", "x|", "|-", "#", "a|b\n-|-\n"],
)
def test_markdown_is_split_in_linear_time(text: str) -> None:
    def seconds(size: int) -> float:
        long, best = (text * size)[:size], math.inf
        for _ in range(3):  # the machine may be busy
            begin = time.process_time()
            spans = split_sentences(long)
            best = min(best, time.process_time() - begin)
        assert all(long[span.start : span.end] == span.text for span in spans)
        return best

    assert seconds(160_000) < 32 * max(seconds(20_000), 4e-3)


@pytest.mark.parametrize("text", ["“x ", "\"'(", "{'a': 'b', ", "\n", "a", "x. “"])
def test_long_texts_are_split_in_parts(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of sentencex is quadratic in the quotation marks of what it gets."""
    import sentencex

    segment, sizes = sentencex.segment, []

    def measured(language: str, part: str) -> object:
        sizes.append(len(part))
        return segment(language, part)

    monkeypatch.setattr(sentencex, "segment", measured)
    long = text * (100_000 // len(text))
    spans = split_sentences(long)
    assert max(sizes) <= 4000
    assert sum(sizes) == len(long)
    assert all(long[span.start : span.end] == span.text for span in spans)
