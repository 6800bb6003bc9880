"""Messages of Python functions: they name the arguments of the call where the command line names options."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from functools import wraps
from io import StringIO
from typing import ParamSpec, TypeVar

from crossopt.instances.errors import InstanceError, RefusedError

_P = ParamSpec("_P")
_T = TypeVar("_T")
_MODES = r"--(cheapest|fastest|fewest)\b"
_SHOWN_SETTING = re.compile(r"use --set, as in (\w+)=([^\s)]+)")
_GIVEN_SETTING = re.compile(r"--set '?([\w.\[\]-]+)=")
_ARGUMENTS = {"as": "form"}
"""Names of arguments that are not those of their options."""
_NAMES = (
    *_ARGUMENTS,
    *("base", "batch", "bandwidth", "budget", "context", "contiguous", "cpus", "deadline", "devices", "edge-unit", "engine", "formats"),
    *("gpus", "hardware", "losses", "memory", "microbatches", "minimize", "near", "peak", "points", "precision", "problem", "rent"),
    *("seeds", "set", "stack", "tie", "time-limit", "time-unit", "tokens", "workload"),
)
_OPTION = re.compile(rf"(?<![\w-])--({'|'.join(_NAMES)})(?![\w-])")
_COMMAND = re.compile(r"`[^`]*`")
"""What is to be typed into a shell stays as it is."""


def in_python(text: str, settings: str = "settings") -> str:
    """A message with the names of Python arguments; `settings` is what the argument is called that gives values of keys."""
    parts = _COMMAND.split(text)
    commands = [*_COMMAND.findall(text), ""]
    return "".join(f"{_renamed(part, settings)}{command}" for part, command in zip(parts, commands, strict=True))


def _renamed(text: str, settings: str) -> str:
    text = _SHOWN_SETTING.sub(rf'use {settings}={{"\1": \2}}', text)
    text = _GIVEN_SETTING.sub(rf"{settings} \1=", text)
    text = re.sub(_MODES, r'mode="\1"', text)
    return _OPTION.sub(lambda found: settings if found[1] == "set" else _ARGUMENTS.get(found[1], found[1].replace("-", "_")), text)


def for_python(settings: str = "settings") -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """A function whose errors name its arguments."""

    def named(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(function)
        def call(*arguments: _P.args, **options: _P.kwargs) -> _T:
            try:
                return function(*arguments, **options)
            except InstanceError as error:
                error.source = in_python(error.source, settings)
                error.faults = tuple(replace(fault, message=in_python(fault.message, settings)) for fault in error.faults)
                error.args = (error.source, error.faults)
                raise
            except ValueError as error:
                error.args = tuple(in_python(part, settings) if isinstance(part, str) else part for part in error.args)
                raise

        return call

    return named


@contextmanager
def refused_as_error() -> Iterator[None]:
    """What a command refuses with a line on standard error is a RefusedError instead."""
    said = StringIO()
    try:
        with redirect_stderr(said):
            yield
    except SystemExit as error:
        raise RefusedError(re.sub(r"^crossopt(?: \w+)?: ", "", said.getvalue().strip().rpartition("\n")[2])) from error
