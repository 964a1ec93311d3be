"""Breadth: the passages in the function, given texts, and selecting without a query."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.core.functions import Items
from dgn.errors import InvalidInput
from dgn.selector import Limits
from dgn.selector.breadth import with_breadth
from dgn.text.query import Query
from models import shipped, untrained

QUERY = "Why did the bridge collapse, who was charged, and when will the new bridge open?"
NEWS = [
    "A bridge collapsed on Saturday; the cause of the collapse of the bridge is not known, and "
    "nobody was charged.",
    "On Saturday a bridge collapsed. The cause of the collapse of the bridge is unknown. Nobody "
    "was charged.",
    "A bridge has collapsed on Saturday. Why the bridge collapsed is not known; nobody has been "
    "charged.",
    "Corroded bolts brought down the structure, the inquiry found.",
    "Prosecutors accuse two inspectors of negligent homicide.",
    "Pedestrians will walk across the steel arch from October next year.",
]
COPIES = {0, 1, 2}
PAIRS = json.loads(
    (Path(__file__).parents[1] / "text" / "pairs_of_passages.json").read_text(encoding="utf-8")
)
BREADTHS = (0.05, 0.1, 0.3, 0.6, 0.9, 1.0)


def select(breadth: float | None, k: int = 3, **more: object) -> tuple[int, ...]:
    return shipped().select(QUERY, NEWS, k=k, breadth=breadth, **more).indices


def test_copies_make_room_for_answers() -> None:
    assert set(select(0)) == COPIES
    assert len(COPIES & set(select(0.6))) <= 2
    assert len(COPIES & set(select(1))) == 1
    assert len(select(1)) == 3


def test_breadth_zero_is_the_function_of_the_words_to_the_last_bit() -> None:
    query = Query.of(QUERY, NEWS)
    f, items = shipped().encoder.encode([query])
    wanted = dgn.greedy(f, items, 3)[0]
    found = shipped().select_queries([query], Limits(k=3, breadth=0))[0]
    assert (found.indices, found.gains) == (wanted.indices, wanted.gains)
    assert found.certificate == wanted.certificate


@pytest.mark.parametrize("breadth", BREADTHS)
def test_the_sum_is_monotone_and_submodular_and_its_certificate_holds(breadth: float) -> None:
    query = Query.of(QUERY, NEWS)
    f, items = shipped().encoder.encode([query])
    mixture, wider, _, _ = with_breadth(shipped().encoder, query, f, items, None, breadth)

    def value(chosen: tuple[int, ...]) -> float:
        member = np.zeros((1, 6), np.float32)
        member[0, list(chosen)] = 1
        return float(mixture.value(mixture.add(wider, mixture.empty(wider), member))[0])

    values = {
        chosen: value(chosen) for k in range(7) for chosen in itertools.combinations(range(6), k)
    }
    for chosen, worth in values.items():
        for item in set(range(6)) - set(chosen):
            larger = values[tuple(sorted((*chosen, item)))]
            assert larger >= worth - 1e-5
            for other in set(range(6)) - {*chosen, item}:
                after = values[tuple(sorted((*chosen, other)))]
                both = values[tuple(sorted((*chosen, item, other)))]
                assert larger - worth >= both - after - 1e-5
    for k in (1, 2, 3):
        found = shipped().select_queries([query], Limits(k=k, breadth=breadth))[0]
        best = max(worth for chosen, worth in values.items() if len(chosen) == k)
        assert found.values[-1] == pytest.approx(values[tuple(sorted(found.indices))], rel=1e-5)
        assert found.values[-1] >= best * found.certificate.ratio - 1e-5


@pytest.mark.parametrize("breadth", [None, 0.3, 1])
def test_every_way_to_select_agrees(breadth: float | None) -> None:
    rows = [
        {"query": QUERY, "passages": NEWS},
        {"query": QUERY, "passages": NEWS, "given": [NEWS[0]]},
        {"query": "Who was charged?", "passages": NEWS[2:], "pinned": [0]},
        {"query": QUERY * 3, "passages": NEWS * 2},
    ]
    selector = shipped()
    together = list(selector.select_many(rows, k=3, breadth=breadth))
    for row, found in zip(rows, together, strict=True):
        alone = selector.select(**row, k=3, breadth=breadth)
        assert (found.indices, found.gains) == (alone.indices, alone.gains)
    index = selector.index(passages=NEWS)
    assert index.select(QUERY, k=3, breadth=breadth).indices == together[0].indices
    given = index.select(QUERY, k=3, breadth=breadth, given=[NEWS[0]])
    assert given.indices == together[1].indices
    limited = selector.select(QUERY, NEWS, max_tokens=45, breadth=breadth)
    assert 1 <= len(limited) <= 4
    order = [4, 2, 0, 5, 1, 3]
    other = selector.select(QUERY, [NEWS[place] for place in order], k=3, breadth=breadth)
    assert [order[place] for place in other.indices] == list(together[0].indices)


@pytest.mark.parametrize("pair", PAIRS["different"], ids=lambda pair: pair[1][:40])
def test_a_contradiction_is_never_taken_for_a_copy(pair: list[str]) -> None:
    others = ["The library opens at nine.", "Corn grows on both sides of the road."]
    for breadth in (0, 0.1, 0.3, 0.6):
        found = shipped().select(pair[0], [*pair, *others], k=2, breadth=breadth)
        assert set(found.indices) == {0, 1}, breadth
        update = shipped().select(
            pair[0], [pair[1], *others], k=1, given=[pair[0]], breadth=breadth
        )
        assert update.indices == (0,), breadth


def test_what_is_given_is_not_taken_again_in_other_words() -> None:
    for breadth in (0, None, 0.6, 1):
        found = shipped().select(QUERY, NEWS, k=2, given=[NEWS[0]], breadth=breadth)
        assert not COPIES & set(found.indices), breadth
    taken = 0
    for one, other in PAIRS["reworded"]:
        passages = [other, "The library opens at nine.", "Corn grows beside the road."]
        found = shipped().select(one, passages, k=1, given=[one])
        taken += 0 in found.indices
    assert taken <= 2


@pytest.mark.parametrize("change", ["direction", "scale"])
def test_embeddings_of_any_model_will_do(change: str) -> None:
    """Cosines of some models lie between .79 and .96."""
    random = np.random.default_rng(0)
    texts = [f"Passage {place} is about the bridge." for place in range(20)]
    vectors = random.normal(size=(21, 32))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    other = 7 * vectors if change == "scale" else vectors + 3 * np.eye(32)[0]
    for breadth in (0.3, 1):
        chosen = [
            shipped().select(
                "the bridge", texts, k=5, breadth=breadth, score_weight=0,
                query_embedding=one[0], embeddings=one[1:],
            ).indices
            for one in (vectors, other)
        ]  # fmt: skip
        assert len(set(chosen[0]) & set(chosen[1])) >= 4


def test_without_a_query_rare_kinds_count_as_much_as_common_ones() -> None:
    lines = [f"INFO worker {place} handled a request" for place in range(40)]
    rare = ["ERROR disk is full", "WARN the certificate expires in three days"]
    found = shipped().select(None, [*lines, *rare], k=3)
    assert {40, 41} <= set(found.indices)
    assert found.coverage is None
    assert found.relevance == (0.0,) * 42
    assert found.to_dict()["query"] is None
    for limits in ({"min_relevance": 0.5}, {"stop_at": 0.9}, {"breadth": 0.5}):
        with pytest.raises(InvalidInput, match="needs a query"):
            shipped().select(None, lines, **limits)
    with pytest.raises(InvalidInput, match="scores needs a query"):
        shipped().select(None, lines, scores=range(40))


def test_an_encoder_that_compares_nothing_is_told_so() -> None:
    class Bare(type(untrained().encoder).__mro__[1]):
        def encode(self, queries):
            return untrained().encoder.encode(queries)

        def count_tokens(self, texts):
            return [1] * len(texts)

    selector = dgn.Selector(Bare())
    assert len(selector.select(QUERY, NEWS, k=2)) == 2
    assert len(selector.select(QUERY, NEWS, k=2, given=["A bridge."])) == 2
    with pytest.raises(InvalidInput, match="Bare does not say what passages are about"):
        selector.select(QUERY, NEWS, k=2, breadth=0.5)


def test_most_of_the_selected_being_copies_is_said() -> None:
    found = shipped().select(QUERY, NEWS, k=3, breadth=0)
    assert "most of the selected passages are similar to each other" in str(found.explain())
    report = shipped().select(QUERY, NEWS, k=1, breadth=0).reports
    assert any(one.stands_for for one in report)
    assert "similar to [" in str(report[1 if report[0].is_selected else 0])


def test_empty_items_and_unknown_features_are_no_reason_to_fail() -> None:
    assert shipped().select("xyzzy", ["Bo runs.", "Ada swims."], k=1).indices
    assert isinstance(shipped().select("xyzzy", ["Bo runs."], breadth=1).items, Items)


def test_what_was_read_before_changes_nothing() -> None:
    """A word may be denied by several others, which may be met before it or after it."""
    passages = [
        "The ministers like the new law.",
        "The ministers dislike the new law.",
        "Cats nap.",
    ]
    query = "Does the minister like the new law?"
    first = dgn.Selector.from_pretrained().select(query, passages, k=2)
    later = dgn.Selector.from_pretrained()
    later.select("Do they dislike it, unlike me?", ["They dislike it.", "I am unlike them."], k=1)
    found = later.select(query, passages, k=2)
    assert (found.indices, found.gains) == (first.indices, first.gains)
    assert found.reports[1].similarity <= 0.5
    washed = ["Unwashed vegetables from the market.", "Washed vegetables from the market."]
    gains = {
        dgn.Selector.from_pretrained().select("Washed?", order, k=2, breadth=0.6).gains
        for order in (washed, washed[::-1])
    }
    assert len(gains) == 1


def test_given_texts_are_compared_with_any_number_of_passages() -> None:
    passages = [f"Passage {number} is about dogs." for number in range(2100)]
    found = shipped().select("Which dogs?", passages, k=2, given=[passages[7]], breadth=0)
    assert len(found) == 2
    assert 7 not in found.indices


def test_without_a_query_the_order_of_loose_passages_changes_nothing() -> None:
    texts = ["alpha", "beta", "gamma ray", "A dog runs.", "A dog is running.", "Cats sleep."]
    wanted = shipped().select(None, texts, k=3).texts
    for order in itertools.permutations(texts):
        assert shipped().select(None, order, k=3).texts == wanted
    assert shipped().select(None, ["", " "], k=2).indices == ()
    copies = ["Ada wrote code.", "Ada wrote code.", "Cats sleep."]
    found = shipped().select(None, copies, groups=["a", "b", "a"], max_per_group=1, k=3, pinned=[2])
    assert found.indices == (2, 1)


@pytest.mark.parametrize("breadth", [0, None, 1])
def test_equal_passages_in_groups_never_make_a_certificate_too_good(breadth: float | None) -> None:
    query = "Who wrote the first program, and was the budget approved?"
    texts = ["Ada wrote the first program.", "The budget was approved.", "A dog runs.", "Cats nap."]
    random = np.random.default_rng(0)
    for _ in range(60):
        passages = [texts[place] for place in random.integers(0, 4, random.integers(2, 7))]
        groups = [("a", "b", None)[place] for place in random.integers(0, 3, len(passages))]
        k, most = int(random.integers(1, 4)), int(random.integers(1, 3))
        found = shipped().select(
            query, passages, groups=groups, max_per_group=most, k=k, breadth=breadth
        )
        twins, f, items = found.query.twins, found.objective, found.items
        best = 0.0
        for chosen in itertools.combinations(range(len(passages)), min(k, len(passages))):
            stand = sorted({twins[place] for place in chosen})
            names = [groups[place] for place in chosen if groups[place] is not None]
            if len(stand) < len(chosen) or any(names.count(name) > most for name in names):
                continue
            member = np.zeros((1, len(passages)), items.features.dtype)
            member[0, stand] = 1
            best = max(best, float(f.value(f.add(items, f.empty(items), member))[0]))
        assert best <= found.certificate.bound * (1 + 1e-5)
    index = shipped().index(passages=passages)
    again = index.select(query, groups=groups, max_per_group=most, k=k, breadth=breadth)
    assert again.indices == found.indices


def test_a_copy_without_a_group_leaves_room_for_others() -> None:
    query = "Who wrote the first program, and was the budget approved?"
    program, budget = "Ada wrote the first program.", "The budget was approved."
    for groups in (["a", None, "a"], [None, "a", "a"]):
        found = shipped().select(
            query, [program, program, budget], groups=groups, max_per_group=1, k=2
        )
        assert found.texts == (program, budget)
