"""Two solvers on one model at a time: HiGHS proves where transfers are dear, CP-SAT where blocks must be packed. What one finds or bounds
counts for both, and both stop once value and bound meet."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from time import monotonic

from crossopt.formulation.model import Model, Values
from crossopt.instances.errors import FailedError, SolverError
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Answer, Event, Spend

SOLVERS = ("highs", "cpsat")


@dataclass(slots=True)
class Known:
    """What both solvers know together."""

    value: int | None
    bound: int
    gap: float
    stopped: bool = False
    trace: list[tuple[float, int | None, int]] = field(default_factory=list)
    began: float = field(default_factory=monotonic)

    def see(self, value: int | None, bound: int | None) -> None:
        """Take in what one of them has."""
        before = (self.value, self.bound)
        if value is not None and (self.value is None or value < self.value):
            self.value = value
        if bound is not None and bound > self.bound:
            self.bound = bound
        if (self.value, self.bound) != before:
            self.trace.append((monotonic() - self.began, self.value, self.bound))

    @property
    def closed(self) -> bool:
        return self.value is not None and self.value - self.bound <= self.gap * self.value


@dataclass(frozen=True, slots=True)
class Together:
    """What came of it."""

    values: Values | None
    bound: int | None
    """None where there is no solution."""
    stopped: str
    solvers: tuple[str, ...]
    """Those whose bound is the best, by name and version."""
    trace: tuple[tuple[float, int | None, int], ...]
    notes: tuple[str, ...] = ()
    """Which solvers did not end by themselves."""


def solved_together(model: Model, hint: Values | None, seconds: float, gap: float, seed: int, show: Callable[[Known], None]) -> Together:
    """Minimise; stops at the gap, at the time limit or on Ctrl-C with what is known."""
    known = Known(None if hint is None else model.objective_value(hint), model.domain_bound(), gap)

    def watch(event: Event) -> bool:
        known.see(event.value, event.bound)
        return known.stopped or known.closed

    spend = Spend(seconds=seconds, gap=0.0, workers=1, seed=seed, hint=hint, watch=watch)
    with ThreadPoolExecutor(len(SOLVERS)) as threads:
        runs = [threads.submit(backend(name), model, spend) for name in SOLVERS]
        stopped = "complete"
        while not all(run.done() for run in runs):
            try:
                wait(runs, 0.1)
                show(known)
                known.stopped = known.stopped or any(run.done() and run.exception() is None and _settled(run.result()) for run in runs)
            except KeyboardInterrupt:
                known.stopped, stopped = True, "interrupted"
    return _together(model, known, [run.exception() or run.result() for run in runs], stopped)


def _settled(answer: Answer) -> bool:
    return answer.status in {"OPTIMAL", "INFEASIBLE"}


def _together(model: Model, known: Known, ends: list[Answer | BaseException], stopped: str) -> Together:
    answers = [end for end in ends if isinstance(end, Answer)]
    if not answers:
        kind = FailedError if any(isinstance(end, FailedError) for end in ends) else SolverError
        raise kind("; ".join(str(end) for end in ends))
    for answer in answers:
        known.see(answer.value, answer.bound)
    found = [answer.values for answer in answers if answer.values is not None]
    if any(answer.status == "INFEASIBLE" for answer in answers):
        if found:
            raise SolverError("one solver calls a model infeasible of which the other has a solution")
        return Together(
            None, None, "complete", tuple(answer.solver for answer in answers if answer.status == "INFEASIBLE"), tuple(known.trace)
        )
    values = min(found, key=model.objective_value, default=None)
    late = stopped == "complete" and not known.closed and not any(_settled(answer) for answer in answers)
    best = tuple(answer.solver for answer in answers if answer.bound == known.bound) or tuple(answer.solver for answer in answers)
    notes = tuple(answer.note for answer in answers if late and answer.note)
    return Together(values, known.bound, "time limit" if late else stopped, best, tuple(known.trace), notes)
