"""`dgn select`: a query and some pages in, the sentences that together cover it out."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Generator, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dgn.apps.cli.inputs import read_pages, read_passages, read_scores
from dgn.apps.cli.options import figure_file, new_file, positive, print_problems, refuse_overwriting
from dgn.errors import BrokenInput, InvalidInput

if TYPE_CHECKING:
    from dgn.data import Problems, Row
    from dgn.selector import Limits, PassageSelection, Selector


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn select`."""
    parser.description = "Select the sentences of some pages that together cover a query."
    parser.epilog = 'example: dgn select "The bridge opened in 1890." bridge.txt -k 3 --explain'
    parser.add_argument("query", nargs="?", metavar="QUERY", help="a claim or a question")
    parser.add_argument(
        "pages",
        nargs="*",
        metavar="PAGE",
        help="text files; - for standard input. The name of a file is its title",
    )
    parser.add_argument(
        "--passages",
        metavar="FILE",
        help="in place of pages: a file with one passage per line; - for standard input",
    )
    parser.add_argument(
        "--scores",
        metavar="FILE",
        help="relevance scores of your own, one for each passage or sentence: a file with one "
        "number per line or a JSON list, - for standard input, or the numbers themselves: 0.2,0.9",
    )
    parser.add_argument(
        "--score-weight",
        type=float,
        metavar="X",
        help="what the best score is worth, as a multiple of the best passage; by default found "
        "out for each query",
    )
    parser.add_argument(
        "--queries",
        metavar="FILE",
        help="JSONL file of queries with passages or documents; - for standard input",
    )
    parser.add_argument(
        "-k", "--k", type=positive, metavar="N", help="largest number of sentences (default 5)"
    )
    parser.add_argument(
        "--max-tokens", type=positive, metavar="N", help="largest number of tokens of all sentences"
    )
    parser.add_argument(
        "--stop-at",
        type=float,
        metavar="SHARE",
        help="stop once this fraction of the achievable coverage is reached",
    )
    parser.add_argument(
        "--min-relevance",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="leave out sentences that cover less than this share of the query by themselves",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="model folder, name on the hub, default, untrained, minilm, or minilm-words",
    )
    parser.add_argument(
        "--max-per-document",
        type=positive,
        metavar="N",
        help="largest number of sentences of one page",
    )
    parser.add_argument(
        "--max-per-group",
        type=positive,
        metavar="N",
        help="largest number of passages of each of the groups that the rows of --queries name",
    )
    parser.add_argument(
        "--given",
        action="append",
        metavar="TEXT",
        help="a text that is already there: it covers, and nothing that repeats it is selected; "
        "may be repeated",
    )
    parser.add_argument(
        "--pinned",
        type=int,
        nargs="+",
        metavar="N",
        help="sentences that must be selected, by their numbers from 0",
    )
    parser.add_argument(
        "--language", metavar="CODE", help="language of all texts, such as de; by default found"
    )
    parser.add_argument("--no-titles", action="store_true", help="do not use titles")
    parser.add_argument("--explain", action="store_true", help="print the reasons")
    parser.add_argument("--plot", type=figure_file, metavar="FIGURE", help="draw the reasons")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--context", action="store_true", help="print the text for a prompt, in reading order"
    )
    parser.add_argument(
        "--receipt",
        action="store_true",
        help="print what happened to every sentence, as JSON that dgn verify can check; with "
        "--queries, each row has its receipt",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="JSONL file for --queries; with --workers or --engine, a folder of Parquet files",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="many files: --queries is a glob of JSONL or Parquet files, --out a folder; both may "
        "be s3:// URLs, and a rerun does what is missing",
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        help="who does it: processes of this machine, or Ray (needs dgn[ray])",
    )
    parser.add_argument("--address", help="address of a Ray cluster; by default one is started")
    parser.add_argument(
        "--batch-size",
        type=positive,
        default=64,
        metavar="N",
        help="queries per batch (default 64)",
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="skip broken rows of --queries and list them"
    )
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    if options.out and not _is_job(options):
        try:
            options.out = new_file(options.out)
        except argparse.ArgumentTypeError as error:
            options.parser.error(f"argument --out: {error}")
    _check(options)
    if _is_job(options):
        return _run_job(options)
    from dgn.selector import Selector
    from dgn.text import Query

    selector = Selector.from_pretrained(options.model)
    if options.queries:
        return _select_rows(selector, options)
    query = Query.of(
        options.query,
        read_passages(options.passages) if options.passages else None,
        documents=read_pages(options.pages, with_titles=not options.no_titles) or None,
        scores=read_scores(options.scores) if options.scores else None,
        given=options.given,
        pinned=options.pinned,
        language=options.language,
    )
    (selection,) = selector.select_queries([query], _limits(options))
    if not len(selection):
        tokens = min(selector.encoder.count_tokens(selection.query.texts))
        fits = options.max_tokens is None or tokens <= options.max_tokens
        short = f"No sentence fits; the shortest one has {tokens} tokens."
        print(f"dgn: {'No sentence adds anything.' if fits else short}", file=sys.stderr)
    if options.plot and len(selection):
        selection.explain().draw(options.plot)
        print(f"figure: {options.plot}", file=sys.stderr)
    if options.json:
        print(json.dumps(_row(selection, options), ensure_ascii=False, indent=2))
    elif options.receipt:
        print(selection.receipt().to_json(), end="")
    elif options.context:
        print(selection.context())
    elif options.explain:
        selection.explain().print()
    else:
        for text in selection.texts:
            print(text)
    return 0


def _is_job(options: argparse.Namespace) -> bool:
    """Whether many files are to be divided among workers."""
    return bool(options.workers or options.engine or options.address)


def _check(options: argparse.Namespace) -> None:
    mistake = ""
    if options.queries and (options.query or options.plot or options.passages):
        mistake = "--queries cannot be combined with a query, --passages or --plot."
    elif options.queries and options.scores:
        mistake = "--queries cannot be combined with --scores; each row has its own scores."
    elif options.queries and (options.given or options.pinned or options.language):
        mistake = (
            "--queries cannot be combined with --given, --pinned or --language; each row has its "
            "own."
        )
    elif options.query is not None and not options.query.strip():
        mistake = "The query is empty."
    elif not options.queries and options.query is None:
        mistake = (
            "Pass a query and text files (- for standard input), a query and --passages FILE, or "
            "--queries FILE."
        )
    elif not options.queries and os.path.isfile(str(options.query)):
        mistake = f"The first argument is the query, and {options.query} is a file."
    elif not options.queries and not options.pages and not options.passages:
        mistake = (
            "The query has no pages; pass text files, - for standard input, or --passages FILE."
        )
    elif options.passages and options.pages:
        mistake = "--passages cannot be combined with pages; pass one of them."
    elif options.score_weight is not None and not options.scores and not options.queries:
        mistake = "--score-weight needs --scores or --queries."
    elif options.out and not options.queries:
        mistake = "--out needs --queries."
    elif options.skip_bad and not options.queries:
        mistake = "--skip-bad needs --queries."
    elif "-" in _inputs(options) and sys.stdin is None:
        mistake = "There is no standard input."
    elif _inputs(options).count("-") > 1:
        mistake = "Standard input (-) can be given only once."
    if mistake:
        raise InvalidInput("arguments", message=mistake)
    if not _is_job(options):
        refuse_overwriting(options.out, [options.queries])
    refuse_overwriting(options.plot, _inputs(options), "--plot")


def _inputs(options: argparse.Namespace) -> list[str]:
    """The files that are read."""
    given = [*options.pages, options.queries, options.passages, options.scores]
    return [name for name in given if name is not None]


def _run_job(options: argparse.Namespace) -> int:
    """Many files into a folder, on this machine or on Ray."""
    others = options.explain or options.no_titles or options.context
    if not options.queries or not options.out or others:
        raise InvalidInput(
            "arguments",
            message="--workers, --engine and --address need --queries and --out FOLDER, and cannot "
            "be combined with --explain, --context or --no-titles.",
        )
    if options.address and options.engine != "ray":
        raise InvalidInput("arguments", message="--address needs --engine ray.")
    from dgn.apps.jobs import plan_job, run_job

    job = plan_job(
        options.queries,
        options.out,
        model=options.model,
        limits=_limits(options),
        skip_bad=options.skip_bad,
        batch_size=options.batch_size,
        receipts=options.receipt,
    )

    def report(done: int, everything: int, rows: int, seconds: float) -> None:
        speed = f"{rows / seconds:,.0f} queries/s" if seconds else ""
        print(f"{done} of {everything} partitions, {rows:,} queries, {speed}", file=sys.stderr)

    missing = len(job.missing())
    done = run_job(
        job,
        engine=options.engine or "local",
        workers=options.workers,
        address=options.address,
        report=report,
    )
    if not missing:
        print("nothing is missing", file=sys.stderr)
    if done.bad:
        print(f"{done.bad:,} broken rows: {job.out}/bad", file=sys.stderr)
    print(f"selections: {job.out}", file=sys.stderr)
    return 0


def _limits(options: argparse.Namespace) -> Limits:
    from dgn.selector import Limits

    names = {one.name for one in fields(Limits)}
    given = {name: value for name, value in vars(options).items() if name in names}
    return Limits(**{name: value for name, value in given.items() if value is not None})


def _select_rows(selector: Selector, options: argparse.Namespace) -> int:
    """Row by row, in batches; a pipe may be endless."""
    from dgn.data import Problems

    problems = Problems(skip=options.skip_bad)
    with _output(options.out) as stream:
        waiting: list[Row] = []
        try:
            for row in _rows(options, problems):
                waiting.append(row)
                if len(waiting) == options.batch_size:
                    _answer(selector, waiting, stream, options)
                    waiting = []
        except BrokenInput:
            # What was read before a broken row is answered all the same.
            _answer(selector, waiting, stream, options)
            raise
        _answer(selector, waiting, stream, options)
    print_problems(problems)
    return 0


def _rows(options: argparse.Namespace, problems: Problems) -> Iterator[Row]:
    from dgn.data import parse_row
    from dgn.data.lines import read_lines, stream_lines

    lines = (
        stream_lines(sys.stdin.buffer, "standard input", problems)
        if options.queries == "-"
        else read_lines(Path(options.queries), problems)
    )
    for line in lines:
        try:
            row = parse_row(line)
        except BrokenInput as problem:
            problems.report(problem)
            continue
        if options.no_titles:
            passages = tuple(replace(passage, title="") for passage in row.query.passages)
            row = replace(row, query=replace(row.query, passages=passages))
        yield row


def _answer(
    selector: Selector, rows: list[Row], stream: IO[str], options: argparse.Namespace
) -> None:
    selections = selector.select_queries([row.query for row in rows], _limits(options))
    for row, selection in zip(rows, selections, strict=True):
        answer = {"id": row.query.id, **_row(selection, options)}
        stream.write(json.dumps(answer, ensure_ascii=False) + "\n")
    stream.flush()


def _row(selection: PassageSelection, options: argparse.Namespace) -> dict[str, Any]:
    row = selection.to_dict()
    if options.explain:
        row["explanation"] = selection.explain().to_dict()
    if options.receipt:
        row["receipt"] = selection.receipt().to_dict()
    if options.context:
        row["context"] = selection.context()
    return row


@contextlib.contextmanager
def _output(path: Path | None) -> Generator[IO[str]]:
    """Standard output, or a file that appears only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    import io

    from dgn.files import open_atomically

    with open_atomically(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", write_through=True)
        yield text
        text.detach()
