"""Greedy in partitions: against greedy in one piece, and against brute force."""

from pathlib import Path

import numpy as np
import pytest

from compiled import KINDS, function_of
from dgn import (
    BrokenInput,
    FacilityLocation,
    FeatureCoverage,
    InvalidInput,
    Mixture,
    ProbabilisticCoverage,
    exact,
    lazy_greedy,
)
from dgn.apps.jobs import partitioned_greedy


def matrix(seed: int, items: int = 300, width: int = 12) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.minimum(random.gamma(0.4, size=(items, width)), 1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [None, 3])
def test_every_function(kind: int, seed: int | None) -> None:
    x = matrix(kind)
    f = function_of(kind, np.random.default_rng(kind).random(12))
    whole = lazy_greedy(f, x, 6)
    found = partitioned_greedy(f, x, 6, partitions=5, seed=seed)
    assert len(set(found.indices)) == 6
    assert found.certificate.value >= 0.9 * whole.certificate.value
    assert found.certificate.value == pytest.approx(sum(found.gains))
    one = partitioned_greedy(f, x, 6, partitions=1)
    assert one.indices == whole.indices


@pytest.mark.parametrize("seed", range(8))
def test_the_certificate_never_promises_too_much(seed: int) -> None:
    x = matrix(seed, items=14, width=5)
    for f in (
        FeatureCoverage(np.ones(5)),
        FacilityLocation(np.ones(5)),
        Mixture((FeatureCoverage(np.ones(5)), ProbabilisticCoverage(np.ones(5))), np.ones(2)),
    ):
        best = exact(f, x, 3).certificate.value
        found = partitioned_greedy(f, x, 3, partitions=4, seed=seed)
        assert found.certificate.ratio <= found.certificate.value / best + 1e-9
        assert found.certificate.bound >= best - 1e-9


def test_files_and_workers_change_nothing(tmp_path: Path) -> None:
    x = matrix(0).astype(np.float32)
    f = FeatureCoverage(np.ones(12, np.float32))
    np.save(tmp_path / "x.npy", x)
    for seed in (None, 1):
        wanted = partitioned_greedy(f, x, 5, partitions=4, seed=seed)
        assert partitioned_greedy(f, tmp_path / "x.npy", 5, partitions=4, seed=seed) == wanted
        assert partitioned_greedy(f, x, 5, partitions=4, seed=seed, workers=3) == wanted
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({f"f{column:02}": x[:, column] for column in range(12)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=70)
    for seed in (None, 1):
        wanted = partitioned_greedy(f, x, 5, partitions=4, seed=seed)
        assert partitioned_greedy(f, tmp_path / "x.parquet", 5, partitions=4, seed=seed) == wanted


def test_edges(tmp_path: Path) -> None:
    x = matrix(0, items=3)
    f = FeatureCoverage(np.ones(12))
    assert sorted(partitioned_greedy(f, x, 9, partitions=50).indices) == [0, 1, 2]
    with pytest.raises(InvalidInput, match=r"\[items, features\]"):
        partitioned_greedy(f, x[0], 2)
    with pytest.raises(InvalidInput, match=r"a \.npy or a \.parquet"):
        partitioned_greedy(f, tmp_path / "x.csv", 2)
    with pytest.raises(BrokenInput, match="cannot be mapped"):
        partitioned_greedy(f, tmp_path / "missing.npy", 2)
    with pytest.raises(InvalidInput, match="engine must be one of local, ray"):
        partitioned_greedy(f, x, 2, engine="spark")
    for name, value in (("partitions", -3), ("partitions", 0), ("workers", 0), ("workers", 1.5)):
        with pytest.raises(InvalidInput, match=f"{name} must be an integer of at least 1; got"):
            partitioned_greedy(f, x, 2, **{name: value})
    with pytest.raises(InvalidInput, match="k must be an integer of at least 1; got 0"):
        partitioned_greedy(f, x, 0)


def test_a_parquet_file_that_is_not_one(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    f = FeatureCoverage(np.ones(1))
    pq.write_table(pa.table({"a": ["x", "y"]}), tmp_path / "text.parquet")
    (tmp_path / "none.parquet").write_bytes(b"none")
    for name in ("text", "none"):
        with pytest.raises(BrokenInput, match=f"{name}.parquet: it is not a Parquet file whose"):
            partitioned_greedy(f, tmp_path / f"{name}.parquet", 1)
