"""The report of a reproduction: Markdown to read, JSON to compute with, figures to look at."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from dgn.files import write_atomically
from dgn.reproduction.figures import draw_figures, kind_of
from dgn.reproduction.paper import CLAIMS, KS, PARAMETERS, TABLE_1, cut_of_missed_recall
from dgn.reproduction.plan import DGN, MODELS, NEAR_THE_START, TEMPERATURES
from dgn.reproduction.reproduce import Reproduction, Studies
from dgn.reproduction.results import StudyPoint
from dgn.reproduction.stories import told

REPORT, NUMBERS, STORIES = "report.md", "report.json", "stories.md"


def write_report(found: Reproduction, folder: Path, command: str) -> Path:
    """Write everything into a folder. `stories.md` quotes the data; the report does not."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_figures(found, folder)
    write_atomically(folder / NUMBERS, json.dumps(_numbers(found, command), indent=1) + "\n")
    write_atomically(folder / REPORT, "\n".join(_report(found, command)) + "\n")
    quoted = [line for story in found.stories for line in (*told(story, with_text=True), "")]
    write_atomically(folder / STORIES, "\n".join(quoted) + "\n")
    return folder / REPORT


def _report(found: Reproduction, command: str) -> Iterator[str]:
    seeds = found.request.effort.seeds
    yield from (
        f"# The paper's experiment on {found.layout.name}",
        "",
        f"`{command}`",
        "",
        f"{found.training_claims:,} claims to learn from, {found.reported_claims:,} reported, "
        f"{found.candidates:.1f} candidates a claim; {found.layout.said}. Vectors: "
        f"{Path(found.request.vectors).name}, mean-pooled, of length 1; X = claim ⊙ sentence. "
        f"{seeds} seed(s); scores are macro, over claims; ± is the standard deviation over seeds.",
        "",
        *(f"- {machine}" for machine in found.machines),
        "",
    )
    if found.layout.reports_what_chose:
        yield from (
            "The reported claims also chose the epoch (and, for the settings, the search): all "
            "trained rows are a little optimistic, all in the same way.",
            "",
        )
    yield from _table_1(found)
    yield from _missed_recall(found)
    yield from _table_2(found)
    yield from _second_vectors(found)
    if found.studies is not None:
        yield from _studies(found.studies)
    yield from _diversity(found)
    yield from _stories(found)
    yield from _settings()


def _table_1(found: Reproduction) -> Iterator[str]:
    yield from (
        "## Table 1: all models",
        "",
        "![Recall](recall.png)",
        "",
        f"The paper's numbers in *italics*: it learned from {CLAIMS['training']:,} claims, with "
        "fastText vectors, and its Top-k is right at the first pick for 32% of the claims "
        "(precision at k = 1). Compare the order of the rows and the gaps between them, not the "
        "levels.",
    )
    for k in KS:
        yield from (
            "",
            f"**k = {k}**",
            "",
            "| model | recall | precision | F1 | *paper* |",
            "| --- | --: | --: | --: | --: |",
        )
        for row in found.rows:
            paper = TABLE_1.get(kind_of(row.name), {}).get(k)
            said = "" if paper is None else "*" + " / ".join(_short(x) for x in paper) + "*"
            name = f"**{row.name}**" if row.name == "DGN" else row.name
            yield f"| {name} | {row.recall[k]} | {row.precision[k]} | {row.f1[k]} | {said} |"
    yield from (
        "",
        "Micro recall, over all gold sentences together (the paper's precision and recall fit "
        "micro averages better than macro ones):",
        "",
        "| model | " + " | ".join(f"k = {k}" for k in KS) + " |",
        "| --- |" + " --: |" * len(KS),
        *(
            f"| {row.name} | " + " | ".join(str(row.micro_recall[k]) for k in KS) + " |"
            for row in found.rows
        ),
        "",
        "FEVER's official evidence recall, of the first 5 picks (one whole group must be among "
        "them): " + ", ".join(f"{row.name} {row.fever_recall}" for row in found.rows) + ".",
        "",
        "The DGN against each of the others, by recall on the same claims (difference, and p of a "
        "paired permutation test; each claim's recall is the mean over seeds):",
        "",
        "| against | " + " | ".join(f"k = {k}" for k in KS) + " |",
        "| --- |" + " --: |" * len(KS),
    )
    for name, by_k in found.compared.items():
        cells = [
            f"{by_k[k].difference.mean:+.3f} ({_p(by_k[k].p_value)})".replace("0.", ".", 1)
            for k in KS
        ]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""


def _missed_recall(found: Reproduction) -> Iterator[str]:
    rows = {kind_of(row.name): row for row in found.rows}
    greedy, dgn = rows["Greedy"], rows["DGN"]
    yield from (
        "### How much of what greedy misses does the DGN find?",
        "",
        "| | " + " | ".join(f"k = {k}" for k in sorted(KS)) + " |",
        "| --- |" + " --: |" * len(KS),
    )
    paper = [
        cut_of_missed_recall(TABLE_1["Greedy"][k][0], TABLE_1["DGN"][k][0]) for k in sorted(KS)
    ]
    ours = [cut_of_missed_recall(greedy.recall[k].mean, dgn.recall[k].mean) for k in sorted(KS)]
    yield "| the paper | " + " | ".join(f"{cut:.0%}" for cut in paper) + " |"
    yield f"| here, against {greedy.name} | " + " | ".join(f"{cut:.0%}" for cut in ours) + " |"
    yield ""
    if found.studies is not None:
        yield from _why_not_more(found, found.studies, paper)


def _why_not_more(
    found: Reproduction, studies: Studies, paper_cuts: Sequence[float]
) -> Iterator[str]:
    """Is it the tuning, the data, or the features? Each has its own measurement."""
    rows = {kind_of(row.name): row for row in found.rows}
    ks = sorted(KS)
    greedy = [rows["Greedy"].recall[k].mean for k in ks]
    needed = [g + cut * (1 - g) for g, cut in zip(greedy, paper_cuts, strict=True)]
    learned = {
        name: _several([by_k[k].mean for k in ks])
        for name, by_k in studies.on_training_claims.items()
    }
    words = [
        cut_of_missed_recall(g, rows["BM25"].recall[k].mean)
        for g, k in zip(greedy, ks, strict=True)
    ]
    varied = [point.mean.mean for point in (*studies.ablation, *studies.temperature)]
    yield from (
        "What would the paper's cut take, and what stands in its way?",
        "",
        f"- The recall it would take: {_several(needed)} at k = 1 / 3 / 5 / 7. On claims "
        "that it learned from, the DGN's recall is "
        + "; ".join(f"{recalls} ({name})" for name, recalls in learned.items())
        + ".",
        f"- Tuning: {len(varied)} variants of the DGN below (labels, layers, start, relaxation, "
        f"regularisation, 16 temperatures) end between {min(varied):.3f} and {max(varied):.3f} "
        "mean recall.",
        f"- Data: {_claims_said(found, studies)}",
        "- Features: BM25, which sees the words that pooling mixes, cuts greedy's missed recall by "
        + " / ".join(f"{cut:.0%}" for cut in words)
        + " on the same candidates, untrained.",
        "",
    )


def _table_2(found: Reproduction) -> Iterator[str]:
    yield from (
        "## Table 2: parameters",
        "",
        "| model | parameters | *paper* | recall at 7 | *paper* |",
        "| --- | --: | --: | --: | --: |",
    )
    for row in found.rows:
        if row.name in PARAMETERS:
            paper = _short(TABLE_1[row.name][7][0])
            yield (
                f"| {row.name} | {row.parameters:,} | *{PARAMETERS[row.name]}* | "
                f"{row.recall[7]} | *{paper}* |"
            )
    yield ""


def _second_vectors(found: Reproduction) -> Iterator[str]:
    yield from (
        f"## On {Path(found.request.second_vectors).name} vectors, held to the start",
        "",
        "A network that starts exactly at the untrained greedy of scale "
        f"{NEAR_THE_START['scale']:g}, is kept near it, and of whose epochs only those count that "
        "are below the start at no k, on the claims that choose.",
        "",
        "| model | " + " | ".join(f"k = {k}" for k in KS) + " |",
        "| --- |" + " --: |" * len(KS),
    )
    for row in found.second:
        yield f"| {row.name} | " + " | ".join(str(row.recall[k]) for k in KS) + " |"
    yield ""


def _studies(studies: Studies) -> Iterator[str]:
    yield from (
        "The recall of the studies that follow is of the claims that choose (validation).",
        "",
        "## Recall at 7, epoch by epoch",
        "",
        "![Recall at 7](epochs.png)",
        "",
        f"Two learning rates, {DGN['learning_rate']:g} and a tenth of it; the band is the range "
        f"over seeds. They end at {_last(studies, 0):.3f} and {_last(studies, 1):.3f}; in the "
        "paper the lower rate ends lower.",
        "",
        "## Temperature",
        "",
        "![Temperature](temperature.png)",
        "",
        *_points("τ", studies.temperature),
        _temperature_said(studies),
        "",
        "## Class imbalance",
        "",
        "![Class imbalance](imbalance.png)",
        "",
        *_points("positive weight", studies.imbalance),
        "| positive weight | sentences that the Encoder calls evidence |",
        "| --: | --: |",
        *(f"| {weight:g} | {share} |" for weight, share in studies.accepted.items()),
        "",
        _imbalance_said(studies),
        "",
        "## Ablation: labels, layers, start, regularisation",
        "",
        *_points("DGN with", studies.ablation),
        "## How many claims to learn from",
        "",
        "![Claims](claims.png)",
        "",
        *_points("claims", studies.claims),
        "## Soft against argmax",
        "",
        "![Soft against argmax](soft.png)",
        "",
        "| τ | soft recall at 5 | argmax | layers that agree |",
        "| --: | --: | --: | --: |",
        *(
            f"| {gap.temperature:g} | {_short(gap.soft_recall)} | {_short(gap.hard_recall)} | "
            f"{_short(gap.agreement)} |"
            for gap in studies.soft
        ),
        "",
        "## Greedy's true gap, and certificates",
        "",
        "![Proofs](proofs.png)",
        "",
        _proofs_said(studies),
        "",
    )


def _points(title: str, points: Sequence[StudyPoint]) -> Iterator[str]:
    yield f"| {title} | k = 1 | k = 3 | k = 5 | k = 7 | mean | seeds |"
    yield "| --- | --: | --: | --: | --: | --: | --: |"
    for point in points:
        cells = " | ".join(map(str, point.recalls))
        yield f"| {point.variant} | {cells} | {point.mean} | {point.mean.count} |"
    yield ""


def _last(studies: Studies, curve: int) -> float:
    return statistics.mean(seed[-1] for seed in studies.curves[curve].by_seed)


def _temperature_said(studies: Studies) -> str:
    means = [point.mean.mean for point in studies.temperature]
    return (
        f"From τ = {TEMPERATURES[0]:g} to {TEMPERATURES[-1]:g}, fixed or annealed by 10% an epoch, "
        f"mean recall stays between {min(means):.3f} and {max(means):.3f}. The paper could not "
        "train at τ = 0.01, because its loss took the logarithm of zeros and ones; ours stays in "
        "logarithms."
    )


def _imbalance_said(studies: Studies) -> str:
    encoders = [point for point in studies.imbalance if point.variant.startswith("Encoder")]
    means = [point.mean.mean for point in encoders]
    firsts = [point.recalls[0].mean for point in encoders]
    same = "the same" if studies.dgn_weights_equal else "NOT the same"
    return (
        f"The paper calls the Encoder very sensitive to this weight. As a classifier, here, it "
        f"calls {min(s.mean for s in studies.accepted.values()):.0%} to "
        f"{max(s.mean for s in studies.accepted.values()):.0%} of all sentences evidence. As a "
        f"ranking, which is what picks, its mean recall goes from {min(means):.3f} to "
        f"{max(means):.3f}, at k = 1 from {min(firsts):.3f} to {max(firsts):.3f}. The DGN has no "
        f"such weight; trained with the two extremes in its configuration, its recalls are {same}."
    )


def _claims_said(found: Reproduction, studies: Studies) -> str:
    *_, half, whole = studies.claims
    steps = [whole.recalls[i].mean - half.recalls[i].mean for i in range(4)]
    gained = " / ".join(f"{step:+.3f}".replace("0.", ".") for step in steps)
    return (
        f"The last doubling, to {found.training_claims:,} claims, brought {gained} at k = 1 / 3 / "
        f"5 / 7; the paper learned from {CLAIMS['training'] / found.training_claims:.1f} times as "
        "many."
    )


def _proofs_said(studies: Studies) -> str:
    proofs = studies.proofs
    if not proofs.reached:
        return "No claim was small enough to search exactly."
    optimal = sum(ratio > 1 - 1e-6 for ratio in proofs.reached)
    return (
        f"{len(proofs.reached)} claims, k = 5, searched exactly"
        + (f" ({proofs.too_large} more were given up)" if proofs.too_large else "")
        + f": greedy reaches {min(proofs.reached):.4f} of the best f or more, "
        f"{statistics.mean(proofs.reached):.5f} on average, and the very best set for {optimal}. "
        f"Its certificates prove {min(proofs.certified):.3f} to {max(proofs.certified):.3f}, "
        f"{statistics.mean(proofs.certified):.3f} on average; 1 − 1/e is .632. All of it is about "
        "f, not about recall."
    )


def _diversity(found: Reproduction) -> Iterator[str]:
    yield from (
        "## Diversity of the picks",
        "",
        "![Diversity](diversity.png)",
        "",
        "| model | cosine between two of 5 picks | recall at 5 |",
        "| --- | --: | --: |",
    )
    for row in sorted(found.rows, key=lambda row: row.similarity.mean):
        yield f"| {row.name} | {row.similarity} | {row.recall[5]} |"
    yield ""


def _stories(found: Reproduction) -> Iterator[str]:
    if not found.stories:
        return
    yield from ("## Where the DGN and the Encoder differ", "")
    yield f"By reference (seed 0); with their texts in `{STORIES}`, which `dgn reproduce` writes."
    for story in found.stories:
        yield from ("", *told(story, with_text=False))
    yield ""


def _settings() -> Iterator[str]:
    yield from ("## Settings", "", "What differs from `dgn train`'s defaults:", "")
    for name, settings in (*MODELS.items(), ("DGN on second vectors", NEAR_THE_START)):
        yield f"- {name}: " + ", ".join(f"{key} {value}" for key, value in settings.items())


def _numbers(found: Reproduction, command: str) -> dict[str, object]:
    return {
        "command": command,
        "data": found.layout.name,
        "said": found.layout.said,
        "training_claims": found.training_claims,
        "reported_claims": found.reported_claims,
        "machines": found.machines,
        "rows": [asdict(row) for row in found.rows],
        "second_vectors": [asdict(row) for row in found.second],
        "compared": {
            name: {k: asdict(one) for k, one in by_k.items()}
            for name, by_k in found.compared.items()
        },
        "studies": None if found.studies is None else asdict(found.studies),
        "paper": TABLE_1,
    }


def _several(numbers: Sequence[float]) -> str:
    return " / ".join(_short(number) for number in numbers)


def _short(number: float) -> str:
    return f"{number:.3f}".removeprefix("0")


def _p(number: float) -> str:
    return "<.001" if number < 0.001 else _short(number)
