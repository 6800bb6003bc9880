"""The best stages of a network over devices: cuts at ideals, a tensor degree and recomputation for each stage, and data parallelism.

A stage holds the layers between two ideals, sets that hold everything before their layers. With all pipelines alike, the time of a batch is

    slowest stage * (ceil(M / d) + S - 1)  +  4 (d - 1) / d * parameters of the first stage / bandwidth

for M microbatches, d pipelines and S stages (arXiv 2407.13143), where the devices of all stages times d are no more than there are. For a
limit T of the slowest stage a table over ideals and stages from there to the end holds the fewest devices; more devices or a lower limit
never save rounds, so that limits are searched by intervals. Loads are whole numbers of a small unit, rounded down.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf, isqrt

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole

_RAISED, _LOWERED = 1.0 + 1e-12, 1.0 - 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Ideals from nothing to everything, and pairs of them between which a stage can lie, sorted by their first one."""

    layers: Whole
    """Ideals by kinds of layers: how many of each are inside."""
    entering: Array
    """Bytes of a sample that pass each ideal, once from one stage to the next."""
    first: Whole
    last: Whole
    rows: Whole
    """Where the pairs of each ideal begin."""

    def between(self, figures: Array) -> Array:
        """Sums of whole figures of kinds of layers, in the stage of each pair; exact below 2^53."""
        sums = self.layers @ figures
        return np.asarray(sums[self.last] - sums[self.first])


def cuts_of(layers: Whole, entering: Array, within: Mask) -> Cuts:
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
    most_stages: Whole
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

    def replicas(self) -> Whole:
        """Numbers of pipelines that can be best: of those with as many rounds the fewest."""
        most, count = min(self.devices, self.microbatches), self.microbatches
        if self.divisible:
            return np.array([one for one in range(1, most + 1) if count % one == 0 and self.devices % one == 0], np.int64)
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
    """Seconds of a batch, pipelines, and stages; none where nothing is below the cutoff, which is then the value."""

    value: float
    data: int = 0
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Plans whose slowest stage is within a limit, none of which is better than another in all: a batch of a plan takes at least
    `rounds` times its slowest stage, and `synced` seconds."""

    rounds: Array
    synced: Array
    stages: Whole
    data: Whole

    def least(self, seconds: float) -> float:
        """Seconds of a batch below which no plan is whose slowest stage takes so many seconds or more."""
        return float((seconds * self.rounds + self.synced).min(initial=inf))

    def longest(self, value: float) -> float:
        """Seconds of a slowest stage with which a plan may be below a value."""
        return float(((value - self.synced) / self.rounds).max(initial=-1.0))


_NO_FRONT = Front(np.ones(1), np.zeros(1), np.ones(1, np.int64), np.ones(1, np.int64))


@dataclass(slots=True)
class StageSearch:
    """Search for the best stages over limits of the slowest one."""

    cuts: Cuts
    options: Sequence[Option]
    shared: Pipelines
    best: StagePlan
    loads: Array = field(init=False)
    tensor: Whole = field(init=False)
    least: Whole = field(init=False)
    most: Whole = field(init=False)
    replicas: Whole = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        self.loads = np.array([option.loads for option in self.options])
        self.tensor = np.array([option.tensor for option in self.options])
        self.least = np.array([option.least_stages for option in self.options])
        self.most = np.array([option.most_stages for option in self.options])
        self.replicas = self.shared.replicas()

    def solved(self) -> StagePlan:
        """The best plan below the cutoff."""
        values = np.unique(self.loads[self.most >= self.least[:, None]])
        order, heap = 0, [(0.0, 0, 0, len(values) - 1, _NO_FRONT)] if len(values) else []
        while heap:
            bound, _, low, high, front = heappop(heap)
            if bound >= self.best.value:
                break
            high = min(high, int(np.searchsorted(values, front.longest(self.best.value) / self.shared.unit * _RAISED, "right")) - 1)
            if high < low:
                continue
            middle, order = (low + high) // 2 if order else high, order + 1
            found = self._front_at(float(values[middle]))
            for start, stop, known in ((middle + 1, high, front), (low, middle - 1, found)):
                if start <= stop and (least := known.least(float(values[start]) * self.shared.unit) * _LOWERED) < self.best.value:
                    order += 1
                    heappush(heap, (least, order, start, stop, known))
        return self.best

    def _front_at(self, limit: float) -> Front:
        """The plans within a limit of the slowest stage; notes the best of them."""
        self.steps += 1
        devices, seconds = self.shared.devices, limit * self.shared.unit
        table = self._table(limit)
        choices, rows, needed = self._behind(table, limit, 0)
        if not len(rows):
            return Front(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
        parameters = self._parameters(choices, rows)
        least = np.full((needed.shape[1], devices + 2), inf)
        np.minimum.at(least, (np.broadcast_to(np.arange(needed.shape[1]), needed.shape), needed), parameters[:, None])
        least = np.minimum.accumulate(least, axis=1)[:, devices // self.replicas]
        stages, columns = np.nonzero(least < inf)
        data = self.replicas[columns]
        rounds = np.asarray(-(-self.shared.microbatches // data) + stages, np.float64)
        synced = self.shared.synced * least[stages, columns] * (data - 1) / data
        front = _undominated(Front(rounds, synced, stages + 1, data))
        times = seconds * front.rounds + front.synced
        if len(times) and times.min() < self.best.value:
            best = int(times.argmin())
            self.best = self._plan(table, limit, (int(front.stages[best]), int(front.data[best])), float(times[best]))
        return front

    def _plan(self, table: Whole, limit: float, chosen: tuple[int, int], value: float) -> StagePlan:
        """The plan with so many stages and pipelines whose first stage has the fewest parameters."""
        (stages, data), (choices, rows, needed) = chosen, self._behind(table, limit, 0)
        fits = needed[:, stages - 1] <= self.shared.devices // data
        first = int(np.where(fits, self._parameters(choices, rows), inf).argmin())
        option, end = self.options[choices[first]], int(self.cuts.last[rows[first]])
        behind = self._traced(table, limit, end, stages - 1)
        return StagePlan(value, data, (Stage(0, end, option.tensor, option.recompute), *behind))

    def _parameters(self, choices: Whole, rows: Whole) -> Array:
        return np.array([self.options[choice].parameters[row] for choice, row in zip(choices, rows, strict=True)])

    def _most_stages(self, limit: float) -> int:
        """Stages that a plan below the best has at the most."""
        by_time = self.best.value / (limit * self.shared.unit) if limit > 0.0 else inf
        return int(min(len(self.cuts.layers) - 1, self.shared.devices // int(self.tensor.min()), by_time + 1.0))

    def _table(self, limit: float) -> Whole:
        """Fewest devices from each ideal to the end, by number of stages; one more than there are where it is impossible."""
        count, none, most = len(self.cuts.layers), self.shared.devices + 1, self._most_stages(limit)
        table = np.full((count, most + 1), none, np.int64)
        table[count - 1, 0] = 0
        for ideal in range(count - 2, 0, -1):
            _, _, devices = self._behind(table, limit, ideal)
            if len(devices):
                table[ideal, 1:] = devices.min(axis=0)
        return table

    def _behind(self, table: Whole, limit: float, ideal: int) -> tuple[Whole, Whole, Whole]:
        """Options and pairs of stages that begin at an ideal, and devices from there to the end by number of stages."""
        start, stop = self.cuts.rows[ideal], self.cuts.rows[ideal + 1]
        choices, rows = np.nonzero(self.loads[:, start:stop] <= limit)
        rows = rows + start
        stages = np.arange(1, table.shape[1])
        devices = table[self.cuts.last[rows], :-1] + self.tensor[choices][:, None]
        allowed = (stages >= self.least[choices][:, None]) & (stages <= self.most[choices, rows][:, None])
        return choices, rows, np.where(allowed, np.minimum(devices, self.shared.devices + 1), self.shared.devices + 1)

    def _traced(self, table: Whole, limit: float, ideal: int, stages: int) -> tuple[Stage, ...]:
        """Stages behind an entry of the table."""
        found = list[Stage]()
        while stages:
            choices, rows, devices = self._behind(table, limit, ideal)
            best = int(devices[:, stages - 1].argmin())
            option, end = self.options[choices[best]], int(self.cuts.last[rows[best]])
            found.append(Stage(ideal, end, option.tensor, option.recompute))
            ideal, stages = end, stages - 1
        return tuple(found)


def _undominated(front: Front) -> Front:
    """Without what is no better than another in rounds nor sums."""
    order = np.lexsort((front.synced, front.rounds))
    synced = front.synced[order]
    before = np.minimum.accumulate(np.concatenate([[inf], synced]))[:-1]
    kept = order[synced < before]
    return Front(front.rounds[kept], front.synced[kept], front.stages[kept], front.data[kept])


def best_stages(cuts: Cuts, options: Sequence[Option], shared: Pipelines, cutoff: float = inf) -> StagePlan:
    """The best plan below a cutoff; the cutoff itself where there is none."""
    return StageSearch(cuts, options, shared, StagePlan(cutoff)).solved()
