"""How long a solver may think about a model where nobody set a time limit, so that every engine ends by itself: solvers hang at times.

A minute, and a tenth of a second for each row and each entry of a row, up to six hours: then it is asked to end, and ended.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isinf
from time import monotonic
from typing import Literal

from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Model, Values, Variable, violations
from crossopt.instances.errors import ContradictionError, SolverError
from crossopt.solvers.backends.wall import LateError, SolverProcess

LEAST, EACH, MOST = 60.0, 0.1, 21_600.0
"""Seconds: for the smallest model, for each row and each entry of a row, and for the largest model."""


def patience(rows: int, entries: int) -> float:
    """Time limit in seconds for a solver on a model with so many rows, and entries in all of them."""
    return min(LEAST + EACH * (rows + entries), MOST)


def patience_for(model: Model) -> float:
    """Time limit in seconds for a solver on this model, by its rows and entries; used where the user gives none."""
    return patience(len(model.constraints), sum(_entries(row) for row in model.constraints))


def allowed(seconds: float, model: Model) -> float:
    """The given time limit, or if it is infinite, the usual one for a model of this size."""
    return patience_for(model) if isinf(seconds) else seconds


def late_text(solver: str, seconds: float) -> str:
    """The message of a solver that did not end within its time limit."""
    return f"{solver} did not end within {_in_text(seconds)}; --time-limit allows more"


def _entries(row: Constraint) -> int:
    if isinstance(row, Linear):
        return len(row.terms)
    return len(row.variables) if isinstance(row, ExactlyOne) else len(row.variables) * len(row.rows)


def _in_text(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 600.0 else f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


# What a backend may spend and what it answers. A solver's reply is believed in nothing that can be checked.
#
# A backend is `(Model, Spend) -> Answer`. It makes a Reply of what its solver says; `judged` turns that into an Answer:
#
#     values      the solver's figures, rounded to the nearest integers, must keep every row of the model, and have the value it claims
#     bound       an integer that no solution is better than; never beyond the value of a solution that is known
#     OPTIMAL     value = bound, as integers; nothing that a solver says makes it so
#     INFEASIBLE  the solver says so, and no solution is known

Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "UNKNOWN"]
Stopped = Literal["complete", "gap", "time limit", "interrupted", "no proof"]


@dataclass(frozen=True, slots=True)
class Event:
    """What was known at one moment of a solve."""

    seconds: float
    value: int | None
    bound: int | None


Watch = Callable[[Event], bool]
"""Sees what is known, about twenty times a second; True asks the solver to stop."""


def go_on(event: Event) -> bool:
    """The watch that never stops a solver."""
    del event
    return False


@dataclass(frozen=True, slots=True)
class Spend:
    """What a backend may spend: wall-clock seconds, the relative gap at which it may stop, threads. Also a seed, a start, and a watch."""

    seconds: float = inf
    gap: float = 0.0
    workers: int = 1
    seed: int = 0
    hint: Values | None = None
    watch: Watch = go_on

    def __post_init__(self) -> None:
        if not self.seconds >= 0:
            raise ValueError(f"{self.seconds} seconds: no time limit is below zero")
        if not 0 <= self.gap < inf:
            raise ValueError(f"a gap of {self.gap}: a finite share, zero or more, is needed")
        if self.workers < 1:
            raise ValueError(f"{self.workers} workers: at least one is needed")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"the seed {self.seed} is not from 0 to 2147483647")


@dataclass(frozen=True, slots=True)
class Allowed:
    """What of it goes through the wall."""

    deadline: float
    """Of the monotonic clock."""
    gap: float
    workers: int
    seed: int
    hint: tuple[tuple[int, int], ...]
    """Places of variables, and their values."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a backend answers: `bound` is None only where there is no solution, `value` and `values` where none was found."""

    status: Status
    values: Values | None
    value: int | None
    bound: int | None
    seconds: float
    stopped: Stopped
    trace: tuple[Event, ...]
    solver: str
    """Its name and version."""
    note: str = ""
    """That it did not end by itself, or that another solver had to be asked, in words."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a solver says, before anybody has looked at it. The claimed value counts the model's constant, the bound too."""

    infeasible: bool
    values: Mapping[Variable, float] | None
    value: float | None
    bound: int | None
    stopped: Stopped
    note: str = ""


@dataclass(slots=True)
class Course:
    """The best of a solve so far: as the solver says it on its way."""

    model: Model
    start: float = field(default_factory=monotonic)
    events: list[Event] = field(default_factory=list)

    def note(self, value: int | None, bound: int | None) -> None:
        """Keeps what is better than all before; a bound is never taken back."""
        last = self.now()
        event = Event(last.seconds, _better(self.model, value, last.value), _tighter(self.model, bound, last.bound))
        if not self.events or (event.value, event.bound) != (last.value, last.bound):
            self.events.append(event)

    def now(self) -> Event:
        """What is known at this moment."""
        last = self.events[-1] if self.events else Event(0.0, None, self.model.domain_bound())
        return Event(self.seconds, last.value, last.bound)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return monotonic() - self.start


Heard = tuple[int | None, int | None, Sequence[float] | None]
"""What a solver says on its way: a value, a bound, and the figures of a better solution, each where there is news."""
RawReply = tuple[bool, Sequence[float] | None, float | None, int | None, Stopped]
"""A reply as it comes through the wall, with figures in the order of the model's variables."""


@dataclass(frozen=True, slots=True)
class SolverBackend:
    """A way to an answer: the process that a solver has, its name and version, and what it does behind the wall."""

    process: str
    name: str
    work: Callable[..., RawReply]


def answered(model: Model, spend: Spend, road: SolverBackend, other: Callable[[], SolverBackend]) -> Answer:
    """What the solver of a road answers. Where it breaks its word, nothing of that is used: the solver of the other road has the rest of
    the time, and where that one fails too, the answer is the start, if there is one, with the bound of the ranges alone."""
    hinted(model, spend)
    began, course = monotonic(), Course(model)
    try:
        return judged(model, attended(road.process, road.name, road.work, course, spend), course, road.name, spend.hint)
    except ContradictionError as error:
        broken = str(error)
    second, course, rest = other(), Course(model), replace(spend, seconds=max(spend.seconds - (monotonic() - began), 0.0))
    try:
        found = judged(model, attended(second.process, second.name, second.work, course, rest), course, second.name, spend.hint)
    except (SolverError, ImportError, ValueError) as error:
        reply, broken = Reply(False, None, None, None, "interrupted"), f"{broken}; {error}"
        found = judged(model, reply, Course(model), road.name, spend.hint)
    note = f"{broken}; {second.name} was asked instead" if found.solver == second.name else broken
    return replace(found, seconds=monotonic() - began, note="; ".join(filter(None, (note, found.note))))


def attended(solver: str, name: str, work: Callable[..., RawReply], course: Course, spend: Spend) -> Reply:
    """What a solver replies to the model and what it may spend, or what it had said where it had to be ended.

    The first Ctrl-C or the watch asks it to stop, and it replies what it has. SolverError where it fails; a package that is not there is
    left to whoever asked for it.
    """
    figures: list[Sequence[float]] = []

    def hear(news: Heard) -> None:
        course.note(news[0], news[1])
        if news[2] is not None:
            figures[:] = [news[2]]

    def stop() -> bool:
        return spend.watch(course.now())

    process, model = SolverProcess(solver, name), course.model
    seconds = allowed(spend.seconds, model)
    deadline = course.start + seconds
    hint = tuple((at, spend.hint[variable]) for at, variable in enumerate(model.variables) if variable in spend.hint) if spend.hint else ()
    may = Allowed(deadline, spend.gap, spend.workers, spend.seed, hint)
    try:
        reply = process.ask(work, model, may, until=deadline, hear=hear, stop=stop)
    except LateError:
        ended: Stopped = "time limit" if monotonic() >= deadline else "interrupted"
        reply = (False, figures[0] if figures else None, None, None, ended)
    finally:
        process.close()
    late = reply[-1] == "time limit" and isinf(spend.seconds)
    return _reply(model, reply, name, late_text(name, seconds) if late else "")


def _reply(model: Model, reply: RawReply, solver: str, note: str) -> Reply:
    infeasible, figures, value, bound, stopped = reply
    if figures is not None and len(figures) != len(model.variables):
        raise ContradictionError(f"{solver} broke its word: {len(figures)} figures for {len(model.variables)} variables")
    values = None if figures is None else dict(zip(model.variables, figures, strict=True))
    return Reply(infeasible, values, value, bound, stopped, note)


def judged(model: Model, reply: Reply, course: Course, solver: str, hint: Values | None = None) -> Answer:
    """The answer that a reply amounts to; BrokenWordError where the reply contradicts the model or itself."""
    values = None if reply.values is None else checked(model, reply.values, reply.value, solver)
    if hint is not None and not violations(model, hint) and (values is None or _is_better(model, hint, values)):
        values = dict(hint)  # a solver may ignore what it was told to start from
    value = None if values is None else model.objective_value(values)
    if reply.infeasible:
        if values is not None:
            raise ContradictionError(f"{solver} broke its word: it calls a model infeasible that has a solution of value {value}")
        return Answer("INFEASIBLE", None, None, None, course.seconds, "complete", tuple(course.events), solver)
    bound = _tighter(model, reply.bound, model.domain_bound())
    if value is not None and model.sign * (value - bound) < 0:
        raise ContradictionError(f"{solver} broke its word: it bounds the objective by {bound} and has a solution of value {value}")
    course.note(value, bound)
    proved = value == bound
    status: Status = "OPTIMAL" if proved else "FEASIBLE" if values is not None else "UNKNOWN"
    stopped: Stopped = "complete" if proved else reply.stopped
    note = "" if proved else reply.note
    return Answer(status, values, value, bound, course.seconds, stopped, tuple(course.events), solver, note)


def checked(model: Model, figures: Mapping[Variable, float], claimed: float | None, solver: str) -> Values:
    """The figures as integers, if they keep every row and have the value that the solver claims."""
    odd = [f"{variable.name} = {figure}" for variable, figure in figures.items() if not isfinite(figure)]
    if odd:
        raise ContradictionError(f"{solver} broke its word: {odd[0]}")
    values = {variable: round(figure) for variable, figure in figures.items()}
    broken = violations(model, values)
    if broken:
        raise ContradictionError(f"{solver} broke its word: {broken[0]}" + (f" (and {len(broken) - 1} more)" if broken[1:] else ""))
    value = model.objective_value(values)
    if claimed is not None and not abs(claimed - value) < 0.5:
        raise ContradictionError(f"{solver} broke its word: it claims the value {claimed}, its solution has {value}")
    return values


def hinted(model: Model, spend: Spend) -> Values:
    """The values to start from, perhaps none; each must be of a variable that there is."""
    known = set(model.variables)
    strange = [variable.name for variable in spend.hint or {} if variable not in known]
    if strange:
        raise ValueError(f"the hint names {strange[0]}, which is not a variable of the model")
    return spend.hint or {}


def _better(model: Model, first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return min(known, key=lambda value: model.sign * value, default=None)


def _tighter(model: Model, first: int | None, second: int | None) -> int:
    known = [bound for bound in (first, second, model.domain_bound()) if bound is not None]
    return max(known, key=lambda bound: model.sign * bound)


def _is_better(model: Model, candidate: Values, known: Values) -> bool:
    return model.sign * (model.objective_value(candidate) - model.objective_value(known)) < 0
