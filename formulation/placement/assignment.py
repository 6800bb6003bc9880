"""Throughput where a device may hold any blocks: each block on one device, in the form that both solvers take.

Choices   x[b, i] = 1 if block b is on device i, accelerators first;  cut[e, i] = 1 if net e has a pin on accelerator i and one elsewhere
Rows      one      sum over i of x[b, i] = 1
          the rows of `formulation.placement.rows`, for accelerators or CPUs as they are numbered; of a net with more than two pins
          cut >= some - all, some >= x[b, i] and all <= x[b, i] for each pin, which says more to a relaxation than pins two by two
          order    the m-th largest block is on one of the first m accelerators (or on a CPU): equal devices can be renamed so
          convex   (if asked) z[b, i] = 1 where a block of i comes before b, or b is on i: z[b, i] >= x[b, i]; along every arc u -> v
                   z[v, i] >= z[u, i], and x[v, i] <= 1 - z[u, i] + x[u, i]: who follows somebody that data of i reached, but is not on i,
                   is not on i either
Objective least T
"""

from dataclasses import dataclass

import numpy as np

from crossopt.formulation.model import ExactlyOne, Linear, Model, Values, Variable
from crossopt.formulation.placement.blocks import Blocks
from crossopt.formulation.placement.rows import Figures, figures_of
from crossopt.formulation.rounding import floored
from crossopt.instances.placement.graph import PlacementQuestion

STEPS = 1 << 20
"""Quanta of the busiest time: few enough for a solver in floating point to tell them apart."""

Lines = tuple[tuple[Variable, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """The model and its variables by block, net and device."""

    model: Model
    on: Lines
    cuts: Lines
    ends: Lines
    """Of nets of more than two pins, for each accelerator: whether some and whether all pins are there."""
    after: Lines
    """z of each block, where convex devices are asked."""
    busiest: Variable
    figures: Figures


@dataclass(frozen=True, slots=True)
class Machine:
    """What the blocks are put on."""

    accelerators: int
    cpus: int
    memory: float
    overlapped: bool
    convex: bool


def machine_of(question: PlacementQuestion) -> Machine:
    """What blocks are put on, as the model takes it."""
    overlapped, convex = question.communication == "overlapped", question.contiguity == "convex"
    return Machine(question.accelerators, question.cpus, question.memory, overlapped, convex)


def assignment_model(blocks: Blocks, machine: Machine, greatest: float, least: float = 0.0) -> Assignment:
    """The model of all placements whose busiest device takes no longer than `greatest` milliseconds, where none takes less than `least`."""
    figures, accelerators = figures_of(blocks, machine.memory, greatest, STEPS), machine.accelerators
    devices, ranks = accelerators + machine.cpus, _ranks(blocks)
    on = tuple(
        tuple(Variable(f"block {b} on {i}", high=_may(figures, machine, ranks, b, i)) for i in range(devices)) for b in range(len(blocks))
    )
    cuts = tuple(tuple(Variable(f"net {e} cut at {i}") for i in range(accelerators)) for e in range(len(blocks.nets)))
    ends = tuple(
        tuple(Variable(f"{what} of net {e} on {i}") for i in range(accelerators) for what in ("some", "all")) if len(pins) > 2 else ()
        for e, pins in enumerate(blocks.nets)
    )
    after = tuple(tuple(Variable(f"block {b} after {i}") for i in range(devices)) for b in range(len(blocks) if machine.convex else 0))
    busiest = Variable("busiest", int(floored([least], figures.quantum)[0]), int(floored([greatest], figures.quantum)[0]) + 1)
    rows: list[Linear | ExactlyOne] = [ExactlyOne(f"block {b}", line) for b, line in enumerate(on)]
    rows += _cuts(blocks, on, cuts, ends, accelerators)
    for i in range(devices):
        rows += _loads(
            figures, [line[i] for line in on], [line[i] for line in cuts] if i < accelerators else None, i, busiest, machine.overlapped
        )
    rows += _convex(blocks, on, after, devices)
    every = (*(variable for lines in (on, cuts, ends, after) for line in lines for variable in line), busiest)
    return Assignment(Model(every, tuple(rows), ((1, busiest),)), on, cuts, ends, after, busiest, figures)


def device_of_blocks(assignment: Assignment, values: Values) -> list[int]:
    """The device of each block."""
    return [next(i for i, x in enumerate(line) if values[x]) for line in assignment.on]


def values_at(assignment: Assignment, blocks: Blocks, machine: Machine, device: list[int]) -> Values:
    """The values of a placement that is known, with accelerators renamed as the model names them."""
    device = renamed(blocks, machine, device)
    values = {x: int(device[b] == i) for b, line in enumerate(assignment.on) for i, x in enumerate(line)}
    for line, pins in zip(assignment.cuts, blocks.nets, strict=True):
        where = {device[pin] for pin in pins}
        values |= {cut: int(len(where) > 1 and i in where) for i, cut in enumerate(line)}
    for line, pins in zip(assignment.ends, blocks.nets, strict=True):
        where = {device[pin] for pin in pins}
        values |= {end: int(place // 2 in where if place % 2 == 0 else where == {place // 2}) for place, end in enumerate(line)}
    if assignment.after:
        reached = _reached(blocks, device, machine.accelerators + machine.cpus)
        values |= {z: int(reached[i, b]) for b, line in enumerate(assignment.after) for i, z in enumerate(line)}
    values[assignment.busiest] = 0
    loads = (row for row in assignment.model.constraints if isinstance(row, Linear) and (-1, assignment.busiest) in row.terms)
    values[assignment.busiest] = max(row.violation(values) for row in loads)
    return values


def renamed(blocks: Blocks, machine: Machine, device: list[int]) -> list[int]:
    """The same placement, accelerators numbered by their largest block."""
    names: dict[int, int] = {}
    for block in np.argsort(_ranks(blocks), kind="stable").tolist():
        if device[block] < machine.accelerators:
            names.setdefault(device[block], len(names))
    return [names[place] if place < machine.accelerators else place for place in device]


def _ranks(blocks: Blocks) -> list[int]:
    """The place of each block in the order of work, the largest first."""
    order = np.argsort(-np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, -1.0), kind="stable")
    ranks = np.empty(len(blocks), np.int64)
    ranks[order] = np.arange(len(blocks))
    return [int(rank) for rank in ranks]


def _may(figures: Figures, machine: Machine, ranks: list[int], block: int, device: int) -> int:
    """1 if the block may be on the device."""
    return int(device >= machine.accelerators or (figures.supported[block] and device <= ranks[block]))


def _cuts(blocks: Blocks, on: Lines, cuts: Lines, ends: Lines, accelerators: int) -> list[Linear]:
    """cut >= x - x' both ways for two pins; for more pins cut >= some - all."""
    rows = []
    for e, pins in enumerate(blocks.nets):
        for i in range(accelerators):
            if len(pins) == 2:
                rows += [_cut(e, i, on[one][i], on[other][i], cuts[e][i]) for one, other in (pins, pins[::-1])]
                continue
            some, whole = ends[e][2 * i], ends[e][2 * i + 1]
            rows += [Linear(f"net {e} has {pin} on {i}", ((1, on[pin][i]), (-1, some)), high=0) for pin in pins]
            rows += [Linear(f"net {e} whole on {i} with {pin}", ((1, whole), (-1, on[pin][i])), high=0) for pin in pins]
            rows.append(_cut(e, i, some, whole, cuts[e][i]))
    return rows


def _cut(net: int, device: int, one: Variable, other: Variable, cut: Variable) -> Linear:
    return Linear(f"net {net} cut at {device} by {one.name} without {other.name}", ((1, one), (-1, other), (-1, cut)), high=0)


def _loads(
    figures: Figures, on: list[Variable], cuts: list[Variable] | None, device: int, busiest: Variable, overlapped: bool
) -> list[Linear]:
    if cuts is None:
        return [Linear(f"load of cpu {device}", (*_sum(figures.cpu, on), (-1, busiest)), high=0)]
    compute, transfer = _sum(figures.accelerator, on), _sum(figures.transfer, cuts)
    rows = [Linear(f"memory of {device}", _sum(figures.size, on), high=figures.memory)]
    if overlapped:
        rows.append(Linear(f"transfer of {device}", (*transfer, (-1, busiest)), high=0))
        return [*rows, Linear(f"compute of {device}", (*compute, (-1, busiest)), high=0)]
    return [*rows, Linear(f"load of {device}", (*compute, *transfer, (-1, busiest)), high=0)]


def _sum(costs: list[int], variables: list[Variable]) -> tuple[tuple[int, Variable], ...]:
    return tuple((cost, variable) for cost, variable in zip(costs, variables, strict=True) if cost)


def _convex(blocks: Blocks, on: Lines, after: Lines, devices: int) -> list[Linear]:
    rows = [
        Linear(f"block {b} on {i} is after it", ((1, on[b][i]), (-1, after[b][i])), high=0)
        for b in range(len(after))
        for i in range(devices)
    ]
    for one, other in blocks.arcs if after else ():
        for i in range(devices):
            rows.append(Linear(f"{one} before {other} at {i}", ((1, after[one][i]), (-1, after[other][i])), high=0))
            terms = ((1, on[other][i]), (1, after[one][i]), (-1, on[one][i]))
            rows.append(Linear(f"{other} comes not back to {i} by {one}", terms, high=1))
    return rows


def _reached(blocks: Blocks, device: list[int], devices: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which blocks the data of each device reach, itself included. Blocks are numbered along the arcs."""
    reached = np.zeros((devices, len(blocks)), bool)
    reached[device, np.arange(len(blocks))] = True
    for one, other in sorted(blocks.arcs):
        reached[:, other] |= reached[:, one]
    return reached
