"""The integer model of latency, solved from the best placement that is known; its solution in slots."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

from crossopt.formulation.model import Values, real, violations
from crossopt.formulation.placement.latency import Latency, latency_model
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Event, Spend
from crossopt.solvers.placement.latency.flow import CPU, Flow, timed

_WORKERS = 2
_GUARD = 1e-9
"""Share by which the value of a replay in floats is raised before it limits the model."""
LARGEST_MODEL = 60_000
"""Nodes times pieces for which a model is not too large to be worth it."""


@dataclass(frozen=True, slots=True)
class Exactly:
    """What a solver found."""

    slot: list[int] | None
    """Of every row."""
    bound: float
    solver: str
    stopped: str
    limit: float
    """Milliseconds that the model goes up to."""
    notes: tuple[str, ...] = ()
    """That it did not end by itself."""


def exactly(
    question: PlacementQuestion,
    flow: Flow,
    slot: list[int],
    least: float,
    until: float,
    gap: float,
    seed: int,
    watch: Callable[[float | None, float | None], None],
) -> Exactly:
    """The best placement by CP-SAT, from the slot of every row of one that is known, and a bound below which nothing need be looked for.

    It ends at a time of the monotonic clock, which writing the model counts in.
    """
    greatest = timed(flow, slot)[0] * (1.0 + _GUARD)
    model = latency_model(question, least, greatest)
    hint = values_at(model, flow, slot)
    quantum = model.figures.quantum

    def show(event: Event) -> bool:
        watch(None if event.value is None else real(event.value, quantum), None if event.bound is None else real(event.bound, quantum))
        return False

    hinted = None if violations(model.model, hint) else hint
    seconds = max(until - monotonic(), 0.0)
    answer = backend("cpsat")(model.model, Spend(seconds=seconds, gap=gap, workers=_WORKERS, seed=seed, hint=hinted, watch=show))
    found = None if answer.values is None else slots_in(model, answer.values)
    bound = least if answer.bound is None else real(answer.bound, quantum)
    stopped = answer.stopped if answer.stopped in {"time limit", "interrupted"} else "complete"
    name, notes = f"{answer.solver}, in whole quanta of {quantum:.1e} ms", (answer.note,) if answer.note else ()
    return Exactly(found, bound, name, stopped, greatest, notes)


def slots_in(model: Latency, values: Values) -> list[int]:
    """The slot of every row."""
    return [next((s for s, x in enumerate(line) if values[x]), CPU) for line in model.on]


def values_at(model: Latency, flow: Flow, slot: list[int]) -> Values:
    """The values of a placement, its accelerators numbered as their first slots start and every piece in the first slot left."""
    figures, slots = model.figures, flow.slots
    whole = replace(flow, accelerator=figures.accelerator, cpu=figures.cpu, transfer=figures.transfer)
    done = [int(end) for end in timed(whole, slot)[1]]
    taken, given = _crossed(model, slot)
    load = [0] * slots
    for row, place in enumerate(slot):
        if place != CPU:
            load[place] += figures.accelerator[row]
    for row, place in (*taken, *given):
        load[place] += figures.transfer[row]
    end = {place: done[row] for row, place in enumerate(slot) if place != CPU}
    name = _renamed(flow, {place: moment - load[place] for place, moment in end.items()}, max(done))
    values = {x: int(slot[row] != CPU and name[slot[row]] == s) for row, line in enumerate(model.on) for s, x in enumerate(line)}
    values |= {x: int(slot[row] == CPU) for row, x in enumerate(model.cpu)}
    for lines, pairs in ((model.taken, taken), (model.given, given)):
        there = {(row, name[place]) for row, place in pairs}
        values |= {x: int((row, s) in there) for row, line in enumerate(lines) for s, x in enumerate(line)}
    ends = {name[place]: (moment - load[place], moment) for place, moment in end.items()}
    last = 0
    for s in range(slots):
        last = 0 if not s % flow.pieces else last
        idle = max(done) if not s % flow.pieces else last
        values[model.start[s]], values[model.end[s]] = ends.get(s, (idle, idle))
        last = values[model.end[s]]
    values |= dict(zip(model.done, done, strict=True))
    values[model.through] = max(*done, model.through.low)
    return values


def _crossed(model: Latency, slot: list[int]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Which rows' outputs each slot takes in, and hands out."""
    pairs = [(row, slot[row], slot[one]) for row, takers in enumerate(model.after) for one in takers if slot[one] != slot[row]]
    return {(row, there) for row, _, there in pairs if there != CPU}, {(row, here) for row, here, _ in pairs if here != CPU}


def _renamed(flow: Flow, starts: dict[int, int], last: int) -> dict[int, int]:
    """New numbers of slots."""
    by_accelerator: dict[int, list[int]] = {}
    for place in sorted(starts):
        by_accelerator.setdefault(place // flow.pieces, []).append(place)
    order = sorted(by_accelerator.values(), key=lambda places: min(last, starts[places[0]]))
    return {place: number * flow.pieces + rank for number, places in enumerate(order) for rank, place in enumerate(places)}
