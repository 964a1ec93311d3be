"""The two tables of the paper next to ours, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dgn.evaluation.comparison import format_difference, format_score, format_scores
from experiments.reproduce.figures import kind_of
from experiments.reproduce.markdown import percent, table
from experiments.reproduce.paper import CLAIMS, KS, PARAMETERS, TABLE_1, cut_of_missed_recall
from experiments.reproduce.plan import NEAR_THE_START
from experiments.reproduce.reproduce import Reproduction, Studies

_AT_K = [f"k = {k}" for k in KS]


def table_1(found: Reproduction) -> Iterator[str]:
    """The paper's three scores by k; then micro recall, FEVER's own, and the paired tests."""
    yield from (
        "## Table 1: all models",
        "",
        "![Recall](recall.png)",
        "",
        f"The numbers of the paper are in *italics*: it learned from {CLAIMS['training']:,} claims "
        "with fastText vectors, and the precision of its Top-k at k = 1 is 32%. Compare the order "
        "of the rows and the gaps between them, not the levels.",
        "",
    )
    for k in KS:
        yield from (f"**k = {k}**", "")
        rows = [
            (_bold(row.name), row.recall[k], row.precision[k], row.f1[k], _papers(row.name, k))
            for row in found.rows
        ]
        yield from table(("model", "recall", "precision", "F1", "*paper*"), rows)
    yield from (
        "Micro recall, over all gold sentences together (precision and recall of the paper are "
        "consistent only as micro averages):",
        "",
        *table(
            ["model", *_AT_K],
            [(row.name, *(row.micro_recall[k] for k in KS)) for row in found.rows],
        ),
        "FEVER's official evidence recall of the first 5 passages (one complete group must be "
        "among them): " + ", ".join(f"{row.name} {row.fever_recall}" for row in found.rows) + ".",
        "",
        "The DGN against each of the others, by recall on the same claims (difference, and p-value "
        "of a paired permutation test; the recall of a claim is the mean over seeds):",
        "",
    )
    compared = [
        (name, *(format_difference(by_k[k].difference.mean, by_k[k].p_value) for k in KS))
        for name, by_k in found.compared.items()
    ]
    yield from table(["against", *_AT_K], compared)


def missed_recall(found: Reproduction) -> Iterator[str]:
    """How much of greedy's missed recall is found, in the paper and here."""
    rows = {kind_of(row.name): row for row in found.rows}
    greedy, dgn = rows["Greedy"], rows["DGN"]
    ks = sorted(KS)
    paper = [cut_of_missed_recall(TABLE_1["Greedy"][k][0], TABLE_1["DGN"][k][0]) for k in ks]
    ours = [cut_of_missed_recall(greedy.recall[k].mean, dgn.recall[k].mean) for k in ks]
    yield from ("### The share of greedy's missed recall that the DGN finds", "")
    yield from table(
        ["", *(f"k = {k}" for k in ks)],
        [
            ("the paper", *map(percent, paper)),
            (f"here, against {greedy.name}", *map(percent, ours)),
        ],
    )
    if found.studies is not None:
        yield from _why_not_more(found, found.studies, paper)


def _why_not_more(
    found: Reproduction, studies: Studies, paper_cuts: Sequence[float]
) -> Iterator[str]:
    """What the tuning, the data and the features contribute, each with its measurement."""
    rows = {kind_of(row.name): row for row in found.rows}
    ks = sorted(KS)
    greedy = [rows["Greedy"].recall[k].mean for k in ks]
    needed = [g + cut * (1 - g) for g, cut in zip(greedy, paper_cuts, strict=True)]
    learned = [
        f"{format_scores(by_k[k].mean for k in ks)} ({name})"
        for name, by_k in studies.on_training_claims.items()
    ]
    words = [
        cut_of_missed_recall(g, rows["BM25"].recall[k].mean)
        for g, k in zip(greedy, ks, strict=True)
    ]
    varied = [point.mean.mean for point in (*studies.ablation, *studies.temperature)]
    *_, half, whole = studies.claims
    doubling = " / ".join(
        f"{more.mean - less.mean:+.3f}".replace("0.", ".")
        for more, less in zip(whole.recalls, half.recalls, strict=True)
    )
    yield from (
        "What the cut of the paper would require, and what we measured:",
        "",
        f"- Required recall: {format_scores(needed)} at k = 1 / 3 / 5 / 7. On claims that it "
        f"learned from, the recall of the DGN is {'; '.join(learned)}.",
        f"- Tuning: {len(varied)} variants of the DGN below (labels, layers, start, relaxation, "
        f"regularisation, 16 temperatures) end between {min(varied):.3f} and {max(varied):.3f} "
        "mean recall.",
        f"- Data: the last doubling, to {found.training_claims:,} claims, brought {doubling} at "
        f"k = 1 / 3 / 5 / 7; the paper learned from "
        f"{CLAIMS['training'] / found.training_claims:.1f} times as many.",
        "- Features: BM25, which sees the words that pooling mixes, cuts greedy's missed recall by "
        + " / ".join(map(percent, words))
        + " on the same candidates, untrained.",
        "",
    )


def table_2(found: Reproduction) -> Iterator[str]:
    """Parameters, and what they buy."""
    rows = [
        (
            row.name,
            f"{row.parameters:,}",
            f"*{PARAMETERS[row.name]}*",
            row.recall[7],
            f"*{format_score(TABLE_1[row.name][7][0])}*",
        )
        for row in found.rows
        if row.name in PARAMETERS
    ]
    yield from ("## Table 2: parameters", "")
    yield from table(("model", "parameters", "*paper*", "recall at 7", "*paper*"), rows)


def second_vectors(found: Reproduction) -> Iterator[str]:
    """The rows on the second vectors."""
    yield from (
        f"## On {Path(found.request.second_vectors).name} vectors, close to the start",
        "",
        "A network that starts exactly at untrained greedy with scale "
        f"{NEAR_THE_START['scale']:g} and is kept close to it. Only epochs that are at least as "
        "good as the start at every k count, on the claims that choose.",
        "",
        *table(
            ["model", *_AT_K],
            [(row.name, *(row.recall[k] for k in KS)) for row in found.second],
        ),
    )


def diversity(found: Reproduction) -> Iterator[str]:
    """How alike the picks are, against recall."""
    rows = sorted(found.rows, key=lambda row: row.similarity.mean)
    yield from ("## Diversity of the selected passages", "", "![Diversity](diversity.png)", "")
    yield from table(
        ("model", "cosine between two of 5 passages", "recall at 5"),
        [(row.name, row.similarity, row.recall[5]) for row in rows],
    )


def _bold(name: str) -> str:
    return f"**{name}**" if name == "DGN" else name


def _papers(name: str, k: int) -> str:
    scores = TABLE_1.get(kind_of(name), {}).get(k)
    return "" if scores is None else f"*{format_scores(scores)}*"
