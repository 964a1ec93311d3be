"""The page store: FEVER's five million pages in one SQLite file, looked up by title.

The store is built under a temporary name, one file of `wiki-pages` at a time, each in one
transaction. A build that was killed resumes after the last complete file. Only a complete store
gets its final name. It is opened read-only, by any number of processes.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dgn.data.fever import normal_title, read_wiki_pages, wiki_files
from dgn.data.lines import Problems
from dgn.data.records import Page
from dgn.errors import BrokenInput, StoreError

VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value);
CREATE TABLE IF NOT EXISTS files (
    name TEXT PRIMARY KEY, size INTEGER, pages INTEGER, skipped INTEGER
);
CREATE TABLE IF NOT EXISTS pages (title TEXT NOT NULL, sentences TEXT NOT NULL);
"""


@dataclass(frozen=True)
class BuildProgress:
    """The progress of a build: files and bytes of the source, and pages so far."""

    files_done: int
    files: int
    bytes_done: int
    bytes: int
    pages: int


class PageStore:
    """A finished store, read-only."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            hint = "; its build is not finished" if _partial(path).exists() else ""
            raise StoreError(
                f"{path} is not a page store{hint}. Build one with: dgn data build WIKI_PAGES "
                f"--out {path}"
            )
        self._connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
        )
        # Python 3.13 warns of a connection that is dropped without being closed.
        weakref.finalize(self, self._connection.close)
        try:
            meta = dict(self._connection.execute("SELECT key, value FROM meta").fetchall())
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} is not a page store ({error}).") from error
        if meta.get("version") != VERSION or not meta.get("complete"):
            raise StoreError(
                f"{path} is a page store of version {meta.get('version')}; this dgn needs a "
                f"complete one of version {VERSION}. Build it again with: dgn data build"
            )
        self._pages = int(meta["pages"])

    def get(self, title: str) -> Page | None:
        """The page with this title, or None."""
        title = normal_title(title)
        query = "SELECT sentences FROM pages WHERE title = ?"
        row = self._connection.execute(query, (title,)).fetchone()
        return None if row is None else Page(title, _unpacked(row[0]))

    def __len__(self) -> int:
        return self._pages

    def __iter__(self) -> Iterator[Page]:
        for title, sentences in self._connection.execute("SELECT title, sentences FROM pages"):
            yield Page(title, _unpacked(sentences))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> PageStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def build_store(
    wiki_pages: Path,
    path: Path,
    problems: Problems | None = None,
    on_progress: Callable[[BuildProgress], None] = lambda _: None,
) -> int:
    """Build the store of a `wiki-pages` folder, or resume building it.

    Returns:
        The number of pages.
    """
    problems = problems or Problems()
    if not path.parent.is_dir():
        raise StoreError(f"The folder {path.parent} does not exist; create it first.")
    if path.exists():
        raise StoreError(f"{path} already exists; remove it, or choose another name.")
    files = wiki_files(wiki_pages)
    try:
        with closing(_open_partial(path)) as connection:
            _ingest(connection, files, problems, on_progress)
            pages = _finish(connection, problems)
        _fsync(_partial(path))
        os.replace(_partial(path), path)
    except sqlite3.Error as error:
        raise StoreError(
            f"{_partial(path)}: {error}. What was read so far is kept; solve the problem, and run "
            "the same command again to resume."
        ) from error
    return pages


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _open_partial(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(_partial(path), isolation_level=None, timeout=1)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.executescript(_SCHEMA)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (VERSION,))
    return connection


def _ingest(
    connection: sqlite3.Connection,
    files: list[Path],
    problems: Problems,
    on_progress: Callable[[BuildProgress], None],
) -> None:
    done = _done_files(connection, files, problems)
    total = sum(file.stat().st_size for file in files)
    bytes_done = pages_done = 0
    for number, file in enumerate(files):
        size = file.stat().st_size
        if file.name in done:
            if done[file.name][0] != size:
                raise StoreError(
                    f"{file} has {size:,} bytes, and had {done[file.name][0]:,} when it was read; "
                    "remove the .partial file to start again."
                )
            pages_done += done[file.name][1]
        else:
            base = BuildProgress(number, len(files), bytes_done, total, pages_done)
            pages_done += _ingest_file(connection, file, size, problems, on_progress, base)
        bytes_done += size
        on_progress(BuildProgress(number + 1, len(files), bytes_done, total, pages_done))


def _ingest_file(
    connection: sqlite3.Connection,
    file: Path,
    size: int,
    problems: Problems,
    on_progress: Callable[[BuildProgress], None],
    base: BuildProgress,
) -> int:
    count = 0

    def rows() -> Iterator[tuple[str, str]]:
        nonlocal count
        for page in read_wiki_pages(file, problems):
            count += 1
            if count % 5000 == 0:
                on_progress(
                    BuildProgress(
                        base.files_done, base.files, base.bytes_done, base.bytes, base.pages + count
                    )
                )
            yield page.title, "\n".join(page.sentences)

    skipped_before = problems.count
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany("INSERT INTO pages VALUES (?, ?)", rows())
        about = (file.name, size, count, problems.count - skipped_before)
        connection.execute("INSERT INTO files VALUES (?, ?, ?, ?)", about)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk ends the transaction by itself
            connection.execute("ROLLBACK")
        raise
    return count


def _done_files(
    connection: sqlite3.Connection, files: list[Path], problems: Problems
) -> dict[str, tuple[int, int]]:
    """The size and the number of pages of each file that an earlier run finished.

    What that run skipped is a problem of this run too; otherwise it would be lost silently.
    """
    source = str(files[0].parent.resolve())
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('source', ?)", (source,))
    (begun,) = connection.execute("SELECT value FROM meta WHERE key = 'source'").fetchone()
    if begun != source:
        raise StoreError(
            f"This build was started from {begun}, not from {source}; resume with that folder, or "
            "remove the .partial file to start again."
        )
    done: dict[str, tuple[int, int]] = {}
    for name, size, pages, skipped in connection.execute("SELECT * FROM files").fetchall():
        done[name] = (size, pages)
        if skipped:
            problems.report(
                BrokenInput(
                    Path(source) / name,
                    None,
                    message=f"an earlier run skipped {skipped:,} broken lines of this file; pass "
                    "--skip-bad, or remove the .partial file to start again.",
                )
            )
    return done


def _finish(connection: sqlite3.Connection, problems: Problems) -> int:
    """Index the titles (last, because sorting once is far cheaper than inserting in order)."""
    connection.execute("CREATE INDEX IF NOT EXISTS by_title ON pages (title)")
    twice = connection.execute(
        "SELECT title, min(rowid) FROM pages GROUP BY title HAVING count(*) > 1"
    ).fetchall()
    for title, first in twice:
        problems.report(
            BrokenInput("wiki-pages", None, message=f"the page {title!r} occurs twice.")
        )
        connection.execute("DELETE FROM pages WHERE title = ? AND rowid > ?", (title, first))
    (pages,) = connection.execute("SELECT count(*) FROM pages").fetchone()
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('pages', ?)", (pages,))
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('complete', 1)")
    # Readers open the file alone, without a log next to it.
    connection.execute("PRAGMA journal_mode = DELETE")
    return pages


def _unpacked(sentences: str) -> tuple[str, ...]:
    return tuple(sentences.split("\n")) if sentences else ()


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
