"""The command `completion`: a script by which a shell completes commands, options, names and files, written by shtab from the parser."""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import shtab

from crossopt.reports.arguments import parser_of_commands
from crossopt.reports.commands.console import ANSWERED

SHELLS = ("bash", "zsh", "fish")
QUESTIONS = ("solve", "validate", "evaluate", "explain", "compare", "export", "ui")
"""Commands whose files may be questions that come along, by their names."""


def completion(options: argparse.Namespace) -> int:
    """Print the script of a shell."""
    sys.stdout.write(completion_script(options.shell, parser_of_commands()))
    return ANSWERED


def completion_script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script of one of the SHELLS for this parser; names are those that are known when it is written."""
    names, functions = _known_names(), dict[str, str]()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, inner in action.choices.items():
                _mark(command, inner, names, functions)
    preamble = "\n".join(_function(shell, name, values) for name, values in functions.items())
    return shtab.complete(parser, shell, root_prefix="crossopt", preamble=preamble)


def _mark(command: str, parser: argparse.ArgumentParser, names: Mapping[str, tuple[str, ...]], functions: dict[str, str]) -> None:
    """Say of each argument of a command what completes it: known names, files, or both."""
    for action in _open(parser):
        files = action.type is Path
        known = names.get(action.dest, ()) if action.dest not in ("file", "files") or command in QUESTIONS else ()
        if known:
            function = f"_crossopt_{action.dest}{'_or_files' if files else ''}"
            functions[function] = " ".join(known)
            action.complete = {"bash": function, "zsh": function, "fish": f"({function})"}  # type: ignore[attr-defined]
        elif files:
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def _open(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Arguments that take a value which the parser does not list."""
    for action in parser._actions:
        action.help = re.sub(r"`", "", action.help or "") if action.help != argparse.SUPPRESS else action.help
        if action.nargs != 0 and action.choices is None:
            yield action


def _function(shell: str, name: str, values: str) -> str:
    """A function of the shell that offers these words, and files where its name ends so."""
    files = name.endswith("_or_files")
    if shell == "bash":
        also = ' compgen -f -- "$1";' if files else ""
        return f'{name}() {{ compgen -W "{values}" -- "$1";{also} }}'
    if shell == "zsh":
        return f"{name}() {{ compadd -- {values};{' _files;' if files else ''} }}"
    also = "    __fish_complete_path (commandline -ct)\n" if files else ""
    return f"function {name}\n    printf '%s\\n' {values}\n{also}end"


def _known_names() -> dict[str, tuple[str, ...]]:
    """Names that come along, by the argument that takes them."""
    from crossopt.instances.catalogue.registry import names, shipped  # noqa: PLC0415 - help need not wait for numpy
    from crossopt.solvers.codesign.family import ALIASES, ENGINES  # noqa: PLC0415
    from crossopt.solvers.grading.grade import ASSIGNMENTS  # noqa: PLC0415

    questions, devices = tuple(shipped()), names("hardware")
    return {
        "file": questions,
        "files": questions,
        "gpu": devices,
        "show": (*devices, *names("technologies"), *names("workloads"), *questions),
        "engine": (*ENGINES, *ALIASES),
        "assignment": tuple(assignment.name for assignment in ASSIGNMENTS),
    }
