"""`dgn evaluate`: compare ways to select on the same queries with the same passages."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgn.apps.cli.options import (
    QUERIES_HELP,
    new_file,
    positive,
    print_problems,
    refuse_overwriting,
    show_progress,
)
from dgn.errors import InvalidInput

if TYPE_CHECKING:
    from dgn.evaluation import Baseline, BaselineResult, EvaluationSet
    from dgn.evaluation.metrics import Interval, PairedComparison
    from dgn.text import PooledVectors

_DEFAULT = ("first", "tfidf", "tfidf-bigrams", "bm25", "top-k")
_DIVERSIFIERS = ("mmr", "msd", "dpp")
_OURS = ("dgn", "dgn-no-title", "dgn-untrained", "dgn-untrained-no-title")
_WITH_NUMBER = (*_DIVERSIFIERS, "dgn")
_NAMES = (*_DEFAULT, *_DIVERSIFIERS, *_OURS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn evaluate`."""
    parser.description = "Score baselines and models on the same queries with the same passages."
    parser.add_argument("--queries", type=Path, required=True, metavar="FILE", help=QUERIES_HELP)
    parser.add_argument(
        "--baselines",
        nargs="*",
        default=list(_DEFAULT),
        metavar="NAME",
        help=f"{', '.join(_NAMES)}; mmr:0.3 sets its diversity, and dgn:0.6 its breadth",
    )
    parser.add_argument(
        "--model",
        nargs="+",
        action="extend",
        default=[],
        metavar="FOLDER",
        help="model folders, names on the hub, or untrained",
    )
    parser.add_argument("-k", "--k", nargs="+", type=positive, default=[1, 3, 5, 7])
    parser.add_argument(
        "--against",
        metavar="NAME",
        help="compare all others with this one, with corrected p-values",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--out", type=new_file, metavar="FILE", help="JSONL file for what each one selected"
    )
    parser.add_argument("--skip-bad", action="store_true", help="skip broken rows and list them")
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    refuse_overwriting(options.out, [options.queries])
    from dgn.data import Problems, read_rows
    from dgn.evaluation import EvaluationSet, run_comparison

    baselines = [_baseline(name) for name in options.baselines]
    taken = [baseline.name for baseline in baselines]
    baselines += [_model(folder, options.model, taken) for folder in options.model]
    names = _checked_names(baselines)
    asked = [*options.baselines, *options.model]
    # A baseline may be named as in the tables, or as it was asked for.
    known = dict(zip(asked, names, strict=True)) | {name: name for name in names}
    if options.against is not None and options.against not in known:
        found, allowed = repr(options.against), f"one of {', '.join(names)}"
        raise InvalidInput("against", found=found, allowed=allowed)
    against = options.against and known[options.against]
    problems = Problems(skip=options.skip_bad)
    with show_progress("evaluating") as update:
        examples = read_rows(options.queries, problems)
        evaluation_set = EvaluationSet(tuple(e for e in examples if e.query.passages))
        results = run_comparison(
            baselines,
            evaluation_set,
            options.k,
            seed=options.seed,
            on_progress=lambda name: update(name, None),
        )
    print_problems(problems)
    lost = int(evaluation_set.missing.sum())
    if lost:
        print(
            f"gold sentences that are not among the passages, and so not found: {lost:,}",
            file=sys.stderr,
        )
    if options.out:
        _write_rows(options.out, evaluation_set, results)
    compared = _compared(results, against, evaluation_set, options) if against else {}
    if options.json:
        print(json.dumps(_to_dict(evaluation_set, results, compared), indent=2, ensure_ascii=False))
    else:
        _print_tables(evaluation_set, results, compared, against, options)
    return 0


def _checked_names(baselines: Sequence[Baseline]) -> list[str]:
    names = [baseline.name for baseline in baselines]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(
            "baselines", message=f"Two baselines are named {twice[0]}; each needs its own name."
        )
    if not names:
        raise InvalidInput("baselines", found="none", allowed=f"one of {', '.join(_NAMES)}")
    return names


def _baseline(name: str) -> Baseline:
    from dgn.evaluation import (
        Bm25,
        Diversified,
        FirstPassages,
        PooledTopK,
        SelectorBaseline,
        TfIdf,
    )
    from dgn.selector import Selector

    kind, _, value = name.partition(":")
    try:
        number = float(value) if value else None
    except ValueError:
        number = None
    if kind not in _NAMES or (value and (number is None or kind not in _WITH_NUMBER)):
        numbered = ", ".join(f"{kind}:NUMBER" for kind in _WITH_NUMBER)
        allowed = f"names out of {', '.join(_NAMES)}, {numbered}"
        raise InvalidInput("baselines", found=repr(name), allowed=allowed)
    if kind in _OURS:
        untrained = kind.startswith("dgn-untrained")
        selector = Selector.from_pretrained("untrained" if untrained else None)
        titles = not kind.endswith("-no-title")
        return SelectorBaseline(name, selector, titles=titles, breadth=number)
    if kind in _DIVERSIFIERS:
        return Diversified(kind, _vectors(), 0.5 if number is None else number)
    if kind == "top-k":
        return PooledTopK(_vectors())
    if kind == "bm25":
        return Bm25()
    return FirstPassages() if kind == "first" else TfIdf(bigrams=kind == "tfidf-bigrams")


@cache
def _vectors() -> PooledVectors:
    from dgn.text import WordLlamaVectors

    return WordLlamaVectors()


def _model(folder: str, folders: Sequence[str], taken: Sequence[str]) -> Baseline:
    """A model as a baseline, named after its folder, or by its path if the name is taken."""
    from dgn.evaluation import SelectorBaseline
    from dgn.selector import Selector

    name = Path(folder).resolve().name
    if [*(Path(other).resolve().name for other in folders), *taken].count(name) > 1:
        name = folder
    return SelectorBaseline(name, Selector.from_pretrained(folder))


def _compared(
    results: Sequence[BaselineResult],
    against: str,
    evaluation_set: EvaluationSet,
    options: argparse.Namespace,
) -> dict[str, dict[int, PairedComparison]]:
    from dgn.evaluation import compare_all

    base = next(result for result in results if result.name == against)
    return compare_all(results, base, evaluation_set, options.k, seed=options.seed)


def _to_dict(
    evaluation_set: EvaluationSet,
    results: Sequence[BaselineResult],
    compared: dict[str, dict[int, PairedComparison]],
) -> dict[str, Any]:
    return {
        "queries": len(evaluation_set.examples),
        "results": [result.to_dict() for result in results],
        "compared": {
            name: {str(k): asdict(one) for k, one in by_k.items()}
            for name, by_k in compared.items()
        },
    }


def _write_rows(
    path: Path, evaluation_set: EvaluationSet, results: Sequence[BaselineResult]
) -> None:
    from dgn.evaluation import query_rows
    from dgn.files import write_atomically

    rows = (json.dumps(row, ensure_ascii=False) for row in query_rows(evaluation_set, results))
    write_atomically(path, "\n".join(rows) + "\n")


def _print_tables(
    evaluation_set: EvaluationSet,
    results: Sequence[BaselineResult],
    compared: dict[str, dict[int, PairedComparison]],
    against: str | None,
    options: argparse.Namespace,
) -> None:
    from dgn.evaluation.comparison import format_comparison

    ks = [f"k = {k}" for k in options.k]
    with_gold = int((evaluation_set.gold.any(axis=1) | (evaluation_set.missing > 0)).sum())
    count = f"{with_gold:,} queries"
    if with_gold < len(evaluation_set.examples):
        count += f" with gold of {len(evaluation_set.examples):,}"
    wanted = "aspects" if evaluation_set.has_aspects else "gold sentences"
    _print_table(
        f"Recall of {wanted}, macro, ± half of the 95% interval; {count}",
        ks,
        {r.name: [_with_interval(one.recall) for one in r.at] for r in results},
    )
    if evaluation_set.has_aspects:
        _print_table(
            "α-nDCG, α = .5, ± half of the 95% interval",
            ks,
            {r.name: [_with_interval(one.alpha_ndcg) for one in r.at] for r in results},
        )
    else:
        _print_precision(results, ks)
    if compared:
        _print_table(
            f"Recall against {against}: difference (p-value, corrected by Holm's method for the "
            f"{sum(map(len, compared.values()))} tests of this table; * below .05)",
            ks,
            {
                name: [format_comparison(one) for one in by_k.values()]
                for name, by_k in compared.items()
            },
        )


def _print_precision(results: Sequence[BaselineResult], ks: Sequence[str]) -> None:
    _print_table(
        "Precision/F1, macro",
        ks,
        {r.name: [_pair(one.macro.precision, one.macro.f1) for one in r.at] for r in results},
    )
    _print_table(
        "Recall/precision, micro",
        ks,
        {r.name: [_pair(one.micro.recall, one.micro.precision) for one in r.at] for r in results},
    )


def _print_table(title: str, columns: Sequence[str], rows: dict[str, list[str]]) -> None:
    if not rows:
        return
    table = [["", *columns], *([name, *cells] for name, cells in rows.items())]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    print(f"\n{title}")
    for row in table:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())


def _with_interval(interval: Interval | None) -> str:
    from dgn.evaluation.comparison import format_score

    if interval is None:
        return "–"
    return f"{format_score(interval.mean)} ±{format_score((interval.high - interval.low) / 2)}"


def _pair(first: float, second: float) -> str:
    from dgn.evaluation.comparison import format_score

    return f"{format_score(first)}/{format_score(second)}"
