"""The inputs of the tests of jobs."""

import gzip
import json
from pathlib import Path

import pytest

from job_files import SAMPLES


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Two JSONL files, one of them compressed, and a Parquet file, of 100 claims in all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "in"
    folder.mkdir()
    lines = SAMPLES.read_bytes().splitlines(keepends=True)
    (folder / "a.jsonl").write_bytes(b"".join(lines[:60]))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[60:75])))
    rows = [json.loads(line) for line in lines[75:]]
    table = pa.Table.from_pylist(
        [
            {
                "id": row["id"],
                "query": row["claim"],
                "documents": [
                    {"title": d["title"], "sentences": d["sentences"]} for d in row["documents"]
                ],
            }
            for row in rows
        ]
    )
    pq.write_table(table, folder / "c.parquet", row_group_size=10)
    return folder
