"""Annealing of placements without contiguity: one block at a time goes elsewhere, and loads follow without being added up anew.

The busiest device alone says too little of a move, so that the sum of (load / best)^16 over the devices is lowered instead, which is ruled
by the busiest ones. A move changes the loads of two devices: by the block's own time, and for each of its nets by whether either device
still has, or has now, some of the pins but not all.
"""

from dataclasses import dataclass
from math import exp
from random import Random
from time import monotonic

from formulation.placement.assignment import Machine
from formulation.placement.blocks import Blocks

_POWER = 16
HEAT = 0.3
"""The rise of the sum that is accepted one time in e at first."""
_COOLED = 1.0 / 3000.0
"""What is left of the heat in the end."""
_LOOK = 1024


@dataclass(slots=True)
class _State:
    """A placement with what follows from it."""

    device: list[int]
    count: list[list[int]]
    """Pins of each net on each device."""
    compute: list[float]
    transfer: list[float]
    size: list[float]

    def load(self, device: int, overlapped: bool) -> float:
        one, other = self.compute[device], self.transfer[device]
        return max(one, other) if overlapped else one + other


def annealed(blocks: Blocks, machine: Machine, start: list[int], moves: int, seed: int, deadline: float, heat: float = HEAT) -> list[int]:
    """The least busy placement that so many moves come by; the start, if none is better. Without heat no rise is accepted."""
    random, nets_of = Random(seed), _nets_of(blocks)
    times = [blocks.accelerator_time.tolist(), blocks.cpu_time.tolist()]
    costs, sizes, pins = blocks.transfer.tolist(), blocks.size.tolist(), [len(one) for one in blocks.nets]
    devices, accelerators = machine.accelerators + machine.cpus, machine.accelerators
    state = _state(blocks, machine, start)
    loads = [state.load(device, machine.overlapped) for device in range(devices)]
    best, found = max(loads), list(start)
    scale = best or 1.0
    powers = [(load / scale) ** _POWER for load in loads]
    for move in range(moves if devices > 1 else 0):
        if not move % _LOOK:
            if monotonic() >= deadline:
                break
            scale = best or 1.0
            powers = [(load / scale) ** _POWER for load in loads]
        block, to = random.randrange(len(start)), random.randrange(devices)
        origin = state.device[block]
        if to == origin or (to < accelerators and state.size[to] + sizes[block] > machine.memory):
            continue
        compute = (-times[origin >= accelerators][block], times[to >= accelerators][block])
        if compute[1] == float("inf"):
            continue
        transfer = _transfers(state, nets_of[block], pins, costs, (origin, to), accelerators)
        after = tuple(_after(state, place, compute[n], transfer[n], machine.overlapped) for n, place in enumerate((origin, to)))
        fresh = tuple((load / scale) ** _POWER for load in after)
        rise = fresh[0] + fresh[1] - powers[origin] - powers[to]
        if rise > 0.0 and (not heat or random.random() >= exp(-rise / (heat * _COOLED ** (move / moves)))):
            continue
        _move(state, block, (origin, to), nets_of[block], compute, transfer, sizes[block])
        for n, place in enumerate((origin, to)):
            loads[place], powers[place] = after[n], fresh[n]
        if max(after) < best and max(loads) < best:
            best, found = max(loads), list(state.device)
    return found


def _transfers(
    state: _State, nets: list[int], pins: list[int], costs: list[float], places: tuple[int, int], accelerators: int
) -> tuple[float, float]:
    """What the transfers of both devices change by when one pin of each of these nets goes from the first to the second."""
    origin, to = places
    left = gained = 0.0
    for net in nets:
        here, there, every, cost = state.count[net][origin], state.count[net][to], pins[net], costs[net]
        if origin < accelerators:
            left += cost * ((here - 1 > 0) - (here < every))
        if to < accelerators:
            gained += cost * ((there + 1 < every) - (there > 0))
    return left, gained


def _after(state: _State, device: int, compute: float, transfer: float, overlapped: bool) -> float:
    one, other = state.compute[device] + compute, state.transfer[device] + transfer
    return max(one, other) if overlapped else one + other


def _move(
    state: _State,
    block: int,
    places: tuple[int, int],
    nets: list[int],
    compute: tuple[float, float],
    transfer: tuple[float, float],
    size: float,
) -> None:
    for n, place in enumerate(places):
        state.compute[place] += compute[n]
        state.transfer[place] += transfer[n]
        state.size[place] += size * (2 * n - 1)
        for net in nets:
            state.count[net][place] += 2 * n - 1
    state.device[block] = places[1]


def _nets_of(blocks: Blocks) -> list[list[int]]:
    """The nets of each block."""
    found: list[list[int]] = [[] for _ in range(len(blocks))]
    for net, pins in enumerate(blocks.nets):
        for pin in pins:
            found[pin].append(net)
    return found


def _state(blocks: Blocks, machine: Machine, device: list[int]) -> _State:
    devices = machine.accelerators + machine.cpus
    count = [[0] * devices for _ in blocks.nets]
    for net, pins in enumerate(blocks.nets):
        for pin in pins:
            count[net][device[pin]] += 1
    compute, transfer, size = [0.0] * devices, [0.0] * devices, [0.0] * devices
    for block, place in enumerate(device):
        compute[place] += float((blocks.accelerator_time if place < machine.accelerators else blocks.cpu_time)[block])
        size[place] += float(blocks.size[block])
    for net, pins in enumerate(blocks.nets):
        for place in range(machine.accelerators):
            transfer[place] += float(blocks.transfer[net]) * (0 < count[net][place] < len(pins))
    return _State(list(device), count, compute, transfer, size)
