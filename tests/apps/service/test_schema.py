"""schemathesis against the service's own OpenAPI document: no failure, no server error."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("schemathesis")


@pytest.mark.slow
def test_schemathesis_finds_nothing(service: Any, tmp_path: Path) -> None:
    hooks = {"SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json"),
            *("--max-examples", "8", "--workers", "1", "--seed", "1", "--no-color"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | hooks,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout
