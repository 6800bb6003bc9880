"""Keeps several processes at work on the runs of a sweep, one run each at a time, and loses nothing but what is running when one is killed.

Processes are started afresh (never forked from a process with threads), stay warm from one question to the next, and are ended with all
that they started: when a run takes more than a fifth longer than it may and five seconds, and when this process ends, however it does. A
run that has ended two processes is put aside, with what was printed last.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Final

from crossopt.instances.errors import FailedError
from crossopt.solvers.processes import GONE, Inbox
from crossopt.solvers.sweeps.leases import BEAT, Worker, beat, release, start, take
from crossopt.solvers.sweeps.store import Failure, keep_failure, kept_at
from crossopt.solvers.sweeps.worker import INTERNAL, Answer, Job

TRIES: Final = 2
"""Processes that a run may end before it is put aside."""
_SHARE, _BESIDE, _LOADING = 1.2, 5.0, 60.0
"""Of its limit, and seconds, after which a run is ended; more for the first one of a process, which may have to compile."""
_LONGEST: Final = 21_600.0
"""Seconds that count as the limit where a run has none: six hours, as for `solve`."""
_TICK: Final = 0.5
_SLICE, _ALONE = 0.02, 2.0
"""Seconds of reading at a time, between which others are heard; and for which nothing is read beside the first question of all."""


@dataclass(slots=True)
class Supervisor:
    """The work on a folder."""

    folder: Path
    workers: int
    memory: int | None = None
    kinds: tuple[str, ...] = ()
    """Of questions that will probably be asked, so that what reads them is loaded ahead."""
    work: Answer | None = None
    """What answers in place of the usual."""
    crew: list[Worker] = field(default_factory=list)
    """Processes that were started already."""
    stopping: Callable[[], int] = lambda: 0
    """Number of requests to stop: after one, nothing new begins; after two, all workers are terminated."""
    note: Callable[[str], None] = lambda message: None
    spoiled: dict[str, int] = field(default_factory=dict)
    """How many files of a run are there that do not count."""
    answered: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    proved: int = 0
    """How many of those that were answered here have a proof."""
    _unread: Iterator[Job | None] | None = None
    """What tells of further runs, as long as there may be some."""
    _waiting: list[tuple[float, int, Job]] = field(default_factory=list)
    """Runs by their sizes, the largest first, so that none of them is waited for alone in the end; and before them those tried again."""
    _others: deque[Job] = field(default_factory=deque)
    """Runs that another sweep answers."""
    _deaths: dict[str, int] = field(default_factory=dict)
    _stillborn: int = 0
    _total: int = 0
    _number: int = 0
    _began: float = 0.0
    _ended: float = 0.0
    """When the last run came to an end."""
    _beaten: float = 0.0
    _looked: float = 0.0
    _inbox: Inbox = field(default_factory=SimpleQueue)
    """What all processes say."""

    def __post_init__(self) -> None:
        self._inbox = self.crew[0].process.inbox if self.crew else self._inbox

    def run(self, jobs: Iterable[Job | None]) -> None:
        """Every job answered, failed or put aside; or no new jobs after a request to stop.

        Jobs are taken as they come, beside the work; where it takes a while to find one, None stands between them.
        """
        self._unread, self._began = iter(jobs), monotonic()
        while self._goes_on():
            self._read_on()
            self._hand_out()
            self.note(self.progress_text([worker.job.name for worker in self.crew if worker.job]))
            self._attend()
            self._look_after()

    def dismiss(self) -> None:
        """End all worker processes: idle ones are asked to exit and have a second to do so, all others are killed."""
        for worker in self.crew:
            if worker.job is None:
                worker.process.close()
        for worker in self.crew:
            if worker.job is None and worker.ready:
                worker.process.wait(1.0)
            self._bury(worker)
        self.crew.clear()

    def _goes_on(self) -> bool:
        busy = any(worker.job for worker in self.crew)
        if self.stopping():  # what is still read makes the list of all that is asked whole
            return (busy or self._unread is not None) and self.stopping() == 1
        return busy or bool(self._waiting or self._others or self._unread)

    def _read_on(self) -> None:
        """Take in further runs for a moment."""
        end = monotonic() + _SLICE
        while self._unread is not None and self._reads() and monotonic() < end:
            try:
                job = next(self._unread)
            except StopIteration:
                self._unread = None
                return
            if job is not None:
                self._total += 1
                self._put(job, -job.size)

    def _reads(self) -> bool:
        """Whether further runs are taken in now, or the first one has the machine to itself, so that its answer comes soon."""
        first = self._total > 0 and not self.stopping() and not any(worker.warm for worker in self.crew)
        return self._unread is not None and not (first and monotonic() - self._began < _ALONE)

    def _put(self, job: Job, rank: float) -> None:
        self._number += 1
        heappush(self._waiting, (rank, self._number, job))

    def _hand_out(self) -> None:
        """A job to everybody who is idle."""
        if self.stopping():
            return
        wanted = min(self.workers, max(len(self._waiting), bool(self._others or self._unread)))
        if self.crew and not any(worker.ready and (worker.warm or not self._unread) for worker in self.crew):
            wanted = 1  # others that load at the same time, beside what is read here, would keep the first answer back
        while len(self.crew) < wanted:
            self.crew.append(start(self.memory, self.kinds, self.work, self._inbox))
        for worker in [worker for worker in self.crew if worker.ready and worker.job is None]:
            job = self._next()
            if job is None:
                return
            limit = min(job.limits.seconds, _LONGEST) * _SHARE + _BESIDE + (0.0 if worker.warm else _LOADING)
            worker.job, worker.deadline = job, monotonic() + limit
            worker.process.send((job, self.folder))

    def _next(self) -> Job | None:
        """The next run without a lease or an answer; those of other sweeps are checked again now and then."""
        if not self._waiting and self._others and monotonic() - self._looked > 1.0:
            self._looked = monotonic()
            while self._others:
                job = self._others.popleft()
                self._put(job, -job.size)
        while self._waiting:
            job = heappop(self._waiting)[2]
            if self.is_answered(job):
                self.answered.add(job.key)
            elif self.takes(job):
                return job
            elif job.key not in self.answered:
                self._others.append(job)
        return None

    def is_answered(self, job: Job) -> bool:
        """Whether another sweep has answered it meanwhile."""
        return len(kept_at(self.folder, job.key)) > self.spoiled.get(job.key, 0)

    def takes(self, job: Job) -> bool:
        """Whether this sweep takes the run: it is free, and was not answered in the meantime."""
        if not take(self.folder, job.key):
            return False
        if self.is_answered(job):
            self.answered.add(job.key)
            release(self.folder, job.key)
            return False
        return True

    def _attend(self) -> None:
        """Hear who has something to say, or has ended."""
        late = min((worker.deadline for worker in self.crew), default=inf)
        seconds = 0.0 if self._reads() else min(_TICK, max(late - monotonic(), 0.0))
        try:
            while True:
                process, message = self._inbox.get(timeout=seconds)
                seconds = 0.0
                for worker in [worker for worker in self.crew if worker.process is process]:
                    if message == GONE:
                        self._buried(worker)
                    else:
                        self._take_in(worker, message)
        except Empty:
            return

    def _take_in(self, worker: Worker, message: tuple[str, ...]) -> None:
        worker.ready = True
        if message[0] == "ready" or worker.job is None:
            return
        key, (how, sentence) = worker.job.key, message
        worker.job, worker.deadline, worker.warm, self._stillborn = None, inf, True, 0
        release(self.folder, key)
        if how == "lost":
            raise FailedError(sentence)
        (self.failed if how == "failed" else self.answered).add(key)
        self._ended = monotonic()
        self.proved += how == "proved"

    def _buried(self, worker: Worker) -> None:
        """A process has ended: its run is tried once more, or put aside."""
        worker.process.kill()
        how, tail = worker.how_it_ended(), worker.last_words()
        self.crew.remove(worker)
        self._bury(worker)
        job = worker.job
        if job is None:
            self._stillborn += not worker.warm
            if self._stillborn > TRIES:
                raise FailedError(f"processes end as they start, {how} ({tail or 'nothing was printed'})")
            return
        tries = self._deaths[job.key] = self._deaths.get(job.key, 0) + 1
        if tries < TRIES:
            self._put(job, -inf)
        else:
            keep_failure(self.folder, job.key, Failure(f"it ended {tries} processes, the last one {how}", INTERNAL, tries, tail))
            self.failed.add(job.key)
        release(self.folder, job.key)

    def _look_after(self) -> None:
        """End workers that take too long, or all of them if asked to, and renew the signs of life of the others."""
        now = monotonic()
        for worker in self.crew:
            if worker.job and now > worker.deadline:
                worker.ended = f"as it took more than {_SHARE:g} times its limit and {_BESIDE:g} s"
                worker.deadline = inf
                worker.process.kill()
            elif worker.process.code is not None:  # what it started may keep its pipe open
                worker.process.kill()
        if now - self._beaten > BEAT:
            self._beaten = now
            beat(self.folder, [worker.job.key for worker in self.crew if worker.job])

    def _bury(self, worker: Worker) -> None:
        worker.bury()
        if worker.job:
            release(self.folder, worker.job.key)

    def progress_text(self, running: list[str]) -> str:
        """How far it is, while these are being answered."""
        done, left = len(self.answered) + len(self.failed), len(self._waiting) + len(running)
        parts = [f"{len(self.answered):,} answered of {self._total:,}{' read so far' if self._unread else ''}", f"{self.proved:,} proved"]
        parts += [f"{len(self.failed):,} failed"] if self.failed else []
        parts += [f"{len(running):,} running"]
        parts += [f"{len(self._others):,} with another sweep"] if self._others else []
        # by the pace up to the last answer: by that of now, a slow run would let the estimate grow as time passes
        ahead = (self._ended - self._began) / done * left - (monotonic() - self._ended) if done else 0.0
        parts += [f"about {_in_time(ahead)} left"] if left and ahead > 0.0 and not self._unread else []
        return f"{', '.join(parts)}  {'  '.join(name[:40] for name in running[:2])}"


def _in_time(seconds: float) -> str:
    """About how long that is."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.0f} h"
