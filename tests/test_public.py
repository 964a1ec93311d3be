"""The public names, what an import costs, and what works without the optional packages."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dgn
import dgn.core
import dgn.core.functions
import dgn.learn
from dgn.apps.cli.main import main

SITE_PACKAGES = Path(np.__file__).parents[1]

FUNCTIONS = {
    *("Concave", "FacilityLocation", "FeatureCoverage", "GraphCut", "Items", "Log1p"),
    *("LogDeterminant", "Mixture", "OneMinusExp", "Power", "ProbabilisticCoverage", "Saturated"),
    *("SetFunction", "State", "WeightedCoverage", "as_items"),
}
SEARCHES = {
    *("Certificate", "Selection", "Selections", "explain", "greedy", "lazy_greedy", "top_k"),
}
LEARN = {
    *("Batch", "Choice", "DenseTable", "DifferentiableGreedyNetwork", "EpochReport"),
    *("FeatureEncoder", "FeedForward", "FitConfig", "GreedyLayer", "Gumbel"),
    *("LayerwiseCrossEntropy", "LearnedWeights", "Loss", "PointwiseNetwork", "PointwiseScorer"),
    *("Relaxation", "RowsResult", "SelectionNetwork", "SoftState", "Softmax"),
    *("StraightThrough", "Table", "Trainer", "Unfolded", "UnfoldedGreedy", "fit", "select_all"),
    *("train_on_rows", "weighted_binary_cross_entropy"),
}
ERRORS = {"BrokenInput", "DGNError", "InvalidInput", "MissingExtra"}
TOP = {
    *SEARCHES,
    *ERRORS,
    *("FacilityLocation", "FeatureCoverage", "GraphCut", "Items", "LogDeterminant", "Mixture"),
    *("ProbabilisticCoverage", "SetFunction", "State"),
    *("Document", "Explanation", "Limits", "Passage", "PassageIndex", "PassageReport"),
    *("PassageSelection", "Query", "Selector", "vector_function"),
}


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (dgn, TOP),
        (dgn.core.functions, FUNCTIONS),
        (dgn.core, {*SEARCHES, "Items", "SetFunction", "State", "Step"}),
        (dgn.learn, LEARN),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_public_names(module: object, names: set[str]) -> None:
    assert set(module.__all__) == names
    assert all(hasattr(module, name) for name in names)


@pytest.mark.parametrize("module", [dgn, dgn.learn])
def test_unknown_names_are_attribute_errors(module: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'teapot'"):
        _ = module.teapot
    assert not hasattr(module, "__wrapped__")


def test_names_that_are_imported_later_are_listed() -> None:
    assert set(dgn.__all__) <= set(dir(dgn))
    assert dgn._MODULES.keys() == set(dgn.__all__)


def run_python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process, without the shape checks of the tests."""
    plain = {name: value for name, value in os.environ.items() if name != "DGN_CHECK_SHAPES"}
    command = [sys.executable, "-W", "error", *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=plain)


def imported_by(code: str) -> set[str]:
    """The top-level modules that this code imports."""
    show = "\nimport sys\nprint(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = run_python(code + show)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_import_of_dgn_imports_neither_numpy_nor_torch() -> None:
    found = imported_by("import dgn; dgn.__version__; dir(dgn)")
    assert not found & {"numpy", "torch", "array_api_compat"}


@pytest.mark.parametrize(
    "code",
    [
        "from dgn import Selector, greedy",
        "from dgn.apps.cli.main import main",
    ],
)
def test_torch_is_imported_for_training_only(code: str) -> None:
    assert "torch" not in imported_by(code)


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with dgn, numpy and array-api-compat, and nothing else.

    This is what the set functions, the searches and the help texts need; selecting from texts
    needs the tokenizer and the word vectors as well.
    """
    folder = tmp_path_factory.mktemp("packages")
    for package in ("dgn", "numpy", "numpy.libs", "array_api_compat"):
        installed = Path(dgn.__file__).parents[1] if package == "dgn" else SITE_PACKAGES
        if (installed / package).exists():
            (folder / package).symlink_to(installed / package)
    return folder


def run_light(packages: Path, code: str) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path.insert(0, {str(packages)!r})\n"
    return run_python(start + code, "-I", "-S")


def test_light_environment_has_no_other_package(light: Path) -> None:
    done = run_light(
        light,
        "import importlib.util\n"
        "for name in ('torch', 'safetensors', 'tokenizers', 'wordllama', 'threadpoolctl'):\n"
        "    assert importlib.util.find_spec(name) is None, name\n",
    )
    assert done.returncode == 0, done.stderr


def test_searches_need_no_torch(light: Path) -> None:
    done = run_light(
        light,
        "import numpy as np, dgn\n"
        "features = np.random.default_rng(0).random((30, 8))\n"
        "f = dgn.FeatureCoverage(np.ones(8))\n"
        "print(dgn.greedy(f, features, 5))\n"
        "dgn.lazy_greedy(f, features, 5)\n"
        "dgn.greedy(f, features, costs=np.ones(30), budget=3.0)\n"
        "import dgn.apps.cli.main\n",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("selected ")


@pytest.mark.parametrize(
    ("command", "flag"),
    [("train", "--epochs"), ("select", "--max-tokens")],
)
def test_help_needs_no_torch(light: Path, command: str, flag: str) -> None:
    done = run_light(
        light, f"from dgn.apps.cli.main import main\nsys.exit(main([{command!r}, '--help']))\n"
    )
    assert done.returncode == 0, done.stderr
    assert flag in done.stdout


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("from dgn.learn import UnfoldedGreedy", "dgn.learn"),
        ("import dgn.learn", "dgn.learn"),
    ],
)
def test_missing_torch_is_explained(light: Path, code: str, part: str) -> None:
    done = run_light(
        light,
        f"from dgn.errors import MissingExtra\ntry:\n    {code}\n"
        "except MissingExtra as error:\n    print(error)\n",
    )
    assert done.stdout.strip() == (
        f"{part} requires torch, which is not installed. Install it with: pip install 'dgn[train]' "
        "(from a clone of the repository: pip install '.[train]')"
    )


def test_command_explains_a_missing_extra_without_a_traceback(light: Path) -> None:
    arguments = ["train", "rows.jsonl", "--out", "model"]
    done = run_light(light, f"from dgn.apps.cli.main import main\nsys.exit(main({arguments!r}))\n")
    assert done.returncode == 1
    assert done.stderr.startswith("dgn: dgn train requires torch")
    assert "Traceback" not in done.stderr


def test_version_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.strip() == f"dgn {dgn.__version__}"
