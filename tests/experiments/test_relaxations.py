"""The comparison of relaxations: the same trials for all, and corrected p-values."""

from pathlib import Path

import pytest

from experiments.relaxations import holm, main


def test_holm_is_monotone_and_at_most_one() -> None:
    # Sorted: 0.01·4, max(0.02·3, …), max(0.03·2, …), max(0.5·1, …).
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_experiment_writes_a_table_and_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--trials", "1", "--seeds", "2", "--train", "20", "--epochs", "1"]
    few += ["--benchmarks", "generated", "--work", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main([str(tmp_path), *few, "--relaxations", "softmax", "sparsemax"]) == 0
    first = (tmp_path / "out").read_text()
    assert "4 tests; p-values after Holm" in first
    capsys.readouterr()
    assert main([str(tmp_path), *few, "--relaxations", "softmax", "sparsemax"]) == 0
    assert (tmp_path / "out").read_text() == first
    assert "s a trial" not in capsys.readouterr().err  # nothing was trained again
