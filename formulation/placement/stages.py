"""Throughput where devices follow each other as stages of a pipeline: blocks in an order that all data follow.

Choices   y[b, j] = 1 if block b is on stage j or before it (j = 1 .. K - 1), and x[b, j] = y[b, j] - y[b, j - 1];
          cpu[j] = 1 if stage j is a CPU
Rows      order    y[b, j] <= y[b, j + 1];   y[v, j] <= y[u, j] for every arc u -> v: what comes later in the data is on no earlier stage
          kinds    sum over j of cpu[j] = number of CPUs;  the rows of `formulation.placement.rows` for accelerators are asked where
                   cpu[j] = 0, those for CPUs where it is 1
Objective least T

Stages are told apart by their order, so that equal devices cause no symmetry, and the rows of the order are those of a closure problem:
without loads the linear relaxation is integral.
"""

from dataclasses import dataclass

from crossopt.formulation.model import Linear, Model, Terms, Values, Variable
from crossopt.formulation.placement.blocks import Blocks
from crossopt.formulation.placement.rows import Figures, figures_of
from crossopt.formulation.rounding import floored

STEPS = 1 << 36
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
    figures, stages = figures_of(blocks, memory, greatest, STEPS), accelerators + cpus
    prefix = tuple(tuple(Variable(f"block {b} by stage {j}") for j in range(stages - 1)) for b in range(len(blocks)))
    cuts = tuple(tuple(Variable(f"net {e} cut at stage {j}") for j in range(stages)) for e in range(len(blocks.nets)))
    cpu = tuple(Variable(f"stage {j} is a cpu", high=int(cpus > 0)) for j in range(stages))
    accelerator = tuple(Variable(f"stage {j} is an accelerator", low=int(not cpus)) for j in range(stages))
    busiest = Variable("busiest", int(floored([least], figures.quantum)[0]), int(floored([greatest], figures.quantum)[0]) + 1)
    on = [[_on(prefix[b], j) for b in range(len(blocks))] for j in range(stages)]
    rows = [*_order(blocks, prefix), *_cuts(blocks, cuts, on)]
    rows.append(Linear("cpus", tuple((1, one) for one in cpu), low=cpus, high=cpus))
    for j in range(stages):
        rows.append(Linear(f"kind of stage {j}", ((1, cpu[j]), (1, accelerator[j])), low=1, high=1))
        rows += _loads(figures, on[j], [cut[j] for cut in cuts], j, (accelerator[j], cpu[j]), busiest, overlapped)
        rows += _support(figures, on[j], cpu[j], j)
    variables = (*(y for line in prefix for y in line), *(cut for line in cuts for cut in line), *cpu, *accelerator, busiest)
    return Stages(Model(variables, tuple(rows), ((1, busiest),)), prefix, cuts, cpu, accelerator, busiest, figures)


def one_stage_model(blocks: Blocks, memory: float, overlapped: bool, greatest: float, held: int) -> tuple[Model, float]:
    """The least that an accelerator does which has this block on its stage, whatever comes before and after it, and the quantum of it.

    The model of three stages of which only the middle one counts, so that the others may stand for any number of devices.
    """
    figures = figures_of(blocks, memory, greatest, STEPS)
    prefix = tuple(
        (Variable(f"block {b} before", high=int(b != held)), Variable(f"block {b} before or on", low=int(b == held)))
        for b in range(len(blocks))
    )
    cuts = tuple((Variable(f"net {e} cut"),) for e in range(len(blocks.nets)))
    kinds = (Variable("accelerator", low=1), Variable("cpu", high=0))
    busiest = Variable("busiest", 0, int(floored([greatest], figures.quantum)[0]) + 1)
    on = [_on(line, 1) for line in prefix]
    rows = [*_order(blocks, prefix), *_cuts(blocks, cuts, [on]), *_support(figures, on, kinds[1], 1)]
    rows += _loads(figures, on, [cut for (cut,) in cuts], 1, kinds, busiest, overlapped)
    variables = (*(y for line in prefix for y in line), *(cut for (cut,) in cuts), *kinds, busiest)
    return Model(variables, tuple(rows), ((1, busiest),)), figures.quantum


def stage_of(stages: Stages, values: Values) -> list[int]:
    """The stage of each block."""
    return [sum(1 - values[y] for y in line) for line in stages.prefix]


def values_at(stages: Stages, blocks: Blocks, stage: list[int], cpu: list[bool]) -> Values:
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
        Linear(f"block {other} not before {one} at stage {j}", ((1, prefix[other][j]), (-1, prefix[one][j])), high=0)
        for one, other in blocks.arcs
        for j in range(len(prefix[one]))
    ]
    return rows


def _cuts(blocks: Blocks, cuts: tuple[tuple[Variable, ...], ...], on: list[list[tuple[Terms, int]]]) -> list[Linear]:
    """cut[e, j] >= x[b, j] - x[b', j] round the pins."""
    rows = []
    for e, pins in enumerate(blocks.nets):
        for one, other in zip(pins, (*pins[1:], pins[0]), strict=True):
            for j, here in enumerate(on):
                (plus, constant), (minus, away) = here[one], here[other]
                terms = (*plus, *((-c, v) for c, v in minus), (-1, cuts[e][j]))
                rows.append(Linear(f"net {e} between {one} and {other} at {j}", terms, high=away - constant))
    return rows


def _loads(
    figures: Figures,
    on: list[tuple[Terms, int]],
    cuts: list[Variable],
    stage: int,
    kinds: tuple[Variable, Variable],
    busiest: Variable,
    overlapped: bool,
) -> list[Linear]:
    accelerator, cpu = kinds
    compute, fixed = _sum(figures.accelerator, on)
    transfer = tuple((cost, cut) for cost, cut in zip(figures.transfer, cuts, strict=True) if cost)
    on_cpu, fixed_cpu = _sum(figures.cpu, on)
    size, fixed_size = _sum(figures.size, on)
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


def _sum(costs: list[int], on: list[tuple[Terms, int]]) -> tuple[Terms, int]:
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
