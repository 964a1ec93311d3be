"""The scripts of `dgn completion`, in the shells themselves."""

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from dgn.apps.cli.completion import SHELLS, completion_script
from dgn.apps.cli.main import COMMANDS, build_parser, main


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


def run(shell: str, script: str) -> list[str]:
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


def by_bash(script: Path, line: str) -> list[str]:
    words = " ".join(f"'{word}'" for word in line.split(" "))
    ask = f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _dgn"
    return run("bash", f'source {script}; {ask}; printf "%s\\n" "${{COMPREPLY[@]}}"')


def by_zsh(script: Path, line: str) -> list[str]:
    """The functions that zsh completes with are replaced by ones that print."""
    words = " ".join(f"'{word}'" for word in line.split(" "))
    printing = (
        "compdef() { }; _files() { echo FILES }; compadd() { print -l -- ${(P)2} }; "
        '_describe() { print -l -- ${(P)2} | sed "s/:.*//" }; '
    )
    ask = f"words=({words}); CURRENT=${{#words}}; _dgn"
    current = line.rpartition(" ")[2]
    found = run("zsh", f"{printing} source {script}; {ask} || true")
    return found if found == ["FILES"] else [one for one in found if one.startswith(current)]


def by_fish(script: Path, line: str) -> list[str]:
    found = run("fish", f"source {script}; complete -C '{line}'")
    return [one for one in found if not one.endswith("/")]


ASKING = {"bash": by_bash, "zsh": by_zsh, "fish": by_fish}


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "completion"
    path.write_text(completion_script(request.getfixturevalue("shell")))
    return path


@pytest.mark.parametrize("shell", [pytest.param(one, marks=needs(one)) for one in SHELLS])
def test_commands_options_and_values_are_completed(shell: str, script: Path) -> None:
    ask = ASKING[shell]
    assert ask(script, "dgn sel") == ["select"]
    assert set(COMMANDS) <= set(ask(script, "dgn "))
    assert ask(script, "dgn select --pass") == ["--passages"]
    assert set(ask(script, "dgn select query --score")) == {"--scores", "--score-weight"}
    assert set(ask(script, "dgn select query --engine ")) == {"local", "ray"}
    assert ask(script, "dgn select query --engine r") == ["ray"]
    assert {"build", "inspect", "features"} <= set(ask(script, "dgn data "))
    assert ask(script, "dgn data bu") == ["build"]
    assert set(ask(script, "dgn completion ")) >= set(SHELLS)


@needs("bash")
def test_files_are_left_to_bash(tmp_path: Path) -> None:
    path = tmp_path / "completion"
    path.write_text(completion_script("bash"))
    assert by_bash(path, "dgn select query pa") == []
    assert by_bash(path, "dgn select --queries ") == []
    assert by_bash(path, "dgn select --k ") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_of_every_command_is_in_the_script(shell: str, capsys) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out

    def flags(parser: argparse.ArgumentParser) -> set[str]:
        found: set[str] = set()
        for action in parser._actions:
            found |= {flag for flag in action.option_strings if flag.startswith("--")}
            if isinstance(action, argparse._SubParsersAction):
                for own in action.choices.values():
                    found |= flags(own)
        return found

    every = flags(build_parser())
    assert {"--passages", "--help", "--version"} < every
    for flag in every:
        assert (f"-l {flag[2:]} " if shell == "fish" else flag) in script


def test_another_shell_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["completion", "tcsh"])
    assert stopped.value.code == 2
