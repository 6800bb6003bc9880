"""Reference solution of assignment 10."""

from itertools import combinations
from math import inf
from random import Random

Links = list[list[int]]


def finish(npus: int, links: Links, sends: list[list[int]]) -> int | None:
    """Sends in the order of their steps: each needs its chunk there, and its link free."""
    there = {(npu, npu): 0 for npu in range(npus)}
    free = [0] * len(links)
    for chunk, place, step in sorted(sends, key=lambda send: send[2]):
        sender, receiver, took = links[place]
        if there.get((sender, chunk), inf) > step:
            return None
        if free[place] > step:
            return None
        free[place] = step + took
        there[receiver, chunk] = min(there.get((receiver, chunk), step + took), step + took)
    return max(there.values()) if len(there) == npus * npus else None


def distances(npus: int, links: Links) -> list[list[float]]:
    """Steps of the quickest way between any two (Floyd and Warshall)."""
    away: list[list[float]] = [[0.0 if one == other else inf for other in range(npus)] for one in range(npus)]
    for sender, receiver, took in links:
        away[sender][receiver] = min(away[sender][receiver], took)
    for over in range(npus):
        for one in range(npus):
            for other in range(npus):
                away[one][other] = min(away[one][other], away[one][over] + away[over][other])
    return away


def far(npus: int, links: Links) -> float:
    """The largest of them."""
    away = distances(npus, links)
    return max(max(row) for row in away)


def cut(npus: int, links: Links, inside: list[int]) -> int:
    """A link of w steps brings floor(T / w) chunks until step T."""
    into = [took for sender, receiver, took in links if receiver in inside and sender not in inside]
    missing = npus - len(inside)
    step = 0
    while sum(step // took for took in into) < missing:
        step += 1
    return step


def bound(npus: int, links: Links) -> float:
    """Ways and all cuts."""
    sizes = range(1, npus)
    cuts = [cut(npus, links, list(inside)) for size in sizes for inside in combinations(range(npus), size)]
    return max([far(npus, links), *cuts])


def ring(order: list[int]) -> list[list[int]]:
    """Each chunk goes both ways, half of the ring each, from the place at which its NPU lies."""
    sends, npus = [], len(order)
    for place, chunk in enumerate(order):
        sends += [[chunk, 2 * ((place + step) % npus), step] for step in range(npus // 2)]
        sends += [[chunk, 2 * ((place - step) % npus) + 1, step] for step in range((npus - 1) // 2)]
    return sends


def gather(npus: int, links: Links) -> list[list[int]]:
    """A greedy that draws lots, until it ends at the bound: then nothing is better."""
    best = bound(npus, links)
    for seed in range(2000):
        sends = drawn(npus, links, Random(seed))
        if finish(npus, links, sends) == best:
            return sends
    return sends


def drawn(npus: int, links: Links, random: Random) -> list[list[int]]:
    """Step by step each free link takes a chunk that its receiver lacks and that is not under way to it."""
    there = {(npu, npu): 0 for npu in range(npus)}
    free = [0] * len(links)
    sends, step = [], 0
    while len(there) < npus * npus:
        for place in random.sample(range(len(links)), len(links)):
            sender, receiver, took = links[place]
            able = [chunk for chunk in range(npus) if there.get((sender, chunk), inf) <= step and (receiver, chunk) not in there]
            if able and free[place] <= step:
                chunk = random.choice(able)
                sends.append([chunk, place, step])
                free[place] = there[receiver, chunk] = step + took
        step += 1
    return sends
