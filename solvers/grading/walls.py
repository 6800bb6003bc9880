"""Walls around a process that runs a program nobody trusts, put up by the process itself before it loads that program; Linux only.

    limits      processor seconds, bytes of memory, bytes of a file, open files (setrlimit)
    rights      a superuser's are given up (capset), so that limits stay and files of others are closed
    files       only its own folder can be written, only Python and its packages can be read (Landlock)
    calls       no other process is started, signalled or looked into, no socket opened, no mode or owner changed (seccomp)

None of them can be taken down again. What they do not hold: the folder may be filled with many files until time is up, and whoever breaks
the kernel is out. The figures are those of the kernel's headers `landlock.h`, `seccomp.h`, `filter.h`, `capability.h` and `unistd.h`.
"""

import ctypes
import os
import platform
import struct
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

OURS = "crossopt"
"""The package that a program cannot read: it holds what is asked of it."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _TRUNCATE = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 14
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_OWN = _WRITE_FILE | _READ_FILE | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_RIGHTS_BY_VERSION = (0, 13, 14, 15, 15, 16)
"""How many rights of files each version of Landlock knows."""
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
    """A wall could not be put up."""


def unable() -> str | None:
    """Why no program, not even one's own, can be graded on this system; None where it can."""
    if find_spec("resource") is None:
        return "programs are graded on Linux and macOS, as other systems have no limits of seconds and memory (on Windows: in WSL)"
    return None


def missing() -> str | None:
    """Why this machine cannot wall a program in; None where it can."""
    if sys.platform != "linux" or platform.machine() not in CALLS:
        return "walls need Linux on x86_64 or aarch64"
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(_CREATE, None, ctypes.c_size_t(0), 1) < 1:
        return "this kernel has no Landlock, or forbids it here"
    if library.prctl(21, 0, 0, 0, 0) < 0:
        return "this kernel has no seccomp"
    return None


def exposed(path: Path) -> bool:
    """Whether a program behind the walls could read this."""
    return any(path.resolve().is_relative_to(place.resolve()) for place in readable())


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
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights if path.is_dir() else rights & _OF_FILES, place)
        _checked(library.syscall(_ADD, rules, 1, rule, 0), str(path))
    finally:
        os.close(place)


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
