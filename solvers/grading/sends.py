"""Sends of chunks over single links: when all have everything, and before when nobody can have it.

far     no chunk comes farther than along the quickest way: the largest of these
cut     into some NPUs come those chunks that they lack: the first T with  sum of floor(T / w) over the links into them  enough
bound   the largest of both, over all NPUs and all cuts
"""

from collections.abc import Callable
from itertools import combinations
from random import Random

Links = list[list[int]]
"""From, to, and the steps that a chunk takes."""
Sends = list[list[int]]
"""The chunk, the link by its place, and the step at which it sets out."""


def finish(
    npus: int,
    links: Links,
    sends: Sends,
    *,
    waits: bool = True,
    alone: bool = True,
    ordered: bool = True,
    counts: Callable[[int, int], int] = min,
) -> int | None:
    """The step at which all have everything; None where somebody sends what it has not, or over a link that is busy, or lacks something in
    the end. The mistakes of not looking whether a chunk has come, whether a link is free, at which step a send sets out, and which of two
    comings is the first one, are settings."""
    there, busy = {(npu, npu): 0 for npu in range(npus)}, dict[int, int]()
    for chunk, place, step in sorted(sends, key=lambda one: one[2]) if ordered else sends:
        sender, receiver, took = links[place]
        came = there.get((sender, chunk))
        if came is None or (waits and came > step) or (alone and busy.get(place, 0) > step):
            return None
        busy[place] = step + took
        there[receiver, chunk] = counts(there.get((receiver, chunk), step + took), step + took)
    return max(there.values()) if len(there) == npus * npus else None


def distances(npus: int, links: Links) -> list[list[float]]:
    """Steps of the quickest way between any two."""
    away = [[0.0 if one == other else float("inf") for other in range(npus)] for one in range(npus)]
    for sender, receiver, took in links:
        away[sender][receiver] = min(away[sender][receiver], took)
    for over in range(npus):
        for one in range(npus):
            away[one] = [min(far, away[one][over] + more) for far, more in zip(away[one], away[over], strict=True)]
    return away


def far(npus: int, links: Links) -> int:
    return int(max(map(max, distances(npus, links))))


def cut(npus: int, links: Links, inside: list[int]) -> int:
    """The first step by which the links into some NPUs can have brought all chunks of the others."""
    into = [took for sender, receiver, took in links if receiver in inside and sender not in inside]
    return next(step for step in range(npus * max(into) + 1) if sum(step // took for took in into) >= npus - len(inside))


def bound(npus: int, links: Links) -> int:
    """Over all NPUs and all cuts."""
    return max(far(npus, links), *by_size(npus, links))


def greedy(npus: int, links: Links, random: Random) -> Sends:
    """Free links in any order, each with a chunk that its receiver lacks and that is not under way to it (TACOS, Won et al. 2024)."""
    there, under_way = {(npu, npu): 0 for npu in range(npus)}, {(npu, npu) for npu in range(npus)}
    free, sends, step = [0] * len(links), Sends(), 0
    while len(under_way) < npus * npus:
        for place in random.sample(range(len(links)), len(links)):
            sender, receiver, took = links[place]
            able = [c for c in range(npus) if there.get((sender, c), step + 1) <= step and (receiver, c) not in under_way]
            if able and free[place] <= step:
                chunk = random.choice(able)
                sends.append([chunk, place, step])
                free[place], there[receiver, chunk] = step + took, step + took
                under_way.add((receiver, chunk))
        step += 1
    return sends


def last(links: Links, sends: Sends) -> int:
    """When the last of all sends comes."""
    return max(step + links[place][2] for _, place, step in sends)


def by_size(npus: int, links: Links) -> list[int]:
    """What cuts around one, two, ... NPUs say."""
    return [max(cut(npus, links, list(inside)) for inside in combinations(range(npus), size)) for size in range(1, npus)]


def _latest(_: int, later: int) -> int:
    return later


def _first_sent(first: int, _: int) -> int:
    return first


OTHER_COMINGS = (max, _latest, _first_sent)
"""Of two comings of a chunk another one than the first."""
