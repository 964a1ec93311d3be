"""Which code and which weights made an output: a line, or the key "made", of every committed one.

    Made by experiments/budgets.py 0b1c2d3e4f5a with facets 5a4f3e2d1c0b
    Made at commit d973326

A test compares the hashes with the files as they are. An output that is older than its script or
than the weights names the commit in whose tree it was made; it is made again, or says so.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "src" / "dgn" / "selector" / "models"
_WEIGHTS = ("config.json", "model.safetensors")
_MADE = re.compile(
    r"Made (?:at commit ([0-9a-f]{7})|by (\S+) ([0-9a-f]{12})(?: with (\S+) ([0-9a-f]{12}))?)"
)


def made_by(script: str, model: str = "") -> str:
    """The line of an output that is being made.

    Args:
        script: A file, or the folder of a package, in the root of the repository.
        model: The folder of a shipped model; empty if the output does not depend on one.
    """
    line = f"Made by {script} {content_hash(ROOT / script)}"
    return f"{line} with {model} {content_hash(MODELS / model)}" if model else line


def content_hash(path: Path) -> str:
    """A hash of a file, of the Python files of a package, or of the weights of a model."""
    files = [path]
    if path.is_dir():
        files = [path / name for name in _WEIGHTS if (path / name).is_file()]
        files = files or sorted(path.glob("*.py"))
    digest = hashlib.blake2b(digest_size=6)
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def what_is_wrong(output: str) -> str:
    """What an output says wrongly about how it was made; empty if nothing."""
    found = _MADE.search(output)
    if found is None:
        return "it does not say by what it was made"
    commit, script, _, model, _ = found.groups()
    if commit or found.group() == made_by(script, model or ""):
        return ""
    return f"{script} or the weights have changed since; make it again, or name the commit"
