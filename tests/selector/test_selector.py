"""The front door: what can be asked, what comes back, and that it is what the search found."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE
from dgn.encoders import Encoded, FacetEncoder, PooledEncoder, Query
from dgn.errors import DGNError, InvalidInput
from dgn.objectives import Sqrt
from dgn.selector.coverage import covered_shares, smallest_cover
from dgn.text import open_vectors
from dgn.text.rarity import default_rarity
from dgn.text.wordllama import WordLlamaVectors

MORE = dgn.Document(
    "The cathedral stands on a hill. Its windows were made by Tamsett! It is cold.", "Cathedral"
)


@pytest.fixture(scope="module")
def selector() -> dgn.Selector:
    return dgn.Selector(FacetEncoder(WordLlamaVectors(), default_rarity()))


def test_sentences(selector: dgn.Selector) -> None:
    picked = selector.select(CLAIM, PAGE, k=2, title="Oriel Tamsett")
    assert sorted(picked.indices) == [1, 3]
    assert picked.texts == tuple(PAGE[index] for index in picked.indices)
    assert picked.values[-1] == pytest.approx(sum(picked.gains))
    assert 0 < picked.certificate.ratio <= 1
    assert len(selector.select(CLAIM, PAGE)) == 5
    assert len(selector.select(CLAIM, PAGE[:2], k=4)) == 2


def test_documents_remember_where_each_sentence_stands(selector: dgn.Selector) -> None:
    documents = [dgn.Document(" ".join(PAGE), "Oriel Tamsett"), MORE, {"sentences": ["A cow."]}]
    picked = selector.select(CLAIM, documents=documents, k=9)
    assert len(picked) == 9
    assert [one.text for one in picked.candidates[:5]] == PAGE
    for one in picked.candidates[:8]:
        assert one.document is not None
        text = documents[one.document].text
        assert text[one.start : one.end] == one.text
        assert one.title == documents[one.document].title
    assert picked.candidates[8] == dgn.Sentence("A cow.", "", 2, 0)


def test_titles_one_for_all_or_one_for_each(selector: dgn.Selector) -> None:
    one = selector.select(CLAIM, PAGE, k=5, title="Oriel Tamsett")
    each = selector.select(CLAIM, PAGE, k=5, title=["Oriel Tamsett"] * 5)
    assert one.gains == each.gains
    mixed = selector.select(CLAIM, PAGE, k=5, title=["Oriel Tamsett"] * 3 + ["", ""])
    assert mixed.gains != one.gains


def test_a_budget_is_kept_and_used(selector: dgn.Selector) -> None:
    counts = selector.encoder.token_counts(PAGE)
    for budget in (15, 30, 60, 500):
        picked = selector.select(CLAIM, PAGE, budget=budget)
        assert sum(counts[index] for index in picked.indices) <= budget
    assert len(selector.select(CLAIM, PAGE, budget=500)) >= 4
    assert len(selector.select(CLAIM, PAGE, budget=1)) == 0


def test_cover_gives_the_smallest_prefix_that_is_enough(selector: dgn.Selector) -> None:
    whole = selector.select(CLAIM, PAGE, k=5)
    shares = covered_shares(whole.encoded, whole.indices)
    assert (np.diff(shares) >= -1e-12).all()
    assert shares[0] == 0
    for share in (0.2, 0.6, 0.9, 1.0):
        picked = selector.select(CLAIM, PAGE, cover=share)
        count = len(picked)
        assert picked.indices == whole.indices[:count]
        assert shares[count] >= share * shares[-1] - 1e-9
        assert count == 1 or shares[count - 1] < share * shares[-1]
        assert smallest_cover(whole.encoded, whole, share) == count
    assert len(selector.select(CLAIM, PAGE, cover=1.0, k=1)) == 1


def test_scores_of_a_reranker_count_as_much_as_they_are_told_to(selector: dgn.Selector) -> None:
    plain = selector.select(CLAIM, PAGE, k=3)
    scores = [-3.0, -3.0, -3.0, -3.0, 7.5]
    assert selector.select(CLAIM, PAGE, k=3, scores=scores, score_weight=0).indices == plain.indices
    assert selector.select(CLAIM, PAGE, k=1, scores=scores, score_weight=5).indices == (4,)
    assert selector.select(CLAIM, PAGE, k=3, scores=[1.0] * 5).indices == plain.indices


def test_many_at_once_are_each_alone(selector: dgn.Selector) -> None:
    queries = [
        {"claim": CLAIM, "sentences": PAGE, "title": "Oriel Tamsett"},
        {"claim": "The cathedral is cold", "documents": [MORE]},
        {"claim": "Cows", "sentences": ["A cow."]},
        {"claim": CLAIM, "sentences": PAGE[::-1], "scores": [0.1, 0.5, 0.2, 0.3, 0.9]},
    ]
    for limits in ({"k": 3}, {"budget": 20}, {"cover": 0.8}):
        many = list(selector.select_many(itertools.chain(queries), at_once=3, **limits))
        for query, picked in zip(queries, many, strict=True):
            alone = selector.select(**query, **limits)
            assert picked.indices == alone.indices
            assert picked.gains == pytest.approx(alone.gains, rel=1e-4)


def test_many_takes_from_a_stream_as_it_comes(selector: dgn.Selector) -> None:
    endless = ({"claim": f"Cow {n}", "sentences": ["A cow."]} for n in itertools.count())
    first = list(itertools.islice(selector.select_many(endless, at_once=4), 6))
    assert [one.question.claim for one in first] == [f"Cow {n}" for n in range(6)]


def test_any_encoder_objective_and_maximizer(selector: dgn.Selector) -> None:
    pooled = dgn.Selector(PooledEncoder(open_vectors("wordllama")))
    assert len(pooled.select(CLAIM, PAGE, k=2)) == 2
    assert pooled.select(CLAIM, PAGE, k=2).explain().picks[0].covers == ()
    facility = dgn.Selector(selector.encoder, objective=dgn.FacilityLocation())
    picked = facility.select(CLAIM, PAGE, k=2)
    assert picked.explain().passed[0].like is None, "no features to compare with"
    made = dgn.Selector(selector.encoder, objective=lambda _: dgn.FeatureCoverage())
    assert len(made.select(CLAIM, PAGE, k=2)) == 2
    searched = dgn.Selector(selector.encoder, maximizer=dgn.exact)
    greedy = selector.select(CLAIM, PAGE, k=3)
    assert searched.select(CLAIM, PAGE, k=3).values[-1] >= greedy.values[-1] - 1e-6


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"claim": " ", "sentences": PAGE}, "claim"),
        ({"claim": "?!", "sentences": PAGE}, "claim"),
        ({"claim": CLAIM}, "sentences, documents"),
        ({"claim": CLAIM, "sentences": PAGE, "documents": [MORE]}, "sentences, documents"),
        ({"claim": CLAIM, "sentences": []}, "sentences"),
        ({"claim": CLAIM, "sentences": "one string"}, "sentences"),
        ({"claim": CLAIM, "sentences": [3]}, "sentences"),
        ({"claim": CLAIM, "documents": [""]}, "documents"),
        ({"claim": CLAIM, "documents": "text"}, "documents"),
        ({"claim": CLAIM, "documents": [{"body": "x"}]}, "documents"),
        ({"claim": CLAIM, "documents": [{"text": "Hi.", "title": None}]}, "documents"),
        ({"claim": CLAIM, "documents": [{"sentences": "abc"}]}, "documents"),
        ({"claim": CLAIM, "documents": [5]}, "documents"),
        ({"claim": CLAIM, "documents": 5}, "documents"),
        ({"claim": 5, "sentences": PAGE}, "claim"),
        ({"claim": "A \ud800 claim", "sentences": PAGE}, "claim"),
        ({"claim": CLAIM, "sentences": ["half \udc00"]}, "sentences"),
        ({"claim": CLAIM, "sentences": {"a": 1}}, "sentences"),
        ({"claim": CLAIM, "sentences": PAGE, "title": 3}, "title"),
        ({"claim": CLAIM, "sentences": PAGE, "scores": "12345"}, "scores"),
        ({"claim": CLAIM, "sentences": PAGE, "scores": [1e308, -1e308, 0, 0, 0]}, "scores"),
        ({"claim": CLAIM, "sentences": PAGE, "scores": [10**400] * 5}, "scores"),
        ({"claim": CLAIM, "sentences": PAGE, "budget": 10**400}, "budget"),
        ({"claim": CLAIM, "documents": [MORE], "title": "T"}, "title"),
        ({"claim": CLAIM, "sentences": PAGE, "title": ["T"]}, "title"),
        ({"claim": CLAIM, "sentences": PAGE, "scores": [1.0]}, "scores"),
        ({"claim": CLAIM, "sentences": PAGE, "scores": [float("nan")] * 5}, "scores"),
        ({"claim": CLAIM, "sentences": PAGE, "k": 0}, "k"),
        ({"claim": CLAIM, "sentences": PAGE, "k": 2.5}, "k"),
        ({"claim": CLAIM, "sentences": PAGE, "cover": 1.5}, "cover"),
        ({"claim": CLAIM, "sentences": PAGE, "budget": 5, "k": 2}, "budget"),
        ({"claim": CLAIM, "sentences": PAGE, "budget": -5}, "budget"),
        ({"claim": CLAIM, "sentences": PAGE, "score_weight": -1.0}, "score_weight"),
    ],
)
def test_mistakes_are_named(selector: dgn.Selector, arguments: dict, names: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        selector.select(**arguments)
    assert raised.value.argument == names


def test_cover_needs_no_names(selector: dgn.Selector) -> None:
    pooled = dgn.Selector(PooledEncoder(open_vectors("wordllama")))
    assert 1 < len(pooled.select(CLAIM, PAGE, cover=0.99)) <= 5
    facility = dgn.Selector(selector.encoder, objective=dgn.FacilityLocation())
    assert len(facility.select(CLAIM, PAGE, cover=1.0)) > 1
    assert "covered" not in str(facility.select(CLAIM, PAGE, k=2).explain())


def test_equal_scores_say_nothing(selector: dgn.Selector) -> None:
    plain = selector.select(CLAIM, PAGE, k=3)
    equal = selector.select(CLAIM, PAGE, k=3, scores=[7.0] * 5)
    assert equal.indices == plain.indices
    assert equal.gains == pytest.approx(plain.gains, rel=1e-5)


def test_a_budget_buys_no_short_sentences_that_say_nothing() -> None:
    shipped = dgn.Selector.from_pretrained()
    page = [*PAGE, "It is so.", "He did.", "No one knew."]
    picked = shipped.select(CLAIM, page, budget=40, title="Oriel Tamsett")
    assert set(picked.indices) >= {1, 3}


def test_what_cannot_be_saved_is_not(selector: dgn.Selector, tmp_path) -> None:
    with pytest.raises(InvalidInput, match="by hand"):
        dgn.Selector(selector.encoder, maximizer=dgn.exact).save_pretrained(tmp_path / "m")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="a file"):
        selector.save_pretrained(tmp_path / "file")


@pytest.mark.parametrize("query", [("a", ["b"]), "text", {"claim": "a", "passages": []}, {}])
def test_queries_that_are_none_are_named(selector: dgn.Selector, query: object) -> None:
    good = {"claim": CLAIM, "sentences": PAGE}
    with pytest.raises(InvalidInput, match="at 1"):
        list(selector.select_many([good, query]))  # type: ignore[list-item]


def test_the_best_score_is_worth_what_was_said(selector: dgn.Selector) -> None:
    def roots(encoded: Encoded) -> dgn.FeatureCoverage:
        assert isinstance(encoded.objective, dgn.FeatureCoverage)
        return dgn.FeatureCoverage(encoded.objective.weights, Sqrt())

    for one in (selector, dgn.Selector(selector.encoder, objective=roots)):
        plain = one.select(CLAIM, PAGE, k=1).gains[0]
        low = one.select(CLAIM, [*PAGE[:4], "!"], k=1, scores=[0, 0, 0, 0, 1], score_weight=2)
        assert low.indices == (4,)
        assert low.gains[0] == pytest.approx(2 * plain, rel=0.3)
    words = selector.select("bridge", ["...", "!!!", "???"], scores=[0, 1, 2], k=1)
    assert words.indices == (2,)


def test_a_long_page_among_short_ones_is_taken_by_itself(selector: dgn.Selector) -> None:
    queries = [{"claim": "Cows", "sentences": ["A cow."] * n} for n in (1, 2, 5000, 1, 3)]
    picked = list(selector.select_many(queries, k=2))
    assert [len(one.candidates) for one in picked] == [1, 2, 5000, 1, 3]
    assert [len(one) for one in picked] == [1, 2, 2, 1, 2]


def test_line_breaks_and_capitals_hide_no_word(selector: dgn.Selector) -> None:
    picked = selector.select("The bridge opened in 1890", ["The bridge\nOpened\nin 1890.", "No."])
    assert picked.explain().picks[0].covered > 0.95


def test_sentences_without_words_are_no_harm(selector: dgn.Selector) -> None:
    picked = selector.select(CLAIM, ["", "…", *PAGE, " "], k=8)
    assert set(picked.indices[:5]) == {2, 3, 4, 5, 6}
    assert all(np.isfinite(picked.gains))


def test_a_selection_is_json(selector: dgn.Selector) -> None:
    picked = selector.select(CLAIM, documents=[" ".join(PAGE)], k=2)
    row = json.loads(json.dumps(picked.as_dict()))
    assert [pick["index"] for pick in row["picks"]] == list(picked.indices)
    assert row["picks"][0]["text"] == picked.texts[0]
    assert row["certificate"] == picked.certificate.ratio


def test_encoders_take_queries(selector: dgn.Selector) -> None:
    encoded = selector.encoder.encode([Query.of_page(CLAIM, PAGE)])
    assert "".join(facet.name for facet in encoded.name_facets(0)) == CLAIM.replace(" ", "")[:-1]


def test_selecting_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import dgn\n"
        "picked = dgn.Selector.from_pretrained().select('It sank', ['It sank.', 'No.'], k=1)\n"
        "picked.explain()\n"
        "print(picked.indices)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "(0,)", done.stderr


def test_every_error_is_ours(selector: dgn.Selector) -> None:
    with pytest.raises(DGNError):
        list(selector.select_many([{"claim": CLAIM, "sentences": PAGE}], at_once=0))
