"""Attacks on jobs: damaged inputs, kills, two at once, inputs that change, lines without an end."""

import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dgn
from dgn import BrokenInput, InvalidInput
from dgn.apps.cli.main import main
from dgn.apps.jobs import plan_job, run_job
from dgn.errors import WorkerDied
from job_files import contents

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")

LIMITS = dgn.Limits(k=1)
ROW = {"query": "Who swims in the lake?", "passages": ["Bo runs.", "Ada swims.", "A lake."]}


def rows(count: int) -> bytes:
    """Rows that do not compress well, so that half of an archive is half of them."""
    texts = ({**ROW, "id": f"{n}", "noise": os.urandom(100).hex()} for n in range(count))
    return b"".join(json.dumps(row).encode() + b"\n" for row in texts)


def script(queries: Path, out: Path, *, workers: int = 2, size: int = 30_000) -> str:
    return (
        "from dgn import Limits\nfrom dgn.apps.jobs import plan_job, run_job\n"
        "if __name__ == '__main__':\n"
        f"    job = plan_job({str(queries)!r}, {str(out)!r}, limits=Limits(k=1),"
        f" partition_bytes={size})\n    run_job(job, workers={workers})\n"
    )


def started(tmp_path: Path, *arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
    file = tmp_path / "script.py"
    file.write_text(script(*arguments, **options))
    return subprocess.Popen([sys.executable, str(file)], stderr=subprocess.DEVNULL)


def wait_until(is_true: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def children_of(process: int) -> list[int]:
    """The processes that a process has started, and that still run."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if int(parent) == process and state != "Z":
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize("ending", ["gz", "xz"])
@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_truncated_archive_is_never_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str, skip_bad: bool
) -> None:
    packed = (gzip if ending == "gz" else lzma).compress(rows(100))
    damaged = tmp_path / f"b.jsonl.{ending}"
    damaged.write_bytes(packed[: len(packed) // 2])
    (tmp_path / "a.jsonl").write_bytes(rows(5))
    command = ["select", "-k", "1", "--out", str(tmp_path / "out"), *["--skip-bad"] * skip_bad]
    assert main([*command, "--queries", f"{tmp_path}/*.jsonl*", "--workers", "1"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"dgn: {damaged}, line ")
    assert "the archive is damaged or truncated" in said
    assert sorted(contents(tmp_path / "out")) == ["part-00000.parquet"], "what was complete stays"
    damaged.write_bytes(packed)
    assert main([*command, "--queries", f"{tmp_path}/*.jsonl*", "--workers", "1"]) == 2
    assert f"({damaged} has changed)" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["gz", "xz"])
def test_a_truncated_archive_without_a_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    packed = (gzip if ending == "gz" else lzma).compress(rows(100))
    damaged = tmp_path / f"b.jsonl.{ending}"
    damaged.write_bytes(packed[: len(packed) // 2])
    given = ["--queries", str(damaged), "--skip-bad"]
    commands = (
        ["select", *given, "-k", "1"],
        ["evaluate", *given, "--baselines", "first"],
        ["data", "inspect", *given],
        ["data", "features", *given, "--out", str(tmp_path / "features"), "--workers", "1"],
    )
    for command in commands:
        assert main(command) == 1, command
        assert "the archive is damaged or truncated" in capsys.readouterr().err
    assert not (tmp_path / "features").exists()


def test_damaged_parquet_is_one_sentence(tmp_path: Path) -> None:
    good = tmp_path / "a.parquet"
    table = pa.Table.from_pylist([{**ROW, "id": str(n)} for n in range(50)])
    pq.write_table(table, good, compression="gzip")
    content = bytearray(good.read_bytes())
    content[40:80] = bytes(40)  # inside a page: the footer is still right
    good.write_bytes(bytes(content))
    job = plan_job(str(good), tmp_path / "out", limits=LIMITS, skip_bad=True)
    with pytest.raises(BrokenInput, match=r"a\.parquet: it is not a Parquet file, or damaged"):
        run_job(job, workers=1)
    assert not contents(tmp_path / "out")


def test_text_of_parquet_that_is_not_utf8(tmp_path: Path) -> None:
    binary = pa.Array.from_buffers(pa.string(), 2, pa.array([b"Who?", b"\xff\xfe"]).buffers())
    table = pa.table({"query": binary, "passages": [["Ada."], ["Bo."]]})
    pq.write_table(table, tmp_path / "a.parquet")
    job = plan_job(f"{tmp_path}/a.parquet", tmp_path / "out", limits=LIMITS, skip_bad=True)
    done = run_job(job, workers=1)
    assert (done.rows, done.bad) == (1, 1)


def test_a_line_without_an_end_needs_no_memory(tmp_path: Path) -> None:
    """A small archive with a line of 256 MiB."""
    resource = pytest.importorskip("resource")
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    with (tmp_path / "a.jsonl.gz").open("wb") as stream:
        stream.write(packer.compress(rows(3)))
        block = b" " * 2**24
        for _ in range(16):
            stream.write(packer.compress(block))
        stream.write(packer.compress(b"\n" + rows(2)) + packer.flush())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BrokenInput, match=r"a\.jsonl\.gz, line 4: the line is longer than 64 MiB"):
        run_job(plan_job(f"{tmp_path}/a.jsonl.gz", tmp_path / "out", limits=LIMITS), workers=1)
    job = plan_job(f"{tmp_path}/a.jsonl.gz", tmp_path / "skipped", limits=LIMITS, skip_bad=True)
    done = run_job(job, workers=1)
    assert (done.rows, done.bad) == (5, 1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18  # KiB


def test_a_changed_input_model_or_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out, model = tmp_path / "a.jsonl", tmp_path / "out", tmp_path / "model"
    file.write_bytes(rows(3))
    dgn.Selector.from_pretrained().save_pretrained(model)

    def planned() -> Any:
        return plan_job(str(file), out, limits=LIMITS, model=str(model))

    job = planned()
    status = file.stat()
    file.write_bytes(file.read_bytes().replace(b"Ada", b"Eva", 1))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_size == status.st_size
    with pytest.raises(InvalidInput, match=r"other inputs \(.*a\.jsonl has changed\)"):
        planned()
    file.write_bytes(file.read_bytes().replace(b"Eva", b"Ada", 1))
    assert planned() == job
    with monkeypatch.context() as patch:
        patch.setattr(dgn, "__version__", "9.9")
        with pytest.raises(InvalidInput, match=r"other code \(dgn .*, this is 9\.9\)"):
            planned()
    dgn.Selector.from_pretrained("untrained").save_pretrained(model)
    with pytest.raises(InvalidInput, match="other weights of its model"):
        planned()
    with pytest.raises(InvalidInput, match="has changed since the job was planned"):
        run_job(job, workers=1)


def test_a_manifest_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(rows(2))
    job = plan_job(f"{tmp_path}/a.jsonl", tmp_path / "out", limits=LIMITS)
    manifest = tmp_path / "out" / "manifest.json"
    good = json.loads(manifest.read_text())
    broken = (
        *("", "[]", "{}", "null", json.dumps(good | {"version": 1})),
        json.dumps(good | {"partitions": [{"number": 0, "file": "/etc/passwd"}]}),
        json.dumps(good | {"partitions": [good["partitions"][0] | {"start": -5}]}),
        json.dumps(good | {"inputs": 7}),
    )
    for content in broken:
        manifest.write_text(content)
        with pytest.raises(BrokenInput, match="not the manifest of a job of this dgn"):
            plan_job(f"{tmp_path}/a.jsonl", tmp_path / "out", limits=LIMITS)
        with pytest.raises(InvalidInput, match="was changed after the job was planned"):
            run_job(job, workers=1)


def test_long_rows_are_not_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 rows of 64 MiB each would be a batch of 4 GiB."""
    sizes: list[int] = []
    select = dgn.Selector.select_queries

    def counted(self: Any, queries: Any, limits: Any = None) -> Any:
        sizes.append(len(queries))
        return select(self, queries, limits)

    monkeypatch.setattr(dgn.Selector, "select_queries", counted)
    monkeypatch.setattr("dgn.apps.jobs.job._BATCH_CHARACTERS", 100)
    (tmp_path / "a.jsonl").write_bytes(rows(12))
    run_job(plan_job(f"{tmp_path}/a.jsonl", tmp_path / "out", limits=LIMITS), workers=1)
    assert sizes == [4, 4, 4]


def test_row_groups_hold_many_batches(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(rows(300))
    job = plan_job(f"{tmp_path}/a.jsonl", tmp_path / "out", limits=LIMITS, batch_size=64)
    run_job(job, workers=1)
    about = pq.read_metadata(tmp_path / "out" / "part-00000.parquet")
    assert (about.num_row_groups, about.num_rows) == (1, 300)


@pytest.mark.parametrize("value", [0, -3, 1.5, "2", True])
def test_sizes_that_are_none(tmp_path: Path, value: Any) -> None:
    (tmp_path / "a.jsonl").write_bytes(rows(2))
    for name in ("batch_size", "partition_bytes"):
        with pytest.raises(InvalidInput, match=f"{name} must be an integer of at least 1; got"):
            plan_job(f"{tmp_path}/a.jsonl", tmp_path / "x", limits=LIMITS, **{name: value})
    job = plan_job(f"{tmp_path}/a.jsonl", tmp_path / "out", limits=LIMITS)
    with pytest.raises(InvalidInput, match="workers must be an integer of at least 1; got"):
        run_job(job, workers=value)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(rows(2))
    out = tmp_path / "out"
    job = plan_job(f"{tmp_path}/a.jsonl", out, limits=LIMITS)
    holder = (
        "import sys; from pathlib import Path; from dgn.files import only_writer\n"
        f"with only_writer(Path({str(out)!r})):\n    print(flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(InvalidInput, match="Another process is writing to"):
        run_job(job, workers=1)
    process.kill()
    process.communicate()
    assert run_job(job, workers=1).rows == 2
    assert {path.name for path in out.iterdir()} == {"manifest.json", "part-00000.parquet"}


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@needs_proc
def test_workers_end_with_their_parent_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(rows(500))
    whole = plan_job(str(file), tmp_path / "whole", limits=LIMITS, partition_bytes=30_000)
    run_job(whole, workers=1)
    out = tmp_path / "out"
    for done in (1, 3):
        process = started(tmp_path, file, out)
        wait_until(lambda done=done: len(contents(out)) >= done)
        workers = children_of(process.pid)
        assert len(workers) >= 2
        process.kill()
        process.wait()
        wait_until(
            lambda workers=workers: not any(Path(f"/proc/{one}").exists() for one in workers)
        )
    assert started(tmp_path, file, out).wait(60) == 0
    assert contents(out) == contents(tmp_path / "whole")
    assert {path.name for path in out.iterdir()} == {"manifest.json", *contents(out)}


@needs_proc
def test_a_killed_worker_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(rows(400))
    job = plan_job(str(file), tmp_path / "out", limits=LIMITS, partition_bytes=30_000)

    def kill_one(*_: Any) -> None:
        tracked = [one for one in children_of(os.getpid()) if b"spawn_main" in command_of(one)]
        os.kill(tracked[0], signal.SIGKILL)

    with pytest.raises(WorkerDied, match=r"\d+ of \d+ partitions are in .*out\."):
        run_job(job, workers=2, report=kill_one)
    assert "Traceback" not in capfd.readouterr().err
    assert job.missing()
    assert run_job(job, workers=1).rows < 400
    assert not job.missing()


def command_of(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()
