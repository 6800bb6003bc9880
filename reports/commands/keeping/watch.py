"""What a search hands over to who keeps its answers, while it goes on: the best one, judged, whenever it is news and cheap enough."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from threading import Lock, Timer
from time import monotonic
from typing import Any

from crossopt.instances.errors import ModelError, VerificationError
from crossopt.reports.commands.keeping.keeper import Keeper, Kept
from crossopt.solvers.answer import Found, Limits, Progress, Result, Watch
from crossopt.solvers.family import Family, certify, quick_answer

_FIRST, _SIMPLEST = 0.5, 5.0
"""Seconds without an answer after which the simplest rule is asked, and for how long."""
_SHORT, _SHARE_OF_SIMPLEST = 10.0, 0.25
"""Seconds of a limit up to which the simplest rule is asked before the search begins, and its share of them."""
_KILLED = "the process that searched was killed or crashed, perhaps for want of memory: this is the best answer that it had until then"
SHARE = 0.03
"""Of the time, for keeping answers."""


@dataclass(slots=True)
class Keeping:
    """A watch that also keeps answers."""

    keep: Keeper
    family: Family[Any, Any, Any]
    question: Any
    engine: str
    limits: Limits
    watch: Watch
    written: Callable[[Result[Any, Any]], Kept]
    began: float = field(default_factory=monotonic)
    best: float | None = None
    """The value of the answer that was kept last."""
    next: float = 0.0
    """When the next one may be kept."""
    simple: Any = None
    """What the simplest rule answered."""
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
        if better and progress.answer is not None and (self.best is None or monotonic() >= self.next):
            with self.lock:
                self._hand_over(progress.answer())
                self.best = progress.best
        self.watch(progress)

    def _hand_over_the_simplest(self, seconds: float) -> None:
        """Where the search has told no answer yet, what the simplest rule says, without holding the search up."""
        with suppress(Exception):  # whatever happens here, the search goes on
            answer = quick_answer(self.family, self.question, seconds) if self.best is None else None
            with self.lock:
                if answer is not None and self.best is None and not self.keep.finishing:
                    self.simple = answer
                    self._hand_over(answer)

    def _hand_over(self, answer: object) -> None:
        """Nothing where the judge does not agree: the last answer is held to that too."""
        now = monotonic()
        stopped = "time limit" if isfinite(self.limits.seconds) else "interrupted"  # who is ended on request mostly ends by itself
        with suppress(ModelError, VerificationError, ValueError):
            found = self.family.whole(self.question, Found(answer, engine=self.engine, stopped=stopped), self.limits)
            until = (
                self.limits.seconds if isfinite(self.limits.seconds) else now - self.began
            )  # when it is shown, unless the search was killed
            seconds = until if found.seconds is None else found.seconds
            result = certify(self.family, self.question, found, self.limits, seconds)
            kept = self.written(result)
            if answer is not None and not result.parts:  # else its words follow from those of its parts
                killed = self.written(replace(result, stopped="interrupted", seconds=now - self.began, notes=(*result.notes, _KILLED)))
                kept = replace(kept, if_killed=(killed.out, killed.shown))
            self.keep.keep(replace(kept, spare=answer is None))
        spent = monotonic() - now
        self.next = monotonic() + spent / SHARE
