"""Questions of latency for tests, and their answers by trying everything."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np

from crossopt.instances.placement.question import Graph, PlacementQuestion
from crossopt.solvers.placement.judge import judge_latency
from tests.instances.placement.graphs import question, random_graph
from tests.once import once


def latency_question(of: Graph, accelerators: int, pieces: int = 1, memory: float = float("inf")) -> PlacementQuestion:
    return replace(question(of, accelerators, 1, memory), problem="latency", pieces=pieces)


@cache
def sample_at_random(seed: int, nodes: int, places: int) -> PlacementQuestion:
    """A question with so many nodes at most, and so many pieces on all accelerators together at most."""
    random = np.random.default_rng(1000 + seed)
    graph = random_graph(seed, int(random.integers(2, nodes + 1)))
    if seed % 4 == 0:
        graph.accelerator_time[int(random.integers(len(graph)))] = np.inf
    pieces = int(random.integers(1, min(places, 2) + 1))
    memory = float(random.choice([np.inf, 0.7, 0.5, 0.35]))
    return latency_question(graph, int(random.integers(1, places // pieces + 1)), pieces, memory * max(float(graph.size.sum()), 1.0))


@once
def tried(asked: PlacementQuestion) -> float:
    """The least latency of all placements, in any pieces in any order; equal accelerators are tried once."""
    slots, best = asked.accelerators * asked.pieces, float("inf")
    for slot in product(range(slots + 1), repeat=len(asked.graph)):
        used = [place // asked.pieces for place in slot if place < slots]
        if used and [*dict.fromkeys(used)] != [*range(max(used) + 1)]:
            continue
        places = np.array(slot, np.int64)
        device, piece = np.minimum(places // asked.pieces, asked.accelerators), np.where(places < slots, places % asked.pieces, 0)
        verdict = judge_latency(asked, device, piece)
        best = min(best, verdict.value) if verdict.accepted else best
    return best
