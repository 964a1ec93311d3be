"""The compiled kernels against the plain form in NumPy, for every instruction set."""

import ctypes
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from compiled import KINDS, function_of, native_greedy, needs_kernels, sum_of
from dgn.apps.cli.main import main
from dgn.core import greedy, lazy_greedy
from dgn.core import native as kernels
from dgn.core.constraints import Constraints
from dgn.core.functions import (
    FacilityLocation,
    FeatureCoverage,
    Items,
    Log1p,
    Mixture,
    SetFunction,
)
from dgn.core.native import build, compiled, library
from dgn.core.plain import search_batch, search_within
from dgn.errors import InvalidInput


def instance(seed: int, dtype: type) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, int]:
    """Features, weights, mask and k of a batch; sizes from 1 up, with repeated items and zeros."""
    random = np.random.default_rng(seed)
    batch, items, width = (int(random.integers(1, most)) for most in (5, 12, 40))
    features = random.gamma(0.5, size=(batch, items, width))
    features[random.random(features.shape) < 0.2] = 0
    if items > 2:
        features[:, -1] = features[:, 0]
    features = np.minimum(features, 1).astype(dtype)
    shape = (None, (width,), (batch, width))[seed % 3]
    mask = random.random((batch, items)) < 0.8
    mask[:, 0] = True
    weights = None if shape is None else random.gamma(1.0, size=shape).astype(dtype)
    return features, weights, mask, int(random.integers(1, 8))


def check(seed: int, kind: int, dtype: type, level: int | None) -> None:
    features, weights, mask, k = instance(seed, dtype)
    if seed % 4 == 0 and kind != KINDS[-1]:  # logarithms of numbers up to 1 are a case of their own
        features = 3 * features
    check_search(function_of(kind, weights), Items(features, mask), k, level)


def check_search(f: SetFunction, items: Items, k: int, isa: int | None) -> None:
    """The kernel against the plain form, without constraints."""
    wanted = search_batch(f, items, f.empty(items), k, items.mask)
    coverage = compiled(f)
    assert coverage is not None
    (indices, gains, values, bounds), _ = kernels.greedy(
        coverage, items.features, items.mask, kernels.level_of(f.empty(items)), k, isa=isa
    )
    exact = items.features.dtype == np.float64
    close = {"rtol": 1e-12, "atol": 1e-12} if exact else {"rtol": 2e-5, "atol": 2e-6}
    # Where two items differ by rounding alone, either may be selected: their gains are the same.
    same = np.array_equal(indices, wanted.indices)
    if exact or same:
        np.testing.assert_allclose(gains, wanted.gains, **close)
    else:
        np.testing.assert_allclose(gains.sum(axis=1), wanted.gains.sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(values, np.cumsum(gains, axis=1), **close)
    # Some gains are old; not those on which a bound depends.
    np.testing.assert_allclose(bounds, wanted.bounds, rtol=1e-11 if exact else 1e-4)


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_selections_as_the_reference(kind: int, dtype: type) -> None:
    for seed in range(100):
        check(seed, kind, dtype, seed % (kernels.highest_isa() + 1))


@pytest.mark.slow
@needs_kernels
@pytest.mark.parametrize("part", range(13))
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_selections_as_the_reference_many_times(kind: int, part: int) -> None:
    for seed in range(part * 10_000, (part + 1) * 10_000):
        check(seed, kind, np.float64, None)


def limits_of(seed: int, items: Items, k: int) -> list[Constraints]:
    """Constraints of every kind, one for each set, in which something may be allowed or nothing."""
    random = np.random.default_rng(seed)
    sets: list[Constraints] = []
    for real in items.mask:
        constraints = Constraints(min(int(random.integers(0, k + 1)), items.size), real.copy())
        if seed % 3:
            quotas, groups = random.integers(0, 3, 4), random.integers(0, 4, items.size)
            constraints = replace(constraints, groups=groups, quotas=quotas)
        if seed % 4:
            costs = random.integers(1, 6, items.size).astype(float)
            constraints = replace(constraints, costs=costs, budget=float(random.uniform(0.5, 12)))
        sets.append(constraints)
    return sets


def check_limits(seed: int, f: SetFunction, items: Items, k: int, isa: int | None) -> None:
    """The kernel within constraints against the plain form, for every set of a batch."""
    dtype = items.features.dtype
    for row, constraints in enumerate(limits_of(seed, items, k)):
        own, part = f.of_set(row), items.of_set(row, items.size)
        state = own.empty(part)
        if seed % 2:  # an item that is there already
            there = seed % items.size
            member = np.eye(items.size, dtype=dtype)[there : there + 1]
            state = own.add(part, state, member)
            constraints.allowed[there] = False
        divisors = None
        if constraints.costs is not None:
            divisors = (None, constraints.costs, np.sqrt(constraints.costs))[seed // 4 % 3]
        limits = (constraints, divisors)
        wanted = search_within(own, part, state, *limits, skipped_cover=seed % 5 == 0)
        coverage = compiled(own)
        assert coverage is not None
        found = kernels.constrained(
            coverage, part.features, kernels.level_of(state), *limits, seed % 5 == 0, isa=isa
        )
        close = {"rel": 1e-9 if dtype == np.float64 else 1e-4, "abs": 1e-6}
        assert sum(found[1]) == pytest.approx(sum(wanted[1]), **close)
        assert found[2] == pytest.approx(wanted[2], **close)
        assert found[3][1] == pytest.approx(wanted[3][1], **close)
        # Where two items differ by rounding alone, either may be selected.
        if dtype == np.float64:
            assert found[0] == wanted[0]
            assert found[1] == pytest.approx(wanted[1], **close)
            assert found[3][0] == wanted[3][0]


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_within_limits_the_same_as_the_reference(kind: int, dtype: type) -> None:
    for seed in range(100):
        features, weights, mask, k = instance(seed, dtype)
        isa = seed % (kernels.highest_isa() + 1)
        check_limits(seed, function_of(kind, weights), Items(features, mask), k, isa)


@pytest.mark.slow
@needs_kernels
@pytest.mark.parametrize("kind", KINDS)
def test_within_limits_the_same_as_the_reference_many_times(kind: int) -> None:
    for seed in range(1000, 20_000):
        features, weights, mask, k = instance(seed, np.float64)
        check_limits(seed, function_of(kind, weights), Items(features, mask), k, None)


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_items_within_limits_the_same_as_the_reference(dtype: type) -> None:
    """Items by the hundreds are sorted in another way at first; many of them are equal."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        size = 33 + 20 * seed
        items, f = Items(random.integers(0, 3, (1, size, 3)).astype(dtype)), FacilityLocation()
        limits = Constraints(
            9,
            np.ones(size, np.bool_),
            groups=random.integers(0, 40, size),
            quotas=np.ones(40, np.int64),
        )
        if seed % 2:
            limits = replace(limits, costs=random.integers(1, 4, size) / 2, budget=3.0 + seed)
        wanted = search_within(f, items, f.empty(items), limits, limits.costs)
        level = np.zeros((1, 3), dtype)
        found = kernels.constrained(compiled(f), items.features, level, limits, limits.costs)
        assert found[0] == wanted[0]
        assert found[2] == pytest.approx(wanted[2], rel=1e-12)


def sums(seed: int, dtype: type) -> tuple[Mixture, Items, int]:
    """The sum of two functions with a kernel, on an instance with at least two features."""
    features, weights, mask, k = instance(seed, dtype)
    random = np.random.default_rng(seed)
    features = np.concatenate([features, features[..., ::-1] / 2], axis=-1)
    batch, width = len(features), features.shape[-1]
    if weights is None:
        weights = np.ones(width, dtype)
    elif weights.ndim == 1:
        weights = random.gamma(1.0, size=width).astype(dtype)
    else:  # weights of every query
        weights = random.gamma(1.0, size=(batch, width)).astype(dtype)
    # One share for each function, or one pair for each query.
    shares = random.uniform(0.1, 2, (batch, 2) if seed % 2 else 2).astype(dtype)
    kinds = (seed % len(KINDS), seed // len(KINDS) % len(KINDS))
    split = int(random.integers(1, width))
    return sum_of(kinds, weights, split, shares), Items(features, mask), k


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sum_of_two_functions_has_a_kernel(dtype: type) -> None:
    """Every pair of functions: in batches, within constraints, with a context and padding."""
    for seed in range(2 * len(KINDS) ** 2):
        f, items, k = sums(seed, dtype)
        isa = seed % (kernels.highest_isa() + 1)
        check_search(f, items, k, isa)
        check_limits(seed, f, items, k, isa)


@pytest.mark.slow
@needs_kernels
def test_the_sum_of_two_functions_has_a_kernel_many_times() -> None:
    for seed in range(1000, 20_000):
        f, items, k = sums(seed, np.float64)
        check_search(f, items, k, None)
        check_limits(seed, f, items, k, None)


@needs_kernels
def test_a_sum_of_two_functions_is_searched_by_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    f, items, k = sums(5, np.float64)
    limits = {"costs": np.ones(items.features.shape[:2]), "budget": 2.0}
    monkeypatch.setattr(Mixture, "gains", None)  # the plain form would call it
    assert len(greedy(f, items, k)) == len(greedy(f, items, **limits)) == items.batch
    assert compiled(replace(f, columns=None)) is None
    assert compiled(Mixture((*f.functions, FacilityLocation()), np.ones(3))) is None


@needs_kernels
@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_batches_change_no_search_within_limits(
    kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(kind)
    features = random.random((40, 9, 20)).astype(np.float32)
    f = function_of(kind, random.random((40, 20)).astype(np.float32))
    groups, pinned = random.integers(-1, 3, (40, 9)), random.integers(0, 9, (40, 1))
    costs = random.uniform(0.5, 2, (40, 9))
    limits = {"pinned": pinned, "groups": groups, "max_per_group": 2}
    whole = greedy(f, features, 5, **limits)
    paid = greedy(f, features, costs=costs, budget=4.0, cost_exponent=0.5, **limits)
    monkeypatch.setattr(native_greedy, "_WORK_PER_THREAD", 1)
    monkeypatch.setattr(native_greedy, "available_cores", lambda: 3)
    assert list(greedy(f, features, 5, **limits)) == list(whole)
    for row in range(0, 40, 7):
        limits = {"pinned": pinned[row], "groups": groups[row], "max_per_group": 2}
        own, x = f.of_set(row), features[row]
        assert greedy(own, x, 5, **limits) == whole[row]
        budget = {"costs": costs[row], "budget": 4.0, "cost_exponent": 0.5}
        assert greedy(own, x, **budget, **limits) == paid[row]


@needs_kernels
def test_one_small_set_is_the_batch_of_one() -> None:
    random = np.random.default_rng(0)
    for size in (1, 3, 40):
        features = random.random((size, 17)).astype(np.float32)
        f = FeatureCoverage(random.random(17).astype(np.float32))
        alone = greedy(f, features, 5)
        assert alone == greedy(f, Items(features), 5)
        assert alone == greedy(f, features[None], 5)[0]


@needs_kernels
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
@pytest.mark.parametrize("shape", [(4, 5), (2, 4, 5)])
def test_bad_features_are_found_while_they_are_searched(value: float, shape: tuple) -> None:
    features = np.ones(shape)
    features[..., 1, 2] = value
    with pytest.raises(InvalidInput, match="features"):
        greedy(FeatureCoverage(), features, 2)
    weights = np.ones(5)
    weights[3] = value
    with pytest.raises(InvalidInput, match="weights"):
        greedy(FeatureCoverage(weights), np.ones(shape), 2)
    with pytest.raises(InvalidInput, match="weights"):
        greedy(FeatureCoverage(np.ones(4)), np.ones(shape), 2)


@needs_kernels
@pytest.mark.parametrize("kind", KINDS)
def test_batches_threads_and_contexts_change_nothing(
    kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(kind)
    features = random.random((64, 9, 20)).astype(np.float32)
    f = function_of(kind, random.random((64, 20)).astype(np.float32))
    whole = greedy(f, features, 4)
    monkeypatch.setattr(native_greedy, "_WORK_PER_THREAD", 1)
    monkeypatch.setattr(native_greedy, "available_cores", lambda: 3)
    assert list(greedy(f, features, 4)) == list(whole)
    for row in range(0, 64, 7):
        assert greedy(f.of_set(row), features[row], 4) == whole[row]
    items = Items(features)
    first = np.eye(9, dtype=np.float32)[np.zeros(64, int)]
    context = f.add(items, f.empty(items), first)
    given = greedy(f, features, 3, context=context)
    reference = search_batch(f, items, f.empty(items, context), 3, items.mask)
    np.testing.assert_array_equal(given.indices, reference.indices)
    np.testing.assert_allclose(given.gains, reference.gains, rtol=1e-4, atol=1e-6)


@needs_kernels
@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 2.0), (np.float64, 3.0)])
def test_the_error_of_the_logarithm(dtype: type, most: float) -> None:
    limits = np.finfo(dtype)
    x = np.exp(np.linspace(math.log(limits.tiny), math.log(limits.max), 200_000)).astype(dtype)
    (_, gains, _, _), _ = kernels.greedy(kernels.Coverage("log1p"), x[:, None, None], None, None, 1)
    truth = np.log1p(x.astype(np.longdouble))
    error = np.abs(gains[:, 0].astype(np.longdouble) - truth) / truth
    assert float(error.max()) < most * limits.eps


@needs_kernels
@pytest.mark.parametrize("kind", KINDS)
def test_lazy_searches_of_a_large_set(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(kind)
    features = np.minimum(random.gamma(0.3, size=(3000, 37)), 1)
    features[1500:1510] = features[:10]
    f = function_of(kind, random.random(37))
    items = Items(features)
    context = f.add(items, f.empty(items), np.eye(3000)[5:6])
    monkeypatch.setattr(native_greedy, "_WORK_PER_THREAD", 1000)
    for given in (None, context):
        wanted = search_batch(f, items, f.empty(items, given), 20, items.mask)[0]
        found = lazy_greedy(f, features, 20, context=given)
        assert found.indices == wanted.indices
        assert found.gains == pytest.approx(wanted.gains, rel=1e-9)
        assert found.certificate.bound >= wanted.certificate.bound * (1 - 1e-9)


@needs_kernels
def test_a_function_of_the_user_is_not_taken_for_ours() -> None:
    class Doubled(Log1p):  # pyright: ignore[reportGeneralTypeIssues]
        def of(self, x: np.ndarray) -> np.ndarray:
            return 2 * super().of(x)

    class Own(FacilityLocation):  # pyright: ignore[reportGeneralTypeIssues]
        pass

    assert compiled(FeatureCoverage(concave=Doubled())) is None
    assert compiled(Own()) is None
    assert compiled(FeatureCoverage()) is not None


@needs_kernels
def test_arrays_that_are_not_contiguous() -> None:
    random = np.random.default_rng(0)
    features = random.random((4, 30, 8)).transpose(0, 2, 1)
    f = FeatureCoverage(random.random(60)[::2])
    items = Items(features)
    found, wanted = greedy(f, features, 3), search_batch(f, items, f.empty(items), 3, items.mask)
    np.testing.assert_array_equal(found.indices, wanted.indices)


def test_without_kernels_numpy_does_the_same() -> None:
    program = (
        "import json, numpy as np, dgn; from dgn.core import native\n"
        "x = np.random.default_rng(0).random((20, 12))\n"
        "found = dgn.greedy(dgn.FeatureCoverage(np.ones(12)), x, 5)\n"
        "print(json.dumps([native.describe(), found.indices, found.values]))"
    )
    environment = {**os.environ, "DGN_KERNELS": "off"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True
    )
    described, indices, values = json.loads(done.stdout)
    assert described == "NumPy (DGN_KERNELS=off)"
    features = np.random.default_rng(0).random((20, 12))
    here = greedy(FeatureCoverage(np.ones(12)), features, 5)
    assert list(here.indices) == indices
    assert list(here.values) == pytest.approx(values)


def test_info_says_which_search_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    assert kernels.describe() in capsys.readouterr().out
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["search"] == kernels.describe()


def test_without_a_compiler_the_build_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "find_compiler", lambda: None)
    library = tmp_path / "_kernels.so"
    library.write_bytes(b"old")
    assert not build.build(library)
    assert not library.exists()
    assert "no C compiler" in library.with_suffix(".txt").read_text()


def test_a_compiler_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [sys.executable, "-c", "raise SystemExit(3)"]
    monkeypatch.setattr(build, "find_compiler", lambda: fails)
    assert not build.build(tmp_path / "_kernels.so")
    assert "failed" in (tmp_path / "_kernels.txt").read_text()


@pytest.mark.slow
@pytest.mark.skipif(build.find_compiler() is None, reason="there is no C compiler")
def test_the_kernels_touch_no_memory_of_others(tmp_path: Path) -> None:
    """Odd sizes under AddressSanitizer and UBSan, for every instruction set."""
    compiler = build.find_compiler()
    assert compiler is not None
    sanitizers = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    smallest = tmp_path / "smallest.c"
    smallest.write_text("int main(void) { return 0; }")
    command = [*compiler, *sanitizers, str(smallest), "-o", str(tmp_path / "smallest")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this compiler has no sanitizers")
    # With all optimizations, the compiler takes twice as long and hides some mistakes.
    plain = ["-O1" if flag == "-O3" else flag for flag in build.FLAGS]
    flags, program = [*plain, *sanitizers], tmp_path / "harness"
    objects = build.compile_isas(compiler, tmp_path, flags)
    harness = Path(__file__).with_name("harness.c")
    own = ["-I", str(build.SOURCES), str(harness), *map(str, objects), "-lm"]
    subprocess.run([*compiler, *flags, *own, "-o", str(program)], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("searched")


@pytest.mark.skipif(build.find_compiler() is None, reason="there is no C compiler")
def test_a_library_of_other_sources_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header that has changed since the library was compiled must not be read past its end."""
    monkeypatch.setattr(library, "LIBRARY", build.LIBRARY)
    monkeypatch.setattr(library, "_is_off", lambda: False)
    load = library.library.__wrapped__
    assert load() is not None
    sources = tmp_path / "c"
    shutil.copytree(build.SOURCES, sources)
    header = sources / "greedy.h"
    header.write_text(header.read_text().replace("int64_t k;", "int64_t k, more;"))
    monkeypatch.setattr(build, "SOURCES", sources)
    fast = partial(build.compile_isas, flags=[flag for flag in build.FLAGS if flag != "-O3"])
    monkeypatch.setattr(build, "compile_isas", fast)
    assert load() is None, "the installed library was made from other sources"
    other = tmp_path / "_kernels.so"
    assert build.build(other), other.with_suffix(".txt").read_text()
    assert ctypes.CDLL(str(other)).dgn_highest_isa() >= 0, "it can be built and loaded"
    monkeypatch.setattr(library, "LIBRARY", other)
    assert load() is None, "its structures have other sizes than those of Python"


def test_a_library_that_was_cut_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To load it would end the process with SIGBUS."""
    cut = tmp_path / build.LIBRARY.name
    whole = build.LIBRARY.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    report = tmp_path / library.REPORT.name
    report.write_bytes(library.REPORT.read_bytes())
    monkeypatch.setattr(library, "LIBRARY", cut)
    monkeypatch.setattr(library, "REPORT", report)
    monkeypatch.setattr(library, "_is_off", lambda: False)
    assert library.library.__wrapped__() is None
    cut.write_bytes(whole)
    assert library.library.__wrapped__() is not None
