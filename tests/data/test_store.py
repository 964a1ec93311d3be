import multiprocessing
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dgn.data.store as store_module
from dgn.data import Problems
from dgn.data.store import BuildProgress, PageStore, build_store
from dgn.errors import BrokenInput, StoreError
from fever_files import PAGES, wiki_row, write_jsonl, write_wiki


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "pages.db"
    assert build_store(write_wiki(tmp_path / "wiki-pages"), path) == len(PAGES)
    return path


def test_every_page_is_found(store: Path) -> None:
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


def test_missing_and_unfinished_stores_are_explained(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a page store"):
        PageStore(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("hello " * 1000, encoding="utf-8")
    with pytest.raises(StoreError, match="is not a page store"):
        PageStore(tmp_path / "text.db")
    (tmp_path / "half.db.partial").touch()
    with pytest.raises(StoreError, match="its build is not finished"):
        PageStore(tmp_path / "half.db")


def test_existing_store_is_not_overwritten(store: Path) -> None:
    with pytest.raises(StoreError, match="already exists; remove it"):
        build_store(store.parent / "wiki-pages", store)


def test_second_page_with_the_same_title_is_a_problem(tmp_path: Path) -> None:
    folder = write_wiki(tmp_path / "wiki-pages")
    write_jsonl(folder / "wiki-003.jsonl", [wiki_row("Ines_Moreau", ["Someone else ."])])
    problems = Problems(skip=True)
    assert build_store(folder, tmp_path / "pages.db", problems) == len(PAGES)
    assert "the page 'Ines_Moreau' occurs twice" in str(problems.kept[0])
    page = PageStore(tmp_path / "pages.db").get("Ines_Moreau")
    assert page is not None
    assert page.sentences[0].startswith("Ines")


def test_build_stops_at_a_broken_line_and_resumes_after_its_repair(tmp_path: Path) -> None:
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


def test_source_that_changed_between_two_builds_is_noticed(tmp_path: Path) -> None:
    folder = write_wiki(tmp_path / "wiki-pages")
    (folder / "wiki-003.jsonl").write_text("{oops\n", encoding="utf-8")
    with pytest.raises(BrokenInput):
        build_store(folder, tmp_path / "pages.db")
    write_jsonl(folder / "wiki-001.jsonl", [wiki_row("Other", ["One ."])])
    with pytest.raises(StoreError, match=r"remove the \.partial file to start again"):
        build_store(folder, tmp_path / "pages.db")


def test_lines_that_an_earlier_run_skipped_are_reported_again(tmp_path: Path) -> None:
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
    with pytest.raises(BrokenInput, match="an earlier run skipped 1 broken lines"):
        build_store(folder, tmp_path / "pages.db")
    problems = Problems(skip=True)
    assert build_store(folder, tmp_path / "pages.db", problems) == len(PAGES)
    assert problems.count == 1


def test_build_of_another_folder_is_refused(tmp_path: Path) -> None:
    first, second = write_wiki(tmp_path / "a"), write_wiki(tmp_path / "b")
    (first / "wiki-003.jsonl").write_text("{oops\n", encoding="utf-8")
    with pytest.raises(BrokenInput):
        build_store(first, tmp_path / "pages.db")
    with pytest.raises(StoreError, match="was started from"):
        build_store(second, tmp_path / "pages.db")


def test_full_disk_is_reported_and_the_build_can_resume(
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
    with pytest.raises(StoreError, match=r"disk is full\. What was read so far is kept"):
        build_store(folder, tmp_path / "pages.db")
    monkeypatch.undo()
    assert build_store(folder, tmp_path / "pages.db") == 300


def test_missing_folder_of_the_store_is_explained(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="none does not exist; create it first"):
        build_store(write_wiki(tmp_path / "w"), tmp_path / "none" / "pages.db")


def _count_titles(path: Path, queue: multiprocessing.Queue) -> None:
    with PageStore(path) as pages:
        queue.put(sum(1 for _ in pages))


def test_several_processes_can_read(store: Path) -> None:
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


def test_killed_builds_lose_no_page_and_repeat_no_page(
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
        # Finished files are reported again first; then come some new ones, then the kill.
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
    assert kills >= 3, "too few builds were killed to test anything"
    with PageStore(store) as pages:
        assert sorted(page.title for page in pages) == titles
        assert len(pages) == len(titles)
