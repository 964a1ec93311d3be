import multiprocessing
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dgn.data.store as store_module
from dgn.data.examples import make_examples, read_retrieved
from dgn.data.fever import read_fever_claims
from dgn.data.lines import Problems
from dgn.data.store import BuildProgress, PageStore, build_store
from dgn.errors import BrokenInput, StoreError
from fever_files import CLAIMS, PAGES, wiki_row, write_claims, write_jsonl, write_wiki


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "pages.db"
    assert build_store(write_wiki(tmp_path / "wiki-pages"), path) == len(PAGES)
    return path


def test_every_page_is_found_again(store: Path) -> None:
    with PageStore(store) as pages:
        assert len(pages) == len(PAGES)
        for title, sentences in PAGES.items():
            found = pages.get(title)
            assert found is not None
            assert list(found.sentences) == sentences
        assert pages.get("Cafe\u0301_Zenith") is not None
        assert pages.get("Nobody") is None
        assert {page.title for page in pages} == set(PAGES)
    assert [path.name for path in store.parent.iterdir() if "pages.db" in path.name] == ["pages.db"]


def test_oracle_candidates_come_from_all_pages_of_the_evidence(store: Path, tmp_path: Path) -> None:
    claims = read_fever_claims(write_claims(tmp_path / "dev.jsonl"))
    examples = list(make_examples(claims, PageStore(store)))
    assert [example.claim.id for example in examples] == ["1", "2"]  # the third has no page
    first = examples[0]
    assert [(c.page, c.sentence) for c in first.candidates] == [
        ("Harbour_Lights_-LRB-film-RRB-", 0),
        ("Harbour_Lights_-LRB-film-RRB-", 1),
        ("Harbour_Lights_-LRB-film-RRB-", 3),
        ("Ines_Moreau", 0),
        ("Ines_Moreau", 1),
    ]
    assert first.gold == (True, False, False, True, False)


def test_evidence_and_pages_that_do_not_exist_are_reported(store: Path, tmp_path: Path) -> None:
    rows = [
        CLAIMS[0] | {"evidence": [[[1, 2, "Ines_Moreau", 9]]]},
        CLAIMS[0] | {"id": 8, "evidence": [[[1, 2, "No_Such_Page", 0]]]},
        CLAIMS[0] | {"id": 9, "evidence": [[[1, 2, "Harbour_Lights_-LRB-film-RRB-", 2]]]},
    ]
    path = write_jsonl(tmp_path / "dev.jsonl", rows)
    problems = Problems(skip=True)
    examples = list(make_examples(read_fever_claims(path), PageStore(store), problems))
    assert [piece.sentence for piece in examples[0].missing] == [9]
    assert [piece.sentence for piece in examples[1].missing] == [2]  # blank
    assert "'No_Such_Page', which is not there" in str(problems.kept[0])
    with pytest.raises(BrokenInput, match="claim 8"):
        list(make_examples(read_fever_claims(path), PageStore(store)))


def test_retrieved_pages_take_the_place_of_the_oracles(store: Path, tmp_path: Path) -> None:
    claims = list(read_fever_claims(write_claims(tmp_path / "dev.jsonl")))
    named = write_jsonl(
        tmp_path / "pages.jsonl",
        [{"id": 1, "pages": ["Ines_Moreau"]}, {"id": "3", "pages": ["Ines_Moreau"]}],
    )
    problems = Problems(skip=True)
    retrieved = read_retrieved(named)
    first, third = make_examples(claims, PageStore(store), problems, retrieved=retrieved)
    assert {candidate.page for candidate in first.candidates} == {"Ines_Moreau"}
    assert [piece.page for piece in first.missing] == ["Harbour_Lights_-LRB-film-RRB-"]
    assert third.claim.label == "NOT ENOUGH INFO"
    assert "claim 2: found no retrieved pages" in str(problems.kept[0])


def test_a_store_that_is_none_or_half_a_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="found no page store"):
        PageStore(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("hello " * 1000, encoding="utf-8")
    with pytest.raises(StoreError, match="found no page store"):
        PageStore(tmp_path / "text.db")
    (tmp_path / "half.db.partial").touch()
    with pytest.raises(StoreError, match="its build was not finished: run it again"):
        PageStore(tmp_path / "half.db")


def test_an_existing_store_is_not_overwritten(store: Path) -> None:
    with pytest.raises(StoreError, match="found a file there already"):
        build_store(store.parent / "wiki-pages", store)


def test_a_page_twice_is_a_problem_and_the_first_is_kept(tmp_path: Path) -> None:
    folder = write_wiki(tmp_path / "wiki-pages")
    write_jsonl(folder / "wiki-003.jsonl", [wiki_row("Ines_Moreau", ["Someone else ."])])
    problems = Problems(skip=True)
    assert build_store(folder, tmp_path / "pages.db", problems) == len(PAGES)
    assert "the page 'Ines_Moreau' twice" in str(problems.kept[0])
    page = PageStore(tmp_path / "pages.db").get("Ines_Moreau")
    assert page is not None
    assert page.sentences[0].startswith("Ines")


def test_broken_lines_stop_the_build_and_mending_lets_it_go_on(tmp_path: Path) -> None:
    folder = write_wiki(tmp_path / "wiki-pages")
    broken = folder / "wiki-002.jsonl"
    good = broken.read_text(encoding="utf-8")
    broken.write_text(good + "{oops\n", encoding="utf-8")
    with pytest.raises(BrokenInput, match=r"wiki-002.jsonl, line 4"):
        build_store(folder, tmp_path / "pages.db")
    assert not (tmp_path / "pages.db").exists()
    broken.write_text(good, encoding="utf-8")
    seen: list[BuildProgress] = []
    assert build_store(folder, tmp_path / "pages.db", on_progress=seen.append) == len(PAGES)
    assert seen[-1].files_done == 2
    assert seen[-1].bytes_done == seen[-1].bytes


def test_a_source_that_changed_between_two_tries_is_noticed(tmp_path: Path) -> None:
    folder = write_wiki(tmp_path / "wiki-pages")
    (folder / "wiki-003.jsonl").write_text("{oops\n", encoding="utf-8")
    with pytest.raises(BrokenInput):
        build_store(folder, tmp_path / "pages.db")
    write_jsonl(folder / "wiki-001.jsonl", [wiki_row("Other", ["One ."])])
    with pytest.raises(StoreError, match=r"remove the \.partial file to begin anew"):
        build_store(folder, tmp_path / "pages.db")


def test_what_an_earlier_run_skipped_is_told_again(tmp_path: Path) -> None:
    folder = write_wiki(tmp_path / "wiki-pages")
    with (folder / "wiki-001.jsonl").open("a") as stream:
        stream.write("{oops\n")
    (folder / "wiki-002.jsonl").rename(tmp_path / "later")
    (folder / "wiki-002.jsonl").write_bytes(b"\x1f\x8b")  # stops the build after the first file

    class Stop(Exception):
        pass

    def stop(progress: BuildProgress) -> None:
        if progress.files_done == 1:
            raise Stop

    with pytest.raises(Stop):
        build_store(folder, tmp_path / "pages.db", Problems(skip=True), stop)
    (tmp_path / "later").replace(folder / "wiki-002.jsonl")
    with pytest.raises(BrokenInput, match="1 broken lines, which an earlier run skipped"):
        build_store(folder, tmp_path / "pages.db")
    problems = Problems(skip=True)
    assert build_store(folder, tmp_path / "pages.db", problems) == len(PAGES)
    assert problems.count == 1


def test_a_build_of_another_folder_is_not_mixed_in(tmp_path: Path) -> None:
    first, second = write_wiki(tmp_path / "a"), write_wiki(tmp_path / "b")
    (first / "wiki-003.jsonl").write_text("{oops\n", encoding="utf-8")
    with pytest.raises(BrokenInput):
        build_store(first, tmp_path / "pages.db")
    with pytest.raises(StoreError, match="begun from"):
        build_store(second, tmp_path / "pages.db")


def test_a_full_disk_says_so_and_keeps_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "wiki-pages"
    for file in range(3):
        rows = [wiki_row(f"P{file}_{n}", ["word " * 200]) for n in range(100)]
        write_jsonl(folder / f"wiki-{file:03}.jsonl", rows)
    opened = store_module._open_partial

    def small(path: Path) -> object:
        connection = opened(path)
        connection.execute("PRAGMA max_page_count = 45")
        return connection

    monkeypatch.setattr(store_module, "_open_partial", small)
    with pytest.raises(StoreError, match="disk is full; what was read so far is kept"):
        build_store(folder, tmp_path / "pages.db")
    monkeypatch.undo()
    assert build_store(folder, tmp_path / "pages.db") == 300


def test_a_store_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="found no such folder"):
        build_store(write_wiki(tmp_path / "w"), tmp_path / "none" / "pages.db")


def test_a_page_named_twice_is_one_page(store: Path, tmp_path: Path) -> None:
    claims = read_fever_claims(write_claims(tmp_path / "dev.jsonl"))
    twice = ("Ines_Moreau", "Caf\u00e9_Zenith", "Ines_Moreau", "Cafe\u0301_Zenith")
    retrieved = {str(n): twice for n in (1, 2, 3)}
    first, *_ = make_examples(claims, PageStore(store), retrieved=retrieved)
    assert [candidate.page for candidate in first.candidates] == [
        "Ines_Moreau",
        "Ines_Moreau",
        "Caf\u00e9_Zenith",
    ]
    assert first.gold == (True, False, False)


def _count_titles(path: Path, queue: multiprocessing.Queue) -> None:
    with PageStore(path) as pages:
        queue.put(sum(1 for _ in pages))


def test_many_processes_read_at_once(store: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    readers = [context.Process(target=_count_titles, args=(store, queue)) for _ in range(3)]
    for reader in readers:
        reader.start()
    assert [queue.get(timeout=60) for _ in readers] == [len(PAGES)] * 3
    for reader in readers:
        reader.join()


BUILD = """
import sys, time
from pathlib import Path
from dgn.data.store import build_store

def show(progress):
    print(progress.files_done, flush=True)
    time.sleep(0.01)

build_store(Path(sys.argv[1]), Path(sys.argv[2]), on_progress=show)
"""


def test_killed_again_and_again_the_build_loses_nothing_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    folder, files = tmp_path / "wiki-pages", 15
    titles = [f"Page_{n:05}" for n in range(1000 * files)]
    for file in range(files):
        rows = [wiki_row(t, [f"{t} is here .", "", "Twice ."]) for t in titles[file::files]]
        write_jsonl(folder / f"wiki-{file:03}.jsonl", rows)
    store = tmp_path / "pages.db"
    chance = random.Random(0)
    kills = 0
    while not store.exists():
        command = [sys.executable, "-c", BUILD, str(folder), str(store)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        # Files that are done are reported again at once; then some new ones, then the kill.
        already = done = None
        lasting = chance.randint(0, 4)
        for line in process.stdout:
            done = int(line)
            already = done if already is None else already
            if done - already >= kills + lasting:
                time.sleep(chance.random() * 0.02)
                process.kill()
                kills += 1
                break
        process.stdout.close()
        process.wait()
        assert kills < 50
    assert kills >= 3, "hardly anything was killed: the test tests nothing"
    with PageStore(store) as pages:
        assert sorted(page.title for page in pages) == titles
        assert len(pages) == len(titles)
