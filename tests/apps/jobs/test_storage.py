"""Inputs and results in a bucket: a real S3 service (moto's), on this machine."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

fs = pytest.importorskip("pyarrow.fs", reason="pyarrow is not installed")
server = pytest.importorskip("moto.server", reason="moto is not installed")
pq = pytest.importorskip("pyarrow.parquet")

from dgn import BrokenInput, InvalidInput
from dgn.apps.cli.main import main
from dgn.apps.jobs import plan_job, run_job
from dgn.apps.jobs.storage import Folder, matching_files
from job_files import LIMITS, contents, planned


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[fs.S3FileSystem]:
    """A service with an empty bucket, which the environment names."""
    service = server.ThreadedMotoServer(port=0, verbose=False)
    service.start()
    host, port = service.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    system = fs.S3FileSystem(
        endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True
    )
    system.create_dir("bucket")
    yield system
    httpx.post(f"http://{host}:{port}/moto-api/reset")
    service.stop()


def upload(system: fs.S3FileSystem, folder: Path) -> None:
    fs.copy_files(
        str(folder),
        "bucket/in",
        source_filesystem=fs.LocalFileSystem(),
        destination_filesystem=system,
    )


def test_a_job_from_a_bucket_into_a_bucket(
    bucket: fs.S3FileSystem, inputs: Path, tmp_path: Path
) -> None:
    upload(bucket, inputs)
    run_job(planned(inputs, tmp_path / "here"), workers=1)
    options = {"limits": LIMITS, "partition_bytes": 20_000}
    job = plan_job("s3://bucket/in/*", "s3://bucket/out", **options)
    assert run_job(job, workers=1).rows == 100
    found = {name for name in Folder("s3://bucket/out").names() if name.startswith("part-")}
    wanted = contents(tmp_path / "here")
    assert found == set(wanted)
    for name, content in wanted.items():
        with bucket.open_input_file(f"bucket/out/{name}") as stream:
            assert stream.read() == content
    bucket.delete_file("bucket/out/part-00001.parquet")
    again = plan_job("s3://bucket/in/*", "s3://bucket/out", **options)
    assert [one.number for one in again.missing()] == [1]
    run_job(again, workers=1)
    assert not again.missing()


def test_the_command(
    bucket: fs.S3FileSystem, inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, inputs)
    command = ["select", "--queries", "s3://bucket/in/*.parquet", "--out", "s3://bucket/selected"]
    assert main([*command, "--workers", "1", "-k", "2"]) == 0
    assert "selections: s3://bucket/selected" in capsys.readouterr().err
    with bucket.open_input_file("bucket/selected/part-00000.parquet") as stream:
        assert pq.read_table(io.BytesIO(stream.read())).num_rows == 25


def test_an_error_leaves_nothing_in_the_bucket(bucket: fs.S3FileSystem) -> None:
    with bucket.open_output_stream("bucket/in/a.jsonl") as stream:
        stream.write(b'{"query": "Who?", "passages": ["Ada."]}\n{"query": "broken"}\n')
    job = plan_job("s3://bucket/in/a.jsonl", "s3://bucket/out")
    with pytest.raises(BrokenInput, match=r"s3://bucket/in/a\.jsonl, line 2"):
        run_job(job, workers=1)
    assert Folder("s3://bucket/out").names() == {"manifest.json"}
    job = plan_job("s3://bucket/in/a.jsonl", "s3://bucket/skipped", skip_bad=True)
    assert run_job(job, workers=1).bad == 1
    bad = json.loads(Folder("s3://bucket/skipped/bad").read_text("part-00000.jsonl"))
    assert bad["line"] == 2


def test_an_object_that_was_changed_is_refused(bucket: fs.S3FileSystem) -> None:
    def upload_row(name: str) -> None:
        with bucket.open_output_stream("bucket/in/a.jsonl") as stream:
            stream.write(b'{"query": "Who?", "passages": ["%s."]}\n' % name.encode())

    upload_row("Ada")
    job = plan_job("s3://bucket/in/a.jsonl", "s3://bucket/out")
    upload_row("Ada")
    assert plan_job("s3://bucket/in/a.jsonl", "s3://bucket/out") == job
    upload_row("Eva")
    with pytest.raises(InvalidInput, match=r"other inputs \(s3://bucket/in/a\.jsonl has changed\)"):
        plan_job("s3://bucket/in/a.jsonl", "s3://bucket/out")


def test_globs(bucket: fs.S3FileSystem) -> None:
    for name in ("a.jsonl", "b.jsonl", "deep/c.jsonl", "deep/d.txt"):
        with bucket.open_output_stream(f"bucket/{name}") as stream:
            stream.write(b"{}")
    start = "s3://bucket/"
    assert matching_files("s3://bucket/*.jsonl") == [f"{start}a.jsonl", f"{start}b.jsonl"]
    assert matching_files("s3://bucket/[b-z]*.jsonl") == [f"{start}b.jsonl"]
    assert matching_files("s3://bucket/deep/c.jsonl") == [f"{start}deep/c.jsonl"]
    assert matching_files("s3://bucket/**/*.jsonl") == [
        f"{start}{name}" for name in ("a.jsonl", "b.jsonl", "deep/c.jsonl")
    ]
    with pytest.raises(InvalidInput, match="No file matches s3://bucket/x"):
        matching_files("s3://bucket/x*")


def test_storages_that_cannot_be_used(
    bucket: fs.S3FileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    del bucket
    with pytest.raises(InvalidInput, match="on no storage that is known"):
        matching_files("ftp://host/*.jsonl")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(InvalidInput, match="cannot be reached or read"):
        matching_files("s3://bucket/*.jsonl")
