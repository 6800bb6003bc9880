"""What runs in the process of its own: it puts up the walls, loads the program, calls its functions and writes down what they return."""

import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from solvers.course.walls import limit, wall_in

_SIGNS = 300
"""Of the message of an error."""


def main(root: str) -> None:
    """Read a job from standard input and answer it into the descriptor that it names, a line for each call."""
    job = json.loads(sys.stdin.buffer.read())
    own = Path.cwd()
    limit(job["seconds"], job["memory"], job["file"])
    if job["walls"]:
        wall_in(own)
    sys.path.remove(root)
    sys.path.insert(0, str(own))
    with os.fdopen(job["answers"], "w", encoding="utf-8") as answers:
        for call in job["calls"]:
            answers.write(_line(own / job["program"], call["function"], call["arguments"]) + "\n")
            answers.flush()


def _line(program: Path, function: str, arguments: list[Any]) -> str:
    """What a call returns, or why it returns nothing, as one line of JSON."""
    try:
        return json.dumps({"value": _function(program, function)(*arguments)}, allow_nan=False, default=_plain)
    except BaseException as error:  # noqa: BLE001 - whatever a program does, it is told
        return json.dumps({"error": _told(error, program)})


def _function(program: Path, name: str) -> Callable[..., Any]:
    module = sys.modules.get("solution")
    if module is None:
        described = importlib.util.spec_from_file_location("solution", program)
        if described is None or described.loader is None:
            raise ImportError(f"{program.name} is no Python")
        module = importlib.util.module_from_spec(described)
        sys.modules["solution"] = module
        try:
            described.loader.exec_module(module)
        except BaseException:
            del sys.modules["solution"]
            raise
    found = getattr(module, name, None)
    if not callable(found):
        raise AttributeError(f"there is no function {name} in {program.name}")
    return found  # type: ignore[no-any-return]


def _plain(value: object) -> object:
    """Figures and arrays of numpy as those of Python."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is returned, where figures, texts, lists and dictionaries are meant")


def _told(error: BaseException, program: Path) -> str:
    """The kind of error, its message and the last line of the program that led to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(program)]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    place = f" (line {line} of {program.name})" if line else ""
    return f"{type(error).__name__}{': ' if message else ''}{message}"[:_SIGNS] + place
