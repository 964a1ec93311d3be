"""`dgn select`: a claim and some pages in, the sentences that together cover it out."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from dgn.cli.arguments import new_file, picture, positive
from dgn.errors import BrokenInput, InvalidInput, MissingExtra

if TYPE_CHECKING:
    from dgn.data.lines import Line, Problems
    from dgn.selector import Document, Selector, SentenceSelection
    from dgn.selector.sources import Question

_AT_ONCE = 64
_TEXT_SUFFIXES = {".txt", ".text", ".md", ".html", ".htm"}
_LARGEST_PAGE = 64 * 2**20
_ROW = "an object with claim, and sentences or documents; optional title, scores, id"


def add_parser(commands: Any) -> None:
    """Add `select`."""
    select = commands.add_parser(
        "select",
        help="pick the sentences that together cover a claim, with reasons",
        description="Pick the sentences of some pages that together cover a claim.",
        epilog='dgn select "The bridge opened in 1890." bridge.txt -k 3 --explain',
    )
    select.add_argument("claim", nargs="?", metavar="CLAIM", help="what is to be covered")
    select.add_argument(
        "pages",
        nargs="*",
        metavar="PAGE",
        help="text files; - for standard input. A file's name is its title",
    )
    select.add_argument(
        "--claims",
        metavar="JSONL",
        help="many claims, one row each with its sentences or documents; - for standard input",
    )
    amount = select.add_mutually_exclusive_group()
    amount.add_argument(
        "-k", "--k", type=positive, metavar="N", help="how many sentences (default 5)"
    )
    amount.add_argument(
        "--budget", type=positive, metavar="TOKENS", help="how many tokens they may have together"
    )
    select.add_argument(
        "--cover",
        type=float,
        metavar="SHARE",
        help="no more than it takes to cover this share of what all sentences together cover",
    )
    select.add_argument(
        "--model", metavar="FOLDER", help="a folder, a name on the hub, or untrained"
    )
    select.add_argument("--no-titles", action="store_true", help="pages have no titles")
    select.add_argument("--explain", action="store_true", help="say why")
    select.add_argument("--plot", type=picture, metavar="PICTURE", help="draw why")
    select.add_argument("--json", action="store_true", help="print JSON")
    select.add_argument(
        "--out", type=new_file, metavar="JSONL", help="where the rows of --claims go"
    )
    select.add_argument(
        "--skip-bad", action="store_true", help="go on after broken rows of --claims, list them"
    )
    select.set_defaults(run=_run, more_pages=True)


def _run(options: argparse.Namespace) -> int:
    _check(options)
    from dgn.selector import Selector

    selector = Selector.from_pretrained(options.model)
    if options.claims:
        return _select_rows(selector, options)
    picked = selector.select(options.claim, documents=_documents(options), **_limits(options))
    if not len(picked):
        counts = selector.encoder.token_counts([one.text for one in picked.candidates])
        print(f"dgn: nothing fits: the shortest sentence has {min(counts)} tokens", file=sys.stderr)
    if options.plot and len(picked):
        picked.explain().draw(options.plot)
    if options.json:
        print(json.dumps(_row(picked, options), ensure_ascii=False, indent=2))
    elif options.explain:
        _show_reasons(picked)
    else:
        for sentence in picked.picked:
            print(sentence.text)
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.claims and (options.claim or options.plot):
        raise InvalidInput(
            "claims", found="a claim or --plot beside it", allowed="--claims, or one claim"
        )
    if not options.claims and (not options.claim or not options.pages):
        raise InvalidInput(
            "claim, pages",
            found="a claim without pages" if options.claim else "no claim",
            allowed="a claim and text files (- for standard input), or --claims JSONL",
        )
    if not options.claims and options.out:
        raise InvalidInput("out", found="one claim", allowed="--out with --claims")
    if options.budget and options.cover is not None:
        raise InvalidInput("cover", found="--budget beside it", allowed="one of the two")
    if options.skip_bad and not options.claims:
        raise InvalidInput("skip-bad", found="one claim", allowed="--skip-bad with --claims")
    if "-" in [*options.pages, options.claims] and sys.stdin is None:
        raise InvalidInput("-", found="no standard input", allowed="a file, or an open input")
    if options.pages.count("-") > 1:
        raise InvalidInput("pages", found="- twice", allowed="standard input once")


def _limits(options: argparse.Namespace) -> dict[str, Any]:
    return {"k": options.k, "budget": options.budget, "cover": options.cover}


def _documents(options: argparse.Namespace) -> list[Document]:
    from dgn.selector import Document

    documents: list[Document] = []
    for name in options.pages:
        text = _text_of(name)
        if not text.strip():
            raise BrokenInput(name, None, found="an empty page", allowed="some text")
        documents.append(Document(text, "" if options.no_titles else _title_of(name)))
    return documents


def _title_of(name: str) -> str:
    """A file's name, without what says that it is text."""
    if name == "-":
        return ""
    path = Path(name)
    while path.suffix.lower() in _TEXT_SUFFIXES:
        path = path.with_suffix("")
    return path.name.replace("_", " ")


def _text_of(name: str) -> str:
    place = "standard input" if name == "-" else name
    try:
        if name == "-":
            content = sys.stdin.buffer.read(_LARGEST_PAGE + 1)
        else:
            with Path(name).open("rb") as stream:
                content = stream.read(_LARGEST_PAGE + 1)
    except OSError as error:
        raise BrokenInput(
            place, None, found=f"{error.strerror or error}", allowed="a readable text file"
        ) from None
    if len(content) > _LARGEST_PAGE:
        raise BrokenInput(place, None, found="over 64 MiB", allowed="a page of text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BrokenInput(place, line, found="no UTF-8", allowed="text in UTF-8") from None


def _select_rows(selector: Selector, options: argparse.Namespace) -> int:
    """Row by row, some at once; a pipe may go on for ever."""
    from dgn.data.lines import Problems

    problems = Problems(skip=options.skip_bad)
    with _output(options.out) as stream:
        waiting: list[tuple[Any, Question]] = []
        try:
            for row in _questions(options, problems):
                waiting.append(row)
                if len(waiting) == _AT_ONCE:
                    _answer(selector, waiting, stream, options)
                    waiting = []
        finally:  # what was read before a broken row is answered all the same
            _answer(selector, waiting, stream, options)
    if problems.count:
        for problem in problems.kept[:20]:
            print(f"dgn: skipped: {problem}", file=sys.stderr)
        print(f"dgn: skipped {problems.count:,} broken rows", file=sys.stderr)
    return 0


def _questions(options: argparse.Namespace, problems: Problems) -> Iterator[tuple[Any, Question]]:
    from dgn.data.lines import read_lines, stream_lines

    name = options.claims
    lines = (
        stream_lines(sys.stdin.buffer, "standard input", problems)
        if name == "-"
        else read_lines(Path(name), problems)
    )
    for line in lines:
        try:
            yield _question(line, titles=not options.no_titles)
        except BrokenInput as problem:
            problems.report(problem)


def _question(line: Line, *, titles: bool) -> tuple[Any, Question]:
    from dgn.selector.sources import question_of

    try:
        row: Any = json.loads(line.content, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise line.problem(f"no valid JSON ({error})", _ROW) from None
    if type(row) is not dict or "claim" not in row:
        raise line.problem("no object with a claim", _ROW)
    known = cast("dict[str, Any]", row)
    given = {
        name: known[name]
        for name in ("claim", "sentences", "documents", "title", "scores")
        if known.get(name) is not None
    }
    number = known.get("id", line.number)
    if type(number) not in (str, int):
        raise line.problem(f"id {number!r:.40}", "a string or a whole number")
    try:
        question = question_of(**given)
        str(number).encode()
    except (InvalidInput, UnicodeEncodeError) as error:
        raise line.problem(str(error), _ROW) from None
    return number, question if titles else _untitled(question)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _untitled(question: Question) -> Question:
    sentences = tuple(dataclasses.replace(one, title="") for one in question.sentences)
    return dataclasses.replace(question, sentences=sentences)


def _answer(
    selector: Selector,
    waiting: list[tuple[Any, Question]],
    stream: IO[str],
    options: argparse.Namespace,
) -> None:
    questions = [question for _, question in waiting]
    answers = selector.answer(questions, **_limits(options))
    for (number, _), picked in zip(waiting, answers, strict=True):
        row = {"id": number, **_row(picked, options)}
        stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    stream.flush()


def _row(picked: SentenceSelection, options: argparse.Namespace) -> dict[str, Any]:
    row = picked.as_dict()
    if options.explain:
        row["reasons"] = picked.explain().as_dict()
    return row


@contextlib.contextmanager
def _output(path: Path | None) -> Generator[IO[str]]:
    """Standard output; or a file that is there only once it is whole."""
    if path is None:
        yield sys.stdout
        return
    if path.exists() and not path.is_file():  # a pipe, a device: nothing to put in its place
        with path.open("w", encoding="utf-8") as stream:
            yield stream
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as stream:
            yield stream
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _show_reasons(picked: SentenceSelection) -> None:
    try:
        picked.explain().print()
    except MissingExtra:  # the same words, without the colours
        print(picked.explain())
