"""Plans of chains: equal splits, exact dynamic programming over cuts, and rules as baselines, which a check carries out again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import isqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from crossopt.crossflow.arrays import Array, Ints
from crossopt.instances.stages.chain import ChainQuestion, Recompute, Width
from crossopt.solvers.answer import Baseline
from crossopt.solvers.stages.chain.judge import NONE, ChainPlan, even, fixed_name

# The best stages of a chain of layers, by dynamic programming over cuts and numbers of stages: exact, and vectorised over pairs of cuts.
#
# For a stage of the layers from i up to j, with c_i the bytes that enter layer i (0 at both ends), f and b its forward and backward time:
#
#     plain       c_i / B + f + c_j / B + b
#     recompute   c_i / B + f + max(f, c_j / B) + b          every stage but the last recomputes its activations while it waits
#     memory      copies * parameters + activations + (s - 1) * stash  <=  memory
#
# where s stages are left from here to the end and `stash` is what a waiting microbatch keeps: its activations, or c_i where they are
# recomputed. `slowest[s, i]` is the least over all cuts of the slowest of s stages from layer i to the end:
#
#     slowest[s, i]  =  min over j > i of  max(load(i, j), slowest[s - 1, j]),       where the memory suffices for s
#
# With S stages on t devices each, d replicas of the pipeline, and M microbatches in a batch, t S d <= devices:
#
#     flush          max load * (ceil(M / d) + S - 1)  +  4 (d - 1) / d * first stage's parameters / B          PHAZE (arXiv 2407.13143)
#     two-versions   max over stages of  m * load + 2 (d - 1) / d * parameters / B,    m = M / (d k) >= S        PipeDream-2BW (ICML 2021)
#
# Under two-versions k microbatches are one: their times but for the overhead, activations and transfers are k times as large. No pipeline
# runs empty; two versions of the parameters suffice because a batch is not shorter than the pipeline. Its gradients are summed once a batch
# in a ring, each stage's own; flush charges two rings of the first stage's.

Tick = Callable[[], None]
"""Called now and then; raises to stop."""


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """What is chosen beside the stages."""

    width: int
    recompute: Recompute
    microbatch: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """What stages cost, by first layer and by the layer that follows; infinite where that is not behind the first."""

    last: Array
    """Of stages with the end behind them."""
    other: Array
    stored: Array
    """Bytes without waiting microbatches."""
    stash: Array
    parameters: Array


def settings_of(question: ChainQuestion) -> Iterator[Setting]:
    """All of them."""
    for width in question.widths:
        for recompute in question.file.recompute:
            for microbatch in question.file.microbatch:
                yield Setting(width.devices, recompute, microbatch)


def pairs_of(question: ChainQuestion, setting: Setting) -> Pairs:
    """Loads and memory of all stages that a chain can have."""
    width, size, file = _width(question, setting.width), float(setting.microbatch), question.file
    count = len(question.layers)
    forward, backward = (_between(size * column + file.overhead) for column in (width.forward, width.backward))
    entering = size * question.entering / file.bandwidth
    came, goes = entering[:-1, None], entering[None, :]
    empty = np.tri(count, count + 1, dtype=bool)
    plain = np.where(empty, np.inf, came + forward + goes + backward)
    activations, parameters = size * _between(width.activations), _between(width.parameters)
    recomputed = setting.recompute == "full"
    return Pairs(
        last=plain,
        other=np.where(empty, np.inf, came + forward + np.maximum(forward, goes) + backward) if recomputed else plain,
        stored=file.copies * parameters + activations,
        stash=np.broadcast_to(size * question.entering[:-1, None], activations.shape) if recomputed else activations,
        parameters=parameters,
    )


def slowest(pairs: Pairs, memory: float, limits: Array, tick: Tick) -> Array:
    """The table, for no stages (none at the end, and impossible elsewhere) up to as many as there are limits.

    In plans that may be best no stage takes more than `limits[s]`, which never rises with s, where s stages or more are left; so only
    stages as long as that allows are looked at, `near[i, k]` being that of layers i to i + k.
    """
    count, most = len(pairs.last), len(limits) - 1
    table = np.full((most + 1, count + 1), np.inf)
    table[1, :count] = np.where(pairs.stored[:, count] <= memory, pairs.last[:, count], np.inf)
    if most == 1:
        return table
    columns = np.arange(count)[:, None] + np.arange(1, count + 1)
    rows, inside = np.arange(count)[:, None], np.minimum(columns, count)
    near = np.where(columns <= count, pairs.other[rows, inside], np.inf)
    least = np.minimum.accumulate(near.min(axis=0)[::-1])[::-1]
    longest = np.searchsorted(least, limits, "right")
    near, inside = near[:, : longest[2]], inside[:, : longest[2]]
    stored, stash = pairs.stored[rows, inside], pairs.stash[rows, inside]
    for stages in range(2, most + 1):
        tick()
        size, rows_left = int(longest[stages]), count - stages + 1
        if not size or rows_left < 1:
            break
        behind = sliding_window_view(np.append(table[stages - 1, 1:], np.full(size, np.inf)), size)[:rows_left]
        fits = stored[:rows_left, :size] + (stages - 1) * stash[:rows_left, :size] <= memory
        table[stages, :rows_left] = np.where(fits, np.maximum(near[:rows_left, :size], behind), np.inf).min(axis=1)
    return table


def traced(pairs: Pairs, memory: float, table: Array, stages: int, start: int) -> tuple[int, ...]:
    """Layers of the stages behind an entry of the table."""
    count, parts = len(pairs.last), list[int]()
    while stages > 1:
        costs = np.where(pairs.stored[start] + (stages - 1) * pairs.stash[start] <= memory, pairs.other[start], np.inf)
        stop = int(np.maximum(costs, table[stages - 1]).argmin())
        parts.append(stop - start)
        start, stages = stop, stages - 1
    return (*parts, count - start)


def replicas_of(question: ChainQuestion, divisible: bool) -> Ints:
    """Numbers of replicas that can be best under `flush`: of those with as many rounds the least, which sums the fewest gradients."""
    file = question.file
    most = min(file.devices, file.microbatches)
    if divisible:
        return np.array([d for d in _divisors(file.microbatches) if d <= most and file.devices % d == 0], np.int64)
    few = np.arange(1, isqrt(file.microbatches) + 2)
    rounds = np.unique(np.concatenate([few, -(-file.microbatches // few)]))
    least = np.unique(-(-file.microbatches // rounds))
    return np.asarray(least[least <= most])


def two_version_replicas(question: ChainQuestion, setting: Setting, divisible: bool) -> Ints:
    """Numbers of replicas among which the microbatches of a batch can be divided."""
    file = question.file
    every = _divisors(file.microbatches // setting.microbatch)
    fitting = [d for d in every if d <= file.devices // setting.width and not (divisible and file.devices % d)]
    return np.array(fitting, np.int64)


def _divisors(number: int) -> list[int]:
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def _between(column: Array) -> Array:
    """Sums from each layer up to each other."""
    sums = _running(column)
    return np.asarray(sums[None, :] - sums[:-1, None])


def _running(column: Array) -> Array:
    """Sums of the first figures, none to all, each rounded once: what additions lose is carried along (Neumaier 1974)."""
    found, total, lost = [0.0], 0.0, 0.0
    for figure in column.tolist():
        more = total + figure
        lost += total - more + figure if total >= figure else figure - more + total
        total = more
        found.append(total + lost)
    return np.array(found)


def _width(question: ChainQuestion, devices: int) -> Width:
    return next(width for width in question.widths if width.devices == devices)


# The best plan for a chain: every width, recomputation and size of microbatches, numbers of stages and replicas, and the best cuts.

_SURELY = 1.0 + 1e-9
"""Values are raised by more than rounding can have lowered them before anything is left out for them."""


@dataclass(frozen=True, slots=True)
class Best:
    """The least time of a batch, and a plan that has it."""

    value: float = float("inf")
    plan: ChainPlan | None = None


@dataclass(frozen=True, slots=True)
class Bests:
    """The best plan, and the best whose replicas divide devices and microbatches; where the question asks for that, both are the second."""

    any: Best = field(default_factory=Best)
    divisible: Best = field(default_factory=Best)


def best_plans(question: ChainQuestion, known: float, tick: Tick) -> Bests:
    """The best of all plans; `known` is the value of one whose replicas divide devices and microbatches."""
    find, bests = _flush if question.file.schedule == "flush" else _two_versions, [Best() for _ in _kinds(question)]
    for setting in settings_of(question):
        bests = find(question, setting, bests, known * _SURELY, tick)
    return Bests(bests[0], bests[-1])


def equal_splits(question: ChainQuestion, tick: Tick) -> Bests:
    """The best plans whose stages have equal numbers of layers, or as equal as can be."""
    count, kinds = len(question.layers), _kinds(question)
    bests = [Best() for _ in kinds]
    most = min(count, question.file.devices // min(width.devices for width in question.widths))
    splits = [np.cumsum((0, *even(count, stages))) for stages in range(1, most + 1)]
    for setting in settings_of(question):
        pairs = pairs_of(question, setting)
        every = [_replicas(question, setting, divisible) for divisible in kinds]
        for cuts in splits[: question.file.devices // setting.width]:
            tick()
            rows, stops, left = cuts[:-1], cuts[1:], np.arange(len(cuts) - 2, -1, -1)
            if (pairs.stored[rows, stops] + left * pairs.stash[rows, stops] <= question.file.memory).all():
                bests = [_equal(question, setting, pairs, cuts, data, best) for data, best in zip(every, bests, strict=True)]
    return Bests(bests[0], bests[-1])


def _kinds(question: ChainQuestion) -> tuple[bool, ...]:
    """Whether replicas must divide the devices: as the question says, and so."""
    return (True,) if question.file.divisible else (False, True)


def _replicas(question: ChainQuestion, setting: Setting, divisible: bool) -> Ints:
    """Numbers of replicas to choose from, ascending."""
    if question.file.schedule == "flush":
        return replicas_of(question, divisible)
    return two_version_replicas(question, setting, divisible)


def _equal(question: ChainQuestion, setting: Setting, pairs: Pairs, cuts: Ints, data: Ints, best: Best) -> Best:
    """The better of a plan and the best number of replicas for given cuts."""
    file, stages = question.file, len(cuts) - 1
    data = data[: np.searchsorted(data, file.devices // (setting.width * stages), "right")]
    loads = np.append(pairs.other[cuts[:-2], cuts[1:-1]], pairs.last[cuts[-2], cuts[-1]])
    if file.schedule == "flush":
        times = loads.max() * _rounds(question, data, stages) + _sums(question, 4.0, data) * pairs.parameters[0, cuts[1]]
    else:
        data = data[file.microbatches // setting.microbatch // data >= stages]
        rounds, parameters = file.microbatches // setting.microbatch // data, pairs.parameters[cuts[:-1], cuts[1:]]
        times = (rounds[:, None] * loads + _sums(question, 2.0, data)[:, None] * parameters).max(axis=1)
    if not len(times) or times.min() >= best.value:
        return best
    index = int(times.argmin())
    return Best(float(times[index]), _plan(setting, int(data[index]), even(len(question.layers), stages)))


def _flush(question: ChainQuestion, setting: Setting, bests: list[Best], known: float, tick: Tick) -> list[Best]:
    """The better of the plans given and those of a setting under `flush`: one table for all numbers of replicas."""
    file, pairs, most = question.file, pairs_of(question, setting), min(len(question.layers), question.file.devices // setting.width)
    if not most:
        return bests
    stages = np.arange(1, most + 1)
    fewest = -(-file.microbatches // (file.devices // (setting.width * stages))) + stages - 1  # rounds with as many replicas as can be
    table = slowest(pairs, file.memory, np.append(np.inf, known / fewest), tick)
    return [
        _with_replicas(question, setting, pairs, table, replicas_of(question, divisible), best)
        for divisible, best in zip(_kinds(question), bests, strict=True)
    ]


def _with_replicas(question: ChainQuestion, setting: Setting, pairs: Pairs, table: Array, every: Ints, best: Best) -> Best:
    """The better of a plan and the best of a table, first stages and replicas chosen together."""
    found = (best.value, 0, 0, 0)
    for stages in range(1, len(table)):
        ends, loads = _first_stages(pairs, question.file.memory, table, stages)
        data = every[: np.searchsorted(every, question.file.devices // (setting.width * stages), "right")]
        times = loads[:, None] * _rounds(question, data, stages) + _sums(question, 4.0, data) * pairs.parameters[0, ends][:, None]
        if times.size and times.min() < found[0]:
            row, column = divmod(int(times.argmin()), len(data))
            found = (float(times[row, column]), stages, int(ends[row]), int(data[column]))
    value, stages, end, replicas = found
    if not stages:
        return best
    behind = traced(pairs, question.file.memory, table, stages - 1, end) if stages > 1 else ()
    return Best(value, _plan(setting, replicas, (end, *behind)))


def _rounds(question: ChainQuestion, data: Ints, stages: int) -> Ints:
    """Microbatches of the longest share, and those that fill the pipeline."""
    return np.asarray(-(-question.file.microbatches // data) + stages - 1)


def _sums(question: ChainQuestion, rings: float, data: Ints) -> Array:
    """Seconds to sum the gradients of a byte of parameters."""
    return np.asarray(rings * (data - 1) / data / question.file.bandwidth)


def _first_stages(pairs: Pairs, memory: float, table: Array, stages: int) -> tuple[Ints, Array]:
    """Ends that the first of so many stages can have, and the slowest stage with each."""
    if stages == 1:
        return np.array([len(pairs.last)]), table[1, :1]
    ends = np.flatnonzero(table[stages - 1] < np.inf)
    ends = ends[pairs.stored[0, ends] + (stages - 1) * pairs.stash[0, ends] <= memory]
    return ends, np.asarray(np.maximum(pairs.other[0, ends], table[stages - 1, ends]))


def _two_versions(question: ChainQuestion, setting: Setting, bests: list[Best], known: float, tick: Tick) -> list[Best]:
    """The dynamic program under `two-versions`: a table for each number of replicas, since every stage sums its own gradients."""
    file, pairs, found = question.file, pairs_of(question, setting), list(bests)
    for data in two_version_replicas(question, setting, file.divisible).tolist():
        rounds = file.microbatches // setting.microbatch // data
        sums = 2.0 * (data - 1) / data / file.bandwidth * pairs.parameters
        costs = Pairs(rounds * pairs.last + sums, rounds * pairs.other + sums, pairs.stored, pairs.stash, pairs.parameters)
        most = min(len(question.layers), rounds, file.devices // (setting.width * data))
        table = slowest(costs, file.memory, np.full(most + 1, known), tick)
        stages = int(table[1:, 0].argmin()) + 1
        for index, divisible in enumerate(_kinds(question)):
            if table[stages, 0] < found[index].value and not (divisible and file.devices % data):
                found[index] = Best(float(table[stages, 0]), _plan(setting, data, traced(costs, file.memory, table, stages, 0)))
    return found


def _plan(setting: Setting, data: int, stages: tuple[int, ...]) -> ChainPlan:
    return ChainPlan(setting.width, setting.recompute, setting.microbatch, data, stages)


# Rules to compare with.


def rules_of_chain(question: ChainQuestion, equal: Bests | None = None) -> tuple[Baseline[ChainPlan], ...]:
    """The best equal split, and the plan that the question names, each layer recomputed or none."""
    file, found = question.file, [baseline_of("equal split", (equal or equal_splits(question, lambda: None)).any.plan)]
    for fixed, mode in product(() if file.fixed is None else (file.fixed,), file.recompute):
        plan = ChainPlan(fixed.width, mode, file.microbatch[0], fixed.data, even(len(question.layers), fixed.stages))
        found.append(baseline_of(fixed_name(question, mode), plan))
    return tuple(found)


def baseline_of(name: str, plan: ChainPlan | None) -> Baseline[ChainPlan]:
    """A plan under the name of its rule."""
    return Baseline(name, None, plan, "" if plan else NONE)
