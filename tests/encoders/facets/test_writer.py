import dataclasses
from pathlib import Path

import numpy as np
import pytest

from dgn.data import Claim, Example, Line, example_of, parse_row
from dgn.encoders.facets.table import MatchTable
from dgn.encoders.facets.writer import MatchWriter
from models import matcher

ROW = (
    b'{"query": "It sank twice", "title": "Ship", "sentences": ["It sank.", "It rose.", "Twice."]}'
)
EXAMPLE = parse_row(Line("rows", 1, ROW)).example()


def write(folder: Path, examples: list[Example], *, titles: bool = True) -> MatchWriter:
    folder.mkdir()
    with MatchWriter(folder, matcher(), titles=titles) as writer:
        for example in examples:
            writer.add(example)
    return writer


def test_counts_and_different_words(tmp_path: Path) -> None:
    claim = dataclasses.replace(EXAMPLE.claim, id="2")
    again = dataclasses.replace(EXAMPLE, claim=claim)
    writer = write(tmp_path / "f", [EXAMPLE, again] * 40)  # more than one batch
    assert (writer.query_count, writer.passage_count, writer.missing_count) == (80, 240, 0)
    table = MatchTable.load(tmp_path / "f")
    assert table.ids.tolist() == ["1", "2"] * 40
    alone = write(tmp_path / "alone", [EXAMPLE])
    assert alone.query_count == 1
    words = MatchTable.load(tmp_path / "alone").vectors
    assert len(table.vectors) == len(words), "every different word is stored once"
    assert table.vectors.dtype == np.float16


def test_missing_evidence_is_counted(tmp_path: Path) -> None:
    row = parse_row(Line("rows", 1, ROW[:-1] + b', "evidence": [[9]]}'))
    assert write(tmp_path / "f", [row.example()]).missing_count == 1


def test_titles_can_be_left_out(tmp_path: Path) -> None:
    titled = parse_row(Line("rows", 1, ROW.replace(b"It sank twice", b"The ship sank"))).example()
    write(tmp_path / "titled", [titled])
    write(tmp_path / "without", [titled], titles=False)
    assert MatchTable.load(tmp_path / "titled").by_pair["title"].any()
    assert not MatchTable.load(tmp_path / "without").by_pair["title"].any()


@pytest.mark.parametrize("failed", [True, False])
def test_nothing_is_written_after_a_failure_or_without_queries(
    tmp_path: Path, failed: bool
) -> None:
    def fail() -> None:
        with MatchWriter(tmp_path, matcher()) as writer:
            if failed:
                writer.add(example_of(Claim("1", "It sank"), EXAMPLE.query.passages))
                raise OSError("disk full")

    if failed:
        with pytest.raises(OSError, match="disk full"):
            fail()
    else:
        fail()
    assert not list(tmp_path.iterdir())
