"""The best stages of a network over devices: cuts at ideals, a tensor degree and recomputation for each stage, and data parallelism.

A stage holds the layers between two ideals, sets that hold everything before their layers. With all pipelines alike, the time of a batch is

    slowest stage * (ceil(M / d) + S - 1)  +  4 (d - 1) / d * parameters of the first stage / bandwidth

for M microbatches, d pipelines and S stages (arXiv 2407.13143), where the devices of all stages times d are no more than there are. Without
flushes the rounds are ceil(M / d), and the parameters may be the most of any stage. For a limit T of the slowest stage, and one of the
parameters of a stage, a table over ideals and stages from there to the end holds the fewest devices; lower limits never save rounds nor
devices, so that limits are searched by intervals. Loads are whole numbers of a small unit, rounded down.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from math import inf, isqrt
from typing import Literal, TypeAlias

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real

Measure: TypeAlias = Literal["time", "devices", "device_seconds", "feasible"]
"""What is minimised: seconds of a batch, devices in use, their product, or nothing, of which any plan within the limits has 1."""
_RAISED, _LOWERED = 1.0 + 1e-12, 1.0 - 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Ideals from nothing to everything, and pairs of them between which a stage can lie, sorted by their first one."""

    layers: Ints
    """Ideals by kinds of layers: how many of each are inside."""
    entering: Array
    """Bytes of a sample that pass each ideal, once from one stage to the next."""
    first: Ints
    last: Ints
    rows: Ints
    """Where the pairs of each ideal begin."""

    def between(self, figures: Array) -> Array:
        """Sums of whole figures of kinds of layers, in the stage of each pair; exact below 2^53."""
        sums = self.layers @ figures
        return np.asarray(sums[self.last] - sums[self.first])


def cuts_of(layers: Ints, entering: Array, within: Mask) -> Cuts:
    """Pairs of ideals of which `within[i, j]` says that the first is inside the second, and another."""
    first, last = np.nonzero(within)
    return Cuts(layers, entering, first, last, np.searchsorted(first, np.arange(len(layers) + 1)))


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """What stages cost at one tensor degree and recomputation, by pair of ideals."""

    tensor: int
    recompute: bool
    loads: Array
    """Whole units of time for a microbatch."""
    least_stages: int
    most_stages: Ints
    """From how many up to how many stages to the end of the network, this one included, the option is allowed; memory limits it."""
    parameters: Array
    """Bytes on a device."""


@dataclass(frozen=True, slots=True)
class Pipelines:
    """What all stages share."""

    devices: int
    microbatches: int
    synced: float
    """Seconds for a byte of parameters, of which gradients are summed among infinitely many pipelines."""
    unit: float
    """Seconds of a unit of loads."""
    divisible: bool = False
    """Whether pipelines must divide devices and microbatches."""
    flushes: bool = True
    """Whether a pipeline is empty between batches, so that its stages add rounds."""
    every: bool = False
    """Whether gradients take as long as those of the stage with most parameters, not those of the first one."""
    measure: Measure = "time"
    longest: float = inf
    """Seconds that a batch may take."""

    def replicas(self) -> Ints:
        """Numbers of pipelines that can be best: of those with as many rounds the fewest."""
        most, count = min(self.devices, self.microbatches), self.microbatches
        if self.divisible:
            return np.array([index for index in range(1, most + 1) if count % index == 0 and self.devices % index == 0], np.int64)
        few = np.arange(1, isqrt(count) + 2)
        rounds = np.unique(np.concatenate([few, -(-count // few)]))
        every = np.unique(-(-count // rounds))
        return np.asarray(every[every <= most])


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: its ideals, devices and recomputation."""

    first: int
    last: int
    tensor: int
    recompute: bool


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What is minimised, pipelines, and stages; none where nothing is below the cutoff, which is then the value."""

    value: float
    data: int = 0
    stages: tuple[Stage, ...] = ()
    flushes: bool = True
    chunks: int = 1
    """Stages that devices share in turn (`interleaved`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Plans whose stages are within limits. A batch takes at least `rounds` times the slowest stage, `synced` seconds, and `rate` seconds
    for a byte of the largest stage; a plan has the value `fixed` and `factor` for each second."""

    rounds: Array
    synced: Array
    rate: Array
    factor: Array
    fixed: Array
    stages: Ints
    data: Ints
    devices: Ints
    """That a pipeline may have."""
    limit: float
    """Seconds that a batch may take."""

    def values(self, seconds: Real, largest: Real) -> Array:
        """Values below which no plan is whose slowest stage takes so many seconds or more, and whose largest has as many bytes or more."""
        times = seconds * self.rounds + self.synced + self.rate * largest
        return np.where(times * _LOWERED <= self.limit, self.factor * times + self.fixed, inf)

    def longest(self, value: float, largest: float) -> float:
        """Seconds of a slowest stage with which a plan may be below a value."""
        left = np.where(self.factor > 0.0, (value - self.fixed) / np.maximum(self.factor, 1e-300), np.where(self.fixed < value, inf, -inf))
        return float(((np.minimum(left, self.limit * _RAISED) - self.synced - self.rate * largest) / self.rounds).max(initial=-1.0))


@dataclass
class StageSearch:
    """Search for the best stages over limits of the slowest one."""

    cuts: Cuts
    options: Sequence[Option]
    shared: Pipelines
    best: StagePlan
    loads: Array = field(init=False)
    parameters: Array = field(init=False)
    tensor: Ints = field(init=False)
    least: Ints = field(init=False)
    most: Ints = field(init=False)
    replicas: Ints = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        self.loads = np.array([option.loads for option in self.options])
        self.parameters = np.array([option.parameters for option in self.options])
        self.tensor = np.array([option.tensor for option in self.options])
        self.least = np.array([option.least_stages for option in self.options])
        self.most = np.array([option.most_stages for option in self.options])
        self.replicas = self.shared.replicas()

    def solved(self) -> StagePlan:
        """The best plan below the cutoff."""
        values, unit = np.unique(self.loads[self.most >= self.least[:, None]]), self.shared.unit
        sizes = np.unique([option.parameters for option in self.options]) if self.shared.every and len(values) else np.zeros(1)
        if not len(values):
            return self.best
        low, high, small, large = int(np.searchsorted(values, self._least[0])), len(values) - 1, 0, len(sizes) - 1
        if low > high:
            return self.best
        order, heap = 0, [(0.0, 0, (low, high, small, large), self._front_at(float(values[high]), float(sizes[large])))]
        while heap:
            bound, _, (low, high, small, large), front = heappop(heap)
            if bound >= self.best.value:
                break
            longest = front.longest(self.best.value, float(sizes[small])) / unit * _RAISED
            high = min(high, int(np.searchsorted(values, longest, "right")) - 1)
            if high < low:
                continue
            corners = [
                front.values(float(values[row]) * unit, float(sizes[size])) for row, size in ((low, small), (high, small), (low, large))
            ]
            base, slower, larger = (float(corner.min(initial=inf)) for corner in corners)
            middle, size = (low + high) // 2, (small + large) // 2
            by_size = small < large and (low == high or larger - base > slower - base)
            if by_size:
                parts = [
                    ((low, high, size + 1, large), front),
                    ((low, high, small, size), self._front_at(float(values[high]), float(sizes[size]))),
                ]
            else:
                found = self._front_at(float(values[middle]), float(sizes[large]))
                parts = [((middle + 1, high, small, large), front), ((low, middle - (small == large), small, large), found)]
            for box, known in parts:
                if box[0] <= box[1] and box[2] <= box[3]:
                    least = float(known.values(float(values[box[0]]) * unit, float(sizes[box[2]])).min(initial=inf)) * _LOWERED
                    if least < self.best.value:
                        order += 1
                        heappush(heap, (least, order, box, known))
        return self.best

    def _front_at(self, limit: float, largest: float) -> Front:
        """The plans within limits of the slowest and the largest stage; notes the best of them."""
        self.steps += 1
        shared, table = self.shared, self._table(limit, largest)
        choices, rows, needed = self._behind(table, limit, largest, 0)
        parameters = self.parameters[choices, rows] * (not shared.every)
        least = np.full((needed.shape[1], shared.devices + 2), inf)
        np.minimum.at(least, (np.broadcast_to(np.arange(needed.shape[1]), needed.shape), needed), parameters[:, None])
        least = np.minimum.accumulate(least, axis=1)[:, :-1]
        if shared.measure in ("time", "feasible"):
            stages, columns = np.nonzero(least[:, shared.devices // self.replicas] < inf)
            devices = shared.devices // self.replicas[columns]
        else:
            stages, counts = np.nonzero(least < np.concatenate([np.full((len(least), 1), inf), least[:, :-1]], axis=1))
            pairs, columns = np.nonzero(counts[:, None] * self.replicas <= shared.devices)
            stages, devices = stages[pairs], counts[pairs]
        front = self._priced(stages, self.replicas[columns], devices, least[stages, devices])
        values = front.values(limit * shared.unit, largest)
        if len(values) and values.min() < self.best.value:
            best = int(values.argmin())
            chosen = int(front.stages[best]), int(front.data[best]), int(front.devices[best])
            self.best = self._plan(table, (limit, largest), chosen, float(values[best]))
        return front

    def _priced(self, stages: Ints, data: Ints, devices: Ints, parameters: Array) -> Front:
        """What plans of so many stages less one, pipelines and devices cost."""
        shared = self.shared
        rounds = np.asarray(-(-shared.microbatches // data) + (stages if shared.flushes else 0), np.float64)
        rate, used = shared.synced * (data - 1) / data, np.asarray(data * devices, np.float64)
        factor, fixed = factors(shared, used)
        front = Front(rounds, rate * parameters, rate * shared.every, factor, fixed, stages + 1, data, devices, shared.longest)
        return _undominated(front) if shared.measure in ("time", "feasible") and not shared.every else front

    def _plan(self, table: Ints, limits: tuple[float, float], chosen: tuple[int, int, int], value: float) -> StagePlan:
        """The plan with so many stages, pipelines and devices whose first stage has the fewest parameters."""
        (stages, data, devices), (choices, rows, needed) = chosen, self._behind(table, *limits, 0)
        fits = needed[:, stages - 1] <= devices
        first = int(np.where(fits, self.parameters[choices, rows], inf).argmin())
        option, end = self.options[choices[first]], int(self.cuts.last[rows[first]])
        behind = self._traced(table, limits, end, stages - 1)
        return StagePlan(value, data, (Stage(0, end, option.tensor, option.recompute), *behind), self.shared.flushes)

    def _most_stages(self) -> int:
        """Stages that a plan below the best has at the most.

        With work W of all devices, the slowest stage of d pipelines on K devices takes W d / K at the least, so that M microbatches and S
        stages take W (M + S - 1) / K.
        """
        shared, value = self.shared, self.best.value
        seconds = min(value if shared.measure in ("time", "device_seconds") else inf, shared.longest)
        least, work = self._least
        most = float(
            min(len(self.cuts.layers) - 1, shared.devices // int(self.tensor.min()), value if shared.measure == "devices" else inf)
        )
        if shared.flushes and least > 0.0:
            by_work = seconds * shared.devices / (work * shared.unit) - shared.microbatches
            most = min(most, seconds / (least * shared.unit) + 1.0, max(by_work, 0.0) * _RAISED + 2.0)
        return int(most)

    @cached_property
    def _least(self) -> tuple[float, float]:
        """Units of time that the slowest stage takes at the least, with any number of devices, and those of all devices together."""
        count = len(self.cuts.layers)
        slowest, work = np.full((2, count), inf)
        slowest[-1] = work[-1] = 0.0
        usable = self.most >= self.least[:, None]
        load = np.where(usable, self.loads, inf).min(axis=0)
        cost = np.where(usable, self.loads * self.tensor[:, None], inf).min(axis=0)
        for ideal in range(count - 2, -1, -1):
            rows = slice(self.cuts.rows[ideal], self.cuts.rows[ideal + 1])
            ends = self.cuts.last[rows]
            slowest[ideal] = np.maximum(load[rows], slowest[ends]).min(initial=inf)
            work[ideal] = (cost[rows] + work[ends]).min(initial=inf)
        return float(slowest[0]), float(work[0])

    def _table(self, limit: float, largest: float) -> Ints:
        """Fewest devices from each ideal to the end, by number of stages; one more than there are where it is impossible."""
        count, none, most = len(self.cuts.layers), self.shared.devices + 1, self._most_stages()
        table = np.full((most + 1, count), none, np.int64)
        table[0, count - 1] = 0
        usable = self.loads <= limit
        if self.shared.every:
            usable &= self.parameters <= largest
        rows, choices = np.nonzero(usable.T)
        if not len(rows):
            return table.T
        first, last, tensor = self.cuts.first[rows], self.cuts.last[rows], self.tensor[choices]
        least, most_to_end = self.least[choices], self.most[choices, rows]
        starts = np.flatnonzero(np.diff(first, prepend=-1))
        for stages in range(1, most + 1):
            devices = np.where((least <= stages) & (stages <= most_to_end), table[stages - 1, last] + tensor, none)
            table[stages, first[starts]] = np.minimum(np.minimum.reduceat(devices, starts), none)
        return table.T

    def _behind(self, table: Ints, limit: float, largest: float, ideal: int) -> tuple[Ints, Ints, Ints]:
        """Options and pairs of stages that begin at an ideal, and devices from there to the end by number of stages."""
        start, stop = self.cuts.rows[ideal], self.cuts.rows[ideal + 1]
        choices, rows = np.nonzero(self.loads[:, start:stop] <= limit)
        rows = rows + start
        if self.shared.every:
            small = self.parameters[choices, rows] <= largest
            choices, rows = choices[small], rows[small]
        stages = np.arange(1, table.shape[1])
        devices = table[self.cuts.last[rows], :-1] + self.tensor[choices][:, None]
        allowed = (stages >= self.least[choices][:, None]) & (stages <= self.most[choices, rows][:, None])
        return choices, rows, np.where(allowed, np.minimum(devices, self.shared.devices + 1), self.shared.devices + 1)

    def _traced(self, table: Ints, limits: tuple[float, float], ideal: int, stages: int) -> tuple[Stage, ...]:
        """Stages behind an entry of the table."""
        found = list[Stage]()
        while stages:
            choices, rows, devices = self._behind(table, *limits, ideal)
            best = int(devices[:, stages - 1].argmin())
            option, end = self.options[choices[best]], int(self.cuts.last[rows[best]])
            found.append(Stage(ideal, end, option.tensor, option.recompute))
            ideal, stages = end, stages - 1
        return tuple(found)


def factors(shared: Pipelines, used: Array | Ints) -> tuple[Array, Array]:
    """What a second of a batch adds to the value of plans that use so many devices, and what it is without."""
    ones, devices = np.ones(len(used)), used.astype(np.float64)
    found = {
        "time": (ones, 0.0 * ones),
        "devices": (0.0 * ones, devices),
        "device_seconds": (devices, 0.0 * ones),
        "feasible": (0.0 * ones, ones),
    }
    return found[shared.measure]


def _undominated(front: Front) -> Front:
    """Without what is no better than another in rounds nor sums."""
    order = np.lexsort((front.synced, front.rounds))
    synced = front.synced[order]
    before = np.minimum.accumulate(np.concatenate([[inf], synced]))[:-1]
    kept = order[synced < before]
    figures = (front.rounds[kept], front.synced[kept], front.rate[kept], front.factor[kept], front.fixed[kept])
    return Front(*figures, front.stages[kept], front.data[kept], front.devices[kept], front.limit)


def best_stages(cuts: Cuts, options: Sequence[Option], shared: Pipelines, cutoff: float = inf) -> StagePlan:
    """The best plan below a cutoff; the cutoff itself where there is none."""
    return StageSearch(cuts, options, shared, StagePlan(cutoff)).solved()
