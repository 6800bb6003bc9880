"""Small graphs with configurations for tests: random ones of every kind as files and questions, and what is best by trying everything."""

import json
from functools import cache
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from crossopt.instances.question import read
from crossopt.instances.stages.piper import PiperQuestion
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.checking import Report, check
from crossopt.solvers.family import solve
from crossopt.solvers.stages.piper.family import FAMILY
from crossopt.solvers.stages.piper.judge import PiperLoads, PiperPlan

Answer = Result[PiperPlan, PiperLoads]


def configuration(name: str, time: float, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    given = {"id": name, "timePerSample": time, "parameterSize": 8.0, "memoryUsageA": 4.0, "memoryUsageB": 8.0}
    return {**given, "syncTimeFw": {}, "syncTimeBw": {}, **more}


def node(name: int | str, time: float = 1.0, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    quick, slow = configuration("vanilla", time), configuration("activation recomp", 1.5 * time, memoryUsageA=1.0, memoryUsageB=11.0)
    return {"id": name, "name": "layer", "TMPCs": {"1": [quick, slow]}, **more}


def document(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    edges = [{"sourceId": 1, "destId": 2, "communicationCost": 2.0}, {"sourceId": 2, "destId": 3, "communicationCost": 2.0}]
    machine = {"maxDevices": 3, "maxMemoryPerDevice": 64.0, "bandwidth": 100.0, "mbsInBatch": 4}
    return {**machine, "nodes": [node(1), node(2), node(3)], "edges": edges, **more}


def written(path: Path, what: object) -> Path:
    target = path / "network.json"
    target.write_text(what if isinstance(what, str) else json.dumps(what), encoding="utf-8")
    return target


def random_document(seed: int, count: int, devices: int, sync: bool = True) -> dict[str, Any]:
    """A random network: some layers without work, one or two degrees, one to three configurations, traffic that may depend on them."""
    random = np.random.default_rng(seed)
    share = random.uniform(0.8, 2.5) / count
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count) if random.random() < share or other == one + 1 < 3]
    idle = {row for row in range(count) if random.random() < 0.2}
    tensors = [1] if random.random() < 0.4 else [1, 2]
    nodes = []
    for row in range(count):
        table: dict[str, list[dict[str, Any]]] = {}
        for tensor in tensors if row in idle or random.random() < 0.85 else [1]:
            table[str(tensor)] = []
            for number in range(1 if row in idle else int(random.integers(1, 4))):
                before = [one for one, other in pairs if other == row]
                after = [other for one, other in pairs if one == row]
                wide = sync and row not in idle and random.random() < 0.3
                table[str(tensor)].append(
                    configuration(
                        ("vanilla", "activation recomp", "third")[number],
                        0.0 if row in idle else float(random.integers(1, 100)) / (8.0 * tensor),
                        parameterSize=0.0 if row in idle else float(random.integers(0, 50)),
                        memoryUsageA=0.0 if row in idle else float(random.integers(0, 20)) + float(random.choice([0.0, 0.5])),
                        memoryUsageB=0.0 if row in idle else float(random.integers(0, 30)),
                        syncTimeFw={str(one): float(random.integers(0, 30)) for one in before if wide},
                        syncTimeBw={str(one): float(random.integers(0, 30)) for one in after if wide},
                    )
                )
        nodes.append({"id": row, "name": "layer", "TMPCs": table})
    costs = [0.0 if {one, other} & idle and random.random() < 0.8 else float(random.integers(0, 40)) for one, other in pairs]
    return {
        "maxDevices": devices,
        "maxMemoryPerDevice": float(random.integers(20, 40 + 35 * count)),
        "bandwidth": float(random.choice([10.0, 100.0])),
        "mbsInBatch": int(random.choice([4, 6, 12])),
        "nodes": nodes,
        "edges": [{"sourceId": one, "destId": other, "communicationCost": cost} for (one, other), cost in zip(pairs, costs, strict=True)],
    }


def random_question(path: Path, seed: int, count: int, devices: int) -> PiperQuestion:
    return read(written(path, random_document(seed, count, devices)))


def answered(question: PiperQuestion, limits: Limits | None = None) -> Answer:
    """The quickest stages with their proof."""
    return solve(FAMILY, question, "auto", limits or Limits(), unwatched)


def checked(result: Answer) -> Report:
    return check(FAMILY, result, Path())


def ideals(question: PiperQuestion) -> set[frozenset[int]]:
    """All sets of layers that hold every predecessor of theirs."""
    found = set()
    for kept in product((False, True), repeat=len(question.graph)):
        rows = {row for row, here in enumerate(kept) if here}
        if all(start in rows for start, end in question.graph.edges if end in rows):
            found.add(frozenset(rows))
    return found


def stage_by_trying(question: PiperQuestion, rows: list[int], tensor: int, data: int, under_way: int) -> float:
    """The least time of a stage over all configurations that fit."""
    graph, best = question.graph, float("inf")
    for chosen in product(*(graph.offers[row].get(tensor, ()) for row in rows)):
        own = dict(zip(rows, chosen, strict=True))
        if sum(one.stashed * under_way + one.fixed for one in chosen) > question.memory:
            continue
        crossing = 0.0
        for (start, end), size in zip(graph.edges, graph.sizes, strict=True):
            if end in own and start not in own:
                crossing += size + own[end].entering.get(start, 0.0)
            if start in own and end not in own:
                crossing += size + own[start].leaving.get(end, 0.0)
        exchange = sum(4.0 * (data - 1) * one.parameters / (data * question.microbatches) for one in chosen)
        best = min(best, sum(one.time for one in chosen) / data + (2.0 * crossing / data + exchange) / question.bandwidth)
    return best


def best_by_trying(question: PiperQuestion) -> float:
    """The least time of the busiest stage over all stages, degrees and configurations; infinite where nothing fits."""
    cuts = ideals(question)

    @cache
    def stage(inner: frozenset[int], outer: frozenset[int], tensor: int, data: int, under_way: int) -> float:
        return stage_by_trying(question, sorted(outer - inner), tensor, data, under_way)

    @cache
    def before(outer: frozenset[int], devices: int, replicas: int) -> float:
        """The least busiest stage of all up to a cut, with the devices left and the replicas of the stages after it."""
        best = float("inf") if outer else 0.0
        for inner, tensor, data in product(cuts, (1, 2), question.degrees):
            if inner < outer and data * tensor <= devices and replicas + data <= question.microbatches:
                own = stage(inner, outer, tensor, data, ceil((replicas + data) / data))
                if own < best:
                    best = min(best, max(own, before(inner, devices - data * tensor, replicas + data)))
        return best

    return before(frozenset(range(len(question.graph))), question.devices, 0)
