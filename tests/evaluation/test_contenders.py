"""Contenders against independent libraries, on pages that we made up."""

import bm25s
import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from dgn.data.records import Candidate, Claim, Evidence, Example
from dgn.errors import InvalidInput
from dgn.evaluation.contenders import (
    Bm25,
    CosineTopK,
    FirstSentences,
    Questions,
    TfIdf,
    UntrainedGreedy,
)
from dgn.evaluation.contenders.peers import Diversified
from dgn.maximizers import greedy
from dgn.objectives import FeatureCoverage
from dgn.text.tokens import split_words
from small_features import make_table

WORDS = [
    "ship",
    "harbour",
    "storm",
    "captain",
    "sank",
    "rose",
    "in",
    "1901",
    "1902",
    "the",
    "a",
    "of",
    "and",
    "was",
    "crew",
    "lost",
]


def make_examples(count: int = 25) -> tuple[Example, ...]:
    random = np.random.default_rng(0)

    def sentence() -> str:
        return " ".join(random.choice(WORDS, random.integers(3, 12))).capitalize() + "."

    examples = []
    for n in range(count):
        candidates = tuple(Candidate(f"P{n}", i, sentence()) for i in range(random.integers(2, 9)))
        evidence = Evidence(f"P{n}", int(random.integers(len(candidates))))
        gold = tuple(c.sentence == evidence.sentence for c in candidates)
        claim = Claim(str(n), sentence(), "SUPPORTS", ((evidence,),))
        examples.append(Example(claim, candidates, gold))
    return tuple(examples)


@pytest.fixture(scope="module")
def questions() -> Questions:
    return Questions(make_examples())


def ranked(scores: np.ndarray) -> list[int]:
    return np.argsort(-np.round(scores, 6), kind="stable").tolist()


def texts_of(questions: Questions) -> list[str]:
    return list(dict.fromkeys(c.text for e in questions.examples for c in e.candidates))


@pytest.mark.parametrize("bigrams", [False, True])
def test_tfidf_is_scikit_learns(questions: Questions, bigrams: bool) -> None:
    vectorizer = TfidfVectorizer(
        tokenizer=split_words, token_pattern=None, ngram_range=(1, 2 if bigrams else 1)
    ).fit(texts_of(questions))
    picks = TfIdf(bigrams).pick(questions, 8)
    for example, picked in zip(questions.examples, picks, strict=True):
        sentences = vectorizer.transform([c.text for c in example.candidates])
        claim = vectorizer.transform([example.claim.text])
        if bigrams:
            # scikit-learn leaves unknown bigrams out of the claim's length; all share that factor.
            claim = claim / max(np.sqrt(claim.multiply(claim).sum()), 1e-9)
        expected = np.asarray((sentences @ claim.T).todense())[:, 0]
        assert picked[picked >= 0].tolist() == ranked(expected)


def test_bm25_is_bm25s(questions: Questions) -> None:
    texts = texts_of(questions)
    tokens = [[word.lower() for word in split_words(text)] for text in texts]
    index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    index.index(tokens, show_progress=False)
    picks = Bm25().pick(questions, 8)
    for example, picked in zip(questions.examples, picks, strict=True):
        asked = [word.lower() for word in split_words(example.claim.text)]
        scores = index.get_scores(asked)
        expected = np.array([scores[texts.index(c.text)] for c in example.candidates])
        assert picked[picked >= 0].tolist() == ranked(expected)


def test_the_first_k(questions: Questions) -> None:
    picks = FirstSentences().pick(questions, 3)
    for example, picked in zip(questions.examples, picks, strict=True):
        count = min(3, len(example.candidates))
        assert picked.tolist() == [*range(count), *[-1] * (3 - count)]


@pytest.fixture(scope="module")
def vectored() -> Questions:
    table = make_table(40, 3)
    examples = tuple(
        Example(Claim(str(name), "c"), tuple(Candidate("p", i, "s") for i in range(n)), (True,) * n)
        for name, n in zip(table.ids, table.lengths.tolist(), strict=True)
    )
    return Questions(examples, table)


def test_cosine_and_greedy_on_one_claim_at_a_time(vectored: Questions) -> None:
    table = vectored.vectors
    top, covering = CosineTopK().pick(vectored, 4), UntrainedGreedy(0.5).pick(vectored, 4)
    for row, claim in enumerate(table.claims.astype(np.float32)):
        places = table.candidates[table.offsets[row] : table.offsets[row + 1]]
        sentences = table.sentences[places].astype(np.float32)
        cosines = sentences @ claim / np.linalg.norm(sentences, axis=1)
        assert top[row][top[row] >= 0].tolist() == np.argsort(-cosines)[:4].tolist()
        alone = greedy(FeatureCoverage(), np.maximum(0.5 * claim * sentences, 0), 4)[0]
        assert tuple(covering[row][covering[row] >= 0]) == alone.indices


@pytest.mark.parametrize("strategy", ["mmr", "msd", "dpp"])
def test_pyversity_without_diversity_starts_with_the_nearest(
    vectored: Questions, strategy: str
) -> None:
    picks = Diversified(strategy, 0.0).pick(vectored, 3)
    np.testing.assert_array_equal(picks[:, 0], CosineTopK().pick(vectored, 1)[:, 0])
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in picks)


def test_candidates_without_a_word() -> None:
    candidates = (Candidate("p", 0, "..."), Candidate("p", 1, "!"))
    silent = Questions((Example(Claim("1", "a ship"), candidates, (False, True)),))
    for contender in (Bm25(), TfIdf()):
        assert contender.pick(silent, 2).tolist() == [[0, 1]]


def test_bad_input(questions: Questions) -> None:
    with pytest.raises(InvalidInput, match="examples: found none"):
        Questions(())
    with pytest.raises(InvalidInput, match="features of other claims"):
        Questions(questions.examples, make_table(25, 1))
    with pytest.raises(InvalidInput, match="table: found none"):
        CosineTopK().pick(questions, 1)
    with pytest.raises(InvalidInput, match="diversity 2"):
        Diversified("mmr", 2)
