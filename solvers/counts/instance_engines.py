"""Engines for instances: the dynamic program, bisection over latencies, an integer program, and rules to compare with."""

from collections.abc import Callable
from fractions import Fraction
from math import inf
from time import monotonic

from crossopt.formulation import counts
from crossopt.instances.counts.shapes import InstancesQuestion
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.counts.instances import BY_PROGRAM, InstanceGroups, groups_of, judge, reasons_of, value_of
from crossopt.solvers.counts.rules import greedy_of, rules_of_instances
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound

Found = SearchOutcome[InstanceGroups]


class _TimeUpError(Exception):
    """The time is over."""


def _tick(limits: Limits) -> Callable[[], None]:
    """Raises once the time is over."""
    deadline = monotonic() + limits.seconds

    def tick() -> None:
        if monotonic() >= deadline:
            raise _TimeUpError

    return tick


def program(question: InstancesQuestion, limits: Limits, watch: Watch) -> Found:
    """The dynamic program."""
    return _exactly(question, "program", counts.best_of, limits, watch)


def bisection(question: InstancesQuestion, limits: Limits, watch: Watch) -> Found:
    """Bisection over the different latencies, by the feasibility form of the dynamic program."""
    if question.file.objective != "latency":
        raise RefusedError("bisection is over latencies, and the objective is the throughput (take the engine program)")
    return _exactly(question, "bisection", _bisected, limits, watch)


def auto(question: InstancesQuestion, limits: Limits, watch: Watch) -> Found:
    """The dynamic program; CP-SAT where it has too many states."""
    try:
        return program(question, limits, watch)
    except RefusedError:
        return cpsat(question, limits, watch)


def _exactly(
    question: InstancesQuestion,
    name: str,
    solve: Callable[[InstancesQuestion, Callable[[], None]], counts.Best],
    limits: Limits,
    watch: Watch,
) -> Found:
    watch(Progress("dynamic program", None))
    tick = _tick(limits)
    try:
        tick()
        best = solve(question, tick)
    except _TimeUpError:
        return SearchOutcome(None, engine=name, stopped="time limit", baselines=rules_of_instances(question))
    except counts.LargeError as error:
        raise RefusedError(f"{error} (take the engine cpsat)") from error
    answer = groups_of(question, best.placed) if best.placed else None
    value = value_of(question, best.cost)
    baselines = rules_of_instances(question)
    reasons = () if best.placed else _reasons(question, tick)
    return SearchOutcome(answer, value, RecomputableBound(BY_PROGRAM), name, reasons=reasons, baselines=baselines)


def _bisected(question: InstancesQuestion, tick: Callable[[], None]) -> counts.Best:
    """The least latency of every part, and the best of these."""
    best = counts.Best(inf)
    for part in counts.parts_of(question):
        ranks = counts.latency_ranks(question, part)
        low, high, found = 0, len(ranks), counts.Best(inf)
        while low < high:
            middle = (low + high) // 2
            placed = _placed_within(question, part, ranks[middle], tick)
            if placed:
                high, found = middle, counts.Best(part.factor * ranks[middle], placed)
            else:
                low = middle + 1
        best = found if found.cost < best.cost else best
    return best


def _placed_within(question: InstancesQuestion, part: counts.Part, latency: int, tick: Callable[[], None]) -> counts.Placed:
    """Instances of latencies up to this that keep all limits; none where there are none."""
    shapes = [index for index in part.shapes if question.shapes[index].latency <= latency]
    counted, batch = counts.counts_instances(question), question.file.batch or 0
    if not shapes:
        return ()
    sockets = counts.reached_sets(question, shapes, part.high if counted else None, tick)
    ends = counts.after_socket(question, sockets[-1])
    rows = [row for row in (range(part.low, part.high + 1) if counted else (0,)) if ends[row] >> batch & 1]
    return counts.traced_bits(question, sockets, shapes, rows[0]) if rows else ()


def _reasons(question: InstancesQuestion, tick: Callable[[], None]) -> tuple[str, ...]:
    """Those of `reasons_of`; none where they would take too long."""
    try:
        return reasons_of(question, tick)
    except (counts.LargeError, _TimeUpError):
        return ()


"""Measured batches that a reason names."""


# The integer program, one for each number of instances from which on a factor holds.


def highs(question: InstancesQuestion, limits: Limits, watch: Watch) -> Found:
    """HiGHS on the integer program."""
    return _by_solver(question, "highs", limits, watch)


def cpsat(question: InstancesQuestion, limits: Limits, watch: Watch) -> Found:
    """CP-SAT on the integer program."""
    return _by_solver(question, "cpsat", limits, watch)


def _by_solver(question: InstancesQuestion, name: str, limits: Limits, watch: Watch) -> Found:
    """The best answer of all parts, and the least of their bounds, which rest on the solver."""
    if not limits.seconds:
        return SearchOutcome(None, engine=name, stopped="time limit")
    deadline, best, bounds, solver, stopped = monotonic() + limits.seconds, counts.Best(inf), list[Fraction | float](), "", "complete"
    for part in counts.parts_of(question):
        watch(Progress(f"integer program of {part.low} to {part.high} instances", None))
        built = counts.shape_model(question, part)
        try:
            found = backend(name)(built.model, Spend(max(deadline - monotonic(), 0.0), workers=limits.workers, seed=limits.seed))
        except ValueError as error:
            raise RefusedError(f"{error} (take the engine program)") from error
        solver = found.solver
        bounds.append(inf if found.status == "INFEASIBLE" else _cost_of(question, part, found.bound))
        stopped = stopped if found.status in {"OPTIMAL", "INFEASIBLE"} or found.stopped == "complete" else found.stopped
        if found.values is not None:
            placed = tuple(key for key, variable in built.counts.items() for _ in range(found.values[variable]))
            cost = _cost_of(question, part, found.value)
            best = counts.Best(cost, placed) if cost < best.cost else best
    bound = min(bounds, default=inf)
    reasons = _reasons(question, _tick(limits)) if not best.placed and bound == inf else ()
    return SearchOutcome(
        groups_of(question, best.placed) if best.placed else None,
        value_of(question, bound) if best.placed or bound == inf else None,
        UnverifiedBound(name),
        name,
        stopped if stopped in {"interrupted", "complete"} else "complete" if stopped == "gap" else "time limit",
        reasons=reasons,
        baselines=rules_of_instances(question),
        solver=solver,
    )


def _cost_of(question: InstancesQuestion, part: counts.Part, value: int | None) -> Fraction | float:
    """What an objective of the integer program stands for, in units of latency or of time per request."""
    if question.file.objective == "latency":
        return part.factor * counts.latency_ranks(question, part)[max(value or 0, 0)]
    return part.factor / value if value else inf


# Rules to compare with.


def greedy(question: InstancesQuestion, limits: Limits, watch: Watch) -> Found:
    """Instances one after another, each the quickest that takes its share; no proof."""
    del limits, watch
    answer = greedy_of(question)
    return SearchOutcome(None if answer is None or judge(question, answer).violations else answer, engine="greedy")
