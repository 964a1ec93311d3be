"""Kinds of arguments that several commands take."""

from __future__ import annotations

import argparse
from pathlib import Path


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: a whole number of at least 1")
    return int(text)


def new_file(text: str) -> Path:
    """A file to write: whether its folder is there is known before the work is done."""
    path = Path(text)
    if not path.name or path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: a file in a folder that exists")
    return path


def picture(text: str) -> Path:
    """A picture to write: known before the work is done, not after."""
    path = Path(text)
    if path.suffix not in {".png", ".svg", ".pdf"} or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"found {text!r}; allowed: a .png, .svg or .pdf in a folder that exists"
        )
    return path
