"""The tables of the paper next to ours, and what the greedy layers add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgn.evaluation.comparison import format_difference, format_score, format_scores
from dgn.evaluation.metrics import PairedComparison
from experiments.reproduce.markdown import percent, table
from experiments.reproduce.paper import (
    CLAIMS,
    COMMENTED_OUT,
    PARAMETERS,
    TABLE_1,
    cut_of_missed_recall,
    gold_per_claim,
)
from experiments.reproduce.plan import MODELS, PAPER, UNIT
from experiments.reproduce.regime import regime_table
from experiments.reproduce.reproduce import NAMES, Layers, Reproduction
from experiments.reproduce.results import KS, Row

_AT_K = [f"k = {k}" for k in KS]
_KINDS = {
    PAPER: "the features of the paper",
    UNIT: "unit vectors",
}


def which_features(found: Reproduction) -> Iterator[str]:
    """Which features the paper used, by the precision of its Top-k."""
    rows = _by_name(found)
    if "Top-k" not in rows or "Top-k, unit" not in rows:
        return
    paper = [TABLE_1["Top-k"][k][1] for k in KS]
    ours = [rows["Top-k"].micro_precision[k].mean for k in KS]
    unit = [rows["Top-k, unit"].micro_precision[k].mean for k in KS]
    yield from (
        "## Which features",
        "",
        "The paper mentions neither vectors of length 1 nor punctuation that is left out, and "
        "calls its Top-k a cosine. Its precision decides: means over all tokens, not scaled and "
        "ranked by their dot product, are close to it, and cosines of unit vectors are not.",
        "",
        *table(
            ["precision of Top-k (micro)", *_AT_K],
            [
                ("the paper", *map(format_score, paper)),
                ("all tokens, not scaled: **the features of the paper**", *map(format_score, ours)),
                ("words, of length 1: unit vectors", *map(format_score, unit)),
            ],
        ),
        "Rows without an addition and rows with `listwise`, `annealed` or `ordered` use the "
        "features of the paper and its training: Adam with a constant rate, 7 layers, the "
        "layer-wise cross-entropy with matched labels (or ordered ones), τ fixed (or annealed by "
        "10% per epoch). Rows with `tuned` or `unit` use unit vectors and our training: AdamW, "
        "dropout, a cosine schedule, averaged weights, and labels `set`. `listwise` encoders are "
        "trained with the loss of the DGN: they are a DGN whose set function is a sum of scores.",
        "",
    )


def table_1(found: Reproduction) -> Iterator[str]:
    """The paper's three scores by k; then macro recall, and the paired tests."""
    yield from (
        "## Table 1: all models",
        "",
        "![Recall](recall.png)",
        "",
        "Micro averages: all gold sentences of all claims together. The paper (in *italics*) does "
        "not name its average; as micro averages, the recall and the precision of its rows imply "
        f"{_gold_per_claim(1)} gold sentences per claim at k = 1 and {_gold_per_claim(3)} at k = "
        f"3. At k = 5 and 7 they would imply {_gold_per_claim(5)} and {_gold_per_claim(7)}, if "
        "every claim had that many candidates; some have fewer. It learned from "
        f"{CLAIMS['training']:,} claims with several pages each. Rows in (*parentheses*) stand in "
        "its source as comments.",
        "",
    )
    for k in KS:
        yield from (f"**k = {k}**", "")
        rows = [
            (
                _bold(row.name),
                row.micro_recall[k],
                row.micro_precision[k],
                row.micro_f1[k],
                _papers(row.name, k),
            )
            for row in found.rows
        ]
        yield from table(("model", "recall", "precision", "F1", "*paper*"), rows)
    yield from (
        "Macro recall, the mean over claims:",
        "",
        *table(
            ["model", *_AT_K],
            [(_bold(row.name), *(row.macro_recall[k] for k in KS)) for row in found.rows],
        ),
    )
    for kind, compared in found.compared.items():
        dgn = NAMES[kind][2]
        yield from (
            f"{dgn} against each of the others on {_KINDS[kind]}, by macro recall on the same "
            "claims (difference, and p-value of a paired permutation test; the recall of a claim "
            "is the mean over seeds):",
            "",
            *table(
                ["against", *_AT_K],
                [(name, *_differences(by_k)) for name, by_k in compared.items()],
            ),
        )


def _gold_per_claim(k: int) -> str:
    values = [gold_per_claim(name, k) for name in TABLE_1 if name not in COMMENTED_OUT]
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def missed_recall(found: Reproduction) -> Iterator[str]:
    """How much of greedy's missed recall is found, in the paper and here."""
    rows = _by_name(found)
    paper = [cut_of_missed_recall(TABLE_1["Greedy"][k][0], TABLE_1["DGN"][k][0]) for k in KS]
    lines = [("the paper", *map(percent, paper))]
    for kind in found.compared:
        _, greedy, dgn, _ = NAMES[kind]
        for average in ("micro", "macro"):
            recalls = [getattr(rows[name], f"{average}_recall") for name in (greedy, dgn)]
            cuts = [cut_of_missed_recall(*(recall[k].mean for recall in recalls)) for k in KS]
            lines.append((f"{dgn} against {greedy}, {average}", *map(percent, cuts)))
    for kind, by_k in found.exchanges.items():
        _, greedy, dgn, _ = NAMES[kind]
        gross = [f"{percent(by_k[k].found)} − {percent(by_k[k].lost)}" for k in KS]
        lines.append((f"{dgn} against {greedy}, micro: found − lost", *gross))
    yield from (
        "### By how much the DGN reduces the recall that greedy misses",
        "",
        "A net number, (DGN − Greedy) / (1 − Greedy). The last rows say what it is made of: gold "
        "that the DGN finds and greedy misses, and gold that greedy finds and the DGN misses, both "
        "as shares of what greedy misses.",
        "",
    )
    yield from table(["", *_AT_K], lines)


def table_2(found: Reproduction) -> Iterator[str]:
    """Parameters, and what they buy."""
    rows = [
        (
            row.name,
            f"{row.parameters:,}",
            f"*{PARAMETERS[row.name]}*" if row.name in PARAMETERS else "",
            row.micro_recall[7],
            f"*{format_score(TABLE_1[row.name][7][0])}*" if row.name in PARAMETERS else "",
        )
        for row in found.rows
        if row.name in MODELS
    ]
    yield from (
        "## Table 2: parameters",
        "",
        "The width of the last layer is a result of each search.",
        "",
        *table(("model", "parameters", "*paper*", "micro recall at 7", "*paper*"), rows),
    )


def what_layers_add(found: Reproduction) -> Iterator[str]:
    """The DGN against the encoder with the same loss, and against itself without diversity."""
    if not found.layers:
        return
    yield from ("## What the greedy layers add", "")
    for kind, layers in found.layers.items():
        yield from (f"**On {_KINDS[kind]}**", "")
        if layers.groups:
            yield from (
                "The DGN and the listwise encoder have the same features, the same loss and the "
                "same number of trials; what differs is the set function. Differences of macro "
                "recall (p-value of a paired permutation test), DGN minus listwise encoder:",
                "",
                *table(
                    ["claims with", "number", *_AT_K],
                    [
                        (one.group, f"{one.claims:,}", *_differences(one.at))
                        for one in layers.groups
                    ],
                ),
            )
        yield from (
            "How strongly the learned functions diminish: f of the first pick, the share of its "
            "gain that the second pick keeps (in the paper's stories 7 to 16, and .57 to .77), the "
            "standard deviation of that share over the candidates of a claim, and the share of the "
            "claims whose 5 passages are those of a ranking by the first layer. Macro recall:",
            "",
            *regime_table(layers.regimes),
            _explained(kind, layers),
            "",
        )


def _explained(kind: str, layers: Layers) -> str:
    gold = layers.gold
    parts = [
        "Against the same trained network, ranked by the gains of its first layer (no diversity; "
        f"seed 0), diversity changes recall by {' / '.join(_differences(layers.ranked))} at k = 1 "
        "/ 3 / 5 / 7."
    ]
    if gold.claims:
        more = "more" if gold.among_gold > gold.with_others else "less"
        parts.append(
            f"{gold.several:.0%} of the claims have two or more gold passages. Two gold passages "
            f"of a claim are {more} alike (mean cosine {gold.among_gold:.3f}) than a gold passage "
            f"and another one ({gold.with_others:.3f}), on {_KINDS[kind]}."
        )
    return " ".join(parts)


def more_candidates(found: Reproduction) -> Iterator[str]:
    """How the table moves with the number of candidates."""
    yield from (
        "## More candidates, and two pages",
        "",
        "![Candidates](candidates.png)",
        "",
        "The same networks, trained on one page. The pages of other claims are added as "
        "distractors; or two claims are joined, so that gold is on two pages (the vector of the "
        "joined claim is the mean of both). Micro recall at k = 1 / 3 / 5 / 7:",
        "",
    )
    names = [name for row in found.harder[:1] for name in row.recall]
    header = ["model", *(f"{one.name} ({one.candidates:.0f})" for one in found.harder)]
    yield from table(
        header,
        [
            (name, *(format_scores(one.recall[name][k].mean for k in KS) for one in found.harder))
            for name in names
        ],
    )


def diversity(found: Reproduction) -> Iterator[str]:
    """How alike the picks are, against recall."""
    rows = sorted(found.rows, key=lambda row: row.similarity.mean)
    yield from ("## Diversity of the selected passages", "")
    yield from table(
        ("model", "cosine between two of 5 passages", "macro recall at 5"),
        [(row.name, row.similarity, row.macro_recall[5]) for row in rows],
    )


def searches(found: Reproduction) -> Iterator[str]:
    """What each search tried and found."""
    yield from (
        "## Searches",
        "",
        "Random search, seed 0, the same number of trials for each model; validation recall, "
        "macro, mean over k = 1, 3, 5, 7.",
        "",
        *table(
            ("model", "trials", "mean of all", "best", "settings of the best"),
            [
                (
                    name,
                    one.trials,
                    one.recall,
                    format_score(one.best),
                    ", ".join(f"{key} {value}" for key, value in one.settings.items()),
                )
                for name, one in found.searched.items()
            ],
        ),
    )


def _by_name(found: Reproduction) -> dict[str, Row]:
    return {row.name: row for row in found.rows}


def _differences(by_k: Mapping[int, PairedComparison]) -> list[str]:
    return [format_difference(by_k[k].difference.mean, by_k[k].p_value) for k in KS]


def _bold(name: str) -> str:
    return f"**{name}**" if name.startswith("DGN") else name


def _papers(name: str, k: int) -> str:
    scores = TABLE_1.get(name, {}).get(k)
    if scores is None:
        return ""
    written = f"*{format_scores(scores)}*"
    return f"({written})" if name in COMMENTED_OUT else written
