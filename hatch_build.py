"""Compiles the kernels when a wheel is built, and marks the wheel with its platform.

Without a compiler the wheel is pure Python, and NumPy does the work.
"""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_KERNELS = Path("src/dgn/kernels")


class KernelHook(BuildHookInterface[Any]):
    """The build hook that pyproject.toml names."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into the source tree, from where the wheel takes it, and an editable install."""
        del version
        path = Path(self.root) / _KERNELS / "build.py"
        spec = importlib.util.spec_from_file_location("dgn_kernels_build", path)
        if spec is None or spec.loader is None:
            raise RuntimeError(f"{path} cannot be loaded")
        compiling = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(compiling)
        if compiling.build():
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"] += [f"{_KERNELS.as_posix()}/_kernels.*"]
