"""Instances of measured shapes as a problem type: answers, their judge, and the dynamic program carried out anew."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Final

from crossopt.formulation.counts import LargeError, Placed, best_of
from crossopt.instances.counts.shapes import InstancesQuestion
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.answer import Progress, Result, Verdict, Watch
from crossopt.solvers.family import ProblemType, Proved, lazy_import, rules_of
from crossopt.solvers.proofs import UnverifiedBound

_FEW = 6
"""Batches that a reason names."""

BY_PROGRAM: Final = "a dynamic program over threads and requests"


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """Equal instances on one socket, which are counted from 0."""

    socket: int
    instances: int
    threads: int
    batch: int


@dataclass(frozen=True, slots=True)
class InstanceGroups:
    """All instances, by socket, threads and batch."""

    groups: tuple[InstanceGroup, ...]


@dataclass(frozen=True, slots=True)
class ServerUse:
    """What the instances take and give together."""

    instances: int
    threads: int
    """Threads in use."""
    batch: int
    """Requests in flight."""
    latency: float
    """Seconds of the slowest instance."""
    throughput: float
    """Requests a second."""
    factor: float
    """By which this number of instances slows each down."""
    latencies: tuple[float, ...]
    """Seconds of each group."""


def groups_of(question: InstancesQuestion, placed: Placed) -> InstanceGroups:
    """Equal instances together."""
    counts = {key: placed.count(key) for key in sorted(set(placed))}
    shapes = question.shapes
    return InstanceGroups(
        tuple(InstanceGroup(socket, count, shapes[index].threads, shapes[index].batch) for (socket, index), count in counts.items())
    )


def judge(question: InstancesQuestion, answer: InstanceGroups) -> Verdict[ServerUse]:
    """Latency of the slowest instance or time per request, and broken limits; a ValueError where groups are none of the question."""
    known, groups = {(shape.threads, shape.batch): shape for shape in question.shapes}, answer.groups
    keys = [(group.socket, group.threads, group.batch) for group in groups]
    if not groups or keys != sorted(set(keys)):
        raise ValueError("groups of instances stand once each, by socket, threads and batch")
    for group in groups:
        if (group.threads, group.batch) not in known:
            raise ValueError(f"an instance of {group.threads} threads with a batch of {group.batch} was not measured")
        if group.instances > question.file.threads:
            raise ValueError(f"{group.instances} instances need more than the {question.file.threads} threads there are")
        if not 0 <= group.socket < question.file.sockets or group.instances < 1:
            raise ValueError(f"{group.instances} instances on socket {group.socket} are none (there are {question.file.sockets} sockets)")
    shapes = [known[group.threads, group.batch] for group in groups]
    count = sum(group.instances for group in groups)
    factor = question.factor(count)
    slowest = factor * max(shape.latency for shape in shapes)
    rate = sum(group.instances * shape.rate for group, shape in zip(groups, shapes, strict=True)) / factor
    use = ServerUse(
        instances=count,
        threads=sum(group.instances * group.threads for group in groups),
        batch=sum(group.instances * group.batch for group in groups),
        latency=question.seconds(slowest),
        throughput=float(rate / Fraction(10) ** question.rate_places),
        factor=float(factor),
        latencies=tuple(question.seconds(factor * shape.latency) for shape in shapes),
    )
    value = use.latency if question.file.objective == "latency" else question.seconds_per_request(rate)
    return Verdict(value, tuple(_violations(question, groups, use, slowest)), use)


def _violations(question: InstancesQuestion, groups: Sequence[InstanceGroup], use: ServerUse, slowest: Fraction) -> Iterator[str]:
    file = question.file
    for socket in range(file.sockets):
        threads = sum(group.instances * group.threads for group in groups if group.socket == socket)
        where = f"socket {socket} uses" if file.sockets > 1 else "the instances use"
        if threads > question.per_socket:
            yield f"{where} {threads} threads of {question.per_socket}"
        if threads < question.per_socket and not file.idle_threads:
            yield f"{where} {threads} threads of {question.per_socket}, and none may stay idle"
    if file.batch is not None and use.batch != file.batch:
        yield f"the instances take {use.batch} requests where {file.batch} are in flight"
    if question.memory_instances is not None and use.instances > question.memory_instances:
        yield f"{use.instances} instances are more than the {question.memory_instances} that the memory holds"
    if question.limit is not None and slowest > question.limit:
        yield f"the slowest instance takes {_time(use.latency)}, above the service level of {_time(file.latency)}"


def _time(seconds: float | None) -> str:
    return rounded_quantity(seconds or 0.0, "time", 6)


def value_of(question: InstancesQuestion, cost: Fraction | float) -> float:
    """Seconds of an exact cost: a latency, or a time per request, in units; infinite where it is."""
    if cost == inf:
        return inf
    return question.seconds(Fraction(cost)) if question.file.objective == "latency" else question.seconds_per_request(1 / Fraction(cost))


def reasons_of(question: InstancesQuestion, tick: Callable[[], None]) -> tuple[str, ...]:
    """The limit that leaves nothing, with those before it: batches, threads, memory, then latency."""
    file = question.file
    batches = sorted({shape.batch for shape in question.shapes if shape.threads <= question.per_socket})
    if file.batch is not None and not _is_sum(file.batch, batches):
        shown = ", ".join(map(str, batches[:_FEW])) + (", ..." if len(batches) > _FEW else "")
        return (f"batch: no sum of measured batches is {file.batch} (measured are {shown})",)
    unlimited = replace(question, file=replace(file, latency=None, memory=None, memory_per_instance=None))
    if not best_of(unlimited, tick).placed:
        used = "at most" if file.idle_threads else "exactly"
        where = f" on each of {file.sockets} sockets" if file.sockets > 1 else ""
        requests = "" if file.batch is None else f" and take {file.batch} requests"
        return (f"threads: no measured instances use {used} {question.per_socket} threads{where}{requests}",)
    any_latency = replace(question, file=replace(file, latency=None))
    if not best_of(any_latency, tick).placed:
        return (f"memory: it holds {question.memory_instances} instances, which cannot take the requests on these threads",)
    if file.batch is None:
        return (f"latency: no measured instances on these threads keep the service level of {_time(file.latency)}",)
    least = best_of(replace(any_latency, file=replace(any_latency.file, objective="latency")), tick)
    slowest = _time(question.seconds(Fraction(least.cost)))
    return (f"latency: the slowest instance takes {slowest} or more, above the service level of {_time(file.latency)}",)


def _is_sum(total: int, batches: list[int]) -> bool:
    """Whether batches add up to a total, each as often as one likes."""
    reached, mask = 1, (1 << total + 1) - 1
    for batch in batches:
        step = batch
        while step <= total:  # 2^k copies of a batch after k doublings
            reached |= reached << step & mask
            step *= 2
    return bool(reached >> total & 1)


def prove(question: InstancesQuestion, saved: Result[InstanceGroups, ServerUse], watch: Watch) -> Proved:
    """Carry out the dynamic program, and compare its optimum with the bound."""
    if isinstance(saved.proof, UnverifiedBound):
        return Proved((f"the bound is reported by {saved.proof.by}, not proved again",), unverified=True)
    watch(Progress("the dynamic program", None))
    try:
        least = value_of(question, best_of(question, _nothing).cost)
    except LargeError as error:
        return Proved(refused=(f"proof: it cannot be carried out, as {error}",))
    said = inf if saved.bound is None else saved.bound
    fault = f"bound: the dynamic program finds {least!r} s, the result claims {said!r}"
    return Proved(("the dynamic program was carried out anew",), () if said <= least else (fault,), by=BY_PROGRAM)


def _nothing() -> None:
    """A proof takes the time that it takes."""


def _sentences(question: InstancesQuestion, saved: Result[InstanceGroups, ServerUse]) -> tuple[str, ...]:
    """Those of `reasons_of`, by what the dynamic program of the proof finds."""
    del saved
    return reasons_of(question, _nothing)


_ENGINES = "crossopt.solvers.counts.instance_engines"
FAMILY: ProblemType[InstancesQuestion, InstanceGroups, ServerUse] = ProblemType(
    kind="instances",
    what="configuration",
    unit="s",
    answer=InstanceGroups,
    details=ServerUse,
    engines={name: lazy_import(_ENGINES, name) for name in ("auto", "program", "bisection", "highs", "cpsat", "greedy")},
    judge=judge,
    judged="threads, requests, latencies and limits of every instance",
    prove=prove,
    reasons=_sentences,
    rules=rules_of(lazy_import("crossopt.solvers.counts.rules", "rules_of_instances"), "program", "bisection", "highs", "cpsat"),
    proof_labels=frozenset({BY_PROGRAM}),
    reporting=("highs", "cpsat"),
)
