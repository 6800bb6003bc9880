"""The best plan for a chain: every width, recomputation and size of microbatches, numbers of stages and replicas, and the best cuts."""

from dataclasses import dataclass, field

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.stages.chain.cuts import (
    Pairs,
    Setting,
    Tick,
    pairs_of,
    replicas_of,
    settings_of,
    slowest,
    traced,
    two_version_replicas,
)
from crossopt.solvers.stages.chain.plan import ChainPlan, even

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
            if (pairs.kept[rows, stops] + left * pairs.stash[rows, stops] <= question.file.memory).all():
                bests = [_equal(question, setting, pairs, cuts, data, best) for data, best in zip(every, bests, strict=True)]
    return Bests(bests[0], bests[-1])


def _kinds(question: ChainQuestion) -> tuple[bool, ...]:
    """Whether replicas must divide the devices: as the question says, and so."""
    return (True,) if question.file.divisible else (False, True)


def _replicas(question: ChainQuestion, setting: Setting, divisible: bool) -> Whole:
    """Numbers of replicas to choose from, ascending."""
    if question.file.schedule == "flush":
        return replicas_of(question, divisible)
    return two_version_replicas(question, setting, divisible)


def _equal(question: ChainQuestion, setting: Setting, pairs: Pairs, cuts: Whole, data: Whole, best: Best) -> Best:
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
    place = int(times.argmin())
    return Best(float(times[place]), _plan(setting, int(data[place]), even(len(question.layers), stages)))


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


def _with_replicas(question: ChainQuestion, setting: Setting, pairs: Pairs, table: Array, every: Whole, best: Best) -> Best:
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


def _rounds(question: ChainQuestion, data: Whole, stages: int) -> Whole:
    """Microbatches of the longest share, and those that fill the pipeline."""
    return np.asarray(-(-question.file.microbatches // data) + stages - 1)


def _sums(question: ChainQuestion, rings: float, data: Whole) -> Array:
    """Seconds to sum the gradients of a byte of parameters."""
    return np.asarray(rings * (data - 1) / data / question.file.bandwidth)


def _first_stages(pairs: Pairs, memory: float, table: Array, stages: int) -> tuple[Whole, Array]:
    """Ends that the first of so many stages can have, and the slowest stage with each."""
    if stages == 1:
        return np.array([len(pairs.last)]), table[1, :1]
    ends = np.flatnonzero(table[stages - 1] < np.inf)
    ends = ends[pairs.kept[0, ends] + (stages - 1) * pairs.stash[0, ends] <= memory]
    return ends, np.asarray(np.maximum(pairs.other[0, ends], table[stages - 1, ends]))


def _two_versions(question: ChainQuestion, setting: Setting, bests: list[Best], known: float, tick: Tick) -> list[Best]:
    """The same under `two-versions`: a table for each number of replicas, since every stage sums its own gradients."""
    file, pairs, found = question.file, pairs_of(question, setting), list(bests)
    for data in two_version_replicas(question, setting, file.divisible).tolist():
        rounds = file.microbatches // setting.microbatch // data
        sums = 2.0 * (data - 1) / data / file.bandwidth * pairs.parameters
        costs = Pairs(rounds * pairs.last + sums, rounds * pairs.other + sums, pairs.kept, pairs.stash, pairs.parameters)
        most = min(len(question.layers), rounds, file.devices // (setting.width * data))
        table = slowest(costs, file.memory, np.full(most + 1, known), tick)
        stages = int(table[1:, 0].argmin()) + 1
        for place, divisible in enumerate(_kinds(question)):
            if table[stages, 0] < found[place].value and not (divisible and file.devices % data):
                found[place] = Best(float(table[stages, 0]), _plan(setting, data, traced(costs, file.memory, table, stages, 0)))
    return found


def _plan(setting: Setting, data: int, stages: tuple[int, ...]) -> ChainPlan:
    return ChainPlan(setting.width, setting.recompute, setting.microbatch, data, stages)
