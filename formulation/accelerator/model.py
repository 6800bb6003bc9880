"""Integer models of the two inner questions, for small ones: PHAZE's program for a schedule, and stages on one of several chips.

A schedule (arXiv 2407.13143), with starts t, makespan T, and 0/1 variables y_i "i runs on all cores", x_ij "i ends before j starts" and
a_ic "i runs on core c":

    min T,    T >= t_i + d_i,    d_i = one_i + (every_i - one_i) y_i
    t_j >= t_i + d_i                       where i is before j
    t_j >= t_i + d_i - H (1 - x_ij)        for other pairs, of which x_ij + x_ji >= y_i, y_j
    sum_c a_ic = 1 - y_i,   x_ij + x_ji >= a_ic + a_jc - 1     for each type of core that i and j need

Stages for given numbers of stages S and pipelines d, with 0/1 variables z_h "chip h" and u_sp "stage s lies between the ideals of p":

    min (ceil(M / d) + S - 1) T + G,    T >= sum_p load_hp u_sp - L_h (1 - z_h),    sum_h z_h = 1
    G >= sum_p sums_p u_sp for the first stage, or for every one; rounds are ceil(M / d) alone for pipelines that stay full
    stages follow each other from nothing to everything, and their devices are no more than there are for a pipeline

Within a limit of that time the area of the chip, sum_h area_h z_h, or the devices of all stages are minimised.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import floor, inf

import numpy as np

from crossopt.crossflow.accelerator import OperatorGraph
from crossopt.crossflow.arrays import Array
from crossopt.formulation.accelerator.stages import Cuts, Option, Pipelines, Stage, StagePlan
from crossopt.formulation.model import ExactlyOne, Linear, Model, Terms, Values, Variable


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleModel:
    """The program for a schedule with its variables by operator."""

    model: Model
    starts: tuple[Variable, ...]
    on_all: tuple[Variable, ...]


def schedule_model(graph: OperatorGraph, one: Sequence[int], every: Sequence[int], cores: tuple[int, int]) -> ScheduleModel:
    """PHAZE's program for the shortest schedule, with all rows of cores from the start."""
    count, horizon = len(graph), max(sum(max(pair) for pair in zip(one, every, strict=True)), 1)
    starts = tuple(Variable(f"start {row}", 0, horizon) for row in range(count))
    on_all = tuple(Variable(f"on all {row}") for row in range(count))
    makespan = Variable("makespan", 0, horizon)
    variables, rows = [*starts, *on_all, makespan], list[ExactlyOne | Linear]()

    def ends(row: int, factor: int) -> Terms:
        """The end of an operator without its cycles on one core."""
        more = every[row] - one[row]
        return ((factor, starts[row]), *(((factor * more, on_all[row]),) if more else ()))

    for row in range(count):
        rows.append(Linear(f"makespan {row}", ((1, makespan), *ends(row, -1)), one[row]))
        rows += [Linear(f"{earlier} before {row}", ((1, starts[row]), *ends(earlier, -1)), one[earlier]) for earlier in graph.before[row]]
    placed = _cores(graph, on_all, cores, variables, rows)
    for first, second in combinations(range(count), 2):
        if graph.comparable[first] >> second & 1:
            continue
        orders = []
        for earlier, later in ((first, second), (second, first)):
            order = Variable(f"{earlier} then {later}")
            row_terms = ((1, starts[later]), *ends(earlier, -1), (-2 * horizon, order))
            rows.append(Linear(f"order {earlier} {later}", row_terms, one[earlier] - 2 * horizon))
            orders.append(order)
        variables += orders
        both = tuple((1, order) for order in orders)
        rows += [Linear(f"alone {row} of {first} {second}", (*both, (-1, on_all[row])), 0) for row in (first, second)]
        for core in placed[first].keys() & placed[second].keys():
            rows.append(Linear(f"core {core} of {first} {second}", (*both, (-1, placed[first][core]), (-1, placed[second][core])), -1))
    return ScheduleModel(Model(tuple(variables), tuple(rows), ((1, makespan),)), starts, on_all)


def _cores(
    graph: OperatorGraph, on_all: Sequence[Variable], cores: tuple[int, int], variables: list[Variable], rows: list[ExactlyOne | Linear]
) -> list[dict[tuple[int, int], Variable]]:
    """For each operator the cores on which it can run."""
    placed = list[dict[tuple[int, int], Variable]]()
    for row, uses in enumerate(graph.uses):
        own = dict[tuple[int, int], Variable]()
        for side in (side for side in (0, 1) if uses[side]):
            choices = {(side, core): Variable(f"{row} on {side} {core}") for core in range(min(cores[side], len(graph)))}
            rows.append(ExactlyOne(f"cores {side} of {row}", (*choices.values(), on_all[row])))
            variables += choices.values()
            own |= choices
        placed.append(own)
    return placed


@dataclass(frozen=True, slots=True, eq=False)
class StageModel:
    """The program for stages with its variables: chips, and by number of stages to the end, option and pair of ideals."""

    model: Model
    chips: tuple[Variable, ...]
    used: dict[tuple[int, int, int], Variable]


def stage_model(
    cuts: Cuts,
    options: Sequence[Sequence[Option]],
    shared: Pipelines,
    chosen: tuple[int, int],
    figures: tuple[Sequence[Array], Sequence[int]],
) -> StageModel:
    """The program for so many stages and pipelines; `options` by chip, `figures` the sums of gradients in units of time, by option and
    pair of ideals, and what each chip adds where no time is minimised."""
    sums, weights = figures
    stages, data = chosen
    chips, most = (
        tuple(Variable(f"chip {row}") for row in range(len(options))),
        int(max(option.loads.max() for own in options for option in own)),
    )
    slowest = Variable("slowest", 0, max(most, 1))
    used = {
        (stage, choice, pair): Variable(f"stage {stage} option {choice} pair {pair}")
        for stage in range(1, stages + 1)
        for choice, option in enumerate(options[0])
        for pair in range(len(cuts.first))
        if option.least_stages <= stage <= option.most_stages[pair]
    }
    rows: list[ExactlyOne | Linear] = [ExactlyOne("chip", chips)]
    everything = len(cuts.layers) - 1
    for stage in range(1, stages + 1):
        own = {key: variable for key, variable in used.items() if key[0] == stage}
        rows.append(ExactlyOne(f"stage {stage}", tuple(own.values())))
        for row, chip in enumerate(chips):
            loads = tuple((-int(options[row][choice].loads[pair]), variable) for (_, choice, pair), variable in own.items())
            terms = tuple((factor, variable) for factor, variable in loads if factor)
            rows.append(Linear(f"load {stage} {row}", ((1, slowest), *terms, (-max(most, 1), chip)), -max(most, 1)))
        for ideal in range(1, everything + 1):
            ended = tuple((1, used[key]) for key in used if key[0] == stage and int(cuts.last[key[2]]) == ideal)
            begun = tuple((-1, used[key]) for key in used if key[0] == stage - 1 and int(cuts.first[key[2]]) == ideal)
            if stage == 1 and ideal == everything:
                begun = ()
            if (ended or begun) and (stage > 1 or ideal < everything):
                rows.append(Linear(f"follow {stage} {ideal}", ended + begun, 0, 0))
        for key, variable in own.items():
            if stage == stages and int(cuts.first[key[2]]) != 0:
                rows.append(Linear(f"start {key}", ((1, variable),), 0, 0))
    widths = tuple((options[0][choice].tensor, variable) for (_, choice, _), variable in used.items())
    rows += [Linear("devices", widths, None, shared.devices // data)] if widths else []
    summed = Variable("gradients", 0, max(int(max(own.max(initial=0.0) for own in sums)), 1))
    for stage in range(1, stages + 1) if shared.every else (stages,):
        terms = tuple((-int(sums[choice][pair]), variable) for (at, choice, pair), variable in used.items() if at == stage)
        rows.append(Linear(f"gradients {stage}", ((1, summed), *((factor, variable) for factor, variable in terms if factor)), 0))
    rounds = -(-shared.microbatches // data) + (stages - 1 if shared.flushes else 0)
    time: Terms = ((rounds, slowest), (1, summed))
    if shared.longest < inf:
        rows.append(Linear("time", time, None, floor(shared.longest / shared.unit)))
    objective = time
    if shared.measure == "devices":
        objective = tuple((data * factor, variable) for factor, variable in widths)
    elif shared.measure == "feasible":
        objective = tuple(zip(weights, chips, strict=True))
    return StageModel(Model((*chips, slowest, summed, *used.values()), tuple(rows), objective), chips, used)


def plan_of(built: StageModel, cuts: Cuts, options: Sequence[Option], values: Values, pipelines: tuple[int, bool]) -> tuple[int, StagePlan]:
    """The chip and the stages of a solution, of so many pipelines with or without flushes."""
    chip = next(row for row, variable in enumerate(built.chips) if values[variable])
    found = sorted((key for key, variable in built.used.items() if values[variable]), reverse=True)
    stages = tuple(
        Stage(int(cuts.first[pair]), int(cuts.last[pair]), options[choice].tensor, options[choice].recompute) for _, choice, pair in found
    )
    return chip, StagePlan(0.0, pipelines[0], stages, pipelines[1])


def sums_of(options: Sequence[Option], shared: Pipelines, data: int) -> list[Array]:
    """Units of time to sum the gradients of a stage, by option and pair of ideals, rounded down."""
    return [np.floor(shared.synced * option.parameters * (data - 1) / data / shared.unit) for option in options]
