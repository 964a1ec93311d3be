"""`dgn select`: a query and some pages in, the sentences that together cover it out."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import fields
from typing import TYPE_CHECKING

from dgn.apps.cli import select_rows
from dgn.apps.cli.inputs import read_pages, read_passages, read_scores
from dgn.apps.cli.options import new_file, positive, refuse_overwriting
from dgn.errors import InvalidInput

if TYPE_CHECKING:
    from dgn.selector import Limits


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
        "--no-query",
        action="store_true",
        help="without a query: the sentences that represent all of them; every argument is a page",
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
        "--breadth",
        type=float,
        metavar="SHARE",
        help="how much it counts that the sentences represent all of them and do not repeat each "
        "other in other words, from 0 to 1; by default, what the model says (dgn info)",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="model folder, name on the hub, default, untrained, or minilm",
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
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--context", action="store_true", help="print the text for a prompt, in reading order"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="JSONL file for --queries; if it is there, what is missing is added. With --engine "
        "ray, a folder of Parquet files",
    )
    parser.add_argument(
        "--engine",
        choices=("ray",),
        help="select with Ray Data (dgn[ray]): --queries and --out may be folders and s3:// URLs",
    )
    parser.add_argument(
        "--address", help="address of a Ray cluster, for --engine ray; by default one is started"
    )
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
    if options.out and not options.engine:
        try:
            options.out = new_file(options.out)
        except argparse.ArgumentTypeError as error:
            options.parser.error(f"argument --out: {error}")
    if options.no_query and options.query is not None:
        options.query, options.pages = None, [options.query, *options.pages]
    _check(options)
    if options.engine:
        return _run_on_ray(options)
    from dgn.selector import Selector
    from dgn.text import Query

    selector = Selector.from_pretrained(options.model)
    if options.queries:
        return select_rows.run(selector, options, _limits(options))
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
    if options.json:
        print(json.dumps(select_rows.answer_of(selection, options), ensure_ascii=False, indent=2))
    elif options.context:
        print(selection.context())
    elif options.explain:
        selection.explain().print()
    else:
        for text in selection.texts:
            print(text)
    return 0


def _check(options: argparse.Namespace) -> None:
    mistake = ""
    if options.queries and (options.query or options.passages):
        mistake = "--queries cannot be combined with a query or --passages."
    elif options.queries and options.scores:
        mistake = "--queries cannot be combined with --scores; each row has its own scores."
    elif options.queries and (options.given or options.pinned or options.language):
        mistake = (
            "--queries cannot be combined with --given, --pinned or --language; each row has its "
            "own."
        )
    elif options.query is not None and not options.query.strip():
        mistake = "The query is empty."
    elif options.no_query and (options.queries or options.scores):
        mistake = "--no-query cannot be combined with --queries or --scores."
    elif not options.queries and options.query is None and not options.no_query:
        mistake = (
            "Pass a query and text files (- for standard input), a query and --passages FILE, or "
            "--queries FILE."
        )
    elif not options.queries and os.path.isfile(str(options.query)):
        mistake = (
            f"The first argument is the query, and {options.query} is a file; pass --no-query to "
            "select without a query."
        )
    elif not options.queries and not options.pages and not options.passages:
        mistake = "There are no pages; pass text files, - for standard input, or --passages FILE."
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
    elif options.engine and not (options.queries and options.out):
        mistake = "--engine ray needs --queries and --out FOLDER."
    elif options.engine and (options.explain or options.no_titles or options.context):
        mistake = "--engine ray cannot be combined with --explain, --context or --no-titles."
    elif options.address and not options.engine:
        mistake = "--address needs --engine ray."
    if mistake:
        raise InvalidInput("arguments", message=mistake)
    if not options.engine:
        refuse_overwriting(options.out, [options.queries])


def _inputs(options: argparse.Namespace) -> list[str]:
    """The files that are read."""
    given = [*options.pages, options.queries, options.passages, options.scores]
    return [name for name in given if name is not None]


def _run_on_ray(options: argparse.Namespace) -> int:
    from dgn.apps.batch import select_on_ray

    count = select_on_ray(
        options.queries,
        options.out,
        model=options.model,
        limits=_limits(options),
        batch_size=options.batch_size,
        address=options.address,
    )
    print(f"{count:,} rows: {options.out}", file=sys.stderr)
    return 0


def _limits(options: argparse.Namespace) -> Limits:
    from dgn.selector import Limits

    names = {one.name for one in fields(Limits)}
    given = {name: value for name, value in vars(options).items() if name in names}
    return Limits(**{name: value for name, value in given.items() if value is not None})
