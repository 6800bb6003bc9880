"""Keeps the best answer of a command outside of the process that looks for it, so that neither a time limit, a signal nor a crash loses it.

The command goes on in a process of its own, which hands every answer over, judged and written, as soon as it is found. The first process
waits: for the last answer; for Ctrl-C or SIGTERM, which it passes on; for the time limit. A command that does not end soon after is ended,
and the best answer that it had handed over is written. Where a system cannot do that, the command works in the first process, as ever.
"""

import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field, replace
from math import isfinite
from pathlib import Path
from threading import Lock, Timer, active_count
from time import monotonic
from types import FrameType
from typing import Any, NoReturn

from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import ModelError, VerificationError
from crossopt.instances.files.saved import write_atomically
from crossopt.solvers.answer import Limits, Progress, Result, Watch
from crossopt.solvers.family import ProblemType, certify, incumbent_of, quick_answer
from crossopt.solvers.processes import LENGTH, end_with, ending_of, packed

_SOON, _PATIENCE, _SHARE = 0.2, 0.5, 0.02
"""Seconds after the limit when a command is asked to end, and when it is ended; or a share of the limit, if that is longer."""
UNTIL_FIRST = 0.75
"""Seconds after the limit for who has no answer yet: what is left of the second within which a limit is kept."""
_TICK = 0.05
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU", "SIGUSR1")
"""Signals that ask for the best answer: of a person, of batch systems, and of a terminal that is closed."""
_CALLED_BACK = "_raw_object_cache_"
"""How the functions begin that the compiler of llvmlite calls back, where an exception is printed and forgotten."""
_UNVERIFIED = 30
"""The exit code where the full model contradicts an engine."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer as it is written."""

    out: str | None
    """For the file that `--out` names."""
    shown: str
    code: int
    """The exit code where this is the last answer."""
    spare: bool = False
    """Whether an old file is worth more: a search that was ended has found nothing."""
    if_killed: tuple[str | None, str] | None = None
    """The same two texts with the words that the process which found the answer was killed, where that can be said."""


@dataclass(slots=True)
class Keeper:
    """The end of the line at which answers are found."""

    line: int
    began: float
    """When the process started, by the monotonic clock."""
    searching: bool = False
    """Whether there is a question, and so something to answer when the time is up."""
    finishing: bool = False
    """Whether the last answer is being written, which no signal shall end."""
    asked_to_end: bool = False
    """Whether a person, or a system, asked it to end."""
    interrupted: bool = False

    def finish(self) -> None:
        """From now on no signal ends the work, which is but writing."""
        self.finishing = True

    def keep(self, answer: Kept) -> None:
        """Hands an answer over."""
        with suppress(BrokenPipeError), os.fdopen(os.dup(self.line), "wb") as stream:
            stream.write(packed((answer.out, answer.shown, answer.code, answer.spare, answer.if_killed)))


@dataclass(slots=True)
class _Wait:
    """What the first process knows."""

    deadline: float
    patience: float
    usual: bool = False
    """Whether the deadline is that of who gives none."""
    asked_at: float | None = None
    """When the command was asked to end."""
    signals: int = 0
    heard: bytearray = field(default_factory=bytearray)
    last_answer: Kept | None = None

    @property
    def end(self) -> float:
        """When the command is ended."""
        late = self.deadline + (self.patience if self.last_answer and not self.last_answer.spare else max(self.patience, UNTIL_FIRST))
        return late if not self.signals or self.asked_at is None else min(late, self.asked_at + _PATIENCE)

    def hear(self, some: bytes) -> None:
        """Takes in whole answers; the last one counts."""
        self.heard += some
        while len(self.heard) >= LENGTH and len(self.heard) >= (size := int.from_bytes(self.heard[:LENGTH], "big") + LENGTH):
            self.last_answer = Kept(*pickle.loads(bytes(self.heard[LENGTH:size])))  # noqa: S301 - written by our own process
            del self.heard[:size]


_HERE: list[Keeper] = []
"""The keeper of this process, if there is one."""


def keeper() -> Keeper | None:
    """Whom to hand answers to."""
    return _HERE[0] if _HERE else None


def guarded(run: Callable[[], int], seconds: float, out: Path | None, *, usual: bool = False, unanswered: str = "") -> int:
    """The exit code of a command that should end soon after this many seconds of the process, which may be a default limit; what was
    unanswered when it had to be ended is said."""
    began = _process_start()
    _open_standard_streams()
    if not hasattr(os, "fork") or active_count() > 1:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        return run()
    near, far = os.pipe()
    lifeline, writing_end = os.pipe()
    wait = _Wait(began + seconds, max(_PATIENCE, _SHARE * seconds) if seconds < float("inf") else _PATIENCE, usual)
    _watch_signals(wait)
    child = os.fork()
    if not child:
        os.close(near)
        os.close(writing_end)
        _work(run, Keeper(far, began), lifeline)
    os.close(far)
    try:
        code = _attend(child, near, wait)
    finally:
        os.close(near)
    return _ended(code, wait, out, unanswered)


def _work(run: Callable[[], int], keep: Keeper, lifeline: int) -> NoReturn:
    """The command, in a process of its own; the first process alone sees Ctrl-C, and passes it on."""
    _HERE.append(keep)

    def stop(number: int, frame: FrameType | None) -> None:
        keep.asked_to_end = keep.asked_to_end or number == signal.SIGTERM
        if keep.finishing or keep.interrupted or not (keep.searching or keep.asked_to_end):
            return
        if _is_lost(frame):
            signal.setitimer(signal.ITIMER_REAL, _TICK)
            return
        keep.interrupted = True
        sys.unraisablehook = _unsaid
        raise KeyboardInterrupt

    for name in ("SIGINT", "SIGHUP", "SIGXCPU"):
        if number := getattr(signal, name, None):
            signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM):
        signal.signal(number, stop)
    code = 1
    try:
        end_with(lifeline, os.getpid())
        code = run()
    except SystemExit as leaving:  # what makes no sense is refused so
        code = leaving.code if isinstance(leaving.code, int) else 1
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _unsaid(what: object) -> None:
    """No-op handler: errors of objects under construction during an interrupt are expected."""
    del what


def _is_lost(frame: FrameType | None) -> bool:
    """Whether an interrupt would do harm here: half a module cannot be imported again, and what a compiler calls back loses it aloud."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>" or frame.f_code.co_name.startswith(_CALLED_BACK):
            return True
        frame = frame.f_back
    return False


def _watch_signals(wait: _Wait) -> None:
    def note(number: int, frame: FrameType | None) -> None:
        del number, frame
        wait.signals += 1

    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and shells in the background want it
            signal.signal(number, note)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until the command's process knows what to do with it


def _attend(child: int, line: int, wait: _Wait) -> int | None:
    """The status of the command's process, once it ended; None where it had to be ended."""
    passed_on = False
    while True:
        ready, _, _ = select.select([line], [], [], _TICK)
        if ready:
            some = os.read(line, 1 << 20)
            if not some:
                return os.waitpid(child, 0)[1]
            wait.hear(some)
        now = monotonic()
        if (wait.signals and wait.asked_at is None) or (not passed_on and now > wait.deadline + wait.patience * _SOON / _PATIENCE):
            passed_on, wait.asked_at = True, now if wait.signals else None
            if wait.usual and not wait.signals:
                sys.stderr.write("\nthe time limit of 6 h is over, which holds where none is given (--time-limit allows more)\n")
            os.kill(child, signal.SIGTERM if wait.signals else signal.SIGUSR1)
        if now > wait.end or wait.signals > 1:
            os.kill(child, signal.SIGKILL)
            return None  # the kernel takes a while to reclaim its memory; there is no need to wait


def _ended(status: int | None, wait: _Wait, out: Path | None, unanswered: str) -> int:
    """Writes the last answer, and says how it came to it where the command did not end by itself."""
    from crossopt.reports.commands.console import NO_DESIGN, USAGE  # noqa: PLC0415 - only once all is over

    last = wait.last_answer
    if status is not None and os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        if code == USAGE and last is not None and last.code != USAGE:
            last = None  # what the simplest rule said meanwhile is no answer of an engine that refuses to answer
        if code == _UNVERIFIED and last is not None and last.code != _UNVERIFIED:
            last = None  # an engine whose last word does not hold has no answer
    else:
        why = "at the time limit" if status is None and not wait.signals else "on request"
        if status is not None:
            why = ending_of(-os.WTERMSIG(status))
            last = replace(last, out=last.if_killed[0], shown=last.if_killed[1]) if last and last.if_killed else last
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
        then = "what follows is the best answer it had" if last else "there was no answer yet"
        sys.stderr.write(f"the search was ended {why}; {then}\n")
        code = last.code if last else NO_DESIGN
        if code == NO_DESIGN and status is None and not wait.signals:
            sys.stderr.write(unanswered)
    if last is not None:
        put(last, out)
    return code


def put(answer: Kept, out: Path | None) -> None:
    """Writes an answer to its file and shows it."""
    try:
        spared = answer.spare and out is not None and out.is_file() and out.stat().st_size > 0
        if answer.out is not None and out is not None and str(out) != "-" and not spared:
            write_atomically(out, answer.out)
    finally:  # a full disk must not cost the answer
        sys.stdout.write(answer.shown)


def _open_standard_streams() -> None:
    """What is closed is opened on nothing, or the next file that is opened would be taken for it."""
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _process_start() -> float:
    """When this process started, by the monotonic clock; now where the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return monotonic() - min(max(age, 0.0), 60.0)
    except (AttributeError, OSError, ValueError, IndexError):
        return monotonic()


# What a search hands over to who keeps its answers, while it goes on: the best one, judged, whenever it is news and cheap enough.

_FIRST, _SIMPLEST = 0.5, 5.0
"""Seconds without an answer after which the simplest rule is asked, and for how long."""
_SHORT, _SHARE_OF_SIMPLEST = 10.0, 0.25
"""Seconds of a limit up to which the simplest rule is asked before the search begins, and its share of them."""
_KILLED = "the process that searched was killed or crashed, perhaps out of memory: this is the best answer that it had until then"
SHARE = 0.03
"""Of the time, for keeping answers."""


@dataclass(slots=True)
class Keeping:
    """A watch that also keeps answers."""

    keep: Keeper
    family: ProblemType[Any, Any, Any]
    question: Any
    engine: str
    limits: Limits
    watch: Watch
    written: Callable[[Result[Any, Any]], Kept]
    began: float = field(default_factory=monotonic)
    best: float | None = None
    """The value of the answer that was kept last."""
    bound: float | None = None
    """The bound that was reported with it."""
    next: float = 0.0
    """When the next one may be kept."""
    simple: Any = None
    """What the simplest rule answered."""
    last: Progress | None = None
    """What was handed over last."""
    lock: Any = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._hand_over(None)
        if self.limits.seconds <= _SHORT:  # on a busy machine it may pass before the search has begun
            self._hand_over_the_simplest(max(_SHARE_OF_SIMPLEST * self.limits.seconds, _FIRST))
            if self.keep.interrupted:  # which a rule of last resort does not pass on
                raise KeyboardInterrupt
        self.keep.searching = True
        if self.simple is None:
            simple = Timer(_FIRST, self._hand_over_the_simplest, [_SIMPLEST])
            simple.daemon = True
            simple.start()

    def simplest_answer(self, stopped: str) -> Any:  # noqa: ANN401 - of any kind
        """For who ended without an answer, for whatever reason."""
        del stopped
        return self.simple if self.simple is not None else quick_answer(self.family, self.question)

    def __call__(self, progress: Progress) -> None:
        better = progress.best is not None and (self.best is None or progress.best < self.best)
        closer = progress.best is not None and progress.best == self.best and progress.proof is not None and progress.bound != self.bound
        if (better or closer) and progress.answer is not None and (self.best is None or monotonic() >= self.next):
            with self.lock:
                self._hand_over(progress)
                self.best, self.bound = progress.best, progress.bound
        self.watch(progress)

    def fail(self, error: Exception) -> None:
        """Name the error that ends the search in the answer that was handed over last."""
        with suppress(Exception), self.lock:
            self._hand_over(self.last, error)

    def _hand_over_the_simplest(self, seconds: float) -> None:
        """Hand over the answer of the simplest rule while the search has none yet, without delaying the search."""
        with suppress(Exception):  # whatever happens here, the search goes on
            answer = quick_answer(self.family, self.question, seconds) if self.best is None else None
            with self.lock:
                if answer is not None and self.best is None and not self.keep.finishing:
                    self.simple = answer
                    self._hand_over(Progress("", None, answer=lambda: answer))

    def _hand_over(self, progress: Progress | None, error: Exception | None = None) -> None:
        """Nothing where the judge does not agree: the last answer is held to that too."""
        now, self.last = monotonic(), progress
        stopped = "time limit" if isfinite(self.limits.seconds) else "interrupted"  # who is ended on request mostly ends by itself
        with suppress(ModelError, VerificationError, ValueError):
            found = self.family.with_parts(self.question, incumbent_of(progress, self.engine, stopped), self.limits)
            until = (
                self.limits.seconds if isfinite(self.limits.seconds) else now - self.began
            )  # when it is shown, unless the search was killed
            seconds = until if found.seconds is None else found.seconds
            result = certify(self.family, self.question, found, self.limits, seconds)
            if error is not None:
                ended = f"the search ended by {type(error).__name__}"
                result = replace(result, stopped="error", seconds=now - self.began, notes=(*result.notes, ended))
            saved = self.written(result)
            if result.answer is not None and not result.parts:  # else its words follow from those of its parts
                killed = self.written(replace(result, stopped="interrupted", seconds=now - self.began, notes=(*result.notes, _KILLED)))
                saved = replace(saved, if_killed=(killed.out, killed.shown))
            self.keep.keep(replace(saved, spare=result.answer is None))
        spent = monotonic() - now
        self.next = monotonic() + spent / SHARE
