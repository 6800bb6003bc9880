"""Equal shares of the work with the cheapest nets between them: what graph partitioners do, who know nothing of the busiest device.

The blocks are cut in two again and again, in the shares of the devices that each side will have, and each cut is improved by the passes of
Fiduccia and Mattheyses (1982): the move of most gain that keeps the shares, each block once, until the pass is over; then back to the best
moment of it; until a pass gains nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random

from crossopt.formulation.placement.blocks import Blocks

_SLACK = 0.02
"""How far the work of a side may be from its share, of all the work that is cut."""
_STARTS = 4
_PASSES = 20


@dataclass(frozen=True, slots=True)
class _Net:
    pins: tuple[int, ...]
    cost: float


def equal_shares(blocks: Blocks, devices: int, seed: int) -> list[int]:
    """The device of each block, all devices with about the same work."""
    nets = [_Net(pins, cost) for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True)]
    device, random = [0] * len(blocks), Random(seed)
    _share(list(range(len(blocks))), (0, devices), nets, blocks.accelerator_time.tolist(), random, device)
    return device


def _share(
    members: list[int], devices: tuple[int, int], nets: Sequence[_Net], work: list[float], random: Random, device: list[int]
) -> None:
    """Give these blocks to the devices from the first up to the last."""
    first, last = devices
    if last - first == 1 or not members:
        for block in members:
            device[block] = first
        return
    middle = (first + last) // 2
    inside = set(members)
    within = [_Net(pins, net.cost) for net in nets if len(pins := tuple(pin for pin in net.pins if pin in inside)) > 1]
    share = (middle - first) / (last - first)
    tries = [_bisected(members, within, work, share, random) for _ in range(_STARTS)]
    left = min(tries, key=lambda side: sum(net.cost for net in within if 0 < sum(pin in side for pin in net.pins) < len(net.pins)))
    _share([block for block in members if block in left], (first, middle), within, work, random, device)
    _share([block for block in members if block not in left], (middle, last), within, work, random, device)


def _bisected(members: list[int], nets: Sequence[_Net], work: list[float], share: float, random: Random) -> set[int]:
    """The blocks of the one side, which has this share of the work."""
    nets_of: dict[int, list[_Net]] = {block: [] for block in members}
    for net in nets:
        for pin in net.pins:
            nets_of[pin].append(net)
    total = sum(work[block] for block in members)
    side = _grown(members, nets_of, work, share * total, random)
    for _ in range(_PASSES):
        if not _improved(side, members, nets_of, work, (share * total, _SLACK * total)):
            break
    return side


def _grown(members: list[int], nets_of: dict[int, list[_Net]], work: list[float], share: float, random: Random) -> set[int]:
    """A side that grows from a random block along its nets until it has its share."""
    side, weight = set[int](), 0.0
    edge, seen = [random.choice(members)], set[int]()
    rest = random.sample(members, len(members))
    while weight < share and len(side) < len(members):
        while not edge:
            edge.append(rest.pop())
        block = edge.pop(0)
        if block in seen:
            continue
        seen.add(block)
        side.add(block)
        weight += work[block]
        edge += [pin for net in nets_of[block] for pin in net.pins if pin not in seen]
    return side


def _improved(side: set[int], members: list[int], nets_of: dict[int, list[_Net]], work: list[float], asked: tuple[float, float]) -> bool:
    """One pass, towards this work of the side or at most so far from it; whether the cut has become cheaper, or the shares truer."""
    weight = sum(work[block] for block in side)
    heap = [(-_gain(block, side, nets_of), block) for block in members]
    heapify(heap)
    locked: list[int] = []
    done = set[int]()
    target, slack = asked
    window = slack + max(work[block] for block in members)
    gained, kept = 0.0, 0
    best = (max(abs(weight - target) - slack, 0.0), 0.0)
    while heap:
        gain, block = heappop(heap)
        if block in done:
            continue
        true = _gain(block, side, nets_of)
        if -gain != true:
            heappush(heap, (-true, block))
            continue
        done.add(block)
        after = weight + (-work[block] if block in side else work[block])
        if abs(after - target) > max(window, abs(weight - target)):
            continue
        weight, gained = after, gained + true
        side.symmetric_difference_update((block,))
        locked.append(block)
        for other in {pin for net in nets_of[block] for pin in net.pins} - done:
            heappush(heap, (-_gain(other, side, nets_of), other))
        now = (max(abs(weight - target) - slack, 0.0), -gained)
        if now < best:
            best, kept = now, len(locked)
    side.symmetric_difference_update(locked[kept:])
    return kept > 0


def _gain(block: int, side: set[int], nets_of: dict[int, list[_Net]]) -> float:
    """What the cut costs less once the block changes sides."""
    gain = 0.0
    for net in nets_of[block]:
        same = sum((pin in side) == (block in side) for pin in net.pins)
        gain += net.cost * ((same == 1) - (same == len(net.pins)))
    return gain
