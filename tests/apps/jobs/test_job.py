"""Jobs over many files: the same results however they are run, and nothing half written."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")

from dgn import BrokenInput, InvalidInput, Limits, Selector
from dgn.apps.cli.main import main
from dgn.apps.jobs import plan_job, run_job
from dgn.data import read_examples
from dgn.selector.receipt import verify_receipt
from job_files import LIMITS, SAMPLES, contents, planned


def test_what_a_selector_selects(inputs: Path, tmp_path: Path) -> None:
    job = planned(inputs, tmp_path / "out")
    assert len(job.partitions) > 5
    assert run_job(job, workers=1).rows == 100
    found = pq.ParquetDataset(tmp_path / "out" / "part-00000.parquet").read().to_pylist()
    for file in sorted((tmp_path / "out").glob("part-*"))[1:]:
        found += pq.read_table(file).to_pylist()
    queries = [example.query for example in read_examples(SAMPLES)]
    wanted = Selector.from_pretrained().select_queries(queries, LIMITS)
    assert [row["selected"] for row in found] == [list(one.indices) for one in wanted]
    assert [row["gains"] for row in found] == [list(one.gains) for one in wanted]
    assert [row["coverage"] for row in found] == [one.coverage for one in wanted]
    assert [row["id"] for row in found] == [query.id for query in queries]


def test_receipts_are_a_column(inputs: Path, tmp_path: Path) -> None:
    job = planned(inputs, tmp_path / "out", receipts=True)
    run_job(job, workers=1)
    row = pq.read_table(min((tmp_path / "out").glob("part-*"))).to_pylist()[0]
    receipt = json.loads(row["receipt"])
    assert receipt["selected"] == row["selected"]
    assert receipt["sufficiency"] == row["sufficiency"]
    assert verify_receipt(receipt, Selector.from_pretrained()) == []
    with pytest.raises(InvalidInput):  # it is another job
        planned(inputs, tmp_path / "out")


def test_processes_write_the_same_files_and_a_rerun_only_what_is_missing(
    inputs: Path, tmp_path: Path
) -> None:
    run_job(planned(inputs, tmp_path / "one"), workers=1)
    reports: list[tuple[int, int]] = []
    job = planned(inputs, tmp_path / "two")
    run_job(job, workers=2, report=lambda done, everything, *_: reports.append((done, everything)))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert reports[-1] == (len(job.partitions), len(job.partitions))
    (tmp_path / "two" / "part-00002.parquet").unlink()
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "two").glob("part-*")}
    again = planned(inputs, tmp_path / "two")
    assert [one.number for one in again.missing()] == [2]
    run_job(again, workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert all(path.stat().st_mtime_ns == known for path, known in times.items())


def test_a_killed_job_continues(inputs: Path, tmp_path: Path) -> None:
    run_job(planned(inputs, tmp_path / "whole"), workers=1)
    code = (
        "from pathlib import Path; from dgn import Limits\n"
        "from dgn.apps.jobs import plan_job, run_job\n"
        f"job = plan_job({f'{inputs}/*'!r}, Path({str(tmp_path / 'killed')!r}), limits={LIMITS},"
        " partition_bytes=20_000)\nrun_job(job, workers=1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while len(contents(tmp_path / "killed")) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    job = planned(inputs, tmp_path / "killed")
    run_job(job, workers=1)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_broken_rows_stop_the_job_or_go_to_a_side_file(inputs: Path, tmp_path: Path) -> None:
    with (inputs / "a.jsonl").open("ab") as stream:
        stream.write(b'{"query": "a"}\n[1]\n')
    with pytest.raises(BrokenInput, match=r"a.jsonl, line 61: .*passages"):
        run_job(planned(inputs, tmp_path / "stopped"), workers=1)
    assert not list((tmp_path / "stopped").glob("*tmp*"))
    with pytest.raises(BrokenInput, match=r"a.jsonl, line 61"):
        run_job(planned(inputs, tmp_path / "stopped"), workers=2)
    done = run_job(planned(inputs, tmp_path / "skipped", skip_bad=True), workers=2)
    assert (done.rows, done.bad) == (100, 2)
    bad = [
        json.loads(line)
        for file in (tmp_path / "skipped" / "bad").iterdir()
        for line in file.read_text().splitlines()
    ]
    assert [(Path(one["file"]).name, one["line"]) for one in bad] == [
        ("a.jsonl", 61),
        ("a.jsonl", 62),
    ]


def test_no_space_left_leaves_nothing_half_written(
    inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resource = pytest.importorskip("resource")
    job = planned(inputs, tmp_path / "out")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*out/part-00000\.parquet'"):
            run_job(job, workers=1)
        command = ["select", "--queries", str(inputs / "a.jsonl"), "--out", f"{tmp_path}/a.jsonl"]
        assert main(command) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert capsys.readouterr().err == f"dgn: {tmp_path}/a.jsonl: File too large.\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["manifest.json"]
    assert run_job(job, workers=1).rows == 100


def test_other_jobs_and_inputs_are_refused(inputs: Path, tmp_path: Path) -> None:
    planned(inputs, tmp_path / "out")
    with pytest.raises(InvalidInput, match="a job with other settings"):
        planned(inputs, tmp_path / "out", limits=Limits(k=4))
    (inputs / "d.jsonl").write_bytes(b"")
    with pytest.raises(InvalidInput, match="a job with other inputs"):
        planned(inputs, tmp_path / "out")
    with pytest.raises(InvalidInput, match="No file matches"):
        plan_job(f"{tmp_path}/nothing/*", tmp_path / "x")
    with pytest.raises(InvalidInput, match="is not empty"):
        planned(inputs, tmp_path)
    (inputs / "e.csv").write_text("a")
    with pytest.raises(InvalidInput, match="files that end with"):
        planned(inputs, tmp_path / "x")


def test_columns_of_parquet_files_are_checked(inputs: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"query": ["a"], "passages": [["b"]]}), inputs / "d.parquet")
    with pytest.raises(BrokenInput, match="its columns are not those of"):
        planned(inputs, tmp_path / "out")
    pq.write_table(pa.table({"text": ["a"]}), inputs / "c.parquet")
    with pytest.raises(BrokenInput, match="the columns query and passages"):
        planned(inputs, tmp_path / "out")
    (inputs / "c.parquet").write_bytes(b"not parquet")
    with pytest.raises(BrokenInput, match="not a Parquet file"):
        planned(inputs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command(inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["select", "--queries", f"{inputs}/*", "--out", str(tmp_path / "out"), "-k", "3"]
    assert main([*command, "--workers", "1"]) == 0
    assert "100 queries" in capsys.readouterr().err
    assert main([*command, "--engine", "local"]) == 0
    assert "nothing is missing" in capsys.readouterr().err
    assert main([*command, "--address", "localhost"]) == 2
    assert "--address needs --engine ray" in capsys.readouterr().err
    assert main([*command, "--workers", "1", "--explain"]) == 2


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    """An input ten times as large as another one, both far larger than a batch."""
    row = json.dumps({"query": "Who swims?", "passages": ["Ada swims. " * 400] * 3}) + "\n"

    def peak(rows: int) -> int:
        folder = tmp_path / str(rows)
        folder.mkdir()
        (folder / "a.jsonl").write_text(row * rows)
        code = (
            "from pathlib import Path; from dgn import Limits\n"
            "from dgn.apps.jobs import plan_job, run_job\n"
            f"job = plan_job({str(folder / 'a.jsonl')!r}, Path({str(folder / 'out')!r}),"
            " limits=Limits(k=1), batch_size=8)\nrun_job(job, workers=1)\n"
            "status = Path('/proc/self/status').read_text().splitlines()\n"
            "print(next(line.split()[1] for line in status if line.startswith('VmHWM')))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        return int(done.stdout) // 1024

    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    small, large = peak(300), peak(3000)  # 4 and 40 MB
    assert large - small < 20, f"{small} MiB for 4 MB and {large} MiB for 40 MB"


def test_unknown_engines_are_refused(inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="engine must be one of local, ray; got 'spark'"):
        run_job(planned(inputs, tmp_path / "out"), engine="spark")
