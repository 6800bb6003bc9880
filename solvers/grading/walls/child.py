"""What runs in the process of its own: it puts up the walls, loads the program, and answers one call after another.

It never holds more of what is asked than the call that it works on: the next one is sent once the answer is there, and no answer is
compared here. A program that looks through its process finds nothing else.
"""

import importlib.util
import json
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any, cast

from crossopt.instances.course.handed_in import Statement, execute, plain, statements_of
from crossopt.solvers.core.processes import orders_answers
from crossopt.solvers.grading.walls.handed_code import run_only_handed_in
from crossopt.solvers.grading.walls.walls import OURS, limit, wall_in

_SIGNS = 300
"""Of the message of an error."""


NOT_FINITE = "not a number (nan) or an infinite figure is returned, where finite figures are meant"
ROOM = 2 << 20
"""Bytes of all answers together."""
TOO_MUCH = f"too much is returned (at most {ROOM >> 20} MiB are read)"


def main(program: str, cells: list[int], seconds: int, memory: int, file: int, walls: bool) -> None:
    """Answer each call, a line of JSON, by a line of JSON, after one that says that the program was loaded."""
    calls, answers = orders_answers()
    own = Path.cwd()
    path = own / program
    limit(seconds, memory, file)
    if walls:
        wall_in(own)
    sys.path.insert(0, str(own))
    _hide_project()
    statements = statements_of(path.read_text(encoding="utf-8"), cells, str(path)) if cells else []
    run_only_handed_in(own)
    module, failure = _loaded(path, statements, seconds)
    answers.write(b'{"loaded": true}\n')
    answers.flush()
    left = ROOM
    while call := calls.readline():
        line = json.dumps({"error": failure}) if module is None else _line(module, path, json.loads(call), left, failure)
        left -= len(line)
        answers.write(line.encode() + b"\n")
        answers.flush()


def _hide_project() -> None:
    """Say of the project's package that it cannot be imported, also where a program writes one of that name beside itself."""
    for name in [name for name in sys.modules if name.partition(".")[0] == OURS]:
        del sys.modules[name]

    def find_spec(name: str, *_: object) -> None:
        if name == OURS:
            raise ModuleNotFoundError(f"{name} cannot be imported here (compute it yourself)")

    sys.meta_path.insert(0, cast("Any", SimpleNamespace(find_spec=find_spec)))


def _loaded(program: Path, statements: list[Statement], seconds: int) -> tuple[ModuleType | None, str]:
    """The program as a module, or why it is none; of one from cells both, where some of them fail."""
    described = importlib.util.spec_from_file_location("solution", program)
    if described is None or described.loader is None:
        return None, f"{program.name} is no Python"
    module = importlib.util.module_from_spec(described)
    sys.modules["solution"] = module
    try:
        if statements:
            failed = _by_cells(program, statements, seconds / 2, vars(module))
            return module, _told(failed, program) if failed else ""
        described.loader.exec_module(module)
    except BaseException as error:  # noqa: BLE001 - whatever a program does, it is told
        return None, _told(error, program)
    return module, ""


def _by_cells(program: Path, statements: list[Statement], seconds: float, names: dict[str, Any]) -> BaseException | None:
    """Run the cells; what still runs when so many seconds are over is stopped, so that a long trial leaves the functions their time."""
    late = list[bool]()

    def stop(_: int, frame: FrameType | None) -> None:
        late.append(True)
        while frame and frame.f_code.co_filename != str(program):
            frame = frame.f_back
        if frame:  # else it is between two statements
            raise TimeoutError(f"stopped {seconds:g} s after the first cell began")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    failed = execute(statements, names, lambda: bool(late))
    signal.setitimer(signal.ITIMER_REAL, 0)
    return failed


def _line(module: ModuleType, program: Path, call: dict[str, Any], room: int, failure: str) -> str:
    """What a call returns, or why it returns nothing, as one line of JSON; `failure` is why the function may not be there."""
    if failure and not hasattr(module, call["function"]):
        return json.dumps({"error": failure})
    try:
        return _written(_function(module, program, call["function"])(*call["arguments"]), room)
    except BaseException as error:  # noqa: BLE001 - whatever a program does, it is told
        return json.dumps({"error": _told(error, program)})


def no_function(name: str, program: str) -> str:
    """What is said where a function is missing."""
    return f"there is no function {name} in {program}"


def _function(module: ModuleType, program: Path, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        raise AttributeError(no_function(name, program.name))
    return found  # type: ignore[no-any-return]


def _written(value: object, room: int) -> str:
    """The value as JSON, written piece by piece, so that of much too much only a little is made; else what is wrong with it."""
    parts, size = list[str](), 0
    try:
        for part in json.JSONEncoder(allow_nan=False, default=plain).iterencode({"value": value}):
            parts.append(part)
            size += len(part)
            if size > room:
                return json.dumps({"error": TOO_MUCH})
    except ValueError as error:
        if not str(error).startswith("Out of range float"):
            raise
        return json.dumps({"error": NOT_FINITE})
    return "".join(parts)


def _told(error: BaseException, program: Path) -> str:
    """The kind of error, its message and the last line of the program that led to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(program)]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    place = f" (line {line} of {program.name})" if line else ""
    return f"{type(error).__name__}{': ' if message else ''}{message}"[:_SIGNS] + place
