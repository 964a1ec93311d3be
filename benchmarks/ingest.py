"""Ingesting `wiki-pages` in FEVER's exact format into a page store: pages a second, and memory."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks.measure import cost_of, print_table
from benchmarks.wiki import write_wiki_pages
from dgn.data.fever import wiki_files
from dgn.data.store import build_store

SIZES = (100_000, 500_000)
FEVER_PAGES = 5_400_000


class _Row(msgspec.Struct):
    id: str
    lines: str


def run() -> None:
    rows: list[tuple[object, ...]] = []
    seconds: list[float] = []
    for pages in SIZES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_wiki_pages(folder / "wiki-pages", pages)
            size = sum(f.stat().st_size for f in wiki_files(folder / "wiki-pages")) / 1e6
            parsing = _seconds_to_parse(folder / "wiki-pages")
            cost = cost_of(build_store, folder / "wiki-pages", folder / "pages.db")
            store = (folder / "pages.db").stat().st_size / 1e6
        seconds.append(cost.seconds)
        rows.append(
            (
                f"{pages:,}",
                f"{size:,.0f}",
                f"{cost.seconds:.1f}",
                f"{pages / cost.seconds:,.0f}",
                f"{pages / parsing:,.0f}",
                f"{cost.megabytes:.0f}",
                f"{store:,.0f}",
            )
        )
    print_table(
        "dgn data build, one process",
        ("pages", "MB read", "s", "pages/s", "JSON alone, pages/s", "peak MB", "store MB"),
        rows,
    )
    slope = (seconds[1] - seconds[0]) / (SIZES[1] - SIZES[0])
    whole = (seconds[1] + slope * (FEVER_PAGES - SIZES[1])) / 60
    print(f"\nBy that slope, FEVER's 5.4 million pages take {whole:.1f} minutes.")


def _seconds_to_parse(folder: Path) -> float:
    decoder = msgspec.json.Decoder(_Row)
    started = time.perf_counter()
    for file in wiki_files(folder):
        with file.open("rb") as stream:
            for line in stream:
                decoder.decode(line)
    return time.perf_counter() - started
