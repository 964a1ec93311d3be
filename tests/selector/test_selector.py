"""`Selector`: what is selected, for one query and for many, and which mistakes are named."""

import copy
import itertools
import json
import pickle
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.core.functions import FeatureCoverage, Items, Power, SetFunction
from dgn.data import read_rows
from dgn.errors import DGNError, InvalidInput
from dgn.selector import coverage
from models import shipped, untrained

SAMPLES = Path(__file__).parents[2] / "samples" / "claims.jsonl"
MORE = dgn.Document(
    "The cathedral stands on a hill. Its windows were made by Tamsett! It is cold.", "Cathedral"
)
MODELS = {"shipped": shipped, "untrained": untrained}


@pytest.fixture(params=MODELS)
def selector(request: pytest.FixtureRequest) -> dgn.Selector:
    return MODELS[request.param]()


# What is selected


def test_passages_that_state_the_facts_are_selected() -> None:
    selection = untrained().select(CLAIM, PAGE, k=2, titles=TITLE)
    assert sorted(selection.indices) == [1, 3]
    assert selection.texts == tuple(PAGE[index] for index in selection.indices)
    assert selection.values[-1] == pytest.approx(sum(selection.gains))
    assert 0 < selection.certificate.ratio <= 1


def test_five_passages_are_selected_by_default(selector: dgn.Selector) -> None:
    texts = [f"{word} is here." for word in CLAIM[:-1].split()]
    assert len(selector.select(CLAIM, texts)) == 5
    assert len(selector.select(CLAIM, PAGE[:2], k=4)) == 2


def test_titles_are_one_for_all_or_one_for_each() -> None:
    one = untrained().select(CLAIM, PAGE, k=5, titles=TITLE)
    each = untrained().select(CLAIM, PAGE, k=5, titles=[TITLE] * 5)
    assert one.gains == each.gains
    mixed = untrained().select(CLAIM, PAGE, k=5, titles=[TITLE] * 3 + ["", ""])
    assert mixed.gains != one.gains


def test_loose_passages_are_a_set(selector: dgn.Selector) -> None:
    plain = selector.select(CLAIM, PAGE, k=5, titles=TITLE)
    order = list(range(5))
    for seed in range(4):
        random.Random(seed).shuffle(order)
        shuffled = selector.select(CLAIM, [PAGE[n] for n in order], k=5, titles=TITLE)
        assert [order[index] for index in shuffled.indices] == list(plain.indices)
        assert shuffled.gains == pytest.approx(plain.gains, rel=1e-5)


def test_loose_passages_are_a_set_on_the_samples(selector: dgn.Selector) -> None:
    for example in itertools.islice(read_rows(SAMPLES), 15):
        texts = example.query.texts
        plain = selector.select(example.query.text, texts)
        turned = selector.select(example.query.text, texts[::-1])
        assert [len(texts) - 1 - index for index in turned.indices] == list(plain.indices)
        assert turned.gains == pytest.approx(plain.gains, rel=1e-5)


def test_sentences_of_documents_are_ordered() -> None:
    loose = shipped().select(CLAIM, PAGE)
    document = shipped().select(CLAIM, documents=[{"sentences": PAGE}])
    turned = shipped().select(CLAIM, documents=[{"sentences": PAGE[::-1]}])
    assert [passage.position for passage in document.passages] == list(document.indices)
    assert document.gains != turned.gains
    assert document.gains != loose.gains


def test_documents_give_passages_with_positions_and_metadata(selector: dgn.Selector) -> None:
    page = {"text": " ".join(PAGE), "title": TITLE, "id": "p", "url": "u"}
    selection = selector.select(CLAIM, documents=[page, MORE], k=8)
    assert len(selection.query.passages) == 8
    for index, passage in zip(selection.indices, selection.passages, strict=True):
        assert passage == selection.query.passages[index]
        text = page["text"] if passage.document == 0 else MORE.text
        assert text[passage.start : passage.end] == passage.text
        assert dict(passage.metadata) == ({"url": "u"} if passage.document == 0 else {})


PASSAGES = {
    "tuple": lambda: tuple(PAGE),
    "strings": lambda: np.array(PAGE),
    "objects": lambda: np.array(PAGE, dtype=object),
    "generator": lambda: iter(PAGE),
    "series": lambda: pytest.importorskip("pandas").Series(PAGE, index=list("abcde")),
}


@pytest.mark.parametrize("kind", PASSAGES)
def test_passages_may_be_any_iterable(kind: str) -> None:
    selection = untrained().select(CLAIM, PASSAGES[kind](), k=2)
    assert selection == untrained().select(CLAIM, PAGE, k=2)
    assert all(type(text) is str for text in selection.texts)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_numpy_integers_are_integers(kind: type) -> None:
    plain = untrained().select(CLAIM, PAGE, k=2, max_tokens=40)
    assert untrained().select(CLAIM, PAGE, k=kind(2), max_tokens=kind(40)) == plain
    queries = [{"query": CLAIM, "passages": PAGE}]
    (many,) = untrained().select_many(queries, k=kind(2), max_tokens=kind(40), batch_size=kind(3))
    assert many.indices == plain.indices


def test_blank_passages_are_allowed_and_keep_indices(selector: dgn.Selector) -> None:
    texts = ["", "…", *PAGE, " "]
    in_order = selector.select(CLAIM, documents=[{"sentences": texts}], k=8)
    assert set(in_order.indices[:5]) == {2, 3, 4, 5, 6}
    loose = selector.select(CLAIM, texts, k=8)
    assert set(loose.indices[:4]) == {2, 3, 4, 5}, "the last sentence states nothing by itself"
    assert all(np.isfinite([*in_order.gains, *loose.gains]))
    documents = [{"sentences": ["", PAGE[1], "", PAGE[3]]}]
    assert set(selector.select(CLAIM, documents=documents, k=2).indices) == {1, 3}


def test_line_breaks_and_capitals_hide_no_word() -> None:
    passages = ["The bridge\nOpened\nin 1890.", "No."]
    selection = untrained().select("The bridge opened in 1890", passages)
    assert selection.explain().covered[1] > 0.95


# Scores from elsewhere


def test_score_weight_says_how_much_scores_count() -> None:
    plain = untrained().select(CLAIM, PAGE, k=3)
    scores = [-3.0, -3.0, -3.0, -3.0, 7.5]
    without = untrained().select(CLAIM, PAGE, k=3, scores=scores, score_weight=0)
    assert without.indices == plain.indices
    assert untrained().select(CLAIM, PAGE, k=1, scores=scores, score_weight=5).indices == (4,)


def test_equal_scores_change_nothing(selector: dgn.Selector) -> None:
    plain = selector.select(CLAIM, PAGE, k=3)
    equal = selector.select(CLAIM, PAGE, k=3, scores=[7.0] * 5)
    assert equal.indices == plain.indices
    assert equal.gains == pytest.approx(plain.gains, rel=1e-5)


@pytest.mark.parametrize("scale", [1e300, 1.7e308, 1e-300])
def test_scores_may_be_of_any_size(selector: dgn.Selector, scale: float) -> None:
    scores = np.array([-1.0, 0.0, 0.2, 0.1, 1.0])
    small = selector.select(CLAIM, PAGE, k=3, scores=scores)
    large = selector.select(CLAIM, PAGE, k=3, scores=scale * scores)
    assert large.indices == small.indices
    assert large.gains == pytest.approx(small.gains, rel=1e-5)


def test_best_score_is_worth_a_multiple_of_the_largest_gain() -> None:
    def roots(objective: SetFunction, items: Items) -> SetFunction:
        assert isinstance(objective, FeatureCoverage)
        assert items.size == 5
        return FeatureCoverage(objective.weights, Power(0.5))

    for one in (untrained(), dgn.Selector(untrained().encoder, objective=roots)):
        plain = one.select(CLAIM, PAGE, k=1).gains[0]
        scores = [0, 0, 0, 0, 1]
        low = one.select(CLAIM, [*PAGE[:4], "!"], k=1, scores=scores, score_weight=2)
        assert low.indices == (4,)
        assert low.gains[0] == pytest.approx(2 * plain, rel=0.3)


def test_scores_decide_alone_if_no_word_is_found(selector: dgn.Selector) -> None:
    words = selector.select("bridge", ["...", "!!!", "???"], scores=[0, 1, 2], k=1)
    assert words.indices == (2,)


# Many queries


QUERIES = [
    {"query": CLAIM, "passages": PAGE, "titles": TITLE},
    {"query": "The cathedral is cold", "documents": [MORE]},
    {"query": "Cows", "passages": ["A cow."]},
    {"query": CLAIM, "passages": PAGE[::-1], "scores": [0.1, 0.5, 0.2, 0.3, 0.9]},
]


@pytest.mark.parametrize(
    "limits",
    [{"k": 3}, {"max_tokens": 20}, {"stop_at": 0.8}, {"k": 2, "max_tokens": 30, "stop_at": 0.9}],
    ids=str,
)
def test_many_queries_are_answered_as_each_alone(
    selector: dgn.Selector, limits: dict[str, Any]
) -> None:
    many = list(selector.select_many(itertools.chain(QUERIES), batch_size=3, **limits))
    for query, found in zip(QUERIES, many, strict=True):
        alone = selector.select(**query, **limits)
        assert found.indices == alone.indices
        assert found.gains == pytest.approx(alone.gains, abs=1e-5)
        assert found.query == alone.query
        assert found.relevance == pytest.approx(alone.relevance, abs=1e-5)


def test_many_queries_of_the_samples_are_answered_as_each_alone(selector: dgn.Selector) -> None:
    rows = [json.loads(line) for line in SAMPLES.read_text(encoding="utf-8").splitlines()]
    queries = [{"query": row["claim"], "documents": row["documents"]} for row in rows]
    many = list(selector.select_many(queries, k=7))
    assert len(many) == 100
    for query, found in zip(queries, many, strict=True):
        alone = selector.select(**query, k=7)
        assert found.indices == alone.indices
        assert found.gains == pytest.approx(alone.gains, abs=1e-5)


def test_capitals_of_another_query_of_the_batch_have_no_effect(selector: dgn.Selector) -> None:
    # A word once had the capital flag of another query of the batch that contained its tokens.
    lower = {
        "query": "a tamsett of sikkim sank in lowmere",
        "passages": ["tamsett sank.", "sikkim and lowmere.", "it sank in sikkim", "nothing"],
    }
    upper = {
        "query": "Tamsett Of Sikkim Sank In Lowmere",
        "passages": ["Tamsett Sank.", "Sikkim", "River"],
    }
    for order in ([lower, upper], [upper, lower]):
        for query, found in zip(order, selector.select_many(order, k=3), strict=True):
            alone = selector.select(**query, k=3)
            assert found.indices == alone.indices
            assert found.gains == pytest.approx(alone.gains, abs=1e-5)


def test_queries_are_read_from_a_stream_as_needed() -> None:
    taken: list[int] = []

    def endless():
        for number in itertools.count():
            taken.append(number)
            yield {"query": f"Cow {number}", "passages": ["A cow."]}

    first = list(itertools.islice(untrained().select_many(endless(), batch_size=4), 6))
    assert [one.query.text for one in first] == [f"Cow {n}" for n in range(6)]
    assert len(taken) == 8


def test_long_query_among_short_ones_is_searched_by_itself() -> None:
    queries = [
        {"query": "Cows", "passages": [f"Cow {place}." for place in range(n)]}
        for n in (1, 2, 5000, 1, 3)
    ]
    found = list(untrained().select_many(queries, k=2))
    assert [len(one.query.passages) for one in found] == [1, 2, 5000, 1, 3]
    assert [len(one) for one in found] == [1, 2, 2, 1, 2]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (("a", ["b"]), "must be a dictionary"),
        ("text", "must be a dictionary"),
        ({"query": "a", "passages": []}, "passages contains no passage"),
        ({"query": "a", "sentences": ["b"]}, "has the unknown key 'sentences'"),
        ({"passages": ["b"]}, "has no query"),
        ({}, "has no query"),
    ],
)
def test_broken_queries_are_named_by_their_number(query: Any, message: str) -> None:
    good = {"query": CLAIM, "passages": PAGE}
    with pytest.raises(InvalidInput, match=r"queries\[1\]") as raised:
        list(untrained().select_many([good, query]))
    assert message in str(raised.value)
    assert raised.value.argument == "queries[1]"


def test_built_queries_are_answered_in_one_batch() -> None:
    queries = [dgn.Query.of(**query) for query in QUERIES]
    found = untrained().select_queries(queries, dgn.Limits(k=2))
    assert [one.query for one in found] == queries
    for query, one in zip(QUERIES, found, strict=True):
        assert one.indices == untrained().select(**query, k=2).indices
    assert untrained().select_queries([]) == []


def test_threads_can_share_a_selector(selector: dgn.Selector) -> None:
    expected = selector.select(CLAIM, PAGE, k=3)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: selector.select(CLAIM, PAGE, k=3), range(16)))
    assert all(one == expected for one in found)


# Other parts


def test_any_objective() -> None:
    facility = dgn.Selector(untrained().encoder, objective=dgn.FacilityLocation())
    assert len(facility.select(CLAIM, PAGE, k=2)) == 2
    made = dgn.Selector(untrained().encoder, objective=lambda _f, _items: FeatureCoverage())
    assert len(made.select(CLAIM, PAGE, k=2)) == 2


def test_selector_with_its_own_objective_cannot_be_saved(tmp_path: Path) -> None:
    selector = dgn.Selector(untrained().encoder, objective=dgn.FacilityLocation())
    with pytest.raises(InvalidInput, match="its own objective cannot be saved"):
        selector.save_pretrained(tmp_path / "m")
    assert not (tmp_path / "m").exists()


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "name", "message"),
    [
        ({"k": 0}, "k", "k must be an integer of at least 1; got 0"),
        ({"k": 2.5}, "k", "got 2.5"),
        ({"k": True}, "k", "got True"),
        ({"k": "3"}, "k", "got '3'"),
        ({"max_tokens": "20"}, "max_tokens", "max_tokens must be a number; got '20'"),
        ({"max_tokens": -5}, "max_tokens", "greater than 0; got -5"),
        ({"max_tokens": 0}, "max_tokens", "greater than 0"),
        ({"max_tokens": float("nan")}, "max_tokens", "a number"),
        ({"max_tokens": float("inf")}, "max_tokens", "got inf"),
        ({"max_tokens": 10**400}, "max_tokens", "a number"),
        ({"max_tokens": [20]}, "max_tokens", "a number"),
        ({"stop_at": 1.5}, "stop_at", "greater than 0 and at most 1; got 1.5"),
        ({"stop_at": 0}, "stop_at", "got 0"),
        ({"stop_at": "0.9"}, "stop_at", "a number; got '0.9'"),
        ({"score_weight": -1.0}, "score_weight", "from 0 to 1,000,000; got -1"),
        ({"score_weight": "much"}, "score_weight", "a number"),
        ({"count_tokens": len}, "count_tokens", "count_tokens needs max_tokens"),
        ({"count_tokens": 3, "max_tokens": 9}, "count_tokens", "a function of a string"),
        ({"scores": [1.0]}, "scores", "scores has 1 entries for 5 passages"),
        ({"scores": [0, 0, float("nan"), 0, 0]}, "scores", "got nan at position 2"),
        ({"titles": ["T"] * 4}, "titles", "titles has 4 entries for 5 passages"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        untrained().select(CLAIM, PAGE, **arguments)
    assert raised.value.argument == name
    assert message in str(raised.value)


@pytest.mark.parametrize("size", [0, 2.5, "3", None])
def test_batch_size_is_checked(size: Any) -> None:
    with pytest.raises(DGNError, match="batch_size must be an integer of at least 1"):
        list(untrained().select_many([{"query": CLAIM, "passages": PAGE}], batch_size=size))


def test_selecting_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import dgn\n"
        "found = dgn.Selector.from_pretrained().select('It sank', ['It sank.', 'No.'], k=1)\n"
        "found.explain()\n"
        "print(found.indices)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "(0,)", done.stderr


def test_a_selector_can_be_copied_into_another_process() -> None:
    selector = untrained()
    before = selector.select("The ship sank in 1901.", ["It sank in 1901.", "Bread is baked."], k=1)
    for twin in (pickle.loads(pickle.dumps(selector)), copy.deepcopy(selector)):
        after = twin.select("The ship sank in 1901.", ["It sank in 1901.", "Bread is baked."], k=1)
        assert (after.indices, after.gains) == (before.indices, before.gains)


def test_relevance_is_the_same_at_once_and_from_states() -> None:
    random = np.random.default_rng(0)
    for seed in range(20):
        width = 5 + seed
        target = random.random((1, width)) * (random.random((1, width)) < 0.6)
        weights = random.random((1, width)) * (random.random((1, width)) < 0.8)
        f = FeatureCoverage(weights.astype(np.float32), target=target.astype(np.float32))
        items = Items(random.random((1, 7, width), np.float32) * 2)
        slow = coverage._weighted_sum(*coverage._measured(f, coverage._each_alone(f, items)))
        np.testing.assert_allclose(coverage.relevance_of(f, items), slow, rtol=1e-12)
