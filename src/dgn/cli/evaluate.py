"""`dgn evaluate`: every way to pick, on the same claims with the same candidates."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgn.cli.arguments import new_file, positive
from dgn.errors import InvalidInput, require_extra

if TYPE_CHECKING:
    from dgn.evaluation import ContestResult
    from dgn.evaluation.contenders import Contender, Questions

_DEFAULT = ("first", "tfidf", "tfidf-bigrams", "bm25", "top-k", "greedy")
_FACETS = ("facets", "facets-no-title", "facets-untrained", "facets-untrained-no-title")
_NAMES = (*_DEFAULT, "mmr", "msd", "dpp", *_FACETS)
_WITH_NUMBER = ("greedy", "mmr", "msd", "dpp")


def add_parser(commands: Any) -> None:
    """Add `evaluate`."""
    evaluate = commands.add_parser("evaluate", help="score ways to pick, and compare them")
    evaluate.add_argument("claims", type=Path, metavar="CLAIMS", help="JSONL of any of our formats")
    evaluate.add_argument("--pages", type=Path, help="a page store, or a folder of pages")
    evaluate.add_argument("--retrieved", type=Path, help="JSONL: id, pages; in place of oracle's")
    evaluate.add_argument("--vectors", default="wordllama", help="as for dgn data features")
    evaluate.add_argument("--unit", action="store_true", help="scale vectors to length 1")
    evaluate.add_argument(
        "--features", type=Path, metavar="FOLDER", help="keep the embedded claims here"
    )
    evaluate.add_argument(
        "--contenders",
        nargs="*",
        default=list(_DEFAULT),
        metavar="NAME",
        help=f"{', '.join(_NAMES)}; greedy:10 sets its scale, mmr:0.3 its diversity",
    )
    evaluate.add_argument(
        "--models", nargs="*", type=Path, default=[], metavar="RUN", help="folders of dgn train"
    )
    evaluate.add_argument("--k", nargs="+", type=positive, default=[1, 3, 5, 7])
    evaluate.add_argument(
        "--cut-off", type=positive, default=5, help="picks that FEVER's own scores count"
    )
    evaluate.add_argument("--against", metavar="NAME", help="compare all others with this one")
    evaluate.add_argument("--seed", type=int, default=0, help="of the bootstrap")
    evaluate.add_argument("--json", action="store_true", help="print JSON instead of tables")
    evaluate.add_argument("--per-claim", type=new_file, metavar="JSONL", help="write every pick")
    evaluate.add_argument("--skip-bad", action="store_true", help="go on after broken lines")
    evaluate.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    for package in ("msgspec", "rich"):
        require_extra("dgn evaluate", package=package, extra="data")
    require_extra("dgn evaluate", package="wordllama", extra="text")
    from dgn.cli.progress import progress_bar
    from dgn.evaluation import run_contest

    contenders = [_contender(name) for name in options.contenders]
    contenders += [_trained(folder, options.models) for folder in options.models]
    names = [contender.name for contender in contenders]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:  # the tables' rows are named
        raise InvalidInput("contenders", found=f"two named {twice[0]}", allowed="different names")
    if not contenders:
        raise InvalidInput("contenders", found="none", allowed=", ".join(_NAMES))
    asked = [*options.contenders, *map(str, options.models)]
    # By the name in the tables, or as it was asked for.
    known = dict(zip(asked, names, strict=True)) | {name: name for name in names}
    if options.against is not None and options.against not in known:
        raise InvalidInput("against", found=repr(options.against), allowed=", ".join(names))
    against = options.against and known[options.against]
    with progress_bar("evaluating") as update:
        questions = _questions(options, update)
        results = run_contest(
            contenders,
            questions,
            options.k,
            cut_off=options.cut_off,
            seed=options.seed,
            on_progress=lambda name: update(name, None),
        )
    if options.per_claim:
        _write_claims(options.per_claim, questions, results)
    compared = _compared(results, against, questions, options) if against else {}
    if options.json:
        print(json.dumps(_as_json(questions, results, compared), indent=2, ensure_ascii=False))
    else:
        _print_tables(questions, results, compared, against, options)
    return 0


def _contender(name: str) -> Contender:
    from dgn.evaluation.contenders import Bm25, CosineTopK, FirstSentences, TfIdf, UntrainedGreedy

    kind, _, value = name.partition(":")
    try:
        number = float(value) if value else None
    except ValueError:
        number = None
    if kind not in _NAMES or (value and (number is None or kind not in _WITH_NUMBER)):
        numbered = ", ".join(f"{kind}:NUMBER" for kind in _WITH_NUMBER)
        allowed = f"{', '.join(_NAMES)}; {numbered}"
        raise InvalidInput("contenders", found=repr(name), allowed=allowed)
    if kind in ("mmr", "msd", "dpp"):
        from dgn.evaluation.contenders.peers import Diversified

        return Diversified(kind, 0.5 if number is None else number)
    if kind in _FACETS:
        from dgn.evaluation.contenders.facets import ClaimFacets

        titles = not kind.endswith("-no-title")
        untrained = kind.startswith("facets-untrained")
        make = ClaimFacets.untrained if untrained else ClaimFacets.pretrained
        return make(titles=titles)
    if kind == "greedy":
        return UntrainedGreedy(1.0 if number is None else number)
    plain = {
        "first": FirstSentences,
        "tfidf": TfIdf,
        "tfidf-bigrams": lambda: TfIdf(bigrams=True),
        "bm25": Bm25,
        "top-k": CosineTopK,
    }
    return plain[kind]()


def _trained(folder: Path, folders: Sequence[Path]) -> Contender:
    require_extra("--models", package="torch", extra="train")
    from dgn.training.contender import open_contender

    contender = open_contender(folder)
    if [other.resolve().name for other in folders].count(contender.name) > 1:
        contender.name = str(folder)
    return contender


def _questions(options: argparse.Namespace, update: Any) -> Questions:
    from dgn.cli.data import list_problems
    from dgn.data.lines import Problems
    from dgn.evaluation.questions import read_questions
    from dgn.features import ExampleSource, FeatureOptions

    problems = Problems(skip=options.skip_bad)
    with tempfile.TemporaryDirectory(prefix="dgn-evaluate-") as temporary:
        questions = read_questions(
            ExampleSource(options.claims, options.pages, options.retrieved),
            options.features or Path(temporary, "features"),
            FeatureOptions(options.vectors, options.unit),
            problems,
            on_progress=lambda claims, _: update(f"{claims:,} claims embedded", None),
        )
    list_problems(problems)
    lost = int(questions.missing.sum())
    if lost:
        print(f"gold sentences that are no candidate, and so not found: {lost:,}", file=sys.stderr)
    return questions


def _compared(
    results: Sequence[ContestResult],
    against: str,
    questions: Questions,
    options: argparse.Namespace,
) -> dict[str, dict[int, Any]]:
    from dgn.evaluation import compare

    base = next(result for result in results if result.name == against)
    return {
        result.name: {k: compare(result, base, questions, k, seed=options.seed) for k in options.k}
        for result in results
        if result is not base
    }


def _as_json(
    questions: Questions, results: Sequence[ContestResult], compared: dict[str, dict[int, Any]]
) -> dict[str, Any]:
    return {
        "claims": len(questions.examples),
        "results": [result.as_row() for result in results],
        "compared": {
            name: {str(k): asdict(one) for k, one in by_k.items()}
            for name, by_k in compared.items()
        },
    }


def _write_claims(path: Path, questions: Questions, results: Sequence[ContestResult]) -> None:
    from dgn.evaluation import claim_rows
    from dgn.files import write_atomically

    rows = (json.dumps(row, ensure_ascii=False) for row in claim_rows(questions, results))
    write_atomically(path, "\n".join(rows) + "\n")


def _print_tables(
    questions: Questions,
    results: Sequence[ContestResult],
    compared: dict[str, dict[int, Any]],
    against: str | None,
    options: argparse.Namespace,
) -> None:
    from dgn.evaluation.wording import difference, short

    ks = [f"k = {k}" for k in options.k]
    with_gold = int((questions.gold.any(axis=1) | (questions.missing > 0)).sum())
    count = f"{with_gold:,} claims"
    if with_gold < len(questions.examples):
        count += f" with gold of {len(questions.examples):,}"
    if questions.unanswerable:
        count += f" and {len(questions.unanswerable):,} without a candidate"
    _print_table(
        f"Recall of gold sentences, macro, ± half of the 95% interval; {count}",
        ks,
        {
            r.name: [
                f"{short(one.recall.mean)} ±{short((one.recall.high - one.recall.low) / 2)}"
                for one in r.at
            ]
            for r in results
        },
    )
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
    _print_table(
        f"FEVER's official evidence scores, of the first {options.cut_off} picks",
        ["recall", "precision", "F1"],
        {
            r.name: [short(r.fever.recall), short(r.fever.precision), short(r.fever.f1)]
            for r in results
            if r.fever is not None
        },
    )
    if compared:
        _print_table(
            f"Recall against {against}: the difference (its p-value)",
            ks,
            {
                name: [difference(one.difference.mean, one.p_value) for one in by_k.values()]
                for name, by_k in compared.items()
            },
        )


def _print_table(title: str, columns: Sequence[str], rows: dict[str, list[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    if not rows:
        return
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("contender", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, cells in rows.items():
        table.add_row(name, *cells)
    Console(highlight=False, soft_wrap=True).print(table)


def _pair(first: float, second: float) -> str:
    from dgn.evaluation.wording import short

    return f"{short(first)}/{short(second)}"
