"""What the tests of jobs share: a plan, and the files that a job has written."""

from pathlib import Path
from typing import Any

import dgn

SAMPLES = Path(__file__).parents[1] / "samples" / "claims.jsonl"
LIMITS = dgn.Limits(k=3)


def planned(inputs: Path, out: Path, **options: Any) -> Any:
    options = {"limits": LIMITS, "partition_bytes": 20_000, **options}
    from dgn.apps.jobs import plan_job

    return plan_job(f"{inputs}/*", out, **options)


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.glob("part-*"))}
