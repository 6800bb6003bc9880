"""Reference solution of assignment 14."""

from functools import cache
from math import inf


def cycles(kinds: list[str], sizes: list[int], per_element: list[int], chip: list[int]) -> list[list[int]]:
    """Elements by the units of one core and of all, rounded up, and then the cycles of each."""
    tensor, vector, width, depth = chip
    found = []
    for kind, size, each in zip(kinds, sizes, per_element, strict=True):
        units, count = (width * depth, tensor) if kind == "tensor" else (width, vector)
        found.append([-(-size // units) * each, -(-size // (units * count)) * each])
    return found


def schedule(before: list[list[int]], kinds: list[str], pairs: list[list[int]], cores: list[int]) -> list[list[int]]:
    """A search over what has ended and what still runs: start an operator now, or wait for the next end."""
    count, own = len(before), {"tensor": cores[0], "vector": cores[1]}

    @cache
    def left(ended: frozenset[int], running: tuple[tuple[int, int], ...]) -> tuple[float, tuple[tuple[int, int, int], ...]]:
        """Cycles from now on, and what starts when: (row, start, on all)."""
        busy = {row for _, row in running}
        if len(ended) + len(busy) == count:
            return max((end for end, _ in running), default=0), ()
        best: tuple[float, tuple[tuple[int, int, int], ...]] = (inf, ())
        for row in range(count):
            if row in ended or row in busy or not ended.issuperset(before[row]):
                continue
            if not running:
                step = pairs[row][1]
                time, rest = left(ended | {row}, ())
                best = min(best, (step + time, ((row, 0, 1), *later(rest, step))), key=lambda one: one[0])
            if sum(kinds[other] == kinds[row] for other in busy) < own[kinds[row]]:
                time, rest = left(ended, tuple(sorted((*running, (pairs[row][0], row)))))
                best = min(best, (time, ((row, 0, 0), *rest)), key=lambda one: one[0])
        if running:
            step = running[0][0]
            over = {row for end, row in running if end == step}
            time, rest = left(ended | over, tuple((end - step, row) for end, row in running if end > step))
            best = min(best, (step + time, later(rest, step)), key=lambda one: one[0])
        return best

    found = {row: [start, whole] for row, start, whole in left(frozenset(), ())[1]}
    return [found[row] for row in range(count)]


def later(rest: tuple[tuple[int, int, int], ...], step: int) -> tuple[tuple[int, int, int], ...]:
    """The same starts after some cycles."""
    return tuple((row, start + step, whole) for row, start, whole in rest)


def makespan(before: list[list[int]], kinds: list[str], pairs: list[list[int]], cores: list[int]) -> int:
    """Cycles of the shortest schedule."""
    starts = schedule(before, kinds, pairs, cores)
    return max(start + pair[whole] for (start, whole), pair in zip(starts, pairs, strict=True))


def plan(
    forward: list[int],
    backward: list[int],
    sent: list[int],
    stored: list[int],
    kept: list[int],
    devices: int,
    microbatches: int,
    memory: int,
) -> tuple[int, list[int]]:
    """A table over the first layer of a stage and the stages from there to the end; the last one stores one microbatch."""
    count, best, found = len(sent), inf, (1, [0])
    table: list[tuple[float, list[int]]] = [(inf, [])] * count + [(0, [])]
    for stages in range(1, min(count, devices) + 1):
        behind, table = table, [(inf, [])] * (count + 1)
        for start in range(count):
            for end in range(start + 1, count + 1):
                if sum(stored[start:end]) + stages * sum(kept[start:end]) > memory:
                    continue
                came, goes = (sent[start - 1] if start else 0), (sent[end - 1] if end < count else 0)
                load = sum(forward[start:end]) + sum(backward[start:end]) + came + goes
                slowest = max(load, behind[end][0])
                if slowest < table[start][0]:
                    table[start] = slowest, [start, *behind[end][1]]
        data = min(devices // stages, microbatches)
        time = table[0][0] * (-(-microbatches // data) + stages - 1)
        if time < best:
            best, found = time, (data, table[0][1])
    return found


def batch(given: tuple[list[int], ...], limits: list[int], data: int, starts: list[int]) -> int:
    """The time of a plan."""
    forward, backward, sent = given[:3]
    loads = []
    for start, end in zip(starts, [*starts[1:], len(sent)], strict=True):
        came, goes = (sent[start - 1] if start else 0), (sent[end - 1] if end < len(sent) else 0)
        loads.append(sum(forward[start:end]) + sum(backward[start:end]) + came + goes)
    return max(loads) * (-(-limits[1] // data) + len(starts) - 1)


def best_chip(
    chips: list[list[int]],
    layers: list[tuple[list[list[int]], list[str], list[int], list[int]]],
    order: list[int],
    chain: list[list[int]],
    limits: list[int],
) -> int:
    """Cycles, schedules and the plan, for each chip."""
    times = []
    for chip in chips:
        spans = [makespan(before, kinds, cycles(kinds, sizes, each, chip), chip[:2]) for before, kinds, sizes, each in layers]
        forward = [spans[one] for one in order]
        given = (forward, [2 * one for one in forward], *chain)
        devices, microbatches, memory = limits
        found = plan(given[0], given[1], given[2], given[3], given[4], devices, microbatches, memory)
        times.append(batch(given, limits, *found))
    return times.index(min(times))


def early_stop(areas: list[int], times: list[int], step: int, patience: int) -> int:
    """Groups from the largest area down."""
    best, idle = -1, 0
    for group in sorted({area // step for area in areas}, reverse=True):
        own = min((row for row, area in enumerate(areas) if area // step == group), key=lambda row: times[row])
        if best < 0 or times[own] < times[best]:
            best, idle = own, 0
        else:
            idle += 1
        if idle == patience:
            break
    return best
