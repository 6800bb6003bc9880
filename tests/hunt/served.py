"""Commands that start at once: a process that has loaded everything forks one for each, as many as a machine without rest can bear.

The server has one thread, and opens nothing that a command could inherit. A command is `crossopt.__main__.main` with arguments of its own;
only its start is not that of a new process, and its end that it leaves the server's modules as they are.
"""

import atexit
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import IO, Any, NoReturn

from tests.paths import ROOT

ENVIRONMENT = {"COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_LOOK = 0.005
"""Seconds between looks whether a command has ended."""
_ROOMS = ("crossflow", "instances", "formulation", "solvers", "reports")
_SOLVERS = ("numpy", "scipy.sparse", "highspy", "ortools.sat.python.cp_model", "yaml")


@dataclass(slots=True)
class Command:
    """A running command of the server."""

    server: "Server"
    pid: int
    said: Path
    returncode: int | None = None

    def send_signal(self, number: int) -> None:
        """To a process that cannot have gone: the server alone waits for it."""
        os.kill(self.pid, number)

    def finished(self, seconds: float) -> str | None:
        """What the command said; None where it has not ended by then."""
        self.returncode = self.server.ask({"wait": self.pid, "seconds": seconds})
        return None if self.returncode is None else self.said.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """End it, whatever it does."""
        self.send_signal(signal.SIGKILL)
        self.server.ask({"wait": self.pid, "seconds": 60.0})


@dataclass(slots=True)
class Server:
    """The process that has loaded everything, as its clients see it."""

    folder: TemporaryDirectory[str] = field(default_factory=TemporaryDirectory)
    process: subprocess.Popen[str] = field(init=False)
    commands: int = 0

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.hunt.served"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip

    def ask(self, request: dict[str, Any]) -> Any:  # noqa: ANN401 - a process or an exit code
        """One line there and one back."""
        there, back = self.process.stdin, self.process.stdout
        if there is None or back is None:
            raise RuntimeError("the server has no lines")
        there.write(json.dumps(request) + "\n")
        there.flush()
        return json.loads(back.readline())

    def start(self, words: tuple[str, ...], most: int | None = None, out: str | None = None) -> Command:
        """A command which is about to begin, whose files may have so many bytes; `out` is another standard output, or `closed`."""
        self.commands += 1
        said = Path(self.folder.name) / f"{self.commands}.txt"
        return Command(self, self.ask({"words": words, "most": most, "out": out, "said": str(said)}), said)


def modules() -> Iterator[str]:
    """All modules of the package, and the solvers."""
    yield from _SOLVERS
    for room in _ROOMS:
        package = import_module(f"crossopt.{room}")
        yield from (found.name for found in walk_packages(package.__path__, f"{package.__name__}."))


def serve(requests: IO[str], replies: IO[str]) -> int:
    """Start what is asked for until there are no requests."""
    for name in modules():
        try:
            import_module(name)
        except ImportError:  # of what is not installed
            continue
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in requests:
        request = json.loads(line)
        if "wait" in request:
            reply = _waited(request["wait"], request["seconds"])
        else:
            ready, told = os.pipe()
            reply = os.fork()
            if not reply:
                os.close(ready)
                _leave(_command(request, told))
            os.close(told)
            os.read(ready, 1)
            os.close(ready)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    return 0


def _leave(code: int) -> NoReturn:
    """End as a Python process does, without taking apart what the server has loaded: on a busy machine that takes longer than a command."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        code = code or 120
    os._exit(code)


def _waited(pid: int, seconds: float) -> int | None:
    """The exit code, as a subprocess has it."""
    until = monotonic() + seconds
    while True:
        gone, status = os.waitpid(pid, os.WNOHANG)
        if gone:
            return os.waitstatus_to_exitcode(status)
        if monotonic() > until:
            return None
        sleep(_LOOK)


def _command(request: dict[str, Any], told: int) -> int:
    """What a process does that is a command from now on."""
    said = os.open(request["said"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    out = said
    if request["out"] == "closed":
        nobody, out = os.pipe()
        os.close(nobody)
    elif request["out"] is not None:
        out = os.open(request["out"], os.O_WRONLY)
    for source, target in ((nothing, 0), (out, 1), (said, 2)):
        os.dup2(source, target)
    for extra in {said, nothing, out}:
        os.close(extra)
    if request["most"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["most"], request["most"]))
    sys.argv = ["crossopt", *request["words"]]
    run = import_module("crossopt.__main__").main
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.write(told, b"!")
        os.close(told)
        return int(run())
    except SystemExit as ended:
        return int(str(ended.code or 0))
    except KeyboardInterrupt:  # between these lines and those of the command
        return 130


if __name__ == "__main__":
    sys.exit(serve(sys.stdin, sys.stdout))
