"""The sandboxed process of a submission: restrictions that it applies before it loads the program, and its calls; Linux only."""

import ctypes
import importlib.util
import json
import os
import platform
import re
import signal
import struct
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, cast

from crossopt.instances.course import handed_in
from crossopt.instances.course.handed_in import Statement, execute, plain, statements_of
from crossopt.solvers.processes import orders_answers

# Restrictions of a process that runs an untrusted program, applied by the process itself before it loads the program; Linux only.
#
#     limits      processor seconds, bytes of memory, bytes of a file, open files (setrlimit)
#     rights      a superuser's are given up (capset), so that limits stay and files of others are closed
#     files       only its own folder can be written, only Python and its packages can be read (Landlock)
#     calls       no other process is started, signalled or looked into, no socket opened, no mode or owner changed (seccomp)
#
# None of them can be lifted again. Not prevented: the program can fill its folder with files until its time is up, and an exploit of
# the kernel escapes. The figures are those of the kernel's headers `landlock.h`, `seccomp.h`, `filter.h`, `capability.h` and `unistd.h`.

OURS = "crossopt"
"""The package, which a program cannot read, as it contains the judges."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _TRUNCATE = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 14
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_OWN = _WRITE_FILE | _READ_FILE | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_RIGHTS_BY_VERSION = (0, 13, 14, 15, 15, 16)
"""Number of file access rights by version of Landlock."""
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE, _UNKNOWN, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_THREAD = 0x10000
_NUMBER, _MACHINE, _FIRST_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 32
_SECOND_SET_OF_CALLS = 0x40000000


@dataclass(frozen=True, slots=True)
class Calls:
    """System calls of a kind of processor by number."""

    machine: int
    capset: int
    clone: int
    prlimit: int
    denied: tuple[int, ...]


_EVERYWHERE = (*range(424, 428), 434, 438, 440, 447, 452, 463, 466)
"""By signal or descriptor at another process, io_uring, pidfd_open, pidfd_getfd, process_madvise, memfd_secret, fchmodat2, setxattrat,
removexattrat."""
CALLS = {
    "x86_64": Calls(
        machine=0xC000003E,
        capset=126,
        clone=56,
        prlimit=302,
        denied=(
            *_EVERYWHERE,
            *(41, 53),  # socket, socketpair
            *(57, 58, 59, 322),  # fork, vfork, execve, execveat
            *(62, 129, 200, 234, 297),  # kill, rt_sigqueueinfo, tkill, tgkill, rt_tgsigqueueinfo
            *(101, 310, 311, 312),  # ptrace, process_vm_readv, process_vm_writev, kcmp
            *(141, 142, 144, 203, 251, 256, 279, 314),  # priorities, schedulers, processors and memory of processes
            *(76, 90, 91, 92, 93, 94, 132, 235, 260, 261, 268, 280),  # truncate, modes, owners and times of files
            *(188, 189, 190, 197, 198, 199),  # attributes of files
            *(29, 64, 68, 240),  # memory, semaphores and queues that outlive a process
            319,  # memfd_create: files in memory, which no limit of memory counts
            *(160, 272, 308, 248, 249, 250, 298, 321, 323),  # setrlimit, unshare, setns, keys, perf, bpf, userfaultfd
        ),
    ),
    "aarch64": Calls(
        machine=0xC00000B7,
        capset=91,
        clone=220,
        prlimit=261,
        denied=(
            *_EVERYWHERE,
            *(198, 199),
            *(221, 281),
            *(129, 130, 131, 138, 240),
            *(117, 270, 271, 272),
            *(30, 118, 119, 122, 140, 238, 239, 274),
            *(45, 52, 53, 54, 55, 88),
            *(5, 6, 7, 14, 15, 16),
            *(180, 186, 190, 194),
            279,
            *(164, 97, 268, 217, 218, 219, 241, 280, 282),
        ),
    ),
}
_CLONE3 = 435


class WallError(OSError):
    """A restriction could not be applied."""


def unable() -> str | None:
    """Why no program can be graded on this system; None if it can."""
    if find_spec("resource") is None:
        return "programs are graded on Linux and macOS, as other systems have no limits of seconds and memory (on Windows: in WSL)"
    return None


def missing() -> str | None:
    """Why this machine cannot sandbox a program; None if it can."""
    if sys.platform != "linux" or platform.machine() not in CALLS:
        return "walls need Linux on x86_64 or aarch64"
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(_CREATE, None, ctypes.c_size_t(0), 1) < 1:
        return "this kernel has no Landlock, or forbids it here"
    if library.prctl(21, 0, 0, 0, 0) < 0:
        return "this kernel has no seccomp"
    return None


def exposed(path: Path) -> bool:
    """Whether a sandboxed program could read this path."""
    return any(path.resolve().is_relative_to(allowed.resolve()) for allowed in readable())


def limit(seconds: int, memory: int, file: int) -> None:
    """Limits that even without walls hold on every Unix, but for that of memory, which macOS refuses to set (cpython#78783)."""
    import resource  # noqa: PLC0415 - Windows has none

    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        *(((resource.RLIMIT_AS, memory),) if sys.platform != "darwin" else ()),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def wall_in(own: Path) -> None:
    """Put up all walls around this process, which can then write below `own` alone."""
    library, calls = ctypes.CDLL(None, use_errno=True), CALLS[platform.machine()]
    _checked(library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "privileges")
    header, none = struct.pack("Ii", 0x20080522, 0), bytes(24)
    _checked(library.syscall(calls.capset, header, none), "rights")
    _close_files(library, own)
    _close_calls(library, calls)


def readable() -> tuple[Path, ...]:
    """Python, its packages without those of this project, and the libraries that they load."""
    installed = (entry for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"})
    folders = dict.fromkeys((*(sysconfig.get_paths()[name] for name in ("purelib", "platlib")), *installed))
    packages = (entry for folder in folders if Path(folder).is_dir() for entry in sorted(Path(folder).iterdir()))
    foreign = (entry for entry in packages if entry.name != OURS)
    base = Path(sys.base_prefix)
    python = (Path(sysconfig.get_paths()["stdlib"]), *sorted(base.glob("lib/libpython*")), *sorted(base.glob("lib/*.so*")))
    system = (*("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo"), *("/etc/ld.so.cache", "/dev/null", "/dev/urandom"))
    return tuple(path for path in (*foreign, *python, *map(Path, system)) if path.exists())


def _close_files(library: ctypes.CDLL, own: Path) -> None:
    version = library.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    handled = (1 << _RIGHTS_BY_VERSION[min(version, len(_RIGHTS_BY_VERSION) - 1)]) - 1
    network, scoped = (3 if version >= 4 else 0), (3 if version >= 6 else 0)
    wanted = struct.pack("QQQ", handled, network, scoped)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = _checked(library.syscall(_CREATE, wanted, ctypes.c_size_t(len(wanted)), 0), "files")
    for path, rights in ((own, _OWN), *((path, _READING) for path in readable())):
        _allow(library, rules, path, rights & handled)
    _checked(library.syscall(_RESTRICT, rules, 0), "files")
    os.close(rules)


def _allow(library: ctypes.CDLL, rules: int, path: Path, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights if path.is_dir() else rights & _OF_FILES, descriptor)
        _checked(library.syscall(_ADD, rules, 1, rule, 0), str(path))
    finally:
        os.close(descriptor)


def _close_calls(library: ctypes.CDLL, calls: Calls) -> None:
    steps = b"".join(_program(calls))
    buffer = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("@HP", len(steps) // 8, ctypes.addressof(buffer))
    _checked(library.prctl(_SECCOMP, _FILTER, program, 0, 0), "calls")


def _program(calls: Calls) -> Iterable[bytes]:
    """The filter: a step is a code, how many steps to leave out if it is so and if not, and a figure."""

    def step(code: int, figure: int, so: int = 0, not_so: int = 0) -> bytes:
        return struct.pack("=HBBI", code, so, not_so, figure)

    def refuse(answer: int) -> bytes:
        return step(_RETURN, answer)

    yield from (step(_LOAD, _MACHINE), step(_EQUAL, calls.machine, so=1), refuse(_KILL), step(_LOAD, _NUMBER))
    yield from (step(_AT_LEAST, _SECOND_SET_OF_CALLS, not_so=1), refuse(_REFUSE))
    for number in calls.denied:
        yield from (step(_EQUAL, number, not_so=1), refuse(_REFUSE))
    yield from (step(_EQUAL, _CLONE3, not_so=1), refuse(_UNKNOWN))
    yield from (step(_EQUAL, calls.clone, not_so=3), step(_LOAD, _FIRST_ARGUMENT), step(_ANY_BIT, _THREAD, so=1), refuse(_REFUSE))
    yield from (step(_LOAD, _NUMBER), step(_EQUAL, calls.prlimit, not_so=5))
    yield from (step(_LOAD, _THIRD_ARGUMENT), step(_EQUAL, 0, not_so=2), step(_LOAD, _THIRD_ARGUMENT + 4), step(_EQUAL, 0, so=1))
    yield from (refuse(_REFUSE), refuse(_ALLOW))


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise WallError(number, f"no wall around {what}: {os.strerror(number)}")
    return result


# What runs in the process of its own: it puts up the walls, loads the program, and answers one call after another.
#
# It never holds more of what is asked than the call that it works on: the next one is sent once the answer is there, and no answer is
# compared here. A program that looks through its process finds nothing else.
#
# Of a program the files that were handed in are run, as they were, and Python's own and its packages'. A solution that is decoded, unpacked
# or written while the program runs says nothing to a comparison of programs. So a text becomes code in three ways alone, whichever library
# is asked to do it:
#
#     imports   of a file that still says what it said, or of one among the libraries that says what lies there
#     glue      libraries make functions that only pass names on (`namedtuple`, `dataclass`, dispatchers of networkx)
#     readers   `ast` makes trees, which nothing runs, and `typing` reads the names of types
#
# An audit hook (PEP 578) looks at every way to code, and cannot be taken off. Nothing that it looks at can be changed from Python: it reads
# no global name, no builtin by its name and no method of a class that can be patched, and its defaults are immutable. It is no wall: memory
# can be reached by `ctypes` and by numpy, which is why a process never holds more of what is asked than the call it works on.

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
    """The function with its own bound values, which a program cannot exchange: setting its code or defaults raises an audit event, too."""
    return FunctionType(function.__code__, globals(), function.__name__, (bound,))


def _look(event: str, given: tuple[Any, ...], bound: Bound) -> None:
    """Asks of each event by which a text or bytes become code."""
    events, never, frame, refused, message, may = bound
    if event in events and (event in never or not may(event, given, frame(1))):
        raise refused(message)


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
    kind, size, binary, text, only_ast, texts, own, imports, makers, (ast, tree, typing, named, glue), says = bound
    caller = by.f_code.co_filename
    if caller == ast:
        flags = by.f_locals.get("flags")
        return kind(flags) is only_ast and flags & tree == tree
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
    position = f" (line {line} of {program.name})" if line else ""
    return f"{type(error).__name__}{': ' if message else ''}{message}"[:_SIGNS] + position
