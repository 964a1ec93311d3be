"""The exceptions that dgn raises on purpose.

    DGNError
    ├── InvalidInput       an argument has a value that is not allowed (also a ValueError)
    ├── BrokenInput        a file does not contain what it should; names the file and the line
    └── MissingExtra       an optional dependency is not installed (also an ImportError)

Every message is a sentence that says what was wrong, where, and what to do.
"""

from __future__ import annotations

import importlib.util
from typing import Any


class DGNError(Exception):
    """Base class of all exceptions that dgn raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Worker processes send their exceptions pickled, and pickle would call the class with the
        # message alone, which most of these classes do not accept.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[DGNError], args: tuple[Any, ...], attributes: dict[str, Any]) -> DGNError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InvalidInput(DGNError, ValueError):
    """An argument has a value that the function does not allow.

    Args:
        argument: The name of the argument.
        found: What was passed.
        allowed: What is allowed, as it reads after "must be".
        message: The whole message, where "ARGUMENT must be ALLOWED; got FOUND." does not fit.
    """

    def __init__(
        self, argument: str, *, found: str = "", allowed: str = "", message: str = ""
    ) -> None:
        super().__init__(message or f"{argument} must be {allowed}; got {found}.")
        self.argument = argument
        self.found = found
        self.allowed = allowed


class BrokenInput(DGNError, ValueError):
    """A file does not contain what it should.

    Args:
        file: The file, or a description of the input.
        line: The line number, counted from 1; None for the file as a whole.
        found: What the file contains instead.
        allowed: What is expected there.
        message: The whole message after the place, where "expected ALLOWED; found FOUND." does not
            fit.
    """

    def __init__(
        self,
        file: object,
        line: int | None,
        *,
        found: str = "",
        allowed: str = "",
        message: str = "",
    ) -> None:
        place = str(file) if line is None else f"{file}, line {line:,}"
        super().__init__(f"{place}: " + (message or f"expected {allowed}; found {found}."))
        self.file = str(file)
        self.line = line
        self.found = found
        self.allowed = allowed


class MissingExtra(DGNError, ImportError):
    """A part of dgn needs a package that a plain installation does not include."""

    def __init__(self, part: str, *, package: str, extra: str) -> None:
        super().__init__(
            f"{part} requires {package}, which is not installed. Install it with: "
            f"pip install 'dgn[{extra}]' (from a clone of the repository: pip install '.[{extra}]')"
        )


def require_extra(part: str, *, package: str, extra: str) -> None:
    """Raise MissingExtra unless the package is installed.

    Args:
        part: The part of dgn that needs the package, as the subject of the message.
        package: The name of the package to import.
        extra: The extra of dgn that installs it.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingExtra(part, package=package, extra=extra)
