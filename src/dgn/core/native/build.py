"""Compiles the kernels; the build hook of the package and the tests call it. Standard library only.

One shared library has the code for every instruction set; it chooses one at run time.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

SOURCES = Path(__file__).parent / "c"
LIBRARY = Path(__file__).parent / ("_kernels.dll" if sys.platform == "win32" else "_kernels.so")
REPORT = LIBRARY.with_suffix(".txt")
"""What was compiled with what, or why nothing was; `dgn info` prints it."""

FLAGS = (
    "-std=c11",
    "-O3",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-psabi",
)
_X86_ISAS = {
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx512f", "-mavx512dq", "-mavx512vl", "-mfma"),
}
_X86_BYTES = {
    "avx2": _X86_ISAS["avx2"],
    "vnni": (*_X86_ISAS["avx512"], "-mavx512bw", "-mavx512vnni"),
}
"""For products of 8-bit numbers, for which AVX-512 alone has no instructions."""

_KERNELS = {
    "greedy": _X86_ISAS,
    "facets": _X86_ISAS,
    "transformer": _X86_BYTES,
}


def version_of_sources() -> int:
    """A checksum of the C files; the loader refuses a library that was made from others."""
    version = 0
    for path in sorted(SOURCES.glob("*.[ch]")):
        version = zlib.crc32(path.read_bytes(), version)
    return version


def find_compiler() -> list[str] | None:
    """A C compiler: $CC, cc, gcc or clang, or the PyPI package ziglang; None if there is none."""
    named = os.environ.get("CC", "").split()
    if named and shutil.which(named[0]):
        return named
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def build(library: Path = LIBRARY) -> bool:
    """Compile the kernels into a shared library, and write the report next to it.

    Returns:
        Whether it worked. Without a compiler, or if it fails, NumPy does the work.
    """
    report = library.with_suffix(".txt")
    library.unlink(missing_ok=True)
    compiler = find_compiler()
    if compiler is None:
        report.write_text("no C compiler was found (cc, gcc, clang, or the package ziglang)\n")
        return False
    try:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / library.name
            link(compiler, compile_isas(compiler, Path(folder)), made)
            shutil.copyfile(made, library)
    except (subprocess.CalledProcessError, OSError) as error:
        reason = getattr(error, "stderr", "") or str(error)
        report.write_text(f"{' '.join(compiler)} failed: {reason.strip()[:500]}\n")
        return False
    size = library.stat().st_size
    report.write_text(f"compiled with {' '.join(compiler)}, {size} bytes\n")
    return True


def compile_isas(compiler: Sequence[str], folder: Path, flags: Sequence[str] = FLAGS) -> list[Path]:
    """The object files: the kernels for every instruction set, and their dispatch."""
    is_x86 = platform.machine().lower() in {"x86_64", "amd64"}
    position = [] if sys.platform == "win32" else ["-fPIC"]
    objects: list[Path] = []
    for name, isas in _KERNELS.items():
        for isa, options in {"baseline": (), **(isas if is_x86 else {})}.items():
            objects.append(folder / f"{name}-{isa}.o")
            own = [*flags, *position, *options, f"-DDGN_ISA={isa}"]
            _run([*compiler, *own, "-c", str(SOURCES / f"{name}.c"), "-o", str(objects[-1])])
    objects.append(folder / "dispatch.o")
    own = [*flags, *position, *(["-DDGN_X86"] if is_x86 else [])]
    own.append(f"-DDGN_VERSION={version_of_sources()}u")
    _run([*compiler, *own, "-c", str(SOURCES / "dispatch.c"), "-o", str(objects[-1])])
    return objects


def link(compiler: Sequence[str], objects: Sequence[Path], library: Path) -> None:
    """Link the object files into a shared library."""
    _run([*compiler, "-shared", *map(str, objects), "-lm", "-o", str(library)])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603


if __name__ == "__main__":
    sys.exit(0 if build() else 1)
