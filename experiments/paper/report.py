"""The report: Markdown to read, JSON to compute with, figures to look at. It quotes no data.

Every section is a function that computes, draws its figure, and yields its lines.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from dgn.evaluation.comparison import format_difference, format_score, format_scores
from dgn.evaluation.metrics import PairedComparison, hits_at, holm_p_values
from dgn.files import write_atomically
from experiments.made import made_by
from experiments.paper import figures
from experiments.paper.features import JOINED, ONE_PAGE, PAPER, ClaimTable, harder_sets
from experiments.paper.measures import (
    Spread,
    claim_groups,
    compared,
    diminishing,
    exchanged,
    gold_similarity,
    ranked_picks,
    same_five,
    similarity_of_picks,
    soft_gap,
    true_shares,
)
from experiments.paper.networks import Settings
from experiments.paper.plan import (
    IMBALANCE_MODELS,
    IMBALANCES,
    MODELS,
    POSITIVE_WEIGHTS,
    TEMPERATURES,
    trials_of,
)
from experiments.paper.published import (
    CLAIMS,
    COMMENTED_OUT,
    COVERED,
    LARGEST_K,
    PARAMETERS,
    TABLE_1,
    cut_of_missed_recall,
    gold_per_claim,
)
from experiments.paper.results import NAMES, Results
from experiments.paper.training import KS, Record, read_run

REPORT, NUMBERS = "report.md", "report.json"
_AT_K = [f"k = {k}" for k in KS]
_KINDS = {PAPER: "the features of the paper", "unit": "unit vectors"}
_PROOF_CLAIMS, _PROOF_LONGEST, _PROOF_K = 200, 20, 5

Numbers = dict[str, object]
Section = Callable[[Results, Path, Numbers], Iterator[str]]


def write_report(results: Results, folder: Path, command: str) -> Path:
    """Write everything into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    made = made_by("experiments/paper")
    numbers: Numbers = {
        "made": made,
        "command": command,
        "paper": TABLE_1,
        "machines": results.machines,
    }
    lines = list(_head(results, command, numbers))
    for section in _SECTIONS:
        lines += section(results, folder, numbers)
    write_atomically(folder / NUMBERS, json.dumps(numbers, indent=1) + "\n")
    write_atomically(folder / REPORT, "\n".join(lines).rstrip() + "\n")
    return folder / REPORT


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A Markdown table and a blank line after it; all columns but the first are numbers."""
    yield "| " + " | ".join(header) + " |"
    yield "| --- |" + " --: |" * (len(header) - 1)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""


def percent(share: float) -> str:
    """A share as a percentage; a dash if there is none."""
    return "–" if math.isnan(share) else f"{share:.1%}"


def _head(results: Results, command: str, numbers: Numbers) -> Iterator[str]:
    experiment, effort, layout = results.experiment, results.effort, results.experiment.layout
    gold = results.any_table.wanted
    per_claim = float(gold.sum() / max(1, gold.any(axis=1).sum()))
    learn = results.table(effort.kinds[0], "learn")
    shares = [_covered(learn, LARGEST_K), _covered(results.any_table, LARGEST_K)]
    three = _covered(results.any_table, 3)
    numbers |= {
        "data": layout.name,
        "training_claims": len(learn),
        "reported_claims": len(results.any_table),
        "gold_per_claim": per_claim,
        "covered_by_k": shares,
        "covered_by_3": three,
    }
    yield from (
        f"# The paper's experiment on {layout.name}",
        "",
        f"`{command}`",
        "",
        f"{made_by('experiments/paper')}.",
        "",
        f"{len(learn):,} training claims, {len(results.any_table):,} reported claims with "
        f"{per_claim:.2f} gold sentences each; {layout.description}. What is reported chose "
        f"nothing. Vectors: {Path(experiment.vectors).name}, mean-pooled; X = claim ⊙ sentence. "
        f"{_counted(effort.trials, 'trial')} and {_counted(effort.seeds, 'seed')} per model; ± "
        "is the standard deviation over seeds.",
        "",
    )
    if experiment.given:
        yield "The settings of these rows are given, and were not searched here: " + (
            "; ".join(name for name in effort.models if name in experiment.given) + "."
        )
        yield ""
    if effort.claims is not None and effort.claims < len(learn):
        yield f"Every run learns from {effort.claims:,} of the training claims, drawn by its seed."
        yield ""
    if layout.left_out:
        yield f"{_counted(layout.left_out, 'claim')} without a page were left out."
        yield ""
    yield from (
        f"K = {LARGEST_K} covers {percent(shares[0])} of the training claims and "
        f"{percent(shares[1])} of the reported ones: they have at most {LARGEST_K} gold sentences "
        f"({percent(COVERED)} in the paper). {percent(three)} of the reported ones have at most "
        "three.",
        "",
        *(f"- {machine}" for machine in results.machines),
        "",
    )


def _covered(table: ClaimTable, k: int) -> float:
    """The share of the claims with gold that have at most k gold sentences."""
    wanted = table.wanted.sum(axis=1)
    return float((wanted[wanted > 0] <= k).mean())


def which_features(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """Which features the paper used: the precision of its Top-k is the evidence."""
    del folder, numbers
    if not {"Top-k", "Top-k, unit"} <= set(results.picks):
        return
    paper = [TABLE_1["Top-k"][k][1] for k in KS]
    ours, unit = (
        [results.score(name, k, score="precision") for k in KS] for name in ("Top-k", "Top-k, unit")
    )
    yield from (
        "## Which features",
        "",
        "The paper mentions neither vectors of length 1 nor punctuation that is left out, and "
        "calls its Top-k a cosine. The precision of Top-k is nearest to that of means over all "
        "tokens, not scaled and ranked by their dot product. That is evidence and no proof: "
        "another way to tokenize the claim moves it by several points.",
        "",
        *table(
            ["precision of Top-k (micro)", *_AT_K],
            [
                ("the paper", *map(format_score, paper)),
                ("all tokens, not scaled: **the features of the paper**", *ours),
                ("words, of length 1: unit vectors", *unit),
            ],
        ),
        "Rows with `tuned` or `unit` use unit vectors and our training: AdamW, dropout, a cosine "
        "schedule, averaged weights, and labels `set`. All others use the features of the paper "
        "and its training: Adam with a constant rate, 7 layers, the layer-wise cross-entropy with "
        "matched labels, τ fixed. `listwise` encoders are trained with the loss of the DGN: they "
        "are a DGN whose set function is a sum of scores.",
        "",
    )


def table_1(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """The paper's three scores by k; then macro recall, and the paired tests."""
    figures.save(figures.recall(results), folder, "recall")
    names = list(results.picks)
    numbers["rows"] = {
        name: {
            f"{average} {score}": {k: asdict(results.score(name, k, average, score)) for k in KS}
            for average, score in (
                *(("micro", score) for score in ("recall", "precision", "f1")),
                ("macro", "recall"),
            )
        }
        for name in names
    }
    yield from (
        "## Table 1: all models",
        "",
        "![Recall](recall.png)",
        "",
        "Micro averages: all gold sentences of all claims together. The paper (in *italics*) does "
        "not name its average; as micro averages, the recall and the precision of its rows imply "
        f"{_implied(1)} gold sentences per claim at k = 1 and {_implied(3)} at k = 3. At k = 5 and "
        f"7 they would imply {_implied(5)} and {_implied(7)}, if every claim had that many "
        f"candidates; some have fewer. It learned from {CLAIMS['training']:,} claims with several "
        "pages each. Rows in (*parentheses*) stand in its source as comments.",
        "",
    )
    for k in KS:
        yield from (f"**k = {k}**", "")
        yield from table(
            ("model", "recall", "precision", "F1", "*paper*"),
            [
                (
                    _bold(name),
                    *(results.score(name, k, score=of) for of in ("recall", "precision", "f1")),
                    _papers(name, k),
                )
                for name in names
            ],
        )
    yield from (
        "Macro recall, the mean over claims:",
        "",
        *table(
            ["model", *_AT_K],
            [(_bold(name), *(results.score(name, k, "macro") for k in KS)) for name in names],
        ),
    )
    for kind in _kinds_with_dgn(results):
        dgn, others = NAMES[kind][2], [n for n in results.rows_of(kind) if n != NAMES[kind][2]]
        tests = {
            name: compared(results.tables[kind], results.picks[dgn], results.picks[name])
            for name in others
        }
        yield from (
            f"{dgn} against each of the others on {_KINDS[kind]}, by macro recall on the same "
            "claims (difference, and p-value of a paired permutation test over claims, corrected "
            "by Holm's method for this table; the recall of a claim is the mean over seeds):",
            "",
            *table(["against", *_AT_K], _corrected(tests)),
        )


def missed_recall(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """How much of greedy's missed recall is found, in the paper and here, and in points."""
    del folder
    papers = [[TABLE_1[name][k][0] for k in KS] for name in ("Greedy", "DGN")]
    points = [("the paper", *(f"{b - a:+.1%}" for a, b in zip(*papers, strict=True)))]
    cuts = [("the paper", *map(percent, map(cut_of_missed_recall, *papers)))]
    for kind in _kinds_with_dgn(results):
        _, greedy, dgn, _ = NAMES[kind]
        gold = results.any_table.wanted
        means = [[results.score(name, k).mean for k in KS] for name in (greedy, dgn)]
        points.append((f"{dgn}", *(f"{b - a:+.1%}" for a, b in zip(*means, strict=True))))
        cuts.append((f"{dgn} against {greedy}", *map(percent, map(cut_of_missed_recall, *means))))
        of = [exchanged(k, results.picks[greedy][0], results.picks[dgn], gold) for k in KS]
        numbers[f"exchanged {kind}"] = of
        gross = [f"{percent(one)} − {percent(lost)}" for one, lost in of]
        cuts.append((f"{dgn} against {greedy}: found − lost", *gross))
    yield from (
        "### By how much the DGN reduces the recall that greedy misses",
        "",
        "Micro recall over greedy, in points:",
        "",
        *table(["", *_AT_K], points),
        "As a share of what greedy misses, (DGN − Greedy) / (1 − Greedy). The rows `found − lost` "
        "say what this net number is made of: gold that the DGN finds and greedy misses, and gold "
        "that greedy finds and the DGN misses, both as shares of what greedy misses.",
        "",
        *table(["", *_AT_K], cuts),
    )


def table_2(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """Parameters, and what they buy."""
    del folder
    counts = {
        name: results.records("table", name)[0].parameters
        for name in results.picks
        if name in MODELS
    }
    numbers["parameters"] = counts
    yield from (
        "## Table 2: parameters",
        "",
        "The width of the last layer is a result of each search, but for rows that name theirs.",
        "",
        *table(
            ("model", "parameters", "*paper*", "micro recall at 7", "*paper*"),
            [
                (
                    name,
                    f"{count:,}",
                    f"*{PARAMETERS[name]}*" if name in PARAMETERS else "",
                    results.score(name, 7),
                    f"*{format_score(TABLE_1[name][7][0])}*" if name in PARAMETERS else "",
                )
                for name, count in counts.items()
            ],
        ),
    )


def how_it_trains(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """Why training ended, and the readings of the loss that do not train."""
    del folder
    rows: list[Sequence[object]] = []
    for name in results.effort.models:
        records = results.records("table", name)
        ends = dict.fromkeys(record.stopped for record in records)
        best = Spread.of([record.best.recall for record in records])
        rows.append(
            (name, best, ", ".join(str(one.best_epoch) for one in records), "; ".join(ends))
        )
    numbers["training"] = rows = [tuple(map(str, row)) for row in rows]
    yield from (
        "## How training ended",
        "",
        "Macro recall on the claims that choose, mean over k, at the best epoch (0 is the start). "
        "The paper could not train at τ = .01, because its loss took the logarithm of zeros and "
        "ones: that is the row `naive log`. `DGN, τ = .01` is the same in logarithms throughout.",
        "",
        *table(("model", "validation recall", "best epoch", "end"), rows),
    )


def what_layers_add(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """The DGN against the encoder with the same loss, and against itself without diversity."""
    del folder
    kinds = _kinds_with_dgn(results)
    if kinds:
        yield from ("## What the greedy layers add", "")
    for kind in kinds:
        _, _, dgn, encoder = NAMES[kind]
        table_of, picks = results.tables[kind], results.picks
        yield from (f"**On {_KINDS[kind]}**", "")
        if encoder in picks:
            groups = claim_groups(table_of)
            tests = {
                f"{name} ({members.sum():,})": compared(
                    table_of, picks[dgn], picks[encoder], members
                )
                for name, members in groups.items()
            }
            yield from (
                "The DGN and the listwise encoder have the same features, the same loss and the "
                "same number of trials; what differs is the set function. Differences of macro "
                "recall, DGN minus listwise encoder (p-value of a paired permutation test over "
                "claims, corrected by Holm's method for this table):",
                "",
                *table(["claims with", *_AT_K], _corrected(tests)),
            )
        yield from (
            "How strongly the learned functions diminish: f of the first pick, the share of its "
            "gain that the second pick keeps (in the paper's stories 7 to 16, and .57 to .77), the "
            "standard deviation of that share over the candidates of a claim, and the share of the "
            "claims whose 5 sentences are those of a ranking by the first layer. Macro recall:",
            "",
            *table(
                ["", "start", *_AT_K, "f({v})", "kept", "uneven", "same 5"],
                _regimes(results, kind, numbers),
            ),
            _explained(results, kind),
            "",
        )


def more_candidates(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """How the table moves with the number of candidates."""
    harder = results.harder
    figures.save(figures.candidates(harder), folder, "candidates")
    numbers["harder"] = {
        name: {
            "candidates": count,
            "recall": {row: {k: asdict(s) for k, s in at.items()} for row, at in rows.items()},
        }
        for name, (count, rows) in harder.items()
    }
    yield from (
        "## More candidates, and two pages",
        "",
        "![Candidates](candidates.png)",
        "",
        "The same networks, trained on one page. The pages of other claims are added as "
        f"distractors; or ({JOINED}) two claims are one, so that gold is on two pages (the vector "
        "of the joined claim is the mean of both). Micro recall at k = 1 / 3 / 5 / 7:",
        "",
        *table(
            ["model", *(f"{name} ({count:.0f})" for name, (count, _) in harder.items())],
            [
                (row, *(format_scores(of[row][k].mean for k in KS) for _, of in harder.values()))
                for row in harder[ONE_PAGE][1]
            ],
        ),
    )


def epoch_study(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """The paper's figure: loss and recall, epoch by epoch, at three learning rates."""
    curves = _study(results, "epochs")
    if not curves:
        return
    figures.save(figures.epochs(curves), folder, "epochs")
    numbers["epochs"] = {
        name: [[asdict(epoch) for epoch in run.epochs] for run in runs]
        for name, runs in curves.items()
    }
    parts: list[str] = []
    for name, runs in curves.items():
        losses = [[epoch.validation_loss or math.inf for epoch in run.epochs[1:]] for run in runs]
        at_7 = [[epoch.recalls[-1] for epoch in run.epochs] for run in runs]
        lowest = statistics.mean(of.index(min(of)) + 1 for of in losses)
        highest = statistics.mean(of.index(max(of)) for of in at_7)
        parts.append(
            f"With {name}, the validation loss is lowest ({statistics.mean(map(min, losses)):.3f}) "
            f"after epoch {lowest:g} and ends at {statistics.mean(of[-1] for of in losses):.3f}; "
            f"recall at 7 is highest ({statistics.mean(map(max, at_7)):.3f}) after epoch "
            f"{highest:g} and ends at {statistics.mean(of[-1] for of in at_7):.3f}."
        )
    yield from (
        *_titled("Loss and recall at 7, epoch by epoch", "epochs"),
        f"Three learning rates: {results.best['DGN'].learning_rate}, which the search found, ten "
        f"times as much and a tenth of it; the band is the range over seeds. {' '.join(parts)} In "
        "the paper, recall improves while the loss no longer does, and the lower rate ends with a "
        "lower recall; a higher rate gives a loss that rises again and a higher recall.",
        "",
    )


def temperature_study(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """Recall by temperature, fixed and annealed."""
    runs = _study(results, "temperature")
    if not runs:
        return
    mean, first = figures.mean_and_first(runs)
    lines = {
        title: [
            (kind, colour, TEMPERATURES, [of(f"{kind} {t}") for t in TEMPERATURES])
            for kind, colour in (("fixed", "#2ca02c"), ("annealed", "#9467bd"))
        ]
        for title, of in (("mean over k = 1, 3, 5, 7", mean), ("k = 1", first))
    }
    figure = figures.panels_of_lines(lines, "temperature τ", "validation recall")
    figures.save(figure, folder, "temperature")
    means = [mean(name).mean for name in runs]
    yield from (
        *_titled("Temperature", "temperature"),
        *_points("τ", runs, numbers),
        f"From τ = {TEMPERATURES[0]:g} to {TEMPERATURES[-1]:g}, fixed or annealed by 10% an epoch, "
        f"mean recall stays between {min(means):.3f} and {max(means):.3f}.",
        "",
    )


def imbalance_study(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """Class imbalance in the data, scored on the reported claims."""
    if "imbalance" not in results.effort.studies:
        return
    sets = ("1 page", "6 pages")
    measured: dict[tuple[str, str], tuple[float, list[dict[int, Spread]], str]] = {}
    for model in IMBALANCE_MODELS:
        for candidates in IMBALANCES:
            records = results.records("imbalance", f"{model}: {candidates}")
            spreads = [_recalls_on(results, records, name) for name in sets]
            shares = [run.accepted for run in records if run.accepted is not None]
            accepted = percent(statistics.mean(shares)) if shares else ""
            measured[model, candidates] = (records[0].others_per_gold, spreads, accepted)
    lines = {
        f"k = {k}": [
            (
                model,
                figures.COLOURS.get(model, "#e6ab02"),
                [measured[model, candidates][0] for candidates in IMBALANCES],
                [measured[model, candidates][1][0][k] for candidates in IMBALANCES],
            )
            for model in IMBALANCE_MODELS
        ]
        for k in (1, 5)
    }
    label = "other sentences per gold sentence, in training"
    figures.save(figures.panels_of_lines(lines, label, "recall (micro)"), folder, "imbalance")
    rows = [
        (model, f"{others:.1f}", *(s for at in spreads for s in at.values()), accepted)
        for (model, _), (others, spreads, accepted) in measured.items()
    ]
    numbers["imbalance"] = [tuple(map(str, row)) for row in rows]
    yield from (
        *_titled("Class imbalance in the data", "imbalance"),
        "The claims to learn from, and those that choose the epoch, have one other sentence for "
        "each gold one, their own page, or the pages of other claims in addition. The settings are "
        "those that the search found on the claims as they are; `no weight` is the pointwise "
        "Encoder whose loss counts gold once. Micro recall on the reported claims, which are the "
        "same for all rows: as they are, and with six pages.",
        "",
        *table(
            (
                "model",
                "others per gold",
                *_AT_K,
                *(f"6 pages, {k}" for k in _AT_K),
                "called evidence",
            ),
            rows,
        ),
    )


def weight_study(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """The weight of gold in the pointwise loss."""
    runs = _study(results, "weight")
    if not runs:
        return
    mean, first = figures.mean_and_first(runs)
    names = [f"Encoder {weight}" for weight in POSITIVE_WEIGHTS]
    accepted = [Spread.of([run.accepted or 0.0 for run in runs[name]]) for name in names]
    colour = figures.COLOURS["Encoder"]
    lines = {
        "mean over k = 1, 3, 5, 7": [
            ("Encoder", colour, POSITIVE_WEIGHTS, [mean(n) for n in names])
        ],
        "k = 1": [("Encoder", colour, POSITIVE_WEIGHTS, [first(n) for n in names])],
        "sentences called evidence": [("Encoder", colour, POSITIVE_WEIGHTS, accepted)],
    }
    figures.save(figures.panels_of_lines(lines, "positive weight", "share"), folder, "weight")
    extremes = [tuple(run.best.recalls for run in of) for n, of in runs.items() if n[:3] == "DGN"]
    same = "the same" if len(set(extremes)) == 1 else "NOT the same"
    means, firsts = [mean(n).mean for n in names], [first(n).mean for n in names]
    shares = [one.mean for one in accepted]
    yield from (
        *_titled("The weight of gold in the pointwise loss", "weight"),
        *_points("positive weight", runs, numbers),
        "The paper calls the Encoder very sensitive to this weight. As a classifier, it calls "
        f"{min(shares):.0%} to {max(shares):.0%} of all sentences evidence. As a ranking, which "
        f"decides the selection, its mean recall is {min(means):.3f} to {max(means):.3f}, and at "
        f"k = 1 {min(firsts):.3f} to {max(firsts):.3f}. The DGN has no such weight; trained with "
        f"the two extremes in its settings, its recalls are {same}.",
        "",
    )


def other_studies(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """The ablation, and the number of training claims, each next to the DGN as it is."""
    if runs := _study(results, "ablation"):
        yield from _titled("Ablation: labels, layers, relaxations, start, regularization")
        yield from _points("DGN with", {"DGN": results.records("table", "DGN"), **runs}, numbers)
    if runs := _study(results, "claims"):
        whole = len(results.table(PAPER, "learn"))
        runs[f"{results.effort.claims or whole}"] = results.records("table", "DGN")
        spreads = [
            [Spread.of([r.best.recalls[i] for r in of]) for i in range(len(KS))]
            for of in runs.values()
        ]
        figures.save(figures.claims([float(name) for name in runs], spreads), folder, "claims")
        yield from _titled("How many claims to learn from", "claims")
        yield from _points("claims", runs, numbers)


def soft_and_proofs(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """The soft search against the argmax, and greedy against the true optimum."""
    if "DGN" not in results.picks:
        return
    network = results.network(results.records("table", "DGN")[0])
    table_of = results.tables[PAPER]
    gaps = [soft_gap(network, table_of, 5, temperature) for temperature in TEMPERATURES]
    figures.save(figures.soft(TEMPERATURES, gaps), folder, "soft")
    reached, certified = true_shares(network, table_of, _PROOF_K, _PROOF_CLAIMS, _PROOF_LONGEST)
    numbers |= {"soft": gaps, "reached": reached, "certified": certified}
    yield from (
        *_titled("Soft against argmax", "soft"),
        *table(
            ("τ", "soft recall at 5", "argmax", "layers that agree"),
            [
                (f"{temperature:g}", *map(format_score, gap))
                for temperature, gap in zip(TEMPERATURES, gaps, strict=True)
            ],
        ),
    )
    if reached:
        figures.save(figures.proofs(reached, certified), folder, "proofs")
        best = sum(ratio > 1 - 1e-6 for ratio in reached)
        yield from (
            *_titled("Greedy's true gap, and certificates", "proofs"),
            f"All sets of {_PROOF_K} sentences were tried for {len(reached)} claims: greedy "
            f"reaches {min(reached):.4f} of the best f or more, {statistics.mean(reached):.5f} on "
            f"average, and the best set for {best}. Its certificates prove {min(certified):.3f} to "
            f"{max(certified):.3f}, {statistics.mean(certified):.3f} on average; 1 − 1/e is .632. "
            "All of it is about f, not about recall.",
            "",
        )


def diversity(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """How alike the picks are, against recall."""
    del folder
    alike = {
        name: Spread.of([similarity_of_picks(results.any_table, of, 5) for of in picks])
        for name, picks in results.picks.items()
    }
    numbers["similarity"] = {name: asdict(one) for name, one in alike.items()}
    yield from (
        "## Diversity of the selected sentences",
        "",
        *table(
            ("model", "cosine between two of 5 sentences", "macro recall at 5"),
            [
                (name, alike[name], results.score(name, 5, "macro"))
                for name in sorted(alike, key=lambda name: alike[name].mean)
            ],
        ),
    )


def searches(results: Results, folder: Path, numbers: Numbers) -> Iterator[str]:
    """What each search tried and found."""
    del folder
    rows: list[Sequence[object]] = []
    for name, settings in results.best.items():
        runs = results.experiment.out / "runs"
        trials = [read_run(runs / run.folder).best.recall for run in trials_of(results.plan, name)]
        scores = (Spread.of(trials), format_score(max(trials))) if trials else ("–", "–")
        rows.append((name, len(trials), *scores, _differing(settings)))
    numbers["settings"] = {name: asdict(one) for name, one in results.best.items()}
    yield from (
        "## Searches",
        "",
        "Random search, seed 0, the same number of trials for each model; validation recall, "
        "macro, mean over k = 1, 3, 5, 7. Rows without a trial have given settings.",
        "",
        *table(("model", "trials", "mean of all", "best", "settings of the best"), rows),
    )


_SECTIONS: tuple[Section, ...] = (
    which_features,
    table_1,
    missed_recall,
    table_2,
    how_it_trains,
    what_layers_add,
    more_candidates,
    epoch_study,
    temperature_study,
    imbalance_study,
    weight_study,
    other_studies,
    soft_and_proofs,
    diversity,
    searches,
)


def _kinds_with_dgn(results: Results) -> list[str]:
    return [kind for kind in results.tables if NAMES[kind][2] in results.picks]


def _regimes(results: Results, kind: str, numbers: Numbers) -> Iterator[Sequence[object]]:
    """How strongly the functions of all DGNs diminish."""
    table_of = results.tables[kind]
    variants = [
        ("table", name)
        for name in results.rows_of(kind)
        if name in MODELS and MODELS[name].settings.architecture == "dgn"
    ]
    if kind == PAPER:
        variants += [("start", name) for name in results.variants("start")]
    for study, name in variants:
        records = results.records(study, name)
        recalls = _recalls_on(results, records, ONE_PAGE, "macro")
        networks = [results.network(record) for record in records]
        measured = [
            (
                *diminishing(network, table_of),
                same_five(network, table_of, record.picks()[ONE_PAGE]),
            )
            for network, record in zip(networks, records, strict=True)
        ]
        alone, kept, uneven, same = (Spread.of(of) for of in zip(*measured, strict=True))
        numbers[f"regime {name}"] = [asdict(one) for one in (alone, kept, uneven, same)]
        settings = records[0].settings
        start = (
            f"α {settings.weights_start:g}, scale {settings.scale:g}, {settings.concave}, "
            f"τ {settings.temperature:g}"
        )
        spread = f" ±{alone.sd:.1f}" if alone.count > 1 else ""
        cells = (f"{alone.mean:.1f}{spread}", kept, uneven, percent(same.mean))
        yield (name, start, *recalls.values(), *cells)


def _recalls_on(
    results: Results, records: Sequence[Record], of: str, average: str = "micro"
) -> dict[int, Spread]:
    """By k, the recall of some runs on one of the sets of reported claims."""
    gold = results.any_table.wanted if of == ONE_PAGE else harder_sets(results.any_table)[of].wanted
    picks = [record.picks()[of] for record in records]
    return {k: Spread.of([getattr(hits_at(k, p, gold), average).recall for p in picks]) for k in KS}


def _explained(results: Results, kind: str) -> str:
    dgn = NAMES[kind][2]
    table_of = results.tables[kind]
    ranked = ranked_picks(results.network(results.records("table", dgn)[0]), table_of)
    tests = compared(table_of, [results.picks[dgn][0]], [ranked])
    changes = [format_difference(tests[k].difference.mean, tests[k].p_value) for k in KS]
    several, among, across = gold_similarity(table_of)
    more = "more" if among > across else "less"
    said = (
        "Against the same trained network, ranked by the gains of its first layer (no diversity; "
        f"seed 0), diversity changes recall by {' / '.join(changes)} at k = 1 / 3 / 5 / 7."
    )
    if not among:
        return said
    return (
        f"{said} {several:.0%} of the claims have two or more gold sentences. Two gold sentences "
        f"of a claim are {more} alike (mean cosine {among:.3f}) than a gold sentence and another "
        f"one ({across:.3f}), on {_KINDS[kind]}."
    )


def _study(results: Results, study: str) -> dict[str, list[Record]]:
    return {name: results.records(study, name) for name in results.variants(study)}


def _titled(title: str, figure: str = "") -> tuple[str, ...]:
    return (f"## {title}", "", *((f"![{title}]({figure}.png)", "") if figure else ()))


def _points(title: str, runs: Mapping[str, Sequence[Record]], numbers: Numbers) -> Iterator[str]:
    """The variants of a study: validation recall, macro, at the best epoch."""
    rows: list[Sequence[object]] = []
    for name, of in runs.items():
        recalls = [Spread.of([run.best.recalls[place] for run in of]) for place in range(len(KS))]
        rows.append((name, *recalls, Spread.of([run.best.recall for run in of]), len(of)))
    numbers[title] = [tuple(map(str, row)) for row in rows]
    yield from ("Macro recall on the claims that choose (validation):", "")
    yield from table((title, *_AT_K, "mean", "seeds"), rows)


def _corrected(tests: Mapping[str, Mapping[int, PairedComparison]]) -> Iterator[Sequence[str]]:
    """Differences with p-values that are corrected for all tests of the table."""
    values = holm_p_values([[by_k[k].p_value for k in KS] for by_k in tests.values()])
    for (name, by_k), corrected in zip(tests.items(), values, strict=True):
        means = [by_k[k].difference.mean for k in KS]
        yield (name, *map(format_difference, means, corrected.tolist()))


def _implied(k: int) -> str:
    values = [gold_per_claim(name, k) for name in TABLE_1 if name not in COMMENTED_OUT]
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _papers(name: str, k: int) -> str:
    scores = TABLE_1.get(name, {}).get(k)
    if scores is None:
        return ""
    written = f"*{format_scores(scores)}*"
    return f"({written})" if name in COMMENTED_OUT else written


def _bold(name: str) -> str:
    return f"**{name}**" if name.startswith("DGN") else name


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _differing(settings: Settings) -> str:
    """The settings that differ from the defaults."""
    default = asdict(Settings())
    return ", ".join(f"{k} {v}" for k, v in asdict(settings).items() if v != default[k])
