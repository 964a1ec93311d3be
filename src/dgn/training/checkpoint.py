"""A training state in one file: tensors as safetensors, plain values as JSON in its header.

The file is written atomically, so that it contains the whole state or does not exist. Without
pickle, a checkpoint from elsewhere cannot run code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from dgn.errors import BrokenInput
from dgn.files import write_atomically

_HEADER = "dgn"


def write_checkpoint(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Replace the checkpoint completely."""
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(contiguous, metadata={_HEADER: json.dumps(values)}))


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_checkpoint` wrote."""
    content = path.read_bytes()
    try:
        # The format: eight bytes of length, then a JSON header that holds the metadata.
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return load(content), json.loads(header["__metadata__"][_HEADER])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BrokenInput(
            path,
            None,
            found=f"something else ({type(error).__name__})",
            allowed="a checkpoint of dgn train (delete the file to start again)",
        ) from None
