"""Lists: blocks one after another, each to the device that looks best at that moment.

by work    the most work first, each where the device's work is then least (Graham 1969)
by rank    the longest way to the end first, each where one sample of it is done first (in the manner of HEFT, Topcuoglu et al. 2002):
           rank(b) = time(b) + greatest of transfer(b) + rank(c) over all c that follow
"""

from crossopt.formulation.placement.blocks import Blocks
from crossopt.formulation.placement.throughput import Machine


def by_work(blocks: Blocks, machine: Machine) -> list[int] | None:
    """The device of each block; None where one fits nowhere."""
    times = (blocks.accelerator_time.tolist(), blocks.cpu_time.tolist())
    order = sorted(range(len(blocks)), key=lambda block: -min(times[0][block], times[1][block]))
    busy, device = _Busy(blocks, machine), [0] * len(blocks)
    for block in order:
        place = min(busy.fitting(block), key=lambda one: busy.work[one] + busy.time(block, one), default=None)
        if place is None:
            return None
        busy.put(block, place)
        device[block] = place
    return device


def by_rank(blocks: Blocks, machine: Machine) -> list[int] | None:
    """The same by ranks, for blocks that are numbered along their arcs."""
    after: list[list[int]] = [[] for _ in range(len(blocks))]
    before: list[list[int]] = [[] for _ in range(len(blocks))]
    for one, other in blocks.arcs:
        after[one].append(other)
        before[other].append(one)
    costs = _costs(blocks)
    busy, device, finish = _Busy(blocks, machine), [0] * len(blocks), [0.0] * len(blocks)
    ready = [0.0] * (machine.accelerators + machine.cpus)
    for block in sorted(range(len(blocks)), key=_ranks(blocks, after, costs).__getitem__, reverse=True):
        ends: dict[int, float] = {}
        for place in busy.fitting(block):
            inputs = (finish[one] + (2.0 * costs[one] if device[one] != place else 0.0) for one in before[block])
            ends[place] = max(ready[place], *inputs, 0.0) + busy.time(block, place)
        if not ends:
            return None
        place = min(ends, key=lambda one: ends[one])
        busy.put(block, place)
        device[block], finish[block], ready[place] = place, ends[place], ends[place]
    return device


class _Busy:
    """Work and bytes of each device so far."""

    def __init__(self, blocks: Blocks, machine: Machine) -> None:
        self.machine = machine
        self.times = (blocks.accelerator_time.tolist(), blocks.cpu_time.tolist())
        self.sizes = blocks.size.tolist()
        self.work = [0.0] * (machine.accelerators + machine.cpus)
        self.bytes = [0.0] * machine.accelerators

    def time(self, block: int, place: int) -> float:
        return float(self.times[place >= self.machine.accelerators][block])

    def fitting(self, block: int) -> list[int]:
        """Devices that can run the block and have room for it."""
        accelerators, memory = self.machine.accelerators, self.machine.memory
        room = [place >= accelerators or self.bytes[place] + self.sizes[block] <= memory for place in range(len(self.work))]
        return [place for place, fits in enumerate(room) if fits and self.time(block, place) != float("inf")]

    def put(self, block: int, place: int) -> None:
        self.work[place] += self.time(block, place)
        if place < self.machine.accelerators:
            self.bytes[place] += self.sizes[block]


def _costs(blocks: Blocks) -> list[float]:
    """What it costs to send the output of a block: its dearest net that starts there, the numbers being along the arcs."""
    costs = [0.0] * len(blocks)
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        costs[pins[0]] = max(costs[pins[0]], cost)
    return costs


def _ranks(blocks: Blocks, after: list[list[int]], costs: list[float]) -> list[tuple[float, int]]:
    """Ranks, with a tie broken by the number, so that no block comes before those that it waits for."""
    rank = [0.0] * len(blocks)
    for block in reversed(range(len(blocks))):
        time = min(float(blocks.accelerator_time[block]), float(blocks.cpu_time[block]))
        rank[block] = time + max((costs[block] + rank[one] for one in after[block]), default=0.0)
    return [(rank[block], -block) for block in range(len(blocks))]
