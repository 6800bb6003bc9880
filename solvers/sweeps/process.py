"""A process of a sweep, seen from the one that ordered it: how it starts, and how it ended.

What answers is loaded in the new process alone, and this file loads next to nothing: so a process can be started before anything else is
done, and loads while questions are read.
"""

import os
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Final

from crossopt.solvers.core.processes import Inbox, Process, ending_of

if TYPE_CHECKING:
    from crossopt.solvers.sweeps.worker import Answer, Job

PRINTED: Final = "crossopt-sweep-"
"""How files begin into which processes print; the number of the process that ordered follows."""
_TAIL: Final = 2_000
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(slots=True)
class Worker:
    """A process, and what it does."""

    process: Process
    said: Path
    job: "Job | None" = None
    deadline: float = inf
    ready: bool = False
    warm: bool = False
    """Whether it has answered before."""
    ended: str = ""
    """Why it was ended, where this process did it."""

    def bury(self) -> None:
        """Nothing is left of a process, nor of what it started."""
        self.process.kill()
        self.said.unlink(missing_ok=True)

    def how_it_ended(self) -> str:
        """In words."""
        return f"ended {self.ended}" if self.ended else ending_of(self.process.code)

    def last_words(self) -> str:
        """The end of what it printed."""
        try:
            return self.said.read_bytes()[-_TAIL:].decode("utf-8", "replace")
        except OSError:
            return ""


def start(memory: int | None = None, kinds: tuple[str, ...] = (), work: "Answer | None" = None, inbox: Inbox | None = None) -> Worker:
    """A new one, which loads what answers these kinds of questions and then waits for orders; `work` answers in place of the usual. Its
    matrices are multiplied by one thread, unless the environment says otherwise."""
    handle, name = mkstemp(prefix=f"{PRINTED}{os.getpid()}-", suffix=".txt")
    os.close(handle)
    environment = {**dict.fromkeys(_THREADS, "1"), **os.environ}
    process = Process("crossopt.solvers.sweeps.worker:serve", (name, memory, kinds), environment=environment, inbox=inbox)
    process.send((work,))
    return Worker(process, Path(name))
