import numpy as np

from dgn.data import Claim, Evidence, Example, example_of
from dgn.learn.cross_validation import divide
from dgn.text.query import Passage


def _example(texts: list[str], gold: int = 0) -> Example:
    passages = [Passage(text, "", 0, place, id="d") for place, text in enumerate(texts)]
    return example_of(Claim("1", "a query", None, ((Evidence("d", gold),),)), passages)


def test_rows_about_one_document_are_in_one_part() -> None:
    random = np.random.default_rng(0)
    documents = [[f"Sentence {n} of document {d}." for n in range(4)] for d in range(30)]
    about = random.integers(0, 30, 200)
    parts, note = divide([_example(documents[d], int(random.integers(4))) for d in about])
    assert not note
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
    parts, note = divide([_example(["One.", "Two."], n % 2) for n in range(20)])
    assert "share a document" in note
    assert np.bincount(parts).tolist() == [4] * 5


def test_many_rows_have_ten_parts() -> None:
    parts, _ = divide([_example([f"Text number {n}."]) for n in range(2001)])
    assert len(set(parts.tolist())) == 10
