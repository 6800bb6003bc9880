"""Annealing of placements without contiguity: blocks go elsewhere, and loads follow without being added up anew.

The busiest device alone says too little of a move, so that the sum of (load / best)^16 over the devices is lowered instead, which is ruled
by the busiest ones. What is tried:

    along a net    a block goes to the device of another block of one of its nets
    a cluster      with it those that hang together with it on its device, some two to ten blocks
    anywhere       a block goes to any device
    a swap         two blocks change places

A move changes the loads of two devices: by the blocks' own times, and for each of their nets by whether either device still has, or has
now, some of the pins but not all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from random import Random
from time import monotonic

from crossopt.formulation.placement.blocks import Blocks
from crossopt.formulation.placement.throughput import Machine

_POWER = 16
HEAT = 0.1
"""The rise of the sum that is accepted one time in e at first."""
_COOLED = 1.0 / 3000.0
"""What is left of the heat in the end."""
_LOOK = 256
_ALONG, _CLUSTER, _ANYWHERE = 0.4, 0.8, 0.9
"""Up to which random figure each kind of move is tried; the rest are swaps."""
_CLUSTERED = 4.0

Move = tuple[int, int, int]
"""A block, its device, and where it goes."""


@dataclass(slots=True)
class _State:
    """A placement with what follows from it, and the figures that do not change."""

    device: list[int]
    count: list[list[int]]
    """Pins of each net on each device."""
    compute: list[float]
    transfer: list[float]
    size: list[float]
    times: tuple[list[float], list[float]]
    sizes: list[float]
    nets: tuple[tuple[int, ...], ...]
    nets_of: list[list[int]]
    costs: list[float]
    machine: Machine

    def load(self, device: int) -> float:
        one, other = self.compute[device], self.transfer[device]
        return max(one, other) if self.machine.overlapped else one + other


def annealed(blocks: Blocks, machine: Machine, start: list[int], moves: int, seed: int, deadline: float, heat: float = HEAT) -> list[int]:
    """The least busy placement that so many moves come by; the start, if none is better. Without heat no rise is accepted."""
    random, state = Random(seed), _state(blocks, machine, start)
    devices = range(machine.accelerators + machine.cpus)
    loads = [state.load(device) for device in devices]
    best, found = max(loads), list(start)
    scale, warmth = best or 1.0, heat
    powers = [(load / scale) ** _POWER for load in loads]
    for number in range(moves if len(devices) > 1 else 0):
        if not number % _LOOK:
            if monotonic() >= deadline:
                break
            scale, warmth = best or 1.0, heat * _COOLED ** (number / moves)
            powers = [(load / scale) ** _POWER for load in loads]
        group = _proposed(random, state)
        if not group:
            continue
        _, one, other = group[0]
        before = (state.compute[one], state.transfer[one], state.compute[other], state.transfer[other])
        _apply(state, group)
        after = (state.load(one), state.load(other))
        fresh = ((after[0] / scale) ** _POWER, (after[1] / scale) ** _POWER)
        rise = fresh[0] + fresh[1] - powers[one] - powers[other]
        if not _fits(state, one, other) or (rise > 0.0 and (not warmth or random.random() >= exp(-rise / warmth))):
            _apply(state, [(block, to, origin) for block, origin, to in reversed(group)])
            state.compute[one], state.transfer[one], state.compute[other], state.transfer[other] = before
            continue
        loads[one], loads[other] = after
        powers[one], powers[other] = fresh
        if max(after) < best and max(loads) < best:
            best, found = max(loads), list(state.device)
    return found


def _fits(state: _State, one: int, other: int) -> bool:
    accelerators, memory = state.machine.accelerators, state.machine.memory
    return (one >= accelerators or state.size[one] <= memory) and (other >= accelerators or state.size[other] <= memory)


def _proposed(random: Random, state: _State) -> Sequence[Move]:
    """Some move between two devices; nothing where none came out, or an accelerator cannot run a block."""
    kind, nets, device = random.random(), state.nets, state.device
    if kind < _CLUSTER and nets:
        pins = nets[int(random.random() * len(nets))]
        block, near = (pins[int(random.random() * len(pins))] for _ in range(2))
        to = device[near]
        if to == device[block]:
            return ()
        group = [block] if kind < _ALONG else _cluster(random, state, block)
        moves = [(one, device[one], to) for one in group]
    else:
        block, other = (int(random.random() * len(device)) for _ in range(2))
        to = int(random.random() * len(state.compute)) if kind < _ANYWHERE else device[other]
        if to == device[block]:
            return ()
        moves = [(block, device[block], to)] + ([] if kind < _ANYWHERE else [(other, to, device[block])])
    accelerators, times = state.machine.accelerators, state.times[0]
    return () if any(to < accelerators and times[one] == float("inf") for one, _, to in moves) else moves


def _cluster(random: Random, state: _State, block: int) -> list[int]:
    """The block and some of those that hang together with it on its device, the nearest first."""
    most = 2 + int(-log(random.random() + 1e-12) * _CLUSTERED)
    device, group, seen, place = state.device, [block], {block}, 0
    while place < len(group) < most:
        for net in state.nets_of[group[place]]:
            for pin in state.nets[net]:
                if pin not in seen and device[pin] == device[block]:
                    seen.add(pin)
                    group.append(pin)
        place += 1
    return group[:most]


def _apply(state: _State, group: Sequence[Move]) -> None:
    """Move the blocks one after another."""
    accelerators, costs, nets = state.machine.accelerators, state.costs, state.nets
    for block, origin, to in group:
        left = gained = 0.0
        for net in state.nets_of[block]:
            count, cost, pins = state.count[net], costs[net], len(nets[net])
            here, there = count[origin], count[to]
            if here == 1:
                left -= cost
            elif here == pins:
                left += cost
            if not there:
                gained += cost
            elif there + 1 == pins:
                gained -= cost
            count[origin], count[to] = here - 1, there + 1
        if origin < accelerators:
            state.transfer[origin] += left
        if to < accelerators:
            state.transfer[to] += gained
        state.compute[origin] -= state.times[origin >= accelerators][block]
        state.compute[to] += state.times[to >= accelerators][block]
        state.size[origin] -= state.sizes[block]
        state.size[to] += state.sizes[block]
        state.device[block] = to


def _state(blocks: Blocks, machine: Machine, device: list[int]) -> _State:
    devices = machine.accelerators + machine.cpus
    count = [[0] * devices for _ in blocks.nets]
    nets_of: list[list[int]] = [[] for _ in range(len(blocks))]
    for net, pins in enumerate(blocks.nets):
        for pin in pins:
            count[net][device[pin]] += 1
            nets_of[pin].append(net)
    compute, transfer, size = [0.0] * devices, [0.0] * devices, [0.0] * devices
    for block, place in enumerate(device):
        compute[place] += float((blocks.accelerator_time if place < machine.accelerators else blocks.cpu_time)[block])
        size[place] += float(blocks.size[block])
    for net, pins in enumerate(blocks.nets):
        for place in range(machine.accelerators):
            transfer[place] += float(blocks.transfer[net]) * (0 < count[net][place] < len(pins))
    times, sizes = (blocks.accelerator_time.tolist(), blocks.cpu_time.tolist()), blocks.size.tolist()
    costs = blocks.transfer.tolist()
    return _State(list(device), count, compute, transfer, size, times, sizes, blocks.nets, nets_of, costs, machine)
