"""What runs in the process of its own: it puts up the walls, loads the program, and answers one call after another.

It never holds more of what is asked than the call that it works on: the next one is sent once the answer is there, and no answer is
compared here. A program that looks through its process finds nothing else.

Of a program the files that were handed in are run, as they were, and Python's own and its packages'. A solution that is decoded, unpacked
or written while the program runs says nothing to a comparison of programs. So a text becomes code in three ways alone, whichever library
is asked to do it:

    imports   of a file that still says what it said, or of one among the libraries that says what lies there
    glue      libraries make functions that only pass names on (`namedtuple`, `dataclass`, dispatchers of networkx)
    readers   `ast` makes trees, which nothing runs, and `typing` reads the names of types

An audit hook (PEP 578) looks at every way to code, and cannot be taken off. Nothing that it looks at can be changed from Python: it reads
no global name, no builtin by its name and no method of a class that can be patched, and its defaults are immutable. It is no wall: memory
can be reached by `ctypes` and by numpy, which is why a process never holds more of what is asked than the call it works on.
"""

import importlib.util
import json
import os
import re
import signal
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, cast

from crossopt.instances.course import handed_in
from crossopt.instances.course.handed_in import Statement, execute, plain, statements_of
from crossopt.solvers.core.processes import orders_answers
from crossopt.solvers.grading.walls import OURS, limit, wall_in

REFUSED = "only what stands in the files handed in is run: no exec or eval, nothing that is unpacked or written while the program runs"
_NEVER = ("code.__new__", "pickle.find_class", "marshal.load", "cpython.PyInterpreterState_New")
_SOMETIMES = ("compile", "exec", "marshal.loads", "function.__new__", "object.__setattr__", "import", "ctypes.dlopen")
_IMPORTS = frozenset(f"<frozen {name}>" for name in ("importlib._bootstrap", "importlib._bootstrap_external"))
_MAKERS = ("dataclasses.py", "enum.py", "collections/__init__.py")
"""Of Python's own, what makes functions out of names."""
_MAKER_PACKAGES = ("networkx/utils/decorators.py",)
_INSIDE_PYTHON = frozenset({"_testcapi", "_testinternalcapi", "_testclinic", "_xxsubinterpreters", "_interpreters"})
"""Modules that run code objects, or texts in another interpreter, without an event."""
_KEYWORDS = rb"for|while|import|from|lambda|yield|await|async|with|global|nonlocal|del|class|assert|match|except"
_PIECES = (
    rb"(?!(?:" + _KEYWORDS + rb")\b)[A-Za-z_\x80-\xff][\w\x80-\xff]*+(?![\"'])",
    rb"[\n .:)=<>]|->|!=|[(,] *+\*{0,2}",
    rb"\+ (?=f\")|f\"(?:[^\"\\\n{}]|\{[\w.]+!r\})*+\"|\"[^\"\\\n]*+\"|'[^'\\\n]*+'",
)
_GLUE = re.compile(rb"\s*(?:lambda|def)(?= )(?:" + rb"|".join(_PIECES) + rb")*+#?\s*")
"""Names, calls and comparisons alone: no loop, no arithmetic, no number and no index."""
_TYPE = re.compile(rb"[\w .,\[\]|'\"]{1,200}")
_TREE = 0x400
"""The flag by which `compile` gives a tree (PyCF_ONLY_AST)."""
_HEADER = 16
"""Bytes before what Python has compiled, in a file."""


Bound = tuple[Any, ...]
"""What a function of the hook works with, in place of global names."""


def run_only_handed_in(own: Path) -> None:
    """From now on, and for good. `own` is the folder of the program."""
    texts = frozenset(path.read_bytes() for path in own.rglob("*.py") if path.is_file())
    entries = (entry for entry in dict.fromkeys(sys.path) if Path(entry).is_absolute())
    libraries = tuple(f"{entry}{os.sep}" for entry in entries if not own.is_relative_to(Path(entry).resolve()))
    stdlib = sysconfig.get_path("stdlib")
    makers = {f"{stdlib}/{name}" for name in _MAKERS} | {f"{folder}{name}" for folder in libraries for name in _MAKER_PACKAGES}
    makers.add(str(handed_in.__file__))  # runs the cells of notebooks, which are code before this
    says = _with(_says, (libraries, type, str, os.open, os.read, os.close, OSError))
    readers = (f"{stdlib}/ast.py", _TREE, f"{stdlib}/typing.py", _TYPE.fullmatch, _GLUE.fullmatch)
    compiles = _with(_compiles, (type, len, bytes, str, int, texts, f"{own}{os.sep}", _IMPORTS, frozenset(makers), readers, says))
    allows = (type, len, str, FunctionType, globals(), libraries, _IMPORTS, frozenset(makers), _INSIDE_PYTHON, _HEADER, says, compiles)
    may = _with(_may, allows)
    sys.addaudithook(_with(_look, (frozenset((*_NEVER, *_SOMETIMES)), frozenset(_NEVER), sys._getframe, PermissionError, REFUSED, may)))


def _with(function: Any, bound: Bound) -> Any:  # noqa: ANN401
    """The function with what it works with, which nobody can exchange: to set its code or its defaults is an event, too."""
    return FunctionType(function.__code__, globals(), function.__name__, (bound,))


def _look(event: str, given: tuple[Any, ...], bound: Bound) -> None:
    """Asks of each event by which a text or bytes become code."""
    events, never, frame, refused, words, may = bound
    if event in events and (event in never or not may(event, given, frame(1))):
        raise refused(words)


def _may(event: str, given: tuple[Any, ...], by: FrameType, bound: Bound) -> Any:  # noqa: ANN401
    kind, size, text, function, ours, libraries, imports, makers, inside, header, says, compiles = bound
    caller = by.f_code.co_filename
    if event == "compile":
        return compiles(*given, by)
    if event == "exec":
        return caller in imports or caller in makers
    if event == "marshal.loads":  # what Python has compiled, of a library
        return caller in imports and given[0] == says(by.f_locals.get("bytecode_path"), header, size(given[0]))
    if event == "function.__new__":
        return caller.startswith(libraries)
    if event == "object.__setattr__":
        return (given[1] != "__code__" or caller in makers) and not (kind(given[0]) is function and given[0].__globals__ is ours)
    name, path = (None, *given) if event == "ctypes.dlopen" else given[:2]
    plain = kind(path) is text and ((event == "ctypes.dlopen" and "/" not in path) or path.startswith(libraries))
    return name not in inside and (path is None or plain)


def _compiles(source: Any, path: Any, by: FrameType, bound: Bound) -> Any:  # noqa: ANN401
    kind, size, binary, text, whole, texts, own, imports, makers, (ast, tree, typing, named, glue), says = bound
    caller = by.f_code.co_filename
    if caller == ast:
        flags = by.f_locals.get("flags")
        return kind(flags) is whole and flags & tree == tree
    if kind(source) is not binary:
        return False
    if caller in imports:
        return source in texts if kind(path) is text and path.startswith(own) else source == says(path, 0, size(source))
    return (caller == typing and named(source)) or (caller in makers and glue(source))


def _says(path: Any, skip: int, size: int, bound: Bound) -> bytes:  # noqa: ANN401
    """So many bytes, or one more, of a file among the libraries; nothing of any other file."""
    libraries, kind, text, opened, read, close, failing = bound
    if kind(path) is not text or not path.startswith(libraries) or "/../" in path or "/./" in path:
        return b""
    try:
        file = opened(path, 0)
    except failing:
        return b""
    found = b""
    while part := read(file, skip + size + 1):
        found += part
    close(file)
    return found[skip:]


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
            return module, _error_text(failed, program) if failed else ""
        described.loader.exec_module(module)
    except BaseException as error:  # noqa: BLE001 - whatever a program does, it is told
        return None, _error_text(error, program)
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
        return json.dumps({"error": _error_text(error, program)})


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


def _error_text(error: BaseException, program: Path) -> str:
    """The kind of error, its message and the last line of the program that led to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(program)]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    place = f" (line {line} of {program.name})" if line else ""
    return f"{type(error).__name__}{': ' if message else ''}{message}"[:_SIGNS] + place
