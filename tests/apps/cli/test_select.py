"""`dgn select`, as a user types it."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE
from dgn import Selector
from dgn.apps.cli.main import main
from models import shipped


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "Oriel_Tamsett.html.txt"
    path.write_text("\n".join(PAGE))
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "claims.jsonl"
    lines = [
        json.dumps({"id": "a", "claim": CLAIM, "title": "Oriel Tamsett", "sentences": PAGE}),
        json.dumps({"query": "It sank", "documents": [{"title": "Ship", "text": "A. It sank."}]}),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


# One query


def test_selected_sentences_are_printed_one_per_line(page: Path, capsys) -> None:
    assert main(["select", CLAIM, str(page), "-k", "2"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == sorted([PAGE[1], PAGE[3]])


def test_page_from_standard_input(monkeypatch, capsys) -> None:
    given = io.TextIOWrapper(io.BytesIO(" ".join(PAGE).encode()))
    monkeypatch.setattr(sys, "stdin", given)
    assert main(["select", CLAIM, "-", "-k", "1"]) == 0
    assert capsys.readouterr().out.strip() in PAGE


def test_passages_one_per_line(tmp_path: Path, monkeypatch, capsys) -> None:
    path = tmp_path / "passages.txt"
    path.write_text("\n\n".join(["  Bo runs. He is fast. ", "## Ada swims.", "Cy sings."]) + "\n")
    assert main(["select", "Who swims?", "--passages", str(path), "-k", "1"]) == 0
    assert capsys.readouterr().out == "## Ada swims.\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert main(["select", "Who is fast?", "--passages", "-", "-k", "1"]) == 0
    assert capsys.readouterr().out == "Bo runs. He is fast.\n"


def test_breadth_and_no_query(tmp_path: Path, capsys) -> None:
    path = tmp_path / "passages.txt"
    news = [
        "On Saturday a bridge collapsed. The cause of the collapse is unknown.",
        "A bridge has collapsed on Saturday. Why it collapsed is not known.",
        "The battery of the phone lasts two days.",
    ]
    path.write_text("\n".join(news) + "\n")
    query = "Why did the bridge collapse on Saturday?"
    assert main(["select", query, "--passages", str(path), "-k", "2", "--breadth", "0"]) == 0
    assert capsys.readouterr().out.splitlines() == news[:2]
    assert main(["select", query, "--passages", str(path), "-k", "2", "--breadth", "1"]) == 0
    assert news[2] in capsys.readouterr().out.splitlines()
    assert main(["select", "--no-query", "--passages", str(path), "-k", "2"]) == 0
    assert news[2] in capsys.readouterr().out.splitlines()
    assert main(["select", "--no-query", str(path), "-k", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["query"] is None
    assert answer["coverage"] is None
    assert main(["select", "--no-query"]) == 2
    assert "There are no pages" in capsys.readouterr().err
    assert main(["select", "--no-query", str(path), "--queries", str(path)]) == 2
    assert "--no-query cannot be combined with --queries" in capsys.readouterr().err
    assert main(["select", query, str(path), "--breadth", "1.5"]) == 2
    assert "breadth must be from 0 to 1; got 1.5." in capsys.readouterr().err


@pytest.mark.parametrize("given", ["[0, 0, 1]", "0,0,1", "list.json", "lines.txt", "-"])
def test_scores_of_ones_own(given: str, tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "list.json").write_text("[0.0, 0, 1e0]")
    (tmp_path / "lines.txt").write_text("0\n0.0\n\n1\n")
    (tmp_path / "passages.txt").write_text("Bo runs.\nAda swims.\nCy sings.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0\n0\n1\n")))
    arguments = ["select", "Who swims?", "--passages", "passages.txt", "-k", "1"]
    assert main([*arguments, "--scores", given, "--score-weight", "5"]) == 0
    assert capsys.readouterr().out == "Cy sings.\n"
    assert main([*arguments, "--scores", "[0, 0, 1]", "--score-weight", "0"]) == 0
    assert capsys.readouterr().out == "Ada swims.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--scores", "1,2"], 2, "scores has 2 entries for 3 passages"),
        (["--scores", "[1, 2, null]"], 2, "a list of numbers such as 0.2,0.9"),
        (["--scores", "[1, 2, NaN]"], 2, "finite numbers"),
        (["--scores", "missing.txt"], 2, "--scores must be a file, or a list of numbers"),
        (["--scores", "words.txt"], 1, "words.txt, line 2: 'many' is not a number."),
        (["--scores", "broken.json"], 1, "broken.json: the file is not a list of numbers."),
        (["--score-weight", "2"], 2, "--score-weight needs --scores or --queries."),
        (["passages.txt"], 2, "--passages cannot be combined with pages"),
        (["--scores", "-", "--passages", "-"], 2, "Standard input (-) can be given only once."),
        (["--passages", "empty.txt"], 1, "empty.txt: the file contains no passage."),
    ],
)
def test_mistakes_with_passages_and_scores(
    arguments: list[str], code: int, message: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    (tmp_path / "passages.txt").write_text("Bo runs.\nAda swims.\nCy sings.\n")
    (tmp_path / "words.txt").write_text("1\nmany\n3\n")
    (tmp_path / "broken.json").write_text("[1, 2")
    (tmp_path / "empty.txt").write_text("\n \n")
    monkeypatch.chdir(tmp_path)
    assert main(["select", "Who swims?", "--passages", "passages.txt", *arguments]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_json_has_positions_and_reasons(page: Path, capsys) -> None:
    assert main(["select", CLAIM, str(page), "-k", "2", "--json", "--explain"]) == 0
    row = json.loads(capsys.readouterr().out)
    text = page.read_text()
    for one in row["selected"]:
        assert text[one["start"] : one["end"]] == one["text"]
        assert one["title"] == "Oriel Tamsett"
        assert one["id"] == str(page)
        assert 0 <= one["relevance"] <= 1
        assert one["index"] == one["position"]
    assert row["passages"][row["selected"][0]["index"]]["covers"]
    assert 0 < row["coverage"] <= 1
    assert 0 < row["certificate"] <= 1


def test_explained(page: Path, capsys) -> None:
    assert main(["select", CLAIM, str(page), "--explain"]) == 0
    out = capsys.readouterr().out
    assert "of the query is covered" in out
    assert "next best" in out


def test_max_tokens_and_coverage(page: Path, capsys) -> None:
    assert main(["select", CLAIM, str(page), "--max-tokens", "30", "--json"]) == 0
    assert 1 <= len(json.loads(capsys.readouterr().out)["selected"]) <= 3
    assert main(["select", CLAIM, str(page), "--stop-at", "0.9", "--json"]) == 0
    assert 1 <= len(json.loads(capsys.readouterr().out)["selected"]) < 5
    limits = ["-k", "1", "--max-tokens", "30", "--stop-at", "0.9"]
    assert main(["select", CLAIM, str(page), *limits, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["selected"]) == 1


def test_sentences_that_do_not_fit_are_reported(page: Path, capsys) -> None:
    assert main(["select", CLAIM, str(page), "--max-tokens", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "No sentence fits; the shortest one has" in captured.err


def test_pages_may_follow_the_options(page: Path, capsys) -> None:
    assert main(["select", CLAIM, "-k", "1", str(page)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_name_of_a_file_is_its_title(tmp_path: Path, capsys) -> None:
    for name in ("Dr. No.html.txt", "U.S._Steel.md"):
        (tmp_path / name).write_text("It was made. It was sold.")
        assert main(["select", "It was sold", str(tmp_path / name), "--json"]) == 0
        title = json.loads(capsys.readouterr().out)["selected"][0]["title"]
        assert title == name.split(".html")[0].removesuffix(".md").replace("_", " ")


def test_titles_can_be_left_out(page: Path, rows: Path, capsys) -> None:
    assert main(["select", CLAIM, str(page), "--no-titles", "--json"]) == 0
    assert "title" not in json.loads(capsys.readouterr().out)["selected"][0]
    assert main(["select", "--queries", str(rows), "--no-titles"]) == 0
    assert "title" not in json.loads(capsys.readouterr().out.splitlines()[0])["selected"][0]


def test_model_folders_and_names(page: Path, tmp_path: Path, capsys) -> None:
    shipped().save_pretrained(tmp_path / "m")
    printed = []
    for model in ([], ["--model", str(tmp_path / "m")], ["--model", "untrained"]):
        assert main(["select", CLAIM, str(page), "--json", *model]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ([], "Pass a query and text files", 2),
        (["A claim"], "There are no pages", 2),
        (["A claim", "missing.txt"], "missing.txt", 1),
        (["A claim", "-", "-"], "can be given only once", 2),
        (["A claim", "PAGE", "--model", "missing-folder"], "missing-folder", 2),
        (["A claim", "PAGE", "--stop-at", "2"], "stop_at", 2),
        (["?!", "PAGE"], "query must be a text with a word", 2),
        (["A claim", "EMPTY"], "the page is empty", 1),
        (["A claim", "BINARY"], "line 2: the page is not UTF-8", 1),
        (["A claim", "PAGE", "--queries", "x"], "--queries cannot be combined", 2),
        (["A claim", "PAGE", "--out", "x"], "--out needs --queries", 2),
        (["A claim", "PAGE", "--skip-bad"], "--skip-bad needs --queries", 2),
        (["--queries", "missing.jsonl"], "missing.jsonl", 1),
    ],
)
def test_mistakes_are_one_line_and_an_exit_code(
    arguments: list[str],
    message: str,
    code: int,
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "EMPTY").write_text(" \n")
    (tmp_path / "BINARY").write_bytes(b"ok\n\xff\xfe")
    names = {"PAGE": str(page)} | {n: str(tmp_path / n) for n in ("EMPTY", "BINARY")}
    assert main(["select", *(names.get(one, one) for one in arguments)]) == code
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


# Many queries


def test_many_queries_in_and_out(rows: Path, tmp_path: Path, capsys) -> None:
    assert main(["select", "--queries", str(rows), "-k", "2"]) == 0
    printed = capsys.readouterr().out
    first, second = (json.loads(line) for line in printed.splitlines())
    assert (first["id"], second["id"]) == ("a", "2")
    assert (first["query"], second["query"]) == (CLAIM, "It sank")
    assert {one["index"] for one in first["selected"]} == {1, 3}
    assert second["selected"][0]["document"] == 0
    out = tmp_path / "selected.jsonl"
    assert main(["select", "--queries", str(rows), "-k", "2", "--out", str(out)]) == 0
    assert out.read_text() == printed
    assert main(["select", "--queries", str(rows), "-k", "2", "--batch-size", "1"]) == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["a", "2"]


def test_queries_of_all_forms_with_scores_and_reasons(tmp_path: Path, capsys) -> None:
    queries = [
        {"query": "It sank", "passages": ["No.", "It sank."], "titles": ["", "Ship"]},
        {"claim": "It sank", "sentences": ["No.", "", "It sank."], "evidence": [[2]]},
        {"query": "It sank", "passages": ["It sank today.", "It sank now."], "scores": [0, 9]},
    ]
    path = tmp_path / "queries.jsonl"
    path.write_text("\n".join(map(json.dumps, queries)))
    assert main(["select", "--queries", str(path), "-k", "1", "--explain"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["selected"][0]["index"] for answer in answers] == [1, 2, 1]
    assert [answer["selected"][0].get("position") for answer in answers] == [None, 2, None]
    assert all(answer["passages"][0]["reason"] for answer in answers)


def test_queries_from_standard_input(rows: Path, monkeypatch, capsys) -> None:
    given = io.TextIOWrapper(io.BytesIO(rows.read_bytes() + b"{\n"))
    monkeypatch.setattr(sys, "stdin", given)
    assert main(["select", "--queries", "-", "-k", "1"]) == 1
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert "standard input, line 3" in captured.err


BROKEN = [
    '{"claim": "x"',
    "[]",
    '{"claim": "x"}',
    '{"claim": "x", "sentences": [1]}',
    "\xff",
    '{"claim": "?!", "sentences": ["a b"]}',
    '{"claim": 5, "sentences": ["a b"]}',
    '{"claim": "x", "documents": [{"text": "Hi.", "title": 3}]}',
    '{"claim": "x", "sentences": ["a"], "scores": ["a"]}',
    '{"claim": "x", "sentences": ["a"], "id": NaN}',
    '{"claim": "half \\ud800", "sentences": ["a"]}',
    '{"claim": "x", "sentences": ["a"], "evidence": [[9.5]]}',
]


@pytest.mark.parametrize("line", BROKEN)
def test_broken_row_is_fatal_or_skipped(line: str, rows: Path, tmp_path: Path, capsys) -> None:
    lines = rows.read_bytes().splitlines()
    rows.write_bytes(b"\n".join([lines[0], line.encode("latin-1"), lines[1]]))
    out = tmp_path / "out.jsonl"
    assert main(["select", "--queries", str(rows), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert f"{rows}, line 2" in error
    assert "Traceback" not in error
    assert len(out.read_text().splitlines()) == 1, "what comes before it is selected"
    assert main(["select", "--queries", str(rows), "--out", str(out), "--skip-bad"]) == 0
    assert len(out.read_text().splitlines()) == 2
    assert "skipped 1 broken" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["1", "2", "64"])
def test_rows_before_a_broken_row_are_answered(rows: Path, size: str, capsys) -> None:
    rows.write_text(rows.read_text() + "{\n" + rows.read_text())
    assert main(["select", "--queries", str(rows), "--batch-size", size]) == 1
    captured = capsys.readouterr()
    assert [json.loads(line)["id"] for line in captured.out.splitlines()] == ["a", "2"]
    assert "line 3" in captured.err


# Output files


def test_output_does_not_replace_the_queries(rows: Path, tmp_path: Path, capsys) -> None:
    before = rows.read_bytes()
    (tmp_path / "link.jsonl").symlink_to(rows)
    (tmp_path / "folder").symlink_to(tmp_path)
    for queries, out in (
        (rows, rows),
        (rows, tmp_path / "link.jsonl"),
        (tmp_path / "link.jsonl", rows),
        (rows, tmp_path / "folder" / "claims.jsonl"),
    ):
        assert main(["select", "--queries", str(queries), "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert "is also an input; choose another file" in error
        assert len(error.splitlines()) == 1
    assert rows.read_bytes() == before
    assert (tmp_path / "link.jsonl").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "claims.jsonl",
        "folder",
        "link.jsonl",
    ]


def test_output_to_a_link_goes_to_its_target(rows: Path, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    target, link = tmp_path / "results" / "target.jsonl", tmp_path / "out.jsonl"
    target.touch()
    link.symlink_to(target)
    assert main(["select", "--queries", str(rows), "--out", str(link)]) == 0
    assert link.is_symlink()
    assert len(target.read_text().splitlines()) == 2


# Outputs that are continued


@pytest.fixture
def many(tmp_path: Path) -> Path:
    path = tmp_path / "many.jsonl"
    given = [{"id": n, "query": f"{CLAIM} {n}", "passages": PAGE} for n in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    return path


def count_selections(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that are selected from now on."""
    sizes, select = [], Selector.select_queries

    def counting(self: Selector, queries: Any, limits: Any = None) -> Any:
        sizes.append(len(queries))
        return select(self, queries, limits)

    monkeypatch.setattr(Selector, "select_queries", counting)
    return sizes


@pytest.mark.parametrize("torn", [b"", b"{", b'{"id": "17", "qu', b'{"id": "17"}\n'])
def test_what_is_there_is_kept_and_the_rest_is_added(
    many: Path, tmp_path: Path, torn: bytes, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    out = tmp_path / "out.jsonl"
    command = ["select", "--queries", str(many), "--out", str(out), "-k", "2"]
    assert main(command) == 0
    whole = out.read_bytes()
    sizes = count_selections(monkeypatch)
    out.write_bytes(b"".join(whole.splitlines(keepends=True)[:17]) + torn)
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().err == f"17 rows of {out} are kept\n"
    assert out.read_bytes() == whole
    assert sizes == [4, 13], "four rows are compared, and what is missing is selected"
    assert main(command) == 0
    assert out.read_bytes() == whole


def test_selections_are_never_mixed(many: Path, rows: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out.jsonl"
    command = ["select", "--queries", str(many), "--out", str(out)]
    assert main([*command, "-k", "2"]) == 0
    before = out.read_bytes()
    for other, message in (
        ([*command, "-k", "3"], "line 27 was made by another model or with other options"),
        ([*command, "-k", "2", "--context"], "with other options"),
        (["select", "--queries", str(rows), "--out", str(out)], "line 1 belongs to another query"),
    ):
        assert main(other) == 2
        assert message in capsys.readouterr().err
        assert out.read_bytes() == before
    many.write_text("".join(many.read_text().splitlines(keepends=True)[:20]))
    assert main([*command, "-k", "2"]) == 2
    assert "line 21 belongs to another query" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["old", "old\n", '{"id": "17"}', "\n"])
def test_another_file_is_not_touched(content: str, rows: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text(content)
    code = main(["select", "--queries", str(rows), "--out", str(out)])
    if content.startswith("{"):  # this could be a torn row
        assert code == 0
        return
    assert code == 2
    assert "line 1 is not a selection" in capsys.readouterr().err
    assert out.read_text() == content


def test_two_commands_do_not_write_the_same_file(rows: Path, tmp_path: Path, capsys) -> None:
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")
    out = tmp_path / "out.jsonl"
    with out.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert main(["select", "--queries", str(rows), "--out", str(out)]) == 2
    assert "Another process is writing to" in capsys.readouterr().err


def test_progress_on_a_terminal(rows: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="this system has no terminals")
    mine, terminal = pty.openpty()
    command = ["select", "--queries", str(rows), "--out", str(tmp_path / "out.jsonl")]
    done = subprocess.run([sys.executable, "-m", "dgn", *command], stderr=terminal, check=False)
    os.close(terminal)
    assert done.returncode == 0
    assert b"2 queries (100%)" in os.read(mine, 4096)
    os.close(mine)


def test_output_may_be_a_device(rows: Path) -> None:
    assert main(["select", "--queries", str(rows), "--out", os.devnull]) == 0
    assert not Path(os.devnull).is_file()


def test_output_in_a_missing_folder_is_a_usage_error(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["select", "--queries", str(rows), "--out", str(tmp_path / "none" / "out.jsonl")])
    assert stopped.value.code == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_within_a_second_and_it_continues(
    tmp_path: Path, number: int, code: int
) -> None:
    queries, out = tmp_path / "queries.jsonl", tmp_path / "out.jsonl"
    given = [{"id": n, "query": f"{CLAIM} {n}", "passages": PAGE * 30} for n in range(4000)]
    queries.write_text("".join(json.dumps(row) + "\n" for row in given))
    command = ["select", "--queries", str(queries), "--out", str(out)]
    with subprocess.Popen([sys.executable, "-m", "dgn", *command], stderr=subprocess.PIPE) as run:
        deadline = time.monotonic() + 60
        while not out.exists() or not out.stat().st_size:
            assert time.monotonic() < deadline
            assert run.poll() is None
            time.sleep(0.02)
        run.send_signal(number)
        sent = time.monotonic()
        assert run.wait(60) == code
        assert time.monotonic() - sent < 1
        assert b"Traceback" not in run.stderr.read()
    kept = out.read_bytes()
    kept = kept[: kept.rfind(b"\n") + 1]
    queries.write_text(
        "".join(queries.read_text().splitlines(keepends=True)[: kept.count(b"\n") + 3])
    )
    assert main(command) == 0
    assert out.read_bytes().startswith(kept)
    assert out.read_bytes().count(b"\n") == kept.count(b"\n") + 3


def test_reader_that_stops_early_is_not_an_error(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    row = json.dumps({"query": CLAIM, "passages": PAGE})
    path.write_text("\n".join([row] * 3000))
    command = f"{sys.executable} -m dgn select --queries {path} | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


# A plain installation


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages that `pip install dgn` installs, and nothing else."""
    folder, installed = tmp_path_factory.mktemp("packages"), Path(np.__file__).parents[1]
    (folder / "dgn").symlink_to(Path(dgn.__file__).parent)
    names = ("numpy", "numpy.libs", "array_api_compat", "safetensors", "tokenizers", "sentencex")
    names += tuple(path.name for path in installed.glob("Stemmer.*"))
    for name in (*names, "wordllama", "threadpoolctl.py"):
        if (installed / name).exists():
            (folder / name).symlink_to(installed / name)
    return folder


def run_light(packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(packages)!r})\n"
        f"sys.argv = {['dgn', *arguments]!r}\n"
        "from dgn.apps.cli import run\n"
        "sys.exit(run())\n"
    )
    plain = {name: value for name, value in os.environ.items() if name != "DGN_CHECK_SHAPES"}
    return subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=plain,
    )


def test_plain_installation_selects_and_explains(light: Path, page: Path, rows: Path) -> None:
    done = run_light(light, "select", CLAIM, str(page), "-k", "2", "--explain")
    assert (done.returncode, done.stderr) == (0, "")
    assert "of the query is covered" in done.stdout
    done = run_light(light, "select", "--queries", str(rows), "--explain")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.splitlines()[0])["passages"]
