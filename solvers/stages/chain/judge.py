"""A plan for a chain of layers, its judge layer by layer, and verification of its bounds by enumeration or a second dynamic program."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from math import ceil, fsum, isqrt

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.instances.files.units import bytes_beyond
from crossopt.instances.stages.chain import MOST_MICROBATCHES, ChainQuestion, Recompute, Width
from crossopt.solvers.answer import Result, Verdict, Watch
from crossopt.solvers.checking import by_looking_at_all, least_of_few
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import RecomputableBound

# A plan for a chain of layers, and its judge: the time of a batch and the memory of every stage, layer by layer.

# A plan for a chain of layers.


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """How many layers each stage has, in their order, and what else is chosen."""

    width: int
    """Devices of a stage."""
    recompute: Recompute
    microbatch: int
    """Microbatches of the question that run as one."""
    data: int
    """Replicas of the pipeline."""
    stages: tuple[int, ...]


def even(layers: int, stages: int) -> tuple[int, ...]:
    """As many layers to a stage as the rounded mean, while one is left for each stage behind it; the last takes the rest."""
    mean, sizes, left = (2 * layers + stages) // (2 * stages), list[int](), layers
    for behind in range(stages - 1, 0, -1):
        sizes.append(max(1, min(mean, left - behind)))
        left -= sizes[-1]
    return (*sizes, left)


# The judge of plans for chains: the time of a batch and the memory of every stage, recomputed layer by layer.
#
# It shares nothing with the search but the formulas, which `solvers.stages.chain.cuts` says; sums are exactly rounded (`math.fsum`).


@dataclass(frozen=True, slots=True)
class ChainLoad:
    """What one stage takes for one microbatch, in seconds, and the bytes on each of its devices."""

    first: int
    layers: int
    compute: float
    transfer: float
    """What of its transfers nothing hides."""
    total: float
    memory: float


@dataclass(frozen=True, slots=True)
class ChainLoads:
    """What every stage takes, first stage first."""

    loads: tuple[ChainLoad, ...]


def judge(question: ChainQuestion, plan: ChainPlan) -> Verdict[ChainLoads]:
    """Seconds of a batch, loads and broken rules of a plan; a ValueError if it does not belong to the question."""
    width = next((width for width in question.widths if width.devices == plan.width), None)
    if width is None:
        raise ValueError(f"the layers have no width {plan.width}")
    if min(plan.stages, default=0) < 1 or sum(plan.stages) != len(question.layers) or min(plan.data, plan.microbatch) < 1:
        raise ValueError(f"the stages of a plan have {len(question.layers)} layers together, and each has one at least")
    if max(plan.data, plan.microbatch) > MOST_MICROBATCHES:
        raise ValueError(f"replicas and microbatches are limited to {MOST_MICROBATCHES:,}")
    firsts = [sum(plan.stages[:number]) for number in range(len(plan.stages))]
    loads = tuple(_load(question, width, plan, number, first) for number, first in enumerate(firsts))
    weights = [fsum(width.parameters[first : first + size]) for first, size in zip(firsts, plan.stages, strict=True)]
    return Verdict(_time(question, plan, loads, weights), (*_rules(question, plan), *_memory(question, loads)), ChainLoads(loads))


def _load(question: ChainQuestion, width: Width, plan: ChainPlan, number: int, first: int) -> ChainLoad:
    rows = range(first, first + plan.stages[number])
    size, overhead = float(plan.microbatch), question.file.overhead
    forward, backward = (fsum(size * float(column[row]) + overhead for row in rows) for column in (width.forward, width.backward))
    came, goes = (size * float(question.entering[row]) / question.file.bandwidth for row in (rows.start, rows.stop))
    waiting = len(plan.stages) - number - 1
    again = plan.recompute == "full" and waiting > 0
    compute = fsum((forward, backward, forward if again else 0.0))
    transfer = fsum((came, max(goes - forward, 0.0) if again else goes))
    activations = size * fsum(width.activations[rows.start : rows.stop])
    stash = size * float(question.entering[first]) if plan.recompute == "full" else activations
    memory = question.file.copies * fsum(width.parameters[rows.start : rows.stop]) + activations + waiting * stash
    return ChainLoad(first, len(rows), compute, transfer, fsum((compute, transfer)), memory)


def _time(question: ChainQuestion, plan: ChainPlan, loads: tuple[ChainLoad, ...], weights: list[float]) -> float:
    """Seconds of a batch."""
    file, share = question.file, (plan.data - 1) / plan.data
    if file.schedule == "flush":
        rounds = ceil(file.microbatches / plan.data) + len(loads) - 1
        return max(load.total for load in loads) * rounds + 4.0 * share * weights[0] / file.bandwidth
    rounds = file.microbatches // (plan.microbatch * plan.data)
    return max(rounds * load.total + 2.0 * share * weight / file.bandwidth for load, weight in zip(loads, weights, strict=True))


def _rules(question: ChainQuestion, plan: ChainPlan) -> list[str]:
    file, used = question.file, plan.width * plan.data * len(plan.stages)
    merged = plan.microbatch * plan.data
    rules = (
        (used <= file.devices, f"{used:,} devices are used, there are {file.devices:,}"),
        (plan.data <= file.microbatches, f"{plan.data:,} replicas share {file.microbatches:,} microbatches"),
        (plan.recompute in file.recompute, f"recompute {plan.recompute} is not among the options"),
        (plan.microbatch in file.microbatch, f"{plan.microbatch} microbatches as one is not among the options"),
        (
            not file.divisible or (file.devices % plan.data == 0 and file.microbatches % plan.data == 0),
            f"{plan.data:,} replicas do not divide {file.devices:,} devices and {file.microbatches:,} microbatches",
        ),
        (
            file.schedule == "flush" or file.microbatches % merged == 0,
            f"{plan.data:,} replicas do not divide the {file.microbatches / plan.microbatch:,.10g} microbatches of a batch",
        ),
        (
            file.schedule == "flush" or file.microbatches // merged >= len(plan.stages),
            f"a batch is shorter than the {len(plan.stages):,} stages, so that two versions are too few",
        ),
    )
    return [sentence for holds, sentence in rules if not holds]


def _memory(question: ChainQuestion, loads: tuple[ChainLoad, ...]) -> list[str]:
    most = max(load.memory for load in loads)
    limit = question.file.memory
    return [f"a stage keeps {bytes_beyond(most, limit, 'on a device of')}"] if most > limit else []


# Every plan of a small chain, one after the other: the slow path beside the search, which shares no code with it.

MOST_LAYERS, MOST_PLANS = 9, 10_000


def least_of_all(question: ChainQuestion) -> float | None:
    """The least value of any plan, infinite where none keeps the limits; None where there are too many."""
    return None if len(question.layers) > MOST_LAYERS else least_of_few(question, every_plan(question), judge, MOST_PLANS)


def every_plan(question: ChainQuestion) -> Iterator[ChainPlan]:
    """All plans on the devices there are."""
    count, file = len(question.layers), question.file
    for width in question.widths:
        for stages in range(1, count + 1):
            for cuts in combinations(range(1, count), stages - 1):
                sizes = tuple(stop - start for start, stop in pairwise((0, *cuts, count)))
                for data in range(1, min(file.devices // (width.devices * stages), file.microbatches) + 1):
                    for recompute in file.recompute:
                        for microbatch in file.microbatch:
                            yield ChainPlan(width.devices, recompute, microbatch, data, sizes)


# Verification of bounds: enumeration if plans are few, and otherwise a second dynamic program over all plans.
#
# It shares no code with the search, and neither its order nor its short cuts. With t seconds of a stage from layer i up to j, and s stages
# from it to the end, for layers from the last to the first and all s at once
#
#     slowest[s, i] = min over all j > i of  max(t(i, j), slowest[s - 1, j])
#     where a stage fits:  copies * parameters + activations + (s - 1) * stash <= memory
#
# Bytes are whole numbers, of which doubles hold all sums exactly. Times are lowered by more than sums and products of doubles can be off,
# so that no plan takes less than what comes out. Work is bounded by a count of steps: questions of more are told.

MOST_STEPS = 300_000_000
"""Most table entries of a verification, a few seconds of work."""
_OFF = 2.0**-51
"""Of all seconds of a column: more than a difference of two rounded sums is off."""
_LOWERED = 1.0 - 2.0**-46
"""Below one by more than all other roundings of a time, the judge's too."""


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Of stages by first layer and the layer behind them."""

    last: Array
    """Seconds of a stage with the end behind it, by its first layer."""
    other: Array
    alone: Array
    """Bytes without microbatches that wait."""
    stash: Array
    """Bytes of each of these."""
    parameters: Array


def reason_of(question: ChainQuestion) -> str:
    """Why there is no plan, with what is least in the way."""
    file, least = question.file, min(width.devices for width in question.widths)
    if least > file.devices:
        return f"a stage needs {least:,} devices at the least, there are {file.devices:,}"
    size = min(file.microbatch)
    alone = min(
        (file.copies * width.parameters + size * width.activations).max() for width in question.widths if width.devices <= file.devices
    )
    if alone > file.memory:
        return f"one layer alone keeps {alone:,.0f} bytes on a device of {file.memory:,.0f}, at the width that needs least"
    return "no stages keep the memory of every device, though each layer alone does (give more devices, memory, or widths)"


def prove(question: ChainQuestion, saved: Result[ChainPlan, ChainLoads], _: Watch) -> Proved:
    """Verify the bound by enumeration or by the second dynamic program; otherwise it stays unverified."""
    if not countable(question):
        checked = by_looking_at_all(saved, lambda: least_of_all(question))
        fault = "proof: repeating it takes more steps than `check` allows"
        return Proved((), (fault,)) if checked.unverified and isinstance(saved.proof, RecomputableBound) else checked
    least, bound = least_of_all(question), float("inf") if saved.bound is None else saved.bound
    if least is not None:
        return by_looking_at_all(saved, lambda: least)
    sure = least_time(question)
    claim = "that nothing is possible" if saved.bound is None else f"that none is below {saved.bound!r}"
    fault = f"bound: a second dynamic program shows no more than {sure!r} s, the result says {claim}"
    return Proved((f"a second dynamic program covered all stages of {len(question.layers):,} layers",), () if bound <= sure else (fault,))


def countable(question: ChainQuestion) -> bool:
    """Whether the second program takes no more steps than a check does."""
    steps, kinds = 0, len(question.file.recompute)
    for width, size in _sizes(question):
        for data in _data(question, width, size):
            steps += kinds * _steps(question, width, _most_stages(question, width, size, data))
            if steps > MOST_STEPS:
                return False
    return True


def _steps(question: ChainQuestion, width: Width, stages: int) -> int:
    """Entries of one table, and of the choices of first stages and replicas after it."""
    behind, every = np.arange(1, len(question.layers) + 1), _replicas(question, width)
    replicas = np.searchsorted(every, question.file.devices // (width.devices * np.arange(1, stages + 1)), "right")
    return int((behind * np.minimum(behind, stages)).sum()) + len(behind) * int(replicas.sum())


def least_time(question: ChainQuestion) -> float:
    """Seconds of a batch below which no plan is; infinite where none keeps the limits."""
    least = float("inf")
    for width, size in _sizes(question):
        for recompute in question.file.recompute:
            costs = _costs(question, width, recompute, size)
            for data in _data(question, width, size):
                least = min(least, _least(question, width, (size, data), costs))
    return least * _LOWERED


def _sizes(question: ChainQuestion) -> Iterator[tuple[Width, int]]:
    for width in question.widths:
        for size in question.file.microbatch:
            yield width, size


def _data(question: ChainQuestion, width: Width, size: int) -> list[int]:
    """Numbers of replicas that have a table of their own: each under two versions, and one for all under a flush."""
    file = question.file
    if file.schedule == "flush":
        return [1]
    every = _dividing(file.microbatches // size)
    fits = (every <= file.devices // width.devices) & ((file.devices % every == 0) | (not file.divisible))
    return [int(data) for data in every[fits]]


def _dividing(number: int) -> Ints:
    """All numbers that divide one."""
    low = np.arange(1, isqrt(number) + 1)
    low = low[number % low == 0]
    return np.unique(np.concatenate([low, number // low]))


def _most_stages(question: ChainQuestion, width: Width, size: int, data: int) -> int:
    file = question.file
    most = min(len(question.layers), file.devices // (width.devices * data))
    return most if file.schedule == "flush" else min(most, file.microbatches // (size * data))


def _least(question: ChainQuestion, width: Width, chosen: tuple[int, int], costs: Costs) -> float:
    """The least of one width, recomputation, size of microbatches and, under two versions, number of replicas."""
    file, (size, data) = question.file, chosen
    stages = _most_stages(question, width, size, data)
    if not stages:
        return float("inf")
    if file.schedule == "flush":
        return _flush(question, width, _slowest(costs, file.memory, stages), costs)
    rounds, sums = file.microbatches // (size * data), 2.0 * (data - 1) / data / file.bandwidth * costs.parameters
    costs_of_step = replace(costs, last=rounds * costs.last + sums[:, -1], other=rounds * costs.other + sums)
    return float(_slowest(costs_of_step, file.memory, stages)[1:, 0].min())


def _slowest(costs: Costs, memory: float, stages: int) -> Array:
    """By stages from a layer to the end, and by that layer: the least that the slowest of them takes."""
    count, alone, stash = len(costs.last), costs.alone, costs.stash
    table = np.full((stages + 1, count + 1), np.inf)
    waiting = np.arange(1.0, stages)[:, None]
    for first in range(count - 1, -1, -1):
        if alone[first, count] <= memory:
            table[1, first] = costs.last[first]
        cuts, most = slice(first + 1, count), min(stages, count - first)
        if most > 1:
            fits = alone[first, cuts] + waiting[: most - 1] * stash[first, cuts] <= memory
            through = np.maximum(table[1:most, cuts], costs.other[first, cuts])
            table[2 : most + 1, first] = np.where(fits, through, np.inf).min(axis=1)
    return table


def _flush(question: ChainQuestion, width: Width, table: Array, costs: Costs) -> float:
    """The least over first stages, numbers of stages and replicas, of which the first stage's gradients are summed."""
    file, count = question.file, len(question.layers)
    every, least = _replicas(question, width), float("inf")
    for stages in range(1, len(table)):
        data = every[every * width.devices * stages <= file.devices]
        rounds, sums = -(-file.microbatches // data) + stages - 1.0, 4.0 * (data - 1) / data / file.bandwidth
        ends = slice(1, count) if stages > 1 else slice(count, count + 1)
        fits = (stages == 1) | (costs.alone[0, ends] + (stages - 1) * costs.stash[0, ends] <= file.memory)
        slowest = np.maximum(costs.other[0, ends], table[stages - 1, ends]) if stages > 1 else table[1, :1]
        times = np.where(fits, slowest, np.inf)[:, None] * rounds + sums * costs.parameters[0, ends][:, None]
        least = min(least, float(times.min(initial=np.inf)))
    return least


def _replicas(question: ChainQuestion, width: Width) -> Ints:
    """Numbers of replicas under a flush: all that divide, where they must; else of those with as many rounds the fewest, who sum least."""
    file = question.file
    most = min(file.microbatches, file.devices // width.devices)
    if file.schedule != "flush" or not most:
        return np.zeros(0, np.int64)
    if file.divisible:
        every = _dividing(file.microbatches)
        return np.asarray(every[(every <= most) & (file.devices % every == 0)])
    found = [1]
    while (rounds := -(-file.microbatches // found[-1])) > 1:
        found.append(-(-file.microbatches // (rounds - 1)))
    return np.array([data for data in found if data <= most], np.int64)


def _costs(question: ChainQuestion, width: Width, recompute: Recompute, size: int) -> Costs:
    """Of all stages of one width, recomputation and size of microbatches; never too many seconds."""
    file, again = question.file, recompute == "full"
    forward, backward = (_lowered_differences(float(size) * column + file.overhead) for column in (width.forward, width.backward))
    moved = float(size) * question.entering / file.bandwidth
    plain = moved[:-1, None] + forward + moved + backward
    activations, parameters = size * _differences(width.activations), _differences(width.parameters)
    return Costs(
        last=np.asarray(plain[:, -1]),
        other=moved[:-1, None] + forward + np.maximum(forward, moved) + backward if again else plain,
        alone=file.copies * parameters + activations,
        stash=np.broadcast_to(size * question.entering[:-1, None], activations.shape) if again else activations,
        parameters=parameters,
    )


def _differences(column: Array) -> Array:
    """Sums of whole numbers from each layer up to each other, exact."""
    sums = np.concatenate([[0.0], np.cumsum(column)])
    return np.asarray(sums[None, :] - sums[:-1, None])


def _lowered_differences(column: Array) -> Array:
    """Sums of seconds from each layer up to each other, lowered by more than they are off."""
    sums = np.array([float(total) for total in accumulate(map(Fraction, column.tolist()), initial=Fraction(0))])
    return np.asarray(np.maximum(sums[None, :] - sums[:-1, None] - _OFF * sums[-1], 0.0))


# Baselines.

NONE = "no such plan keeps the limits"
_LABELS = {"none": "fixed, stored", "full": "fixed, recomputed"}


def fixed_name(question: ChainQuestion, recompute: Recompute) -> str:
    """What the plan that a question names is called, with its layers recomputed or not."""
    return "fixed plan" if len(question.file.recompute) == 1 else _LABELS[recompute]
