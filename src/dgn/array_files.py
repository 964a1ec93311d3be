"""Arrays in one file: written completely or not at all, checked, and mapped into memory.

The file is in the format of safetensors. One file can be replaced in one step, so that a process
that is killed while it writes leaves the old file, and one that has the old file mapped keeps it.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dgn.errors import BrokenInput
from dgn.files import open_atomically

_KINDS = {
    "F32": np.float32,
    "I64": np.int64,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
_NAMES = {np.dtype(kind): name for name, kind in _KINDS.items()}
_LARGEST_HEADER = 1 << 20
_BLOCK = 1 << 24


class _OpenFile:
    """A file that stays open as long as an array of it is used, also when its name is replaced."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self.size = os.fstat(self._descriptor).st_size

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    def mapped(self, access: int) -> mmap.mmap:
        return mmap.mmap(self._descriptor, 0, access=access)


class MappedArray(np.ndarray):  # pyright: ignore[reportMissingTypeArgument]
    """An array in a file that is mapped into memory."""

    _file: _OpenFile | None = None
    _offset: int = 0

    @classmethod
    def at(
        cls, file: _OpenFile, mapped: mmap.mmap, kind: Any, offset: int, shape: tuple[int, ...]
    ) -> MappedArray:
        """The array that begins at this byte."""
        count = math.prod(shape)
        array = np.frombuffer(mapped, kind, count, offset).reshape(shape).view(cls)
        array._file, array._offset = file, offset
        return array

    def private(self) -> NDArray[Any]:
        """The same numbers in memory that may be written; only what is written is copied."""
        if self._file is None:  # a part or a result of a mapped array
            return np.array(self)
        mapped = self._file.mapped(mmap.ACCESS_COPY)
        return np.frombuffer(mapped, self.dtype, self.size, self._offset).reshape(self.shape)


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]
) -> None:
    """Write arrays of one of these kinds; an existing file is replaced in one step.

    Args:
        path: The file.
        arrays: The arrays by name, of float32, int64, int8, uint8 or bool; they may be mapped from
            the file that is replaced.
        metadata: Further strings; a checksum of every array is added.
    """
    ordered = sorted(arrays.items(), key=lambda one: (-one[1].itemsize, one[0]))
    sums = {name: _checksum(array) for name, array in ordered}
    header: dict[str, Any] = {"__metadata__": {**metadata, "crc32": json.dumps(sums)}}
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        kind = _NAMES[array.dtype]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, end]}
    header["__metadata__"]["header"] = _checksum_of_header(header)
    content = json.dumps(header).encode()
    content += b" " * (-len(content) % 8)  # so that every array is aligned
    with open_atomically(path) as stream:
        stream.write(len(content).to_bytes(8, "little") + content)
        for _, array in ordered:
            for block in _blocks(array):
                stream.write(block)


def map_arrays(
    path: Path, kinds: Mapping[str, int] | None = None
) -> tuple[dict[str, MappedArray], dict[str, str]]:
    """Open what `write_arrays` wrote.

    Args:
        path: The file.
        kinds: Names of arrays that must be there, with their number of dimensions.

    Returns:
        The arrays by name, and the metadata.

    Raises:
        BrokenInput: The file is missing or damaged.
    """
    if path.exists() and not path.is_file():  # to open a pipe would wait for ever
        raise BrokenInput(path, None, message="it is not a file.")
    try:
        file = _OpenFile(path)
        mapped = file.mapped(mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # mmap refuses an empty file with a ValueError
        reason = getattr(error, "strerror", None) or error
        raise BrokenInput(path, None, message=f"it cannot be read ({reason}).") from None
    try:
        arrays, metadata = _arrays_of(file, mapped)
        sums = json.loads(metadata["crc32"])
        damaged = [name for name, array in arrays.items() if sums.get(name) != _checksum(array)]
        if damaged or set(sums) != set(arrays):
            raise ValueError(f"the checksum of {(damaged or sorted(sums))[0]!r} is wrong")
        for name, dimensions in (kinds or {}).items():
            if name not in arrays or arrays[name].ndim != dimensions:
                raise ValueError(f"there is no array {name!r} with {dimensions} dimensions")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BrokenInput(
            path, None, message=f"the file is damaged ({reason}); make it again."
        ) from None
    return arrays, metadata


def _arrays_of(file: _OpenFile, mapped: mmap.mmap) -> tuple[dict[str, MappedArray], dict[str, str]]:
    length = int.from_bytes(mapped[:8], "little")
    if not 0 < length <= min(file.size - 8, _LARGEST_HEADER):
        raise ValueError("its header is cut")
    header = json.loads(mapped[8 : 8 + length])
    metadata = header["__metadata__"]
    if metadata.pop("header") != _checksum_of_header(header):
        raise ValueError("the checksum of its header is wrong")
    del header["__metadata__"]
    arrays: dict[str, MappedArray] = {}
    expected = 0
    for name, about in header.items():
        kind, shape = np.dtype(_KINDS[about["dtype"]]), tuple(map(int, about["shape"]))
        start, end = about["data_offsets"]
        if min(shape, default=0) < 0 or start != expected:
            raise ValueError(f"the place of {name!r} is wrong")
        if end - start != math.prod(shape) * kind.itemsize or 8 + length + end > file.size:
            raise ValueError(f"the size of {name!r} is wrong")
        expected = end
        arrays[name] = MappedArray.at(file, mapped, kind, 8 + length + start, shape)
    if 8 + length + expected != file.size:
        raise ValueError("it is too long")
    return arrays, metadata


def _blocks(array: NDArray[Any]) -> Iterator[memoryview]:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(flat), _BLOCK):
        yield memoryview(cast("Any", flat[start : start + _BLOCK]))


def _checksum(array: NDArray[Any]) -> str:
    found = 0
    for block in _blocks(array):
        found = zlib.crc32(block, found)
    return f"{found:08x}"


def _checksum_of_header(header: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(header).encode()):08x}"
