"""Lexical baselines, compared with independent libraries on made-up pages."""

import bm25s
import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from dgn.evaluation import Bm25, FirstPassages, SelectorBaseline, TfIdf
from dgn.evaluation.baselines import best_first
from dgn.text.query import Query
from dgn.text.words import split_words
from evaluation_examples import make_examples
from models import shipped, untrained


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    return [example.query for example in make_examples()]


def ranked(scores: np.ndarray) -> list[int]:
    return np.argsort(-np.round(scores, 6), kind="stable").tolist()


def texts_of(queries: list[Query]) -> list[str]:
    return list(dict.fromkeys(text for query in queries for text in query.texts))


@pytest.mark.parametrize("bigrams", [False, True])
def test_tfidf_is_that_of_scikit_learn(queries: list[Query], bigrams: bool) -> None:
    vectorizer = TfidfVectorizer(
        tokenizer=split_words, token_pattern=None, ngram_range=(1, 2 if bigrams else 1)
    ).fit(texts_of(queries))
    selected = TfIdf(bigrams).select(queries, 8)
    for query, found in zip(queries, selected, strict=True):
        passages = vectorizer.transform(query.texts)
        wanted = vectorizer.transform([query.text])
        if bigrams:
            # scikit-learn leaves unknown bigrams out of the length of the query; all passages
            # share that factor.
            wanted = wanted / max(np.sqrt(wanted.multiply(wanted).sum()), 1e-9)
        expected = np.asarray((passages @ wanted.T).todense())[:, 0]
        assert found[found >= 0].tolist() == ranked(expected)


def test_bm25_is_that_of_bm25s(queries: list[Query]) -> None:
    texts = texts_of(queries)
    tokens = [[word.lower() for word in split_words(text)] for text in texts]
    index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    index.index(tokens, show_progress=False)
    selected = Bm25().select(queries, 8)
    for query, found in zip(queries, selected, strict=True):
        scores = index.get_scores([word.lower() for word in split_words(query.text)])
        expected = np.array([scores[texts.index(text)] for text in query.texts])
        assert found[found >= 0].tolist() == ranked(expected)


def test_first_passages(queries: list[Query]) -> None:
    selected = FirstPassages().select(queries, 3)
    for query, found in zip(queries, selected, strict=True):
        count = min(3, len(query.passages))
        assert found.tolist() == [*range(count), *[-1] * (3 - count)]


def test_passages_without_a_word() -> None:
    silent = [Query.of("a ship", ["...", "!"])]
    for baseline in (Bm25(), TfIdf()):
        assert baseline.select(silent, 2).tolist() == [[0, 1]]


def test_stems_are_the_forms_of_a_word() -> None:
    queries = [Query.of("ships sinking", ["The lamp is green.", "A ship sinks."])]
    assert Bm25(stemmed=True).select(queries, 1).tolist() == [[1]]
    assert Bm25().scores(queries)[0].tolist() == [0, 0]


def test_stems_are_those_of_the_language() -> None:
    passages = ["Katzen schlafen gern.", "Ein Haus ist teuer."]
    german = Query.of("Was kosten die Häuser?", passages, language="de")
    chinese = Query.of("大桥是谁建的？", ["猫在家里。", "工程师建了桥。"])
    assert Bm25(stemmed=True).select([german, chinese], 1).tolist() == [[1], [1]]
    assert Bm25().scores([german, chinese])[1].tolist() == [0, 0]


def test_best_first_breaks_ties_by_the_lowest_index() -> None:
    scores = [np.array([1.0, 3.0, 3.0]), np.array([2.0])]
    assert best_first(scores, 2).tolist() == [[1, 2], [0, -1]]


@pytest.mark.parametrize("titles", [True, False])
def test_selector_as_a_baseline(queries: list[Query], titles: bool) -> None:
    baseline = SelectorBaseline("facets", shipped(), titles=titles)
    selected = baseline.select(queries, 4)
    assert selected.shape == (25, 4)
    for query, found in zip(queries, selected, strict=True):
        title = query.passages[0].title if titles else ""
        document = {"sentences": query.texts, "title": title}
        alone = shipped().select(query.text, documents=[document], k=4)
        assert tuple(found[found >= 0]) == alone.indices


def test_parameters_are_those_of_the_encoder() -> None:
    assert SelectorBaseline("facets", shipped()).parameters == shipped().encoder.parameters > 0
    assert SelectorBaseline("facets-untrained", untrained()).parameters == 0
    assert Bm25().parameters == 0
