"""The public surface: the names we promise, and that run time needs no torch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dgn
import dgn.maximizers
import dgn.objectives
import dgn.unfolding
from dgn.errors import DGNError, InvalidInput, MissingExtra, require_extra

SITE_PACKAGES = Path(np.__file__).parents[1]

OBJECTIVES = {
    *("Concave", "FacilityLocation", "FeatureCoverage", "Items", "Log1p", "Mixture"),
    *("OneMinusExp", "Power", "ProbabilisticCoverage", "Saturated", "SetFunction", "Sqrt"),
    *("State", "WeightedCoverage", "as_items"),
}
MAXIMIZERS = {
    *("Certificate", "Selection", "Selections", "budgeted_greedy", "exact", "greedy"),
    *("lazy_greedy", "stochastic_greedy", "top_k"),
}
UNFOLDING = {
    *("DeepEncoderNetwork", "DifferentiableGreedyNetwork", "EncoderNetwork"),
    *("FeedForwardEncoder", "Fixed", "Geometric", "GreedyLayer", "Gumbel"),
    *("LayerwiseCrossEntropy", "LearnedWeights", "Linear", "Relaxation", "Schedule"),
    *("SelectionNetwork", "SoftState", "Softmax", "StraightThrough", "Unfolded"),
    *("UnfoldedGreedy", "paper_deep_encoder", "paper_dgn", "paper_encoder"),
    "weighted_binary_cross_entropy",
}
TOP = MAXIMIZERS | {
    *("DGNError", "FacilityLocation", "FeatureCoverage", "InvalidInput", "Items", "MissingExtra"),
    *("Mixture", "ProbabilisticCoverage", "SearchTooLarge", "SetFunction", "State"),
    *("Document", "Selector", "Sentence", "SentenceSelection"),
}


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (dgn, TOP),
        (dgn.objectives, OBJECTIVES),
        (dgn.maximizers, MAXIMIZERS),
        (dgn.unfolding, UNFOLDING),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_public_names_are_pinned(module: object, names: set[str]) -> None:
    assert set(module.__all__) == names
    assert all(hasattr(module, name) for name in names)


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with all that `pip install dgn` brings, and nothing else."""
    folder = tmp_path_factory.mktemp("packages")
    for package in ("dgn", "numpy", "numpy.libs", "array_api_compat"):
        installed = Path(dgn.__file__).parents[1] if package == "dgn" else SITE_PACKAGES
        if (installed / package).exists():
            (folder / package).symlink_to(installed / package)
    return folder


def run_light(packages: Path, code: str) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path.insert(0, {str(packages)!r})\n"
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", start + code]
    plain = {name: value for name, value in os.environ.items() if name != "DGN_CHECK_SHAPES"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=plain)


def test_run_time_imports_and_selects_without_torch(light: Path) -> None:
    done = run_light(
        light,
        "import numpy as np, dgn\n"
        "features = np.random.default_rng(0).random((30, 8))\n"
        "f = dgn.FeatureCoverage(np.ones(8))\n"
        "print(dgn.greedy(f, features, 5)[0])\n"
        "dgn.lazy_greedy(f, features, 5); dgn.exact(f, features, 3)\n"
        "dgn.stochastic_greedy(f, features, 5, seed=0)\n"
        "dgn.budgeted_greedy(f, features, np.ones(30), 3.0)\n"
        "import dgn.data.synthetic, dgn.explanation, dgn.evaluation, dgn.cli.main\n",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("picked ")


def test_training_without_torch_is_explained(light: Path) -> None:
    done = run_light(
        light,
        "from dgn.errors import MissingExtra\n"
        "try:\n    import dgn.unfolding\n"
        "except MissingExtra as error:\n    print(error)\n",
    )
    assert done.stdout.strip() == (
        "dgn.unfolding needs torch, which is not installed; "
        "install it with: pip install 'dgn[train]'"
    )


def test_the_command_explains_a_missing_extra_without_a_traceback(light: Path) -> None:
    done = run_light(light, "from dgn.cli.main import main\nsys.exit(main(['demo']))\n")
    assert done.returncode == 1
    assert done.stderr.startswith("dgn: dgn demo needs torch")
    assert "Traceback" not in done.stderr


def test_errors_are_one_tree() -> None:
    assert issubclass(InvalidInput, DGNError)
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(MissingExtra, ImportError)
    with pytest.raises(MissingExtra, match="no_such_package"):
        require_extra("this", package="no_such_package", extra="train")


def test_shape_checks_are_on_in_the_tests() -> None:
    from jaxtyping import TypeCheckError

    from dgn.maximizers.greedy import one_hot

    with pytest.raises(TypeCheckError):
        one_hot(np.ones((2, 2), dtype=int), 3)
