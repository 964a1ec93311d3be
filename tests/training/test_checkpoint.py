"""A training state in one file."""

from pathlib import Path

import pytest
import torch

from dgn.errors import BrokenInput
from dgn.training.checkpoint import read_checkpoint, write_checkpoint

VALUES = {"position": {"epoch": 1, "batch": 2}, "reports": [{"loss": None}], "stopped": "é"}


def test_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    tensors = {
        "weight": torch.randn(3, 4).T,
        "losses": torch.zeros(2, dtype=torch.float64),
        "random": torch.get_rng_state(),
    }
    write_checkpoint(tmp_path / "state", tensors, VALUES)
    found, values = read_checkpoint(tmp_path / "state")
    assert values == VALUES
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize("content", [b"", b"half a file", b"\x00" * 100, b"\x05" * 9])
def test_broken_checkpoint_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(BrokenInput, match="delete the file to start again"):
        read_checkpoint(tmp_path / "state")


def test_truncated_checkpoint_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "state", {"weight": torch.zeros(100)}, VALUES)
    content = (tmp_path / "state").read_bytes()
    (tmp_path / "state").write_bytes(content[:-10])
    with pytest.raises(BrokenInput, match="expected a checkpoint of dgn train"):
        read_checkpoint(tmp_path / "state")
