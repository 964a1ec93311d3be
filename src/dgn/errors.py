"""Every exception that dgn raises on purpose.

    DGNError
    ├── InvalidInput       an argument is not what a function allows (also a ValueError)
    ├── SearchTooLarge     an exact search would not end within its limit
    ├── BrokenInput        a file does not hold what it should; names file and line
    ├── StoreError         a page store cannot be built or opened
    ├── StudyStopped       a search ended before it was done; what it found is kept
    └── MissingExtra       an optional dependency is not installed (also an ImportError)

A message says what was found, what is allowed and, where it helps, what to do.
"""

from __future__ import annotations

import importlib.util
from typing import Any


class DGNError(Exception):
    """The root of the tree: `except DGNError` catches all that dgn raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors of a worker process come back pickled, and Python would call the class with the
        # message alone, which most of these do not take.
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[DGNError], args: tuple[Any, ...], about: dict[str, Any]) -> DGNError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(about)
    return error


class InvalidInput(DGNError, ValueError):
    """An argument is not what the function allows."""

    def __init__(self, argument: str, *, found: str, allowed: str) -> None:
        super().__init__(f"{argument}: found {found}; allowed: {allowed}")
        self.argument = argument
        self.found = found
        self.allowed = allowed


class SearchTooLarge(DGNError):
    """An exact search looked at as many sets as it was allowed to, and is not done."""


class BrokenInput(DGNError, ValueError):
    """A file does not hold what it should, at this line (None: the file as a whole)."""

    def __init__(self, file: object, line: int | None, *, found: str, allowed: str) -> None:
        place = str(file) if line is None else f"{file}, line {line:,}"
        super().__init__(f"{place}: found {found}; allowed: {allowed}")
        self.file = str(file)
        self.line = line
        self.found = found


class StoreError(DGNError):
    """A page store cannot be built or opened."""


class StudyStopped(DGNError):
    """A search ended before it was done; what it found is kept."""


class MissingExtra(DGNError, ImportError):
    """A part of dgn needs a package that `pip install dgn` alone does not bring."""

    def __init__(self, part: str, *, package: str, extra: str) -> None:
        super().__init__(
            f"{part} needs {package}, which is not installed; install it with: "
            f"pip install 'dgn[{extra}]'"
        )


def require_extra(part: str, *, package: str, extra: str) -> None:
    """Raise MissingExtra unless the package is installed."""
    if importlib.util.find_spec(package) is None:
        raise MissingExtra(part, package=package, extra=extra)
