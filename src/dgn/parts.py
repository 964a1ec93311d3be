"""The parts of a run by name: those of dgn, and those that a user wrote.

    softmax                    a part of dgn
    power(exponent=0.3)        the same with arguments, written as in Python
    my_parts:Sharp             the class Sharp of the module my_parts, which must be imported
    sharp                      what an installed package calls so, in an entry point

Every kind of part has a `Registry`. Finding a part never imports a module that is not installed as
an entry point of dgn: configurations are also read from model folders, which may come from
elsewhere. Only `import_modules` does, which gets names that the user typed.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.metadata
import inspect
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

from dgn.errors import InvalidInput

T = TypeVar("T")

IMPORTS = "DGN_IMPORT"
"""The environment variable with modules to import, separated by commas; worker processes get it."""


class Registry(Generic[T]):
    """All parts of one kind, by name.

    Args:
        kind: What the parts are, which is also the name of the setting: "relaxation".
        group: The group of entry points in which packages name theirs.
        base: The class that every part derives from, or where it is: "module:Class". A module that
            needs torch is imported when the first part is made.
        own: The parts of dgn, by name, as classes or as "module:Class".
    """

    def __init__(
        self,
        kind: str,
        group: str,
        base: type[T] | str,
        own: Mapping[str, type[T] | str],
    ) -> None:
        self.kind, self.group = kind, group
        self._base, self._parts = base, dict(own)
        self._own = frozenset(own)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts of dgn and of those that were registered."""
        return tuple(self._parts)

    def is_own(self, text: str) -> bool:
        """Whether the text names a part of dgn."""
        return split_arguments(self.kind, text)[0] in self._own

    def register(self, name: str, part: type[T]) -> None:
        """Make a part available under a name; it replaces one with the same name."""
        self._check_kind(name, part)
        self._parts[name] = part

    def check(self, text: str) -> None:
        """Raise InvalidInput unless the text names a part; the parts of dgn are not loaded."""
        name, _ = split_arguments(self.kind, text)
        if name not in self._parts:
            self.find(name)

    def find(self, name: str) -> type[T]:
        """The class with this name.

        Raises:
            InvalidInput: There is none, or its module is not imported.
        """
        part = self._parts.get(name)
        if part is None:
            _import_from_environment()
            part = self._parts.get(name)  # the module may have registered it
        if part is None:
            part = self._of_module(name) if ":" in name else self._installed(name)
        elif isinstance(part, str):
            part = cast("type[T]", _load(part))
        self._parts[name] = part
        return part

    def load_installed(self) -> None:
        """Find all parts that installed packages name."""
        for entry in importlib.metadata.entry_points(group=self.group):
            if entry.name not in self._parts:
                self.find(entry.name)

    def build(self, text: str, **context: Any) -> T:
        """The part that a text describes, with its arguments.

        Args:
            text: A name, perhaps with arguments.
            **context: Further arguments, for parts that have one of this name.

        Raises:
            InvalidInput: There is no such part, or it does not take these arguments.
        """
        name, arguments = split_arguments(self.kind, text)
        part = self.find(name)
        known = inspect.signature(part).parameters
        takes_all = any(one.kind is one.VAR_KEYWORD for one in known.values())
        more = {key: value for key, value in context.items() if key in known or takes_all}
        for argument in arguments:
            if argument not in known and not takes_all:
                taken = f"; it has {', '.join(known)}" if known else ""
                raise InvalidInput(
                    self.kind,
                    message=f"The {self.kind} {name} has no argument {argument}"
                    f"{did_you_mean(argument, known)}{taken}.",
                )
        arguments = {**more, **arguments}
        missing = [
            one.name
            for one in known.values()
            if one.default is one.empty
            and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
            and one.name not in arguments
        ]
        if missing:
            raise InvalidInput(
                self.kind,
                message=f"The {self.kind} {name} needs {', '.join(missing)}: write "
                f"{name}({missing[0]}=VALUE).",
            )
        return part(**arguments)

    def _of_module(self, name: str) -> type[T]:
        module_name, _, class_name = name.partition(":")
        module = sys.modules.get(module_name)
        if module is None:
            raise InvalidInput(
                self.kind,
                message=f"The {self.kind} {name} is not available, because the module "
                f"{module_name} is not imported. If you trust it, pass --import {module_name}, or "
                "import it in Python first.",
            )
        # Not getattr, with which a module may import further ones.
        found = vars(module).get(class_name)
        if found is None:
            near = did_you_mean(class_name, vars(module))
            raise InvalidInput(
                self.kind, message=f"The module {module_name} has no class {class_name}{near}."
            )
        self._check_kind(name, found)
        return found

    def _installed(self, name: str) -> type[T]:
        for entry in importlib.metadata.entry_points(group=self.group, name=name):
            try:
                found = entry.load()
            except Exception as error:
                raise InvalidInput(
                    self.kind,
                    message=f"The {self.kind} {name} ({entry.value}) cannot be imported: "
                    f"{_reason(error)}.",
                ) from error
            self._check_kind(name, found)
            return found
        raise InvalidInput(
            self.kind,
            message=f"{self.kind} must be one of {', '.join(self._parts)}, a name that an imported "
            f"module registers (--import MODULE), or module:Class of your own; got {name!r}"
            f"{did_you_mean(name, self._parts)}.",
        )

    def _check_kind(self, name: str, part: Any) -> None:
        base = _load(self._base) if isinstance(self._base, str) else self._base
        if not isinstance(part, type) or not issubclass(part, base) or inspect.isabstract(part):
            raise InvalidInput(
                self.kind,
                message=f"{name} is not a {self.kind}: it must be a class that derives from "
                f"{base.__name__} and has all of its methods.",
            )


def split_arguments(kind: str, text: str) -> tuple[str, dict[str, Any]]:
    """The name of a part, and its arguments: "power(exponent=0.3)"."""
    name, bracket, _ = text.partition("(")
    if not bracket:
        return name, {}
    try:
        call: Any = ast.parse(f"part{text.removeprefix(name)}", mode="eval").body
        if type(call) is not ast.Call or type(call.func) is not ast.Name or call.args:
            raise ValueError
        arguments = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (SyntaxError, ValueError):
        raise InvalidInput(
            kind, found=repr(text), allowed="a name, or a name with arguments: name(argument=1)"
        ) from None
    return name, arguments


def with_argument(kind: str, text: str, argument: str, value: Any) -> str:
    """The text with one argument set."""
    name, arguments = split_arguments(kind, text)
    given = {**arguments, argument: value}
    return f"{name}({', '.join(f'{one}={value!r}' for one, value in given.items())})"


def import_modules(names: Iterable[str]) -> None:
    """Import modules that the user named, also from the current folder.

    Args:
        names: Modules, or parts in the form module:Class; names without a colon that are texts of
            parts have no module and must not be passed.
    """
    for name in names:
        module = name.partition(":")[0]
        if module in sys.modules:
            continue
        # At the end: a file of the current folder must not replace an installed module.
        if (folder := os.getcwd()) not in sys.path:
            sys.path.append(folder)
        try:
            importlib.import_module(module)
        except Exception as error:
            raise InvalidInput(
                "import", message=f"The module {module} cannot be imported: {_reason(error)}."
            ) from error
    _remember(names)


def import_parts(texts: Iterable[Any]) -> None:
    """Import the modules of those texts that name a part of a module; see `import_modules`."""
    named = [text.partition("(")[0] for text in texts if isinstance(text, str)]
    import_modules(
        dict.fromkeys(
            name.partition(":")[0]
            for name in named
            if all(part.isidentifier() for part in name.partition(":")[0].split("."))
            and name.partition(":")[2].isidentifier()
        )
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _remember(names: Iterable[str]) -> None:
    """Worker processes import the same modules."""
    known = [name for name in os.environ.get(IMPORTS, "").split(",") if name]
    added = [module for name in names if (module := name.partition(":")[0]) not in known]
    if added:
        os.environ[IMPORTS] = ",".join(dict.fromkeys([*known, *added]))


def _import_from_environment() -> None:
    import_modules(name for name in os.environ.get(IMPORTS, "").split(",") if name)


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _reason(error: Exception) -> str:
    first = str(error).splitlines()[0].rstrip(".") if str(error) else ""
    kind = type(error).__name__
    return first if isinstance(error, ModuleNotFoundError) else f"{kind}: {first}".rstrip(": ")
