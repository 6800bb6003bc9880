"""What processes of a sweep do in tests instead of solving: answer at once, die, or never come back; each imports this by its name."""

import os
import signal
import sys
from pathlib import Path
from threading import Timer
from time import sleep

from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits
from crossopt.solvers.sweeps.store import keep
from crossopt.solvers.sweeps.worker import Job


def job(key: str, name: str = "one", seconds: float = float("inf"), size: float = 0.0) -> Job:
    """A run of no question."""
    return Job(key * 32, name, "codesign", {}, "auto", Limits(seconds), size)


def at_once(given: Job, folder: Path) -> bool:
    """An answer that is written, and a line of who was asked."""
    with (folder / "asked.txt").open("a", encoding="utf-8") as file:
        file.write(f"{given.name} {os.getpid()}\n")
    keep(folder, given.key, f"{given.name}\n")
    return given.name != "unproved"


def dying(given: Job, folder: Path) -> bool:
    """What is called poison always ends the process, what is called unlucky once."""
    once = folder / f"{given.name}.died"
    if given.name == "poison" or (given.name == "unlucky" and not once.exists()):
        once.touch()
        sys.stderr.write("the last words\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return at_once(given, folder)


def idle(given: Job, folder: Path) -> bool:
    """An answer, and then the end of the process while it has nothing to do."""
    done = at_once(given, folder)
    Timer(0.05, os._exit, [7]).start()
    return done


def endless(given: Job, folder: Path) -> bool:
    """What is called endless never comes back, and has a child that never does either."""
    if given.name == "endless":
        child = os.fork()
        if child:
            (folder / "child.txt").write_text(f"{child}", encoding="utf-8")
        while True:
            sleep(60.0)
    return at_once(given, folder)


def slowly(given: Job, folder: Path) -> bool:
    """Two seconds each."""
    (folder / f"{given.name}.begun").touch()
    sleep(2.0)
    return at_once(given, folder)


def refusing(given: Job, folder: Path) -> bool:
    """All but one are refused, and one meets a mistake of ours."""
    if given.name == "mistake":
        raise AssertionError("two\nlines")
    if given.name == "full":
        raise OSError(28, "No space left on device", str(folder))
    raise RefusedError("no such questions")
