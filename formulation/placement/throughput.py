"""Integer models of placements, of throughput, of stages and of latency, and their reductions."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.formulation.model import ExactlyOne, Linear, Model, Terms, Values, Variable, ceiled, floored, quantum_for
from crossopt.formulation.placement.blocks import Blocks, Figures, Pins, blocks_of, figures_of
from crossopt.instances.placement.question import Graph, PlacementQuestion

# Integer models of throughput: blocks on any devices, or on devices that follow each other as stages, and their reductions.

# Throughput where a device may hold any blocks: each block on one device, in the form that both solvers take.
#
# Choices   x[b, i] = 1 if block b is on device i, accelerators first;  cut[e, i] = 1 if net e has a pin on accelerator i and one elsewhere
# Rows      one      sum over i of x[b, i] = 1
#           the rows of `formulation.placement.rows`, for accelerators or CPUs as they are numbered; of a net with more than two pins
#           cut >= some - all, some >= x[b, i] and all <= x[b, i] for each pin, which says more to a relaxation than pins two by two
#           order    the m-th largest block is on one of the first m accelerators (or on a CPU): equal devices can be renamed so
#           convex   (if asked) z[b, i] = 1 where a block of i comes before b, or b is on i: z[b, i] >= x[b, i]; along every arc u -> v
#                    z[v, i] >= z[u, i], and x[v, i] <= 1 - z[u, i] + x[u, i]: a node after one that data of i reached, not itself on i,
#                    is not on i either
# Objective least T

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
        values |= {end: int(index // 2 in where if index % 2 == 0 else where == {index // 2}) for index, end in enumerate(line)}
    if assignment.after:
        reached = _reached(blocks, device, machine.accelerators + machine.cpus)
        values |= {z: int(reached[i, b]) for b, line in enumerate(assignment.after) for i, z in enumerate(line)}
    values[assignment.busiest] = 0
    loads = (row for row in assignment.model.constraints if isinstance(row, Linear) and (-1, assignment.busiest) in row.terms)
    values[assignment.busiest] = max(row.violation(values) for row in loads)
    return values


def renamed(blocks: Blocks, machine: Machine, device: list[int]) -> list[int]:
    """The placement with accelerators numbered by their largest block, which removes their symmetry."""
    names: dict[int, int] = {}
    for block in np.argsort(_ranks(blocks), kind="stable").tolist():
        if device[block] < machine.accelerators:
            names.setdefault(device[block], len(names))
    return [names[number] if number < machine.accelerators else number for number in device]


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
                rows += [_cut(e, i, on[pin_here][i], on[pin_there][i], cuts[e][i]) for pin_here, pin_there in (pins, pins[::-1])]
                continue
            some, every = ends[e][2 * i], ends[e][2 * i + 1]
            rows += [Linear(f"net {e} has {pin} on {i}", ((1, on[pin][i]), (-1, some)), high=0) for pin in pins]
            rows += [Linear(f"net {e} whole on {i} with {pin}", ((1, every), (-1, on[pin][i])), high=0) for pin in pins]
            rows.append(_cut(e, i, some, every, cuts[e][i]))
    return rows


def _cut(net: int, device: int, here: Variable, there: Variable, cut: Variable) -> Linear:
    return Linear(f"net {net} cut at {device} by {here.name} without {there.name}", ((1, here), (-1, there), (-1, cut)), high=0)


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
    for source, target in blocks.arcs if after else ():
        for i in range(devices):
            rows.append(Linear(f"{source} before {target} at {i}", ((1, after[source][i]), (-1, after[target][i])), high=0))
            terms = ((1, on[target][i]), (1, after[source][i]), (-1, on[source][i]))
            rows.append(Linear(f"{target} comes not back to {i} by {source}", terms, high=1))
    return rows


def _reached(blocks: Blocks, device: list[int], devices: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which blocks the data of each device reach, itself included. Blocks are numbered along the arcs."""
    reached = np.zeros((devices, len(blocks)), bool)
    reached[device, np.arange(len(blocks))] = True
    for source, target in sorted(blocks.arcs):
        reached[:, target] |= reached[:, source]
    return reached


# Blocks that every placement worth looking at keeps together, made one.
#
# A placement no busier than T on k accelerators and l CPUs does no more than k T on its accelerators: the work of all blocks, less what
# CPUs take off them, plus all transfers. So transfers cost no more than
#
#     B = k T - sum p_b + R,   R = the most sum of p_b over blocks on CPUs with sum of q_b <= l T
#
# (R from above, by filling the CPUs with the best ratio p / q, one block cut short). A net that is cut is paid by two accelerators, or by
# one where a pin may be on a CPU. If that is more than B, the net is not cut, and its pins are one block. Then nets with equal pins add up,
# and the next one may be too dear; until none is.

_GUARD = 1e-9
"""The share by which the budget is raised: many times what sums of floats can be off."""


def contract(blocks: Blocks, machine: Machine, greatest: float) -> Blocks:
    """The blocks that are left for placements no busier than `greatest`; without arcs, as data may then flow in circles."""
    while True:
        fewer = joined(blocks, _never_cut(blocks, machine, greatest))
        if len(fewer) == len(blocks):
            return replace(fewer, arcs=())
        blocks = fewer


def _never_cut(blocks: Blocks, machine: Machine, greatest: float) -> list[Pins]:
    on_cpu: Mask = np.logical_and(blocks.cpu_time * (1.0 - _GUARD) <= greatest, machine.cpus > 0)
    budget = _budget(blocks, machine, greatest, on_cpu)
    found = []
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        may = [bool(on_cpu[pin]) for pin in pins]
        payers = 2 if not any(may) else 0 if all(may) and machine.cpus > 1 else 1
        if payers * cost > budget:
            found.append(pins)
    return found


def _budget(blocks: Blocks, machine: Machine, greatest: float, on_cpu: Mask) -> float:
    """B, and infinite where transfers are no part of the sum."""
    if machine.overlapped:
        return float("inf")
    work = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    relief, left = 0.0, machine.cpus * greatest
    ratio = np.where(blocks.cpu_time > 0.0, work / np.where(blocks.cpu_time > 0.0, blocks.cpu_time, 1.0), np.inf)
    for block in np.argsort(-ratio, kind="stable").tolist():
        if not on_cpu[block] or not work[block]:
            continue
        taken = 1.0 if blocks.cpu_time[block] <= left else left / float(blocks.cpu_time[block])
        relief += taken * float(work[block])
        left -= taken * float(blocks.cpu_time[block])
        if left <= 0.0:
            break
    total = machine.accelerators * greatest
    return total - float(work.sum()) + relief + _GUARD * (total + float(work.sum()))


def joined(blocks: Blocks, groups: Sequence[Pins]) -> Blocks:
    """The blocks with the pins of each of these nets as one."""
    parent = list(range(len(blocks)))

    def root(block: int) -> int:
        while parent[block] != block:
            parent[block] = parent[parent[block]]
            block = parent[block]
        return block

    for pins in groups:
        for pin in pins[1:]:
            parent[root(pin)] = root(pins[0])
    roots = [root(block) for block in range(len(blocks))]
    numbers = {root: index for index, root in enumerate(dict.fromkeys(roots))}
    return renumbered(blocks, np.array([numbers[root] for root in roots], np.int64))


def renumbered(blocks: Blocks, number_of: Ints) -> Blocks:
    """The blocks that have the same number as one, without arcs."""
    nets: dict[Pins, float] = {}
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        left = tuple(sorted({int(number_of[pin]) for pin in pins}))
        if len(left) > 1:
            nets[left] = nets.get(left, 0.0) + cost
    count = int(number_of.max(initial=-1)) + 1
    return Blocks(
        accelerator_time=np.bincount(number_of, blocks.accelerator_time, count).astype(np.float64),
        cpu_time=np.bincount(number_of, blocks.cpu_time, count).astype(np.float64),
        size=np.bincount(number_of, blocks.size, count).astype(np.float64),
        nets=tuple(nets),
        transfer=np.array(list(nets.values()), np.float64),
        arcs=(),
        block_of=number_of[blocks.block_of],
    )


# Throughput where devices follow each other as stages of a pipeline: blocks in an order that all data follow.
#
# Choices   y[b, j] = 1 if block b is on stage j or before it (j = 1 .. K - 1), and x[b, j] = y[b, j] - y[b, j - 1];
#           cpu[j] = 1 if stage j is a CPU
# Rows      order    y[b, j] <= y[b, j + 1];   y[v, j] <= y[u, j] for every arc u -> v: what comes later in the data is on no earlier stage
#           kinds    sum over j of cpu[j] = number of CPUs;  the rows of `formulation.placement.rows` for accelerators are asked where
#                    cpu[j] = 0, those for CPUs where it is 1
# Objective least T
#
# Stages are told apart by their order, so that equal devices cause no symmetry, and the rows of the order are those of a closure problem:
# without loads the linear relaxation is integral.

STAGE_STEPS = 1 << 36
"""Quanta of the busiest time: CP-SAT counts in whole numbers, so that fine ones cost it nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """The model and its variables by block, net and stage."""

    model: Model
    prefix: tuple[tuple[Variable, ...], ...]
    """y of each block, for all stages but the last."""
    cuts: tuple[tuple[Variable, ...], ...]
    cpu: tuple[Variable, ...]
    accelerator: tuple[Variable, ...]
    busiest: Variable
    figures: Figures


def stages_model(
    blocks: Blocks, accelerators: int, cpus: int, memory: float, overlapped: bool, greatest: float, least: float = 0.0
) -> Stages:
    """The model of all placements whose busiest device takes no longer than `greatest` milliseconds, where none takes less than `least`."""
    figures, stages = figures_of(blocks, memory, greatest, STAGE_STEPS), accelerators + cpus
    prefix = tuple(tuple(Variable(f"block {b} by stage {j}") for j in range(stages - 1)) for b in range(len(blocks)))
    cuts = tuple(tuple(Variable(f"net {e} cut at stage {j}") for j in range(stages)) for e in range(len(blocks.nets)))
    cpu = tuple(Variable(f"stage {j} is a cpu", high=int(cpus > 0)) for j in range(stages))
    accelerator = tuple(Variable(f"stage {j} is an accelerator", low=int(not cpus)) for j in range(stages))
    busiest = Variable("busiest", int(floored([least], figures.quantum)[0]), int(floored([greatest], figures.quantum)[0]) + 1)
    on = [[_on(prefix[b], j) for b in range(len(blocks))] for j in range(stages)]
    rows = [*_order(blocks, prefix), *_stage_cuts(blocks, cuts, on)]
    rows.append(Linear("cpus", tuple((1, literal) for literal in cpu), low=cpus, high=cpus))
    for j in range(stages):
        rows.append(Linear(f"kind of stage {j}", ((1, cpu[j]), (1, accelerator[j])), low=1, high=1))
        rows += _stage_loads(figures, on[j], [cut[j] for cut in cuts], j, (accelerator[j], cpu[j]), busiest, overlapped)
        rows += _support(figures, on[j], cpu[j], j)
    variables = (*(y for line in prefix for y in line), *(cut for line in cuts for cut in line), *cpu, *accelerator, busiest)
    return Stages(Model(variables, tuple(rows), ((1, busiest),)), prefix, cuts, cpu, accelerator, busiest, figures)


def one_stage_model(blocks: Blocks, memory: float, overlapped: bool, greatest: float, block_on_stage: int) -> tuple[Model, float]:
    """The least that an accelerator does which has this block on its stage, whatever comes before and after it, and the quantum of it.

    The model of three stages of which only the middle one counts, so that the others may stand for any number of devices.
    """
    figures = figures_of(blocks, memory, greatest, STAGE_STEPS)
    prefix = tuple(
        (Variable(f"block {b} before", high=int(b != block_on_stage)), Variable(f"block {b} before or on", low=int(b == block_on_stage)))
        for b in range(len(blocks))
    )
    cuts = tuple((Variable(f"net {e} cut"),) for e in range(len(blocks.nets)))
    kinds = (Variable("accelerator", low=1), Variable("cpu", high=0))
    busiest = Variable("busiest", 0, int(floored([greatest], figures.quantum)[0]) + 1)
    on = [_on(line, 1) for line in prefix]
    rows = [*_order(blocks, prefix), *_stage_cuts(blocks, cuts, [on]), *_support(figures, on, kinds[1], 1)]
    rows += _stage_loads(figures, on, [cut for (cut,) in cuts], 1, kinds, busiest, overlapped)
    variables = (*(y for line in prefix for y in line), *(cut for (cut,) in cuts), *kinds, busiest)
    return Model(variables, tuple(rows), ((1, busiest),)), figures.quantum


def stage_of(stages: Stages, values: Values) -> list[int]:
    """The stage of each block."""
    return [sum(1 - values[y] for y in line) for line in stages.prefix]


def stage_values_at(stages: Stages, blocks: Blocks, stage: list[int], cpu: list[bool]) -> Values:
    """The values of a placement that is known: where each block is, and which stages are CPUs."""
    values = {y: int(stage[b] <= j) for b, line in enumerate(stages.prefix) for j, y in enumerate(line)}
    values |= {variable: int(is_cpu) for variable, is_cpu in zip(stages.cpu, cpu, strict=True)}
    values |= {variable: int(not is_cpu) for variable, is_cpu in zip(stages.accelerator, cpu, strict=True)}
    for line, pins in zip(stages.cuts, blocks.nets, strict=True):
        where = {stage[pin] for pin in pins}
        values |= {cut: int(len(where) > 1 and j in where) for j, cut in enumerate(line)}
    values[stages.busiest] = 0
    needed = (row.violation(values) for row in stages.model.constraints if isinstance(row, Linear) and (-1, stages.busiest) in row.terms)
    values[stages.busiest] = max(needed)
    return values


def _on(prefix: tuple[Variable, ...], stage: int) -> tuple[Terms, int]:
    """x as terms and a constant."""
    here = ((1, prefix[stage]),) if stage < len(prefix) else ()
    before = ((-1, prefix[stage - 1]),) if stage else ()
    return (*here, *before), int(stage == len(prefix))


def _order(blocks: Blocks, prefix: tuple[tuple[Variable, ...], ...]) -> list[Linear]:
    rows = [
        Linear(f"block {b} stays by stage {j + 1}", ((1, line[j]), (-1, line[j + 1])), high=0)
        for b, line in enumerate(prefix)
        for j in range(len(line) - 1)
    ]
    rows += [
        Linear(f"block {target} not before {source} at stage {j}", ((1, prefix[target][j]), (-1, prefix[source][j])), high=0)
        for source, target in blocks.arcs
        for j in range(len(prefix[source]))
    ]
    return rows


def _stage_cuts(blocks: Blocks, cuts: tuple[tuple[Variable, ...], ...], on: list[list[tuple[Terms, int]]]) -> list[Linear]:
    """cut[e, j] >= x[b, j] - x[b', j] round the pins."""
    rows = []
    for e, pins in enumerate(blocks.nets):
        for pin, following in zip(pins, (*pins[1:], pins[0]), strict=True):
            for j, here in enumerate(on):
                (plus, constant), (minus, away) = here[pin], here[following]
                terms = (*plus, *((-c, v) for c, v in minus), (-1, cuts[e][j]))
                rows.append(Linear(f"net {e} between {pin} and {following} at {j}", terms, high=away - constant))
    return rows


def _stage_loads(
    figures: Figures,
    on: list[tuple[Terms, int]],
    cuts: list[Variable],
    stage: int,
    kinds: tuple[Variable, Variable],
    busiest: Variable,
    overlapped: bool,
) -> list[Linear]:
    accelerator, cpu = kinds
    compute, fixed = _weighted_sum(figures.accelerator, on)
    transfer = tuple((cost, cut) for cost, cut in zip(figures.transfer, cuts, strict=True) if cost)
    on_cpu, fixed_cpu = _weighted_sum(figures.cpu, on)
    size, fixed_size = _weighted_sum(figures.size, on)
    rows = [
        Linear(f"load of stage {stage} on a cpu", (*on_cpu, (-1, busiest)), high=-fixed_cpu, given=cpu),
        Linear(f"memory of stage {stage}", size, high=figures.memory - fixed_size, given=accelerator),
    ]
    if overlapped:
        rows.append(Linear(f"compute of stage {stage}", (*compute, (-1, busiest)), high=-fixed, given=accelerator))
        rows.append(Linear(f"transfer of stage {stage}", (*transfer, (-1, busiest)), high=0, given=accelerator))
    else:
        rows.append(Linear(f"load of stage {stage}", (*compute, *transfer, (-1, busiest)), high=-fixed, given=accelerator))
    return rows


def _weighted_sum(costs: list[int], on: list[tuple[Terms, int]]) -> tuple[Terms, int]:
    """sum of cost * x, term by term and variable by variable."""
    terms: dict[Variable, int] = {}
    fixed = 0
    for cost, (here, constant) in zip(costs, on, strict=True):
        fixed += cost * constant
        for coefficient, variable in here:
            terms[variable] = terms.get(variable, 0) + coefficient * cost
    return tuple((coefficient, variable) for variable, coefficient in terms.items() if coefficient), fixed


def _support(figures: Figures, on: list[tuple[Terms, int]], cpu: Variable, stage: int) -> list[Linear]:
    """x[b, j] <= cpu[j] for blocks that no accelerator can take."""
    return [
        Linear(f"block {b} on a cpu at {stage}", (*terms, (-1, cpu)), high=-constant)
        for b, (terms, constant) in enumerate(on)
        if not figures.supported[b]
    ]


# The integer model of latency, and the model of all placements that keep a limit on throughput or latency.

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

LATENCY_STEPS = 1 << 34
"""Quanta of the greatest time that is considered."""


@dataclass(frozen=True, slots=True, eq=False)
class LatencyFigures:
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
    figures: LatencyFigures
    after: tuple[tuple[int, ...], ...]
    """Who takes the output of each node."""


def latency_figures(question: PlacementQuestion, greatest: float) -> LatencyFigures:
    """The figures of a question, of which times up to `greatest` milliseconds matter."""
    graph = question.graph
    quantum, sizes = (
        quantum_for(max(greatest, np.finfo(float).tiny), LATENCY_STEPS),
        quantum_for(max(float(graph.size.sum()), 1.0), 1 << 40),
    )
    fits = (graph.accelerator_time <= greatest) & (graph.size <= question.memory)
    return LatencyFigures(
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
    for source, target in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        after[source].add(target)
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
