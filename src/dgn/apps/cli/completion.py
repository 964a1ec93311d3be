"""`dgn completion`: a script that completes commands, options and values in a shell.

The script is written from the parsers of the commands themselves, so that it knows exactly what
they accept.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from dgn.apps.cli.options import positive

SHELLS = ("bash", "zsh", "fish")
_FILES, _NOTHING = "-files-", "-nothing-"

_HOW = {
    "bash": 'eval "$(dgn completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(dgn completion zsh)"   # in ~/.zshrc, after compinit',
    "fish": "dgn completion fish | source   # in ~/.config/fish/config.fish",
}


class _Option(NamedTuple):
    """An option.

    Attributes:
        flags: Its names.
        help: Its help.
        takes_value: Whether a value follows.
        is_number: Whether the value is a number, so that files are of no use.
        choices: The values, if they are few.
    """

    flags: tuple[str, ...]
    help: str
    takes_value: bool
    is_number: bool
    choices: tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """What may follow, for bash and zsh."""
        return self.choices or (_NOTHING if self.is_number else _FILES,)


class _Command(NamedTuple):
    """A command: the words that lead to it, its help, what may follow, and its options."""

    path: tuple[str, ...]
    help: str
    words: tuple[str, ...]
    options: tuple[_Option, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn completion`."""
    parser.description = "Print a script that completes the commands and options of dgn."
    parser.epilog = "; ".join(_HOW.values()).replace("   #", " #")
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    print(completion_script(options.shell), end="")
    return 0


def completion_script(shell: str) -> str:
    """The script for one of the SHELLS."""
    from dgn.apps.cli.main import build_parser

    commands = list(_commands(build_parser(), (), ""))
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    return "\n".join([f"# {_HOW[shell]}", *write(commands)]) + "\n"


def _commands(parser: Any, path: tuple[str, ...], text: str) -> Iterator[_Command]:
    """A parser and those of its commands; argparse has no other way to ask for them."""
    options: list[_Option] = []
    words: list[str] = []
    below: list[tuple[str, Any, str]] = []
    for action in parser._actions:
        choices = action.choices
        if isinstance(choices, dict):  # only commands have their parsers as choices
            parsers = cast("dict[str, Any]", choices)
            told = {one.dest: one.help for one in action._choices_actions}
            below += [(name, own, told.get(name) or "") for name, own in parsers.items()]
            words += parsers
        elif action.option_strings:
            values = tuple(map(str, choices or ()))
            flags, takes = tuple(action.option_strings), action.nargs != 0
            is_number = action.type in (int, float, positive)
            options.append(_Option(flags, _one_line(action.help), takes, is_number, values))
        elif choices:
            words += map(str, choices)
    yield _Command(path, _one_line(text), tuple(words), tuple(options))
    for name, own, help_text in below:
        yield from _commands(own, (*path, name), help_text)


def _one_line(text: Any) -> str:
    """A help text without characters that a shell would read."""
    plain = " ".join(str(text or "").replace("%%", "%").split())
    return re.sub(r"[^\w\s.,;:()%/<>=+-]", "", plain)


# --- bash -----------------------------------------------------------------------------------------


def _bash(commands: list[_Command]) -> Iterator[str]:
    yield from (
        "_dgn() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        "    local command= words= values= place",
        "    for ((place = 1; place < COMP_CWORD; place++)); do",
        '        case "$command ${COMP_WORDS[place]}" in',
    )
    for one in commands:
        if one.path:
            above, name = " ".join(one.path[:-1]), one.path[-1]
            yield f"            '{above} {name}') command='{' '.join(one.path)}' ;;"
    yield from ("        esac", "    done", '    case "$command" in')
    for one in commands:
        words = (*one.words, *(flag for option in one.options for flag in option.flags))
        yield f"        '{' '.join(one.path)}')"
        yield f"            words='{' '.join(words)}'"
        valued = [option for option in one.options if option.takes_value]
        if valued:
            yield '            case "$before" in'
            for option in valued:
                values = " ".join(option.values)
                yield f"                {'|'.join(option.flags)}) values='{values}' ;;"
            yield "            esac"
        yield "            ;;"
    yield from (
        "    esac",
        "    COMPREPLY=()",
        f'    if [[ "$values" == {_FILES} ]]; then',
        "        return",  # bash completes files then
        f'    elif [[ "$values" == {_NOTHING} ]]; then',
        "        compopt +o default 2> /dev/null",
        '    elif [[ -n "$values" ]]; then',
        '        COMPREPLY=($(compgen -W "$values" -- "$current"))',
        '    elif [[ "$current" == -* || "$words" != -* ]]; then',
        '        COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "    fi",
        "}",
        "complete -o default -F _dgn dgn",
    )


# --- zsh ------------------------------------------------------------------------------------------


def _zsh(commands: list[_Command]) -> Iterator[str]:
    yield from (
        "_dgn() {",
        '    local command="" place',
        "    local -a words_of values described",
        "    for ((place = 2; place < CURRENT; place++)); do",
        '        case "$command ${words[place]}" in',
    )
    for one in commands:
        if one.path:
            above, name = " ".join(one.path[:-1]), one.path[-1]
            yield f"            '{above} {name}') command='{' '.join(one.path)}' ;;"
    yield from ("        esac", "    done", '    case "$command" in')
    helps = {one.path: one.help for one in commands}
    for one in commands:
        yield f"        '{' '.join(one.path)}')"
        told = [(word, helps.get((*one.path, word), "")) for word in one.words]
        quoted = " ".join(f"'{word}:{text}'" for word, text in told)
        yield f"            words_of=({quoted})"
        flags = [(flag, option.help) for option in one.options for flag in option.flags]
        quoted = " ".join(f"'{flag}:{text}'" for flag, text in flags)
        yield f"            described=({quoted})"
        valued = [option for option in one.options if option.takes_value]
        if valued:
            yield '            case "${words[CURRENT-1]}" in'
            for option in valued:
                values = " ".join(f"'{value}'" for value in option.values)
                yield f"                {'|'.join(option.flags)}) values=({values}) ;;"
            yield "            esac"
        yield "            ;;"
    yield from (
        "    esac",
        f'    if [[ "${{values[1]}}" == {_FILES} ]]; then',
        "        _files",
        f'    elif [[ "${{values[1]}}" == {_NOTHING} ]]; then',
        "        return 1",
        "    elif (( ${#values} )); then",
        "        compadd -a values",
        '    elif [[ "${words[CURRENT]}" == -* ]]; then',
        "        _describe option described",
        "    elif (( ${#words_of} )); then",
        "        _describe command words_of",
        "    else",
        "        _files",
        "    fi",
        "}",
        "compdef _dgn dgn",
    )


# --- fish -----------------------------------------------------------------------------------------


def _fish(commands: list[_Command]) -> Iterator[str]:
    helps = {one.path: one.help for one in commands}
    for one in commands:
        seen = [f"__fish_seen_subcommand_from {word}" for word in one.path]
        below = [word for word in one.words if (*one.path, word) in helps]
        seen += [f"not __fish_seen_subcommand_from {' '.join(below)}"] if below else []
        where = f"-n '{'; and '.join(seen)}'" if seen else ""
        for word in one.words:
            text = helps.get((*one.path, word), "")
            yield f"complete -c dgn -f {where} -a '{word}'" + (f" -d '{text}'" if text else "")
        for option in one.options:
            parts = [
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                for flag in option.flags
            ]
            if option.choices:
                parts.append(f"-x -a '{' '.join(option.choices)}'")
            elif option.takes_value:
                parts.append("-x" if option.is_number else "-r")
            yield f"complete -c dgn {where} {' '.join(parts)} -d '{option.help}'"
