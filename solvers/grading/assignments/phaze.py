"""Assignment 14: PHAZE's search in pieces: operators on a chip, a layer on its cores, layers in stages, and the chip.

cycles      an operator on one core and on all
schedule    the shortest schedule of a layer, replayed
plan        stages and pipelines of a chain, with the memory of a 1F1B pipeline
best_chip   all three for each chip
early_stop  where a search that stops after some groups of chips ends
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from math import inf
from random import Random
from typing import Any

from crossopt.solvers.grading.marks import (
    FULL,
    Assignment,
    Case,
    Task,
    Verdict,
    given_first,
    integers_in,
    nearly,
    number,
    public,
    shown,
    wrong,
)
from crossopt.solvers.grading.running import Call

Layer = tuple[list[list[int]], list[str], list[int], list[int]]
"""Operators before each, types of cores, sizes, and cycles for an element."""
Chip = list[int]
"""Tensor cores, vector cores, columns and rows of a tensor core; a vector core has as many lanes as columns."""
Pairs = list[list[int]]

UNROUNDED = "cycles are not rounded up"
ROUNDED_LATE = "cycles are rounded after they are multiplied by those of an element"
ONE_VECTOR = "a vector core is as wide as a tensor core has multipliers"
ALL_ON_ALL = "every operator runs on all cores"
ONE_EACH = "every operator runs on one core"
NO_BUBBLE = "the rounds in which a pipeline fills are left out"
ONE_IN_FLIGHT = "a stage stores one microbatch, whatever its place in the pipeline"
ONE_SIDED = "one stage alone pays for a cut (both do)"
ONE_PIPELINE = "this is the best plan of a single pipeline"
LEAST_WORK = "this is the chip on which all layers together take least"
MOST_MULTIPLIERS = "this is the chip with most multipliers"
BY_CHIPS = "patience counts chips in place of groups"
IN_ALL = "groups without gain are counted in all, not in a row"
UPWARD = "the search begins at the smallest chips"
THE_BEST = "this is the best chip of all, which the search does not reach"


def cycles(kinds: Sequence[str], sizes: Sequence[int], per_element: Sequence[int], chip: Chip) -> Pairs:
    """Cycles on one core and on all of the type."""
    return [[_cycles(*item, chip, whole) for whole in (False, True)] for item in zip(kinds, sizes, per_element, strict=True)]


def _cycles(kind: str, size: int, per_element: int, chip: Chip, whole: bool) -> int:
    tensor, vector, width, depth = chip
    units = width * depth * (tensor if whole else 1) if kind == "tensor" else width * (vector if whole else 1)
    return -(-size // units) * per_element


def shortest(before: Sequence[Sequence[int]], kinds: Sequence[str], pairs: Pairs, cores: Sequence[int], ways: str = "both") -> int:
    """Cycles of the shortest schedule, by all orders of starts; with one way alone if `ways` is "one" or "all"."""
    count, needed = len(before), [sum(1 << item for item in earlier) for earlier in before]
    own = {"tensor": cores[0], "vector": cores[1]}

    @cache
    def left(finished: int, running: tuple[tuple[int, int], ...]) -> float:
        started = finished | sum(1 << row for _, row in running)
        if started == (1 << count) - 1:
            return max((end for end, _ in running), default=0)
        found = inf
        for row in (row for row in range(count) if not started >> row & 1 and not needed[row] & ~finished):
            if not running and ways != "one":
                found = min(found, pairs[row][1] + left(finished | 1 << row, ()))
            if ways != "all" and sum(kinds[other] == kinds[row] for _, other in running) < own[kinds[row]]:
                found = min(found, left(finished, tuple(sorted((*running, (pairs[row][0], row))))))
        if running:
            step = running[0][0]
            ended = sum(1 << row for end, row in running if end == step)
            found = min(found, step + left(finished | ended, tuple((end - step, row) for end, row in running if end > step)))
        return found

    return int(left(0, ()))


@dataclass(frozen=True)
class Chain:
    """Layers with times of both passes, the time of handing an output on, stored and kept bytes; and what plans may use."""

    forward: list[int]
    backward: list[int]
    sent: list[int]
    stored: list[int]
    kept: list[int]
    devices: int
    microbatches: int
    memory: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        """In the order of the call."""
        return tuple(self.__dict__.values())

    def load(self, start: int, end: int, both: bool = True) -> int:
        """Of a stage for a microbatch."""
        came = self.sent[start - 1] if start and both else 0
        goes = self.sent[end - 1] if end < len(self.sent) else 0
        return sum(self.forward[start:end]) + sum(self.backward[start:end]) + came + goes

    def bytes_of(self, start: int, end: int, to_end: int) -> int:
        """Of a stage that stores so many microbatches."""
        return sum(self.stored[start:end]) + to_end * sum(self.kept[start:end])

    def time(self, data: int, starts: Sequence[int], bubble: bool = True, both: bool = True) -> int:
        """Of a batch."""
        slowest = max(self.load(start, end, both) for start, end in pairwise([*starts, len(self.sent)]))
        return slowest * (-(-self.microbatches // data) + (len(starts) - 1 if bubble else 0))

    def most_bytes(self, starts: Sequence[int], flight: bool = True) -> int:
        """Of any stage."""
        ends = list(pairwise([*starts, len(self.sent)]))
        return max(self.bytes_of(*own, len(ends) - row if flight else 1) for row, own in enumerate(ends))


def least_time(chain: Chain, bubble: bool = True, both: bool = True, flight: bool = True, most: int = 0) -> float:
    """The least time of a batch, by a table over cuts and stages to the end; infinite where nothing fits."""
    count, best = len(chain.sent), inf
    row = [inf] * count + [0.0]
    for stages in range(1, min(count, chain.devices) + 1):
        behind, row = row, [inf] * (count + 1)
        for start in range(count):
            for end in range(start + 1, count + 1):
                if behind[end] < row[start] and chain.bytes_of(start, end, stages if flight else 1) <= chain.memory:
                    row[start] = min(row[start], max(behind[end], chain.load(start, end, both)))
        data = min(chain.devices // stages, chain.microbatches, most or chain.devices)
        best = min(best, row[0] * (-(-chain.microbatches // data) + (stages - 1 if bubble else 0)))
    return best


def chain_on(chip: Chip, layers: Sequence[Layer], order: Sequence[int], chain: Sequence[list[int]], limits: Sequence[int]) -> Chain:
    """The chain with the schedules of its layers on a chip; a backward pass takes twice the cycles of a forward one."""
    forward = [shortest(layer[0], layer[1], cycles(*layer[1:], chip), chip[:2]) for layer in layers]
    times = [forward[item] for item in order]
    return Chain(times, [2 * time for time in times], *chain, *limits)  # type: ignore[arg-type]


def stopped_at(areas: Sequence[int], times: Sequence[int], step: int, patience: int, way: str = "") -> int:
    """The best chip of a search over groups of areas from the largest down, which ends after groups in a row without gain."""
    groups = sorted({area // step for area in areas}, reverse=way != UPWARD)
    visited = [[row for row, area in enumerate(areas) if area // step == group] for group in groups]
    visited = [[row] for own in visited for row in own] if way == BY_CHIPS else visited
    best, idle = -1, 0
    for own in visited:
        better = min(own, key=lambda row: times[row])
        gain = best < 0 or times[better] < times[best]
        best, idle = (better if gain else best), (idle + 1 if not gain else idle if way == IN_ALL else 0)
        if idle == patience:
            break
    return best


# Judges.


def judge_cycles(handed: object, given: tuple[list[str], list[int], list[int], Chip]) -> Verdict:
    """All pairs, or what a likely mistake makes of them."""
    right = cycles(*given)
    rows = handed if isinstance(handed, list) else []
    found = [[number(item) for item in row] if isinstance(row, list) else None for row in rows]
    if found == right:
        return FULL
    for name, wrongly in _wrong_cycles(*given).items():
        if found == wrongly and wrongly != right:
            return nearly(name, f"{shown(handed)} is returned")
    return wrong(f"{shown(handed)} is returned, and {shown(right)} is right")


def _wrong_cycles(kinds: list[str], sizes: list[int], per_element: list[int], chip: Chip) -> dict[str, list[list[float]]]:
    tensor, vector, width, depth = chip
    wide = [tensor, vector, width * depth, 1]
    exact = cycles(kinds, [1] * len(kinds), [1] * len(kinds), [1, 1, 1, 1])
    units = [[width * depth, width * depth * tensor] if kind == "tensor" else [width, width * vector] for kind in kinds]
    rows = range(len(exact))
    return {
        UNROUNDED: [[float(sizes[row] // unit * per_element[row]) for unit in units[row]] for row in rows],
        ROUNDED_LATE: [[float(-(-sizes[row] * per_element[row] // unit)) for unit in units[row]] for row in rows],
        ONE_VECTOR: [[float(item) for item in pair] for pair in cycles(kinds, sizes, per_element, wide)],
    }


def judge_schedule(handed: object, given: tuple[list[list[int]], list[str], Pairs, list[int]], right: int) -> Verdict:
    """The schedule is replayed."""
    before, kinds, pairs, cores = given
    rows = [integers_in(item, 2) for item in handed] if isinstance(handed, list) and len(handed) == len(before) else []
    if not rows or any(row is None or len(row) != 2 or row[0] < 0 or row[1] not in (0, 1) for row in rows):
        return wrong(f"{shown(handed)} is returned where [start, on all cores: 0 or 1] is meant for each of {len(before)} operators")
    starts, whole = ([row[side] for row in rows if row is not None] for side in (0, 1))
    ends = [start + pair[on_all] for start, pair, on_all in zip(starts, pairs, whole, strict=True)]
    early = [row for row, earlier in enumerate(before) if any(ends[item] > starts[row] for item in earlier)]
    if early:
        return wrong(f"operator {early[0]} starts before what it needs has ended")
    for moment in sorted(set(starts)):
        running = [row for row in range(len(ends)) if starts[row] <= moment < ends[row]]
        used = [sum(kinds[row] == kind for row in running) for kind in ("tensor", "vector")]
        alone = len(running) == 1 or not any(whole[row] for row in running)
        if not alone or (len(running) > 1 and any(use > most for use, most in zip(used, cores, strict=True))):
            return wrong(f"at {moment} operators run beside each other on more cores than there are")
    reached, why = max(ends), f"the layer takes {max(ends)} cycles, and {right} are possible"
    if reached == right:
        return FULL
    named = {name for way, name in (("all", ALL_ON_ALL), ("one", ONE_EACH)) if shortest(before, kinds, pairs, cores, way) == reached}
    return wrong(why, *sorted(named)[:1])


def judge_plan(handed: object, chain: Chain, right: float) -> Verdict:
    """Stages are priced layer by layer."""
    pair = handed if isinstance(handed, list) and len(handed) == 2 else [None, None]
    starts = integers_in(pair[1], len(chain.sent))
    data = pair[0] if isinstance(pair[0], int) and not isinstance(pair[0], bool) else 0
    if not starts or starts != sorted(set(starts)) or starts[0] != 0 or starts[-1] >= len(chain.sent) or not data >= 1:
        return wrong(f"{shown(handed)} is returned where [pipelines, first layers of the stages] is meant, such as [2, [0, 5]]")
    if data * len(starts) > chain.devices or data > chain.microbatches:
        return wrong(f"{data} pipelines of {len(starts)} stages are too many for {chain.devices} devices, or have no microbatch each")
    bytes_, time = chain.most_bytes(starts), chain.time(data, starts)
    if bytes_ > chain.memory:
        why = f"a stage keeps {bytes_} bytes of {chain.memory}"
        least = least_time(chain, flight=False)
        return nearly(ONE_IN_FLIGHT, why) if chain.most_bytes(starts, False) <= chain.memory and time == least else wrong(why)
    if time == right:
        return FULL
    why = f"a batch takes {time}, and {right:.0f} is possible"
    named = [NO_BUBBLE] * (chain.time(data, starts, bubble=False) == least_time(chain, bubble=False))
    named += [ONE_SIDED] * (chain.time(data, starts, both=False) == least_time(chain, both=False))
    if named:
        return nearly(named[0], why, *named[1:])
    return wrong(why, ONE_PIPELINE if data == 1 and time == least_time(chain, most=1) else "")


def judge_chip(handed: object, right: int, mistakes: dict[str, int], what: str) -> Verdict:
    """The place of a chip, or that which a likely mistake finds."""
    given = number(handed)
    if given == right:
        return FULL
    named = [name for name, index in mistakes.items() if index == given]
    why = f"{shown(handed)} is returned, and {right} is {what}"
    return nearly(named[0], why) if named and named[0] in (BY_CHIPS, IN_ALL) else wrong(why, named[0] if named else "")


# Cases.


def tasks(seed: str) -> tuple[Task, ...]:
    """Layers, chains and chips drawn anew."""
    random, handed = Random(f"{seed}/14"), public("14-chips-and-stages")
    layers: list[Layer] = [(item["before"], item["kinds"], item["sizes"], item["per_element"]) for item in handed["layers"]]
    before, kinds, sizes, per_element = layers[0]
    chip = handed["chips"][0]
    chain = [handed[key] for key in ("sent", "stored", "kept")]
    limits = [handed[key] for key in ("devices", "microbatches", "memory")]
    counted = [(kinds, sizes, per_element, chip), *(_counted(random) for _ in range(3))]
    layered = [(before, kinds, cycles(kinds, sizes, per_element, chip), chip[:2]), *(_layered(random) for _ in range(4))]
    chains = [chain_on(chip, layers, handed["order"], chain, limits), *(_chain(random) for _ in range(4))]
    chips = [(handed["chips"], layers, handed["order"], chain, limits), *(_chips(random) for _ in range(3))]
    searched = [tuple(handed[key] for key in ("areas", "times", "step", "patience")), *(_searched(random) for _ in range(3))]
    return (
        Task("cycles of operators: cycles", 9, given_first(_case("cycles", item, partial(judge_cycles, given=item)) for item in counted)),
        Task("a layer on the cores: schedule", 18, given_first(_schedule_case(item) for item in layered)),
        Task("stages and pipelines: plan", 15, given_first(_plan_case(chain) for chain in chains)),
        Task("the chip for all of it: best_chip", 12, given_first(_chip_case(chip) for chip in chips)),
        Task("where a search stops: early_stop", 6, given_first(_stop_case(item) for item in searched)),
    )


def _case(function: str, given: tuple[Any, ...], judge: Callable[[Any], Verdict]) -> Case:
    return Case(f"{len(given[0])} {'chips' if function in ('best_chip', 'early_stop') else 'entries'}", Call(function, given), judge)


def _schedule_case(given: tuple[list[list[int]], list[str], Pairs, list[int]]) -> Case:
    return _case("schedule", given, partial(judge_schedule, given=given, right=shortest(*given)))


def _plan_case(chain: Chain) -> Case:
    return _case("plan", chain.arguments, partial(judge_plan, chain=chain, right=least_time(chain)))


def _chip_case(given: tuple[Any, ...]) -> Case:
    right, slips = chips_of(*given)
    return _case("best_chip", given, partial(judge_chip, right=right, mistakes=slips, what="the best chip"))


def _stop_case(given: tuple[Any, ...]) -> Case:
    areas, times, step, patience = given
    slips = {way: stopped_at(areas, times, step, patience, way) for way in (BY_CHIPS, IN_ALL, UPWARD)} | {THE_BEST: times.index(min(times))}
    return _case("early_stop", given, partial(judge_chip, right=stopped_at(*given), mistakes=slips, what="where the search ends"))


def chips_of(
    chips: list[Chip], layers: list[Layer], order: list[int], chain: list[list[int]], limits: list[int]
) -> tuple[int, dict[str, int]]:
    """The first best chip, and those that likely mistakes find."""
    chains = [chain_on(chip, layers, order, chain, limits) for chip in chips]
    times = [least_time(chain) for chain in chains]
    work = [sum(chain.forward) for chain in chains]
    units = [tensor * width * depth for tensor, _, width, depth in chips]
    return times.index(min(times)), {LEAST_WORK: work.index(min(work)), MOST_MULTIPLIERS: units.index(max(units))}


def _counted(random: Random) -> tuple[list[str], list[int], list[int], Chip]:
    """Operators in which each likely mistake shows."""
    while True:
        chip = [random.choice((2, 4, 8)), random.choice((2, 4, 8)), random.choice((4, 8, 16)), random.choice((2, 4, 8))]
        kinds = [random.choice(("tensor", "vector")) for _ in range(6)]
        sizes = [random.randrange(100, 5000) for _ in kinds]
        per_element = [1 if kind == "tensor" else random.choice((1, 2, 10, 12)) for kind in kinds]
        right: list[list[float]] = [[float(item) for item in pair] for pair in cycles(kinds, sizes, per_element, chip)]
        found = [right, *_wrong_cycles(kinds, sizes, per_element, chip).values()]
        if len(set(map(repr, found))) == len(found):
            return kinds, sizes, per_element, chip


def _layer(random: Random, count: int) -> Layer:
    before = [
        sorted(random.sample(range(max(0, row - 3), row), random.randrange(1, min(row, 2) + 1) if row else 0)) for row in range(count)
    ]
    kinds = [random.choice(("tensor", "tensor", "vector")) for _ in before]
    sizes = [random.randrange(200, 3000) if kind == "tensor" else random.randrange(20, 300) for kind in kinds]
    return before, kinds, sizes, [1 if kind == "tensor" else random.choice((1, 2, 10)) for kind in kinds]


def _layered(random: Random) -> tuple[list[list[int]], list[str], Pairs, list[int]]:
    """A layer that needs operators on one core and others on all."""
    while True:
        before, kinds, sizes, per_element = _layer(random, 6)
        chip = [random.choice((2, 3)), random.choice((1, 2)), 8, 4]
        given = before, kinds, cycles(kinds, sizes, per_element, chip), chip[:2]
        right, unlimited = shortest(*given), shortest(*given[:3], [len(before)] * 2)
        if unlimited < right < min(shortest(*given, ways="one"), shortest(*given, ways="all")):
            return given


def _chain(random: Random) -> Chain:
    """A chain whose best plan has several stages and pipelines, in which likely mistakes show."""
    while True:
        count = random.randrange(8, 13)
        forward = [random.randrange(10, 60) for _ in range(count)]
        figures = [[random.randrange(least, most) for _ in range(count)] for least, most in ((2, 25), (10, 40), (3, 20))]
        stored, kept = sum(figures[1]), sum(figures[2])
        memory = random.randrange(stored // 3, stored + kept)
        chain = Chain(
            forward,
            [2 * item for item in forward],
            figures[0],
            figures[1],
            figures[2],
            random.randrange(5, 10),
            random.randrange(6, 20),
            memory,
        )
        if _tells(chain):
            return chain


def _tells(chain: Chain) -> bool:
    """Whether all plans that a likely mistake finds are worse, or do not fit."""
    right = least_time(chain)
    if right == inf or least_time(chain, most=1) == right or least_time(chain, flight=False) == right:
        return False
    bubble, sided = least_time(chain, bubble=False), least_time(chain, both=False)
    plans = list(_plans(chain))
    found = [
        any(chain.time(*plan, bubble=False) == bubble for plan in plans),
        any(chain.time(*plan, both=False) == sided for plan in plans),
    ]
    return all(found) and not any(
        chain.time(*plan) == right and (chain.time(*plan, bubble=False) == bubble or chain.time(*plan, both=False) == sided)
        for plan in plans
    )


def _plans(chain: Chain) -> Iterator[tuple[int, list[int]]]:
    """Plans that fit, with as many pipelines as there may be."""
    count = len(chain.sent)
    for bits in range(1 << (count - 1)):
        starts = [0, *(row + 1 for row in range(count - 1) if bits >> row & 1)]
        if len(starts) <= chain.devices and chain.most_bytes(starts) <= chain.memory:
            yield min(chain.devices // len(starts), chain.microbatches), starts


def _chips(random: Random) -> tuple[Any, ...]:
    """Chips of which neither the one with the least work nor that with most multipliers is best."""
    while True:
        layers = [_layer(random, random.randrange(3, 6)) for _ in range(2)]
        order = [0] * random.randrange(4, 7) + [1] * random.randrange(1, 3)
        chips = [[random.choice((1, 2, 4)), random.choice((1, 2, 4)), random.choice((4, 8)), random.choice((2, 4, 8))] for _ in range(6)]
        chain = [[random.randrange(least, most) for _ in order] for least, most in ((20, 200), (10, 40), (3, 20))]
        limits = [random.randrange(3, 8), random.randrange(6, 20), sum(chain[1]) // 2 + sum(chain[2])]
        times = [least_time(chain_on(chip, layers, order, chain, limits)) for chip in chips]
        if times.count(min(times)) > 1 or min(times) == inf:
            continue
        right, slips = chips_of(chips, layers, order, chain, limits)
        if right not in slips.values():
            return chips, layers, order, chain, limits


def _searched(random: Random) -> tuple[list[int], list[int], int, int]:
    """Chips on which each likely mistake ends elsewhere."""
    while True:
        count, patience = random.randrange(24, 36), random.randrange(2, 5)
        areas = [random.randrange(1000, 4000) for _ in range(count)]
        times = random.sample(range(500, 5000), count)
        given = areas, times, 100, patience
        found = [
            stopped_at(*given),
            *(stopped_at(areas, times, 100, patience, way) for way in (BY_CHIPS, IN_ALL, UPWARD)),
            times.index(min(times)),
        ]
        if len(set(found)) == len(found):
            return given


PHAZE = Assignment("14-chips-and-stages", "A chip, a schedule on its cores, and stages over many of them", tasks)
