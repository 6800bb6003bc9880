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

from math import exp, log
from time import monotonic
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.compiled import Seed, compiled, draw_below, seed_of
from crossopt.formulation.placement.blocks import Blocks
from crossopt.formulation.placement.throughput import Machine

HEAT = 0.1
"""The rise of the sum that is accepted one time in e at first."""
_COOLED = 1.0 / 3000.0
"""What is left of the heat in the end."""
_LOOK = 256
_BATCH = 1 << 16
"""Moves between two looks at the clock."""
_ALONG, _CLUSTER, _ANYWHERE = 0.4, 0.8, 0.9
"""Up to which random figure each kind of move is tried; the rest are swaps."""
_CLUSTERED, _LARGEST = 4.0, 64
_UNIT = 1.0 / (1 << 40)


class State(NamedTuple):
    """A placement with what follows from it, and the figures that do not change. Nets and blocks name each other by starts and entries."""

    device: Ints
    counts: NDArray[np.int64]
    """Pins of each net on each device."""
    compute: Array
    transfer: Array
    size: Array
    times: NDArray[np.float64]
    """Of each block on an accelerator, and on a CPU."""
    sizes: Array
    costs: Array
    pin_starts: Ints
    pins: Ints
    net_starts: Ints
    nets: Ints
    marks: Ints
    """Of each block the move whose cluster has it."""
    group: Ints
    """Blocks of a move."""
    best: Ints
    """The best placement so far."""
    value: Array
    """Its busiest load."""
    seed: Seed


def annealed(blocks: Blocks, machine: Machine, start: list[int], moves: int, seed: int, deadline: float, heat: float = HEAT) -> list[int]:
    """The least busy placement that so many moves come by; the start, if none is better. Without heat no rise is accepted."""
    devices = machine.accelerators + machine.cpus
    if devices < 2 or not len(blocks):
        return list(start)
    state = _state(blocks, devices, start, seed)
    for number in range(0, moves, _BATCH):
        if monotonic() >= deadline:
            break
        batch = (number, min(number + _BATCH, moves), moves)
        _moved(state, batch, machine.accelerators, machine.memory, machine.overlapped, heat)
    return [int(number) for number in state.best]


def warmed() -> None:
    """Has the moves compiled, on two blocks and two devices."""
    ones = np.ones(2)
    blocks = Blocks(ones, ones, ones, ((0, 1),), ones[:1], (), np.arange(2))
    annealed(blocks, Machine(2, 0, np.inf, overlapped=False, convex=False), [0, 0], 1, 0, np.inf)


def _state(blocks: Blocks, devices: int, start: list[int], seed: int) -> State:
    pins = [list(each) for each in blocks.nets]
    nets_of: list[list[int]] = [[] for _ in range(len(blocks))]
    for net, each in enumerate(pins):
        for pin in each:
            nets_of[pin].append(net)
    pin_starts, net_starts = (np.cumsum([0, *map(len, lists)]) for lists in (pins, nets_of))
    flat = [np.array([number for each in lists for number in each], np.int64) for lists in (pins, nets_of)]
    device = np.array(start, np.int64)
    return State(
        device=device,
        counts=np.zeros((len(pins), devices), np.int64),
        compute=np.zeros(devices),
        transfer=np.zeros(devices),
        size=np.zeros(devices),
        times=np.stack([blocks.accelerator_time, blocks.cpu_time]),
        sizes=blocks.size.astype(np.float64),
        costs=blocks.transfer.astype(np.float64),
        pin_starts=pin_starts,
        pins=flat[0],
        net_starts=net_starts,
        nets=flat[1],
        marks=np.full(len(blocks), -1, np.int64),
        group=np.zeros(_LARGEST, np.int64),
        best=device.copy(),
        value=np.full(1, np.inf),
        seed=seed_of(seed),
    )


@compiled
def _moved(state: State, batch: tuple[int, int, int], accelerators: int, memory: float, overlapped: bool, heat: float) -> None:
    """Try the moves of a batch: from this number up to that, of so many."""
    first, last, moves = batch
    _summed(state, accelerators)
    devices = len(state.compute)
    loads, powers = np.zeros(devices), np.zeros(devices)
    for device in range(devices):
        loads[device] = _load(state, device, overlapped)
    if loads.max() < state.value[0]:
        state.value[0] = loads.max()
        state.best[:] = state.device
    scale, warmth = 1.0, heat
    for number in range(first, last):
        if number == first or not number % _LOOK:
            scale = state.value[0] if state.value[0] > 0.0 else 1.0
            warmth = heat * exp(log(_COOLED) * number / moves)
            for device in range(devices):
                powers[device] = _sixteenth(loads[device] / scale)
        length, target, swapped = _proposed(state, number, accelerators)
        if not length:
            continue
        source = state.device[state.group[0]]
        before = (state.compute[source], state.transfer[source], state.compute[target], state.transfer[target])
        for index in range(length):
            _put(state, state.group[index], source if swapped and index else target, accelerators)
        here, there = _load(state, source, overlapped), _load(state, target, overlapped)
        fresh, reached = _sixteenth(here / scale), _sixteenth(there / scale)
        rise = fresh + reached - powers[source] - powers[target]
        fits = (source >= accelerators or state.size[source] <= memory) and (target >= accelerators or state.size[target] <= memory)
        if not fits or (rise > 0.0 and (warmth <= 0.0 or _share(state.seed) >= exp(-rise / warmth))):
            for index in range(length - 1, -1, -1):
                _put(state, state.group[index], target if swapped and index else source, accelerators)
            state.compute[source], state.transfer[source], state.compute[target], state.transfer[target] = before
            continue
        loads[source], loads[target], powers[source], powers[target] = here, there, fresh, reached
        if max(here, there) < state.value[0] and loads.max() < state.value[0]:
            state.value[0] = loads.max()
            state.best[:] = state.device


@compiled
def _summed(state: State, accelerators: int) -> None:
    """Counts and sums of the placement as it is."""
    state.counts[:] = 0
    state.compute[:], state.transfer[:], state.size[:] = 0.0, 0.0, 0.0
    for block in range(len(state.device)):
        device = state.device[block]
        state.compute[device] += state.times[int(device >= accelerators), block]
        state.size[device] += state.sizes[block]
    for net in range(len(state.costs)):
        first, last = state.pin_starts[net], state.pin_starts[net + 1]
        for index in range(first, last):
            state.counts[net, state.device[state.pins[index]]] += 1
        for device in range(accelerators):
            if 0 < state.counts[net, device] < last - first:
                state.transfer[device] += state.costs[net]


@compiled
def _load(state: State, device: int, overlapped: bool) -> float:
    work, traffic = state.compute[device], state.transfer[device]
    return float(max(work, traffic) if overlapped else work + traffic)


@compiled
def _sixteenth(share: float) -> float:
    """To this power."""
    square = share * share
    fourth = square * square
    eighth = fourth * fourth
    return eighth * eighth


@compiled
def _share(seed: Seed) -> float:
    """A random figure from 0 to before 1."""
    return draw_below(seed, 1 << 40) * _UNIT


@compiled
def _proposed(state: State, number: int, accelerators: int) -> tuple[int, int, bool]:
    """How many blocks of the group move, where to, and whether the second goes the other way; 0 where none came out or one cannot run."""
    kind, device, seed = _share(state.seed), state.device, state.seed
    length, swapped = 1, False
    if kind < _CLUSTER and len(state.costs):
        net = draw_below(seed, len(state.costs))
        first, pins = state.pin_starts[net], state.pin_starts[net + 1] - state.pin_starts[net]
        block = state.pins[first + draw_below(seed, pins)]
        target = device[state.pins[first + draw_below(seed, pins)]]
    else:
        block = draw_below(seed, len(device))
        other = draw_below(seed, len(device))
        swapped = kind >= _ANYWHERE
        target = device[other] if swapped else draw_below(seed, len(state.compute))
        state.group[1] = other
    if target == device[block]:
        return 0, 0, False
    state.group[0] = block
    if swapped:
        length = 2
    elif _ALONG <= kind < _CLUSTER:
        length = _cluster(state, number)
    for index in range(length):
        to = device[block] if swapped and index else target
        if to < accelerators and state.times[0, state.group[index]] == np.inf:
            return 0, 0, False
    return length, int(target), swapped


@compiled
def _cluster(state: State, number: int) -> int:
    """Adds to the block those that hang together with it on its device, the nearest first; how many there are."""
    most = min(2 + int(-log(_share(state.seed) + 1e-12) * _CLUSTERED), len(state.group))
    length, index, device = 1, 0, state.device[state.group[0]]
    state.marks[state.group[0]] = number
    while index < length < most:
        block = state.group[index]
        for entry in range(state.net_starts[block], state.net_starts[block + 1]):
            net = state.nets[entry]
            for position in range(state.pin_starts[net], state.pin_starts[net + 1]):
                pin = state.pins[position]
                if state.marks[pin] != number and state.device[pin] == device and length < most:
                    state.marks[pin] = number
                    state.group[length] = pin
                    length += 1
        index += 1
    return length


@compiled
def _put(state: State, block: int, target: int, accelerators: int) -> None:
    """Move a block."""
    source = state.device[block]
    left, gained = 0.0, 0.0
    for entry in range(state.net_starts[block], state.net_starts[block + 1]):
        net = state.nets[entry]
        cost, pins = state.costs[net], state.pin_starts[net + 1] - state.pin_starts[net]
        here, there = state.counts[net, source], state.counts[net, target]
        if here == 1:
            left -= cost
        elif here == pins:
            left += cost
        if not there:
            gained += cost
        elif there + 1 == pins:
            gained -= cost
        state.counts[net, source], state.counts[net, target] = here - 1, there + 1
    if source < accelerators:
        state.transfer[source] += left
    if target < accelerators:
        state.transfer[target] += gained
    state.compute[source] -= state.times[int(source >= accelerators), block]
    state.compute[target] += state.times[int(target >= accelerators), block]
    state.size[source] -= state.sizes[block]
    state.size[target] += state.sizes[block]
    state.device[block] = target
