"""Work that goes wrong behind the wall, in every way that a solver may: a child imports it from here."""

import os
import signal
import sys
import time
from collections.abc import Callable

from crossopt.formulation.model import Model
from crossopt.instances.errors import SolverError
from crossopt.solvers.backends.answer import Allowed, RawReply
from crossopt.solvers.backends.milp import run_highs
from crossopt.solvers.backends.wall import Line

BEST = [1.0, 4.0, 3.0]
"""Of the small model of these tests, whose value is 2; and the other solution, of value 21."""
OTHER = [1.0, 5.0, 1.0]


def honest(line: Line, *given: object) -> object:
    del line
    return given


def die(line: Line, *given: object) -> RawReply:
    del line, given
    os.kill(os.getpid(), signal.SIGKILL)
    return False, None, None, None, "complete"


def abort(line: Line, *given: object) -> RawReply:
    del line, given
    os.abort()


def leave(line: Line, *given: object) -> RawReply:
    del line, given
    os._exit(3)


def hang(line: Line, *given: object) -> RawReply:
    """Deaf to all but the end of its process."""
    del line, given
    while True:
        time.sleep(1)


def hang_with_the_interpreter(line: Line, *given: object) -> RawReply:
    """Not even other threads of the process run meanwhile."""
    del line, given
    return sum(range(10**13)), None, None, None, "complete"  # type: ignore[return-value]


def eat(line: Line, *given: object) -> RawReply:
    del line, given
    eaten = []
    while True:
        eaten.append(bytearray(1 << 24))


def babble(line: Line, *given: object) -> RawReply:
    """Writes past the wall's own words."""
    del line, given
    for number in range(3, 64):
        try:
            os.write(number, b"\x00" * 7 + b"\x05nonsense of a broken process")
        except OSError:
            continue
    return hang(Line(print))


def find_then(end: Callable[..., RawReply], line: Line) -> RawReply:
    """Tells a solution, and a bound that holds, before the end."""
    line.tell((2, None, BEST))
    line.tell((None, 1, None))
    return end(line)


def find_and_die(line: Line, model: Model, allowed: Allowed) -> RawReply:
    del model, allowed
    return find_then(die, line)


def find_and_hang(line: Line, model: Model, allowed: Allowed) -> RawReply:
    del model, allowed
    return find_then(hang, line)


def find_a_lie_and_hang(line: Line, model: Model, allowed: Allowed) -> RawReply:
    del model, allowed
    line.tell((1, 5, [1.0, 4.0, 2.0]))
    return hang(line)


def too_few_figures(line: Line, model: Model, allowed: Allowed) -> RawReply:
    infeasible, figures, *rest = run_highs(line, model, allowed)
    return (infeasible, (figures or ())[1:], *rest)


def refuse(line: Line, *given: object) -> object:
    del line, given
    raise SolverError("out of luck")


def raise_strangely(line: Line, *given: object) -> object:
    del line, given
    raise LookupError("out of luck")


def chatter(line: Line, *given: object) -> object:
    """What solvers print goes nowhere."""
    del line, given
    sys.stdout.write("noise\n")
    sys.stderr.write("noise\n")
    os.write(1, b"noise\n")
    return "done"


def children(line: Line, deaf: bool) -> object:
    """Starts a process of its own, as CBC's driver does, and tells both numbers."""
    import subprocess

    started = subprocess.Popen(["sleep", "1000"])
    line.tell((os.getpid(), started.pid))
    return (hang_with_the_interpreter if deaf else hang)(line)
