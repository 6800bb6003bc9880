"""The best stages of interleaved pipelines, in which a group of devices holds several chunks of a network (Narayanan et al. 2021).

With p groups and v chunks each, chunk k of p v is on group k mod p. Microbatches run p at a time; the last ones run as if they were p. With
all chunks as slow as the slowest one, a batch of M microbatches on d pipelines takes

    slowest chunk * (v p ceil(M / (d p)) + p - 1)  +  4 (d - 1) / d * parameters of the first chunk / bandwidth

which is the published bubble, divided by v (arXiv 2104.04473, section 2.2). A group runs its passes in the order of Megatron-LM: at each of
them it holds the parameters of its chunks, what waits for a backward pass, and the activations of the chunk that runs. All chunks share one
tensor degree.

For given p, v and d a table over ideals and chunks to the end holds the least slowest chunk, where each chunk alone fits in memory. Where
the chunks of a group exceed it together at some pass, one of them must take less at that pass than it does: the search branches on
which one, so that its bounds are exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.stages import microbatches_in_flight
from crossopt.formulation.accelerator.stages import Cuts, Front, Pipelines, Stage, StagePlan, factors

MOST_BRANCHES: Final = 400
"""Nodes of a search, after which its bound is returned, with the best stages so far, or else with some that exceed the memory."""
_REPEATS: Final = 3
"""Times that all groups are filled, after which passes repeat."""
_RAISED: Final = 1.0 + 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """What chunks at one tensor degree cost, by option of recomputation and pair of ideals."""

    tensor: int
    recompute: tuple[bool, ...]
    only_last: tuple[bool, ...]
    loads: Array
    stored: Array
    """Bytes of parameters with their copies."""
    running: Array
    """Bytes of activations while a pass runs."""
    waiting: Array
    """Bytes of a microbatch that waits for its backward pass."""
    parameters: Array
    """Bytes on a device, by pair alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Passes of a group, by pass and chunk: microbatches that wait, and whether the chunk runs."""

    waiting: Ints
    running: Ints

    def bytes_of(self, rows: int | slice, chunk: int, options: Chunks, chosen: tuple[int, int] | slice = slice(None)) -> Array:
        """What a chunk takes in a pass with all options and pairs, or in all passes with one of them."""
        stored, waiting, running = (figure[chosen] for figure in (options.stored, options.waiting, options.running))
        return np.asarray(stored + self.waiting[rows, chunk] * waiting + self.running[rows, chunk] * running)


@lru_cache(maxsize=4096)
def passes_of(groups: int, chunks: int, filled: int, group: int) -> Passes:
    """The passes of a group that differ: forward ones until the group holds all that it may, then backward and forward in turns."""
    microbatches = min(filled, _REPEATS) * groups
    total = microbatches * chunks
    held = round(float(microbatches_in_flight(group, groups, chunks, microbatches)) * chunks)
    steps, every = np.arange(total), np.eye(chunks, dtype=np.int64)
    turns = steps // groups % chunks
    forward = np.concatenate([np.zeros((1, chunks), np.int64), np.cumsum(every[turns], axis=0)])
    backward = forward[:, ::-1]
    flight = np.concatenate(
        [
            forward[1:] - backward[np.maximum(steps - held + 1, 0)],
            forward[np.minimum(steps + held, total)] - backward[steps],
        ]
    )
    running = np.concatenate([every[turns], every[chunks - 1 - turns]])
    rows = np.unique(np.concatenate([flight - running, running], axis=1), axis=0)
    return Passes(rows[:, :chunks], rows[:, chunks:])


@dataclass
class InterleavedSearch:
    """Search for the best chunks of one tensor degree, for all numbers of groups and pipelines."""

    cuts: Cuts
    options: Chunks
    shared: Pipelines
    memory: float
    chunks: int
    best: StagePlan
    allowed: tuple[Mask, Mask] = field(init=False)
    """Options of the last chunk, and of all others."""
    order: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        again, last = np.array(self.options.recompute)[:, None], np.array(self.options.only_last)[:, None]
        self.allowed = ~again, ~last

    def solved(self) -> StagePlan:
        """The best plan below the cutoff."""
        for bound, groups, filled, front in sorted(self._candidates(), key=lambda one: one[:3]):
            if bound >= self.best.value:
                break
            self._search(groups, filled, front)
        return self.best

    def _candidates(self) -> Iterator[tuple[float, int, int, Front]]:
        """Groups, how often they are filled, and pipelines, with bounds in a memory without a limit."""
        shared, options = self.shared, self.options
        most = min(len(self.cuts.layers) - 1, self.chunks * (shared.devices // options.tensor))
        ends = [np.where(allowed, options.loads, inf).min(axis=0) for allowed in self.allowed]
        slowest, replicas = self._table([ends[1]] * (most - 1) + [ends[0]])[:, 0], shared.replicas()
        parameters = float(options.parameters[: self.cuts.rows[1]].min(initial=inf))
        stored = options.stored[:, self.cuts.rows[1] - 1].min()  # of the network, which all groups hold together
        fits = [index for index in range(2, most // self.chunks + 1) if stored <= index * self.memory * _RAISED]
        for groups in (fit for fit in fits if slowest[fit * self.chunks] < inf):
            data = replicas[replicas * groups * options.tensor <= shared.devices]
            filled = -(-shared.microbatches // (data * groups))
            for times in np.unique(np.minimum(filled, _REPEATS)).tolist():
                rows = np.minimum(filled, _REPEATS) == times
                front = self._front(groups, data[rows], filled[rows])
                seconds = float(slowest[groups * self.chunks]) * shared.unit
                yield float(front.values(seconds, parameters).min(initial=inf)), groups, times, front

    def _front(self, groups: int, data: Ints, filled: Ints) -> Front:
        """What so many groups and pipelines cost."""
        used, rounds = data * groups * self.options.tensor, filled * groups * self.chunks + groups - 1
        factor, fixed = factors(self.shared, used)
        rate, stages = self.shared.synced * (data - 1) / data, np.full(len(data), groups * self.chunks)
        return Front(rounds.astype(np.float64), 0.0 * rate, rate, factor, fixed, stages, data, used // data, self.shared.longest)

    def _table(self, loads: Sequence[Array]) -> Array:
        """The least slowest chunk from each ideal to the end, by number of chunks; `loads` from the first chunk to the last."""
        table = np.full((len(loads) + 1, len(self.cuts.layers)), inf)
        table[0, -1] = 0.0
        for left in range(1, len(loads) + 1):
            slowest = np.maximum(loads[-left], table[left - 1, self.cuts.last])
            table[left, :-1] = np.minimum.reduceat(slowest, self.cuts.rows[: len(self.cuts.layers) - 1])
        return table

    def _search(self, groups: int, filled: int, front: Front) -> None:
        """Branch on the chunk that takes less in a pass in which a group exceeds the memory."""
        passes = [passes_of(groups, self.chunks, filled, group) for group in range(groups)]
        heap = list[tuple[float, int, tuple[Mask, ...], StagePlan, list[tuple[int, int]]]]()
        self._push(heap, tuple(self._alone(passes)), front)
        for node in count():
            if not heap or heap[0][0] >= self.best.value:
                return
            _, _, masks, plan, chosen = heappop(heap)
            exceeded = self._exceeded(passes, chosen)
            if exceeded is not None and node >= MOST_BRANCHES:
                self.best = replace(self.best if self.best.stages else plan, value=plan.value)
                return
            if exceeded is None:
                self.best = plan
                return
            group, row = exceeded
            for chunk in range(self.chunks):
                index = chunk * groups + group
                own = passes[group].bytes_of(row, chunk, self.options)
                less = masks[index] & (own < own[chosen[index]])
                self._push(heap, (*masks[:index], less, *masks[index + 1 :]), front)

    def _alone(self, passes: Sequence[Passes]) -> Iterator[Mask]:
        """Options and pairs with which each chunk alone fits in memory."""
        places = [(chunk, group) for chunk in range(self.chunks) for group in range(len(passes))]
        for chunk, group in places:
            waiting, running = (figures[:, chunk] for figures in (passes[group].waiting, passes[group].running > 0))
            idle, busy = (int(waiting[rows].max(initial=0)) for rows in (~running, running))
            options = self.options
            most = options.stored + np.maximum(idle * options.waiting, busy * options.waiting + options.running)
            yield (most <= self.memory * _RAISED) & self.allowed[(chunk, group) != places[-1]]

    def _push(
        self, heap: list[tuple[float, int, tuple[Mask, ...], StagePlan, list[tuple[int, int]]]], masks: tuple[Mask, ...], front: Front
    ) -> None:
        """Add the best plan with these options and pairs of each chunk, if it is below the cutoff."""
        loads = [np.where(mask, self.options.loads, inf) for mask in masks]
        least = [own.min(axis=0) for own in loads]
        table, unit = self._table(least[1:]), self.shared.unit
        first = slice(0, int(self.cuts.rows[1]))
        slowest = np.maximum(least[0][first], table[-1, self.cuts.last[first]])
        pairs = np.flatnonzero(slowest < inf)
        if not len(pairs):
            return
        values = front.values((slowest[pairs] * unit)[:, None], self.options.parameters[pairs, None])
        index, row = np.unravel_index(int(values.argmin()), values.shape)
        value, pair = float(values[index, row]), int(pairs[index])
        if value < self.best.value:
            chosen = self._traced(table, loads, pair, float(slowest[pair]))
            stages = tuple(
                Stage(int(self.cuts.first[own]), int(self.cuts.last[own]), self.options.tensor, self.options.recompute[option])
                for option, own in chosen
            )
            plan = StagePlan(value, int(front.data[row]), stages, chunks=self.chunks)
            heappush(heap, (value, -next(self.order), masks, plan, chosen))

    def _traced(self, table: Array, loads: Sequence[Array], pair: int, limit: float) -> list[tuple[int, int]]:
        """Options and pairs of all chunks within a limit, of those the ones that take least memory."""
        size = self.options.stored + self.options.waiting
        chosen = [(int(np.where(loads[0][:, pair] <= limit, size[:, pair], inf).argmin()), pair)]
        for index in range(1, len(loads)):
            ideal = int(self.cuts.last[chosen[-1][1]])
            own = slice(int(self.cuts.rows[ideal]), int(self.cuts.rows[ideal + 1]))
            slowest = np.maximum(loads[index][:, own], table[len(loads) - index - 1, self.cuts.last[own]])
            option, row = np.unravel_index(int(np.where(slowest <= limit, size[:, own], inf).argmin()), slowest.shape)
            chosen.append((int(option), own.start + int(row)))
        return chosen

    def _exceeded(self, passes: Sequence[Passes], chosen: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
        """The group and the pass that exceed the memory most."""
        worst, found = self.memory * _RAISED, None
        for group, own in enumerate(passes):
            every = [own.bytes_of(slice(None), chunk, self.options, chosen[chunk * len(passes) + group]) for chunk in range(self.chunks)]
            total = np.sum(every, axis=0)
            row = int(total.argmax())
            if total[row] > worst:
                worst, found = float(total[row]), (group, row)
        return found


def best_interleaved(
    cuts: Cuts, options: Sequence[Chunks], shared: Pipelines, limits: tuple[float, Sequence[int]], cutoff: StagePlan
) -> StagePlan:
    """The best plan below a cutoff, in a memory and with one of these numbers of chunks; the cutoff itself where there is none."""
    memory, best = limits[0], cutoff
    for own in options:
        for chunks in limits[1]:
            best = InterleavedSearch(cuts, own, shared, memory, chunks, best).solved()
    return best
