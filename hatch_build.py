"""Compiles the kernels when a wheel is built, and marks the wheel with its platform.

Without a compiler the wheel is pure Python, and NumPy does the work.
"""

from __future__ import annotations

import importlib.util
import shutil
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_KERNELS = Path("src/dgn/core/native")


class KernelHook(BuildHookInterface[Any]):
    """The build hook that pyproject.toml names."""

    PLUGIN_NAME = "custom"
    _folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; an editable install finds the library in the source tree, a wheel carries it."""
        path = Path(self.root) / _KERNELS / "build.py"
        spec = importlib.util.spec_from_file_location("dgn_kernels_build", path)
        if spec is None or spec.loader is None:
            raise RuntimeError(f"{path} cannot be loaded")
        compiling = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(compiling)
        if version == "editable":
            compiling.build()
            return
        self._folder = Path(tempfile.mkdtemp())
        library = self._folder / compiling.LIBRARY.name
        if compiling.build(library):
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
        for made in self._folder.iterdir():
            build_data["force_include"][str(made)] = f"dgn/core/native/{made.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled for the wheel."""
        del version, build_data, artifact_path
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
