"""Default time limits of solvers, what a backend may spend, and how the reply of a solver is verified.

Without a time limit from the user, a solver gets a minute, plus a tenth of a second for each row and each nonzero, up to six hours. Then it
is asked to stop, and its process is terminated: solvers hang at times.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isinf
from time import monotonic
from typing import Literal

from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Model, Values, Variable, violations
from crossopt.instances.errors import INVALID, ContradictionError, SolverError
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


# Verification of replies. A backend is `(Model, Spend) -> Answer`: it turns the solver's result into a Reply, and `judged` verifies that:
#
#     values      the solver's values, rounded to the nearest integers; they must satisfy every row and have the objective value it claims
#     bound       an integer dual bound, never beyond the value of a known solution
#     OPTIMAL     value = bound, as integers, whatever status the solver reports
#     INFEASIBLE  reported by the solver, and no solution is known

Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "UNKNOWN"]
Stopped = Literal["complete", "gap", "time limit", "interrupted", "no proof"]


@dataclass(frozen=True, slots=True)
class Event:
    """Incumbent value and dual bound at one moment of a solve."""

    seconds: float
    value: int | None
    bound: int | None


Watch = Callable[[Event], bool]
"""Called about twenty times a second with the incumbent and the bound; True asks the solver to stop."""


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
    """The limits and the hint as they are sent to the solver process."""

    deadline: float
    """A time of the monotonic clock."""
    gap: float
    workers: int
    seed: int
    hint: tuple[tuple[int, int], ...]
    """Indices of variables, and their values."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a backend: `bound` is None only if the model is infeasible, `value` and `values` are None if no solution was found."""

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
    """Remark that the solver was terminated, or that another solver replaced it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Result of a solver before verification. Both the claimed value and the bound include the model's constant."""

    infeasible: bool
    values: Mapping[Variable, float] | None
    value: float | None
    bound: int | None
    stopped: Stopped
    note: str = ""


@dataclass(slots=True)
class Course:
    """Progress of a solve, as the solver reports it: best value and best bound so far."""

    model: Model
    start: float = field(default_factory=monotonic)
    events: list[Event] = field(default_factory=list)

    def note(self, value: int | None, bound: int | None) -> None:
        """Record an improved value or bound; a bound never gets weaker."""
        last = self.now()
        event = Event(last.seconds, _better(self.model, value, last.value), _tighter(self.model, bound, last.bound))
        if not self.events or (event.value, event.bound) != (last.value, last.bound):
            self.events.append(event)

    def now(self) -> Event:
        """The current value and bound."""
        last = self.events[-1] if self.events else Event(0.0, None, self.model.domain_bound())
        return Event(self.seconds, last.value, last.bound)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return monotonic() - self.start


Heard = tuple[int | None, int | None, Sequence[float] | None]
"""A progress report of a solver: value, bound and values of a better solution, each None if it has not changed."""
RawReply = tuple[bool, Sequence[float] | None, float | None, int | None, Stopped]
"""A reply as the solver process sends it: infeasible, values in the order of the model's variables, value, bound, reason for stopping."""


@dataclass(frozen=True, slots=True)
class SolverBackend:
    """A solver: the kind of its process, its name and version, and the function that runs in that process."""

    process: str
    name: str
    work: Callable[..., RawReply]


def answered(model: Model, spend: Spend, first: SolverBackend, other: Callable[[], SolverBackend]) -> Answer:
    """The verified answer of the first solver. If its result is invalid, nothing of it is used, and the other solver gets the time left.
    If that one fails as well, the answer is the hint, if it is feasible, with the bound that follows from the variables' ranges."""
    hinted(model, spend)
    began, course = monotonic(), Course(model)
    try:
        return judged(model, attended(first.process, first.name, first.work, course, spend), course, first.name, spend.hint)
    except ContradictionError as error:
        broken = str(error)
    second, course, rest = other(), Course(model), replace(spend, seconds=max(spend.seconds - (monotonic() - began), 0.0))
    try:
        found = judged(model, attended(second.process, second.name, second.work, course, rest), course, second.name, spend.hint)
    except (SolverError, ImportError, ValueError) as error:
        reply, broken = Reply(False, None, None, None, "interrupted"), f"{broken}; {error}"
        found = judged(model, reply, Course(model), first.name, spend.hint)
    note = f"{broken}; {second.name} was used instead" if found.solver == second.name else broken
    return replace(found, seconds=monotonic() - began, note="; ".join(filter(None, (note, found.note))))


def attended(solver: str, name: str, work: Callable[..., RawReply], course: Course, spend: Spend) -> Reply:
    """Run a solver in its process; its reply, or the last solution that it reported if it had to be terminated.

    The first Ctrl-C, or the watch, asks the solver to stop and to return its incumbent. A failure is a SolverError; an ImportError of a
    missing package is passed on.
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
        raise ContradictionError(f"{solver} {INVALID}: {len(figures)} values for {len(model.variables)} variables")
    values = None if figures is None else dict(zip(model.variables, figures, strict=True))
    return Reply(infeasible, values, value, bound, stopped, note)


def judged(model: Model, reply: Reply, course: Course, solver: str, hint: Values | None = None) -> Answer:
    """The verified answer; a ContradictionError if the reply contradicts the model or itself."""
    values = None if reply.values is None else checked(model, reply.values, reply.value, solver)
    if hint is not None and not violations(model, hint) and (values is None or _is_better(model, hint, values)):
        values = dict(hint)  # a solver may ignore the hint
    value = None if values is None else model.objective_value(values)
    if reply.infeasible:
        if values is not None:
            raise ContradictionError(f"{solver} {INVALID}: it reports INFEASIBLE for a model with a solution of value {value}")
        return Answer("INFEASIBLE", None, None, None, course.seconds, "complete", tuple(course.events), solver)
    bound = _tighter(model, reply.bound, model.domain_bound())
    if value is not None and model.sign * (value - bound) < 0:
        raise ContradictionError(f"{solver} {INVALID}: its bound on the objective is {bound}, its solution has the value {value}")
    course.note(value, bound)
    proved = value == bound
    status: Status = "OPTIMAL" if proved else "FEASIBLE" if values is not None else "UNKNOWN"
    stopped: Stopped = "complete" if proved else reply.stopped
    note = "" if proved else reply.note
    return Answer(status, values, value, bound, course.seconds, stopped, tuple(course.events), solver, note)


def checked(model: Model, figures: Mapping[Variable, float], claimed: float | None, solver: str) -> Values:
    """The values as integers; a ContradictionError if they violate a row or have another objective value than the solver claims."""
    odd = [f"{variable.name} = {figure}" for variable, figure in figures.items() if not isfinite(figure)]
    if odd:
        raise ContradictionError(f"{solver} {INVALID}: {odd[0]}")
    values = {variable: round(figure) for variable, figure in figures.items()}
    broken = violations(model, values)
    if broken:
        raise ContradictionError(f"{solver} {INVALID}: {broken[0]}" + (f" (and {len(broken) - 1} more)" if broken[1:] else ""))
    value = model.objective_value(values)
    if claimed is not None and not abs(claimed - value) < 0.5:
        raise ContradictionError(f"{solver} {INVALID}: it claims the objective value {claimed}, its solution has {value}")
    return values


def hinted(model: Model, spend: Spend) -> Values:
    """The values to start from, possibly none; a ValueError if one is of a variable that the model lacks."""
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
