"""What is given, what is pinned, and how many per document: the same everywhere."""

import itertools

import numpy as np
import pytest
import torch

import dgn
from claim_page import CLAIM, PAGE
from dgn.text.query import Query
from models import shipped, untrained

DOCUMENTS = [
    {"title": "Bridge", "sentences": PAGE[:3]},
    {"title": "River", "sentences": PAGE[3:]},
    {"title": "Town", "sentences": ["The town has a mill.", "Trains stop there."]},
]


def test_given_texts_cover_and_are_not_selected_again() -> None:
    plain = shipped().select(CLAIM, PAGE, k=5)
    first = PAGE[plain.indices[0]]
    found = shipped().select(CLAIM, PAGE, k=5, given=[first.upper()])
    assert plain.indices[0] not in found.indices, "it repeats what is given"
    assert found.gains[0] < plain.gains[0]
    assert found.coverage == pytest.approx(plain.coverage), "what is given covers, too"
    assert found.explain().why_not(plain.indices[0]).reason == "repeats_given"


def test_nothing_is_selected_if_everything_is_given() -> None:
    found = shipped().select(CLAIM, PAGE, given=PAGE)
    assert found.indices == ()
    assert found.coverage == pytest.approx(shipped().select(CLAIM, PAGE, k=5).coverage)
    assert {one.reason for one in found.explain().passed} == {"repeats_given"}


def test_given_texts_do_not_change_what_passages_are_worth_alone() -> None:
    plain, found = (shipped().select(CLAIM, PAGE, given=given) for given in ([], ["A cow."]))
    assert found.relevance == plain.relevance


def test_pinned_passages_come_first_and_are_complemented() -> None:
    for pinned in itertools.permutations(range(5), 2):
        found = shipped().select(CLAIM, PAGE, k=3, pinned=pinned)
        assert found.indices[:2] == pinned
        assert len(found) == 3
        kinds = [one.reason for one in found.explain().selected]
        assert kinds == ["pinned", "pinned", "selected"]


def test_a_repeated_passage_may_be_pinned() -> None:
    found = shipped().select(CLAIM, [*PAGE, PAGE[1]], k=3, pinned=[5])
    assert found.indices[0] == 5
    assert 1 not in found.indices
    both = shipped().select(CLAIM, [*PAGE, PAGE[1]], k=3, pinned=[5, 1])
    assert both.indices[:2] == (5, 1)


def test_an_irrelevant_passage_may_be_pinned() -> None:
    found = shipped().select(CLAIM, [*PAGE, "Cows."], k=3, pinned=[5], min_relevance=0.9)
    assert found.indices == (5,)


@pytest.mark.parametrize("limits", [{"k": 5}, {"max_tokens": 60}, {"k": 4, "max_tokens": 80}])
@pytest.mark.parametrize("most", [1, 2])
def test_no_more_than_so_many_of_a_document(limits, most: int) -> None:
    for model in (shipped(), untrained()):
        found = model.select(CLAIM, documents=DOCUMENTS, max_per_document=most, **limits)
        documents = [passage.document for passage in found.passages]
        assert max(map(documents.count, documents)) <= most
        full = [one for one in found.reports if one.reason == "over_quota"]
        passages = found.query.passages
        assert all(documents.count(passages[one.index].document) == most for one in full)
        assert found.certificate.ratio > 0.5


def test_titles_stand_for_documents_of_loose_passages() -> None:
    titles = ["A", "A", "A", "B", ""]
    found = shipped().select(CLAIM, PAGE, titles=titles, k=5, max_per_document=1)
    kept = [titles[index] for index in found.indices if titles[index]]
    assert sorted(kept) == ["A", "B"]
    assert 4 in found.indices, "a passage without a title is not limited"


def test_groups_have_quotas() -> None:
    groups = ["x", "x", None, "y", "y"]
    found = shipped().select(CLAIM, PAGE, k=5, groups=groups, max_per_group=1)
    kept = [groups[index] for index in found.indices]
    assert sorted(map(str, kept)) == ["None", "x", "y"]


def test_everything_combines() -> None:
    found = shipped().select(
        CLAIM,
        documents=DOCUMENTS,
        k=3,
        max_tokens=80,
        max_per_document=1,
        pinned=[6],
        given=["Clara Voss designed the bridge."],
        stop_at=0.99,
    )
    assert found.indices[0] == 6
    documents = [passage.document for passage in found.passages]
    assert len(documents) == len(set(documents)) <= 3
    assert sum(shipped().encoder.count_tokens(found.texts)) <= 80


def test_queries_are_answered_as_alone_and_in_any_order() -> None:
    rows = [
        {"query": CLAIM, "passages": PAGE, "pinned": [4]},
        {"query": CLAIM * 3, "passages": PAGE * 2, "given": ["Ice damaged a pier.", PAGE[0]]},
        {"query": "Trains?", "passages": PAGE},
        {"query": CLAIM, "documents": DOCUMENTS, "given": [PAGE[1]], "pinned": [0, 5]},
    ]
    for limits in ({"k": 4}, {"max_tokens": 50}, {"k": 3, "stop_at": 0.9}):
        together = list(shipped().select_many(rows, **limits))
        alone = [next(shipped().select_many([row], **limits)) for row in rows]
        for one, other in zip(together, alone, strict=True):
            assert one.indices == other.indices
            assert one.gains == pytest.approx(other.gains, rel=1e-6)
            assert one.coverage == other.coverage
    turned = shipped().select(CLAIM, PAGE[::-1], k=4, pinned=[0])
    first = shipped().select(CLAIM, PAGE, k=4, pinned=[4])
    assert turned.texts == first.texts


def test_an_index_knows_what_is_given() -> None:
    index = shipped().index(passages=PAGE)
    found = index.select(CLAIM, k=3, given=[PAGE[1]])
    wanted = shipped().select(CLAIM, PAGE, k=3, given=[PAGE[1]])
    assert found.indices == wanted.indices
    assert found.gains == pytest.approx(wanted.gains, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pinned": [5]}, "pinned must be positions from 0 to 4; got 5."),
        ({"pinned": [-1]}, "pinned must be positions from 0 to 4; got -1."),
        ({"pinned": [True]}, "pinned must be positions from 0 to 4; got True."),
        ({"pinned": [1, 1]}, "pinned names passage 1 twice."),
        ({"pinned": [0, 1, 2], "k": 2}, "pinned names 3 passages, and k is 2; raise k."),
        ({"given": "text"}, "given is a single string; pass a list of strings."),
        (
            {"groups": ["a"]},
            "groups has 1 entries for 5 passages; pass one group for each "
            "passage, and None for a passage in no group.",
        ),
        ({"groups": ["a"] * 5}, "groups needs max_per_group, the quota of each."),
        ({"max_per_group": 1}, "max_per_group needs groups, one for each passage."),
        (
            {"max_per_document": 1},
            "max_per_document needs documents, or titles of the passages; "
            "for other groups, pass groups and max_per_group.",
        ),
        (
            {"max_per_document": 1, "max_per_group": 2},
            "max_per_group cannot be combined with max_per_document; pass one of them.",
        ),
        (
            {"groups": ["a"] * 5, "max_per_document": 1},
            "groups cannot be combined with max_per_document; use max_per_group.",
        ),
    ],
)
def test_mistakes_are_named(arguments, message: str) -> None:
    with pytest.raises(dgn.InvalidInput) as found:
        shipped().select(CLAIM, PAGE, **arguments)
    assert str(found.value) == message


def test_a_part_of_a_given_text_is_a_repeat() -> None:
    chat = f"You asked, and I said: {PAGE[1]} Is there more?"
    assert 1 not in shipped().select(CLAIM, PAGE, k=5, given=[chat]).indices


def test_given_texts_stops_and_scores_combine() -> None:
    arguments = {"given": ["A cow."], "stop_at": 0.9, "scores": [1, 2, 3, 4, 5]}
    found = shipped().select(CLAIM, PAGE, **arguments)
    assert len(found) <= 5
    assert tuple(one.index for one in found.explain().selected) == found.indices


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_groups_may_be_arrays(kind) -> None:
    groups = kind([0, 0, 0, 1, 1])
    assert len(shipped().select(CLAIM, PAGE, k=5, groups=groups, max_per_group=1)) == 2


def test_a_missing_group_is_no_group() -> None:
    nothing = [float("nan")] * 5
    assert len(shipped().select(CLAIM, PAGE, k=5, groups=nothing, max_per_group=1)) == 5


def test_an_index_takes_pins_and_groups() -> None:
    index = shipped().index(passages=PAGE)
    found = index.select(CLAIM, k=5, pinned=[4], groups=list("aaabb"), max_per_group=1)
    assert found.indices[0] == 4
    assert len(found) == 2


def test_pinned_passages_must_fit_the_token_limit() -> None:
    with pytest.raises(dgn.InvalidInput, match="tokens, and max_tokens is 2"):
        shipped().select(CLAIM, PAGE, pinned=[0], max_tokens=2)


def test_a_query_can_be_built_before() -> None:
    query = Query.of(CLAIM, PAGE, pinned=[3], given=["Ice."])
    assert query.pinned == (3,)
    (found,) = shipped().select_queries([query], dgn.Limits(k=2))
    assert found.indices[0] == 3
