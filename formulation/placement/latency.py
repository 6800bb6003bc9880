"""The integer model of latency, and the model of all placements that keep a limit on throughput or latency."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crossopt.formulation.model import ExactlyOne, Linear, Model, Terms, Variable, ceiled, floored, quantum_for
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.throughput import assignment_model, contract, machine_of, stages_model
from crossopt.instances.placement.graph import Graph, PlacementQuestion

# How soon one sample is through, as a model: nodes in pieces of accelerators or on CPUs, and when all of that is done.
#
# Data      slot s is a piece of an accelerator, the pieces of each in their order; node v with times p_v (accelerator) and q_v (CPU), size
#           s_v and the cost c_v of moving its output
# Choices   x[v, s] = 1 if node v is in slot s;  h[v] = 1 if it is on a CPU;  in[u, s] = 1 if slot s takes in the output of u,
#           out[u, s] = 1 if it hands it out;  start[s] and end[s];  done[v];  T when all is done
# Rows      one       sum over s of x[v, s] + h[v] = 1
#           colour    nodes of one colour are on one accelerator:  sum of x[v, s] over its slots is equal for both
#           memory    sum of s_v x[v, s] over the slots of an accelerator <= M
#           in, out   in[u, s] >= x[v, s] - x[u, s],  out[u, s] >= x[u, s] - x[v, s]    for each v that takes the output of u
#           load      end[s] >= start[s] + sum p_v x[v, s] + sum c_u (in[u, s] + out[u, s])
#           ready     start[s] >= done[u] where in[u, s];  done[v] >= end[s] where x[v, s];  done[v] >= done[u] + q_v where h[v]
#           order     start[s + 1] >= end[s] on one accelerator;  accelerators are numbered as their first slots start, as they are equal
# Objective least T, T >= done[v]
#
# Times and sizes are floored, the memory is ceiled (`formulation.rounding`): T is no more than any placement's true value. Pieces that take
# no time at all may wait for each other in a circle here; such a solution is for the judge to refuse, and bounds hold all the same.

STEPS = 1 << 34
"""Quanta of the greatest time that is looked at."""

Lines = tuple[tuple[Variable, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """Times and sizes in whole quanta."""

    accelerator: list[int]
    cpu: list[int]
    transfer: list[int]
    size: list[int]
    memory: int
    supported: list[bool]
    quantum: float
    """Milliseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Latency:
    """The model and its variables."""

    model: Model
    on: Lines
    """x of each node and slot."""
    cpu: tuple[Variable, ...]
    taken: Lines
    given: Lines
    start: tuple[Variable, ...]
    end: tuple[Variable, ...]
    done: tuple[Variable, ...]
    through: Variable
    figures: Figures
    after: tuple[tuple[int, ...], ...]
    """Who takes the output of each node."""


def latency_figures(question: PlacementQuestion, greatest: float) -> Figures:
    """The figures of a question, of which times up to `greatest` milliseconds matter."""
    graph = question.graph
    quantum, sizes = quantum_for(max(greatest, np.finfo(float).tiny), STEPS), quantum_for(max(float(graph.size.sum()), 1.0), 1 << 40)
    fits = (graph.accelerator_time <= greatest) & (graph.size <= question.memory)
    return Figures(
        accelerator=floored(np.where(fits, graph.accelerator_time, 0.0), quantum).tolist(),
        cpu=floored(np.minimum(graph.cpu_time, 2.0 * greatest), quantum).tolist(),
        transfer=floored(np.minimum(graph.transfer, 2.0 * greatest), quantum).tolist(),
        size=floored(np.where(fits, graph.size, 0.0), sizes).tolist(),
        memory=int(ceiled([min(question.memory, float(graph.size.sum()) + sizes)], sizes)[0]),
        supported=fits.tolist(),
        quantum=quantum,
    )


def latency_model(question: PlacementQuestion, least: float, greatest: float) -> Latency:
    """The model of all placements that take from `least` to `greatest` milliseconds; none takes less."""
    figures, graph = latency_figures(question, greatest), question.graph
    pieces = min(question.pieces, len(graph))
    nodes, slots = range(len(graph)), range(question.accelerators * pieces)
    latest = int(floored([greatest], figures.quantum)[0]) + 1
    after = _after(graph)
    on = tuple(tuple(Variable(f"node {v} in {s}", high=int(figures.supported[v])) for s in slots) for v in nodes)
    taken, given = (
        tuple(tuple(Variable(f"output of {v} {way} {s}", high=int(bool(after[v]))) for s in slots) for v in nodes)
        for way in ("into", "out of")
    )
    cpu = tuple(Variable(f"node {v} on a cpu") for v in nodes)
    start, end = (tuple(Variable(f"{what} of {s}", high=latest) for s in slots) for what in ("start", "end"))
    done = tuple(Variable(f"node {v} done", high=latest) for v in nodes)
    through = Variable("through", min(int(floored([least], figures.quantum)[0]), latest), latest)
    every = (*(x for lines in (on, taken, given) for line in lines for x in line), *cpu, *start, *end, *done, through)
    blank = Latency(Model((), ()), on, cpu, taken, given, start, end, done, through, figures, after)
    rows = (*_places(question, blank, pieces), *_transfers(blank), *_times(blank), *_orders(question, blank, pieces))
    return Latency(Model(every, rows, ((1, through),)), on, cpu, taken, given, start, end, done, through, figures, after)


def _after(graph: Graph) -> tuple[tuple[int, ...], ...]:
    after: list[set[int]] = [set() for _ in range(len(graph))]
    for one, other in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        after[one].add(other)
    return tuple(tuple(sorted(takers)) for takers in after)


def _places(question: PlacementQuestion, of: Latency, pieces: int) -> Iterator[Linear | ExactlyOne]:
    for v, line in enumerate(of.on):
        yield ExactlyOne(f"node {v}", (*line, of.cpu[v]))
    first: dict[int, int] = {}
    slots = [range(a * pieces, (a + 1) * pieces) for a in range(question.accelerators)]
    for v, colour in enumerate(question.graph.colour.tolist()):
        u = first.setdefault(colour, v)
        if u != v:
            for a, those in enumerate(slots):
                terms = (*((1, of.on[u][s]) for s in those), *((-1, of.on[v][s]) for s in those))
                yield Linear(f"nodes {u} and {v} together on {a}", terms, low=0, high=0)
    for a, those in enumerate(slots):
        terms = tuple((size, line[s]) for size, line in zip(of.figures.size, of.on, strict=True) for s in those if size)
        yield Linear(f"memory of {a}", terms, high=of.figures.memory)


def _transfers(of: Latency) -> Iterator[Linear]:
    for u, takers in enumerate(of.after):
        for v in takers:
            for s in range(len(of.start)):
                yield Linear(f"{v} takes in {u} to {s}", ((1, of.on[v][s]), (-1, of.on[u][s]), (-1, of.taken[u][s])), high=0)
                yield Linear(f"{u} hands out to {v} from {s}", ((1, of.on[u][s]), (-1, of.on[v][s]), (-1, of.given[u][s])), high=0)


def _times(of: Latency) -> Iterator[Linear]:
    for s, (start, end) in enumerate(zip(of.start, of.end, strict=True)):
        load = defaultdict[Variable, int](int)
        for v, line in enumerate(of.on):
            load[line[s]] += of.figures.accelerator[v]
            for moved in (of.taken[v][s], of.given[v][s]):
                load[moved] += of.figures.transfer[v] if of.after[v] else 0
        terms: Terms = tuple((cost, variable) for variable, cost in load.items() if cost)
        yield Linear(f"load of {s}", (*terms, (1, start), (-1, end)), high=0)
        for v, line in enumerate(of.on):
            yield Linear(f"{v} done with {s}", ((1, of.done[v]), (-1, end)), low=0, given=line[s])
            if of.after[v]:
                yield Linear(f"{s} waits for {v}", ((1, start), (-1, of.done[v])), low=0, given=of.taken[v][s])
    for u, takers in enumerate(of.after):
        yield Linear(f"{u} takes its time", ((1, of.done[u]),), low=of.figures.cpu[u], given=of.cpu[u])
        yield Linear(f"through after {u}", ((1, of.through), (-1, of.done[u])), low=0)
        for v in takers:
            yield Linear(f"node {v} after {u}", ((1, of.done[v]), (-1, of.done[u])), low=0)
            if of.figures.cpu[v]:
                yield Linear(f"node {v} after {u} on a cpu", ((1, of.done[v]), (-1, of.done[u])), low=of.figures.cpu[v], given=of.cpu[v])


def _orders(question: PlacementQuestion, of: Latency, pieces: int) -> Iterator[Linear]:
    for s in range(len(of.start) - 1):
        if (s + 1) % pieces:
            yield Linear(f"slot {s + 1} after {s}", ((1, of.start[s + 1]), (-1, of.end[s])), low=0)
    for a in range(question.accelerators - 1):
        terms = ((1, of.start[(a + 1) * pieces]), (-1, of.start[a * pieces]))
        yield Linear(f"accelerator {a} starts before the next", terms, low=0)


# The integer model of all placements that are no busier, or no later, than a limit, whatever is asked of them.


def model_within(question: PlacementQuestion, limit: float) -> tuple[Model, float]:
    """The model with its quantum in milliseconds: each such placement is a solution, which costs no more than it."""
    if question.problem == "latency":
        latency = latency_model(question, 0.0, limit)
        return latency.model, latency.figures.quantum
    blocks, machine = blocks_of(question.graph, staged=question.contiguity != "no"), machine_of(question)
    if question.contiguity == "stages":
        stages = stages_model(blocks, machine.accelerators, machine.cpus, machine.memory, machine.overlapped, limit)
        return stages.model, stages.figures.quantum
    assignment = assignment_model(blocks if machine.convex else contract(blocks, machine, limit), machine, limit)
    return assignment.model, assignment.figures.quantum


def greatest_of(blocks: Blocks) -> float:
    """No device of a placement that keeps the rules is busier than this."""
    finite = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    return float(np.maximum(finite, blocks.cpu_time).sum() + blocks.transfer.sum()) * (1.0 + 1e-9) + 1e-9
