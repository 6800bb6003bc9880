"""The questions of HAWQ-V3 (Yao et al. 2021): 4 or 8 bits for each layer of two networks, from the reference data."""

import json
from decimal import Decimal
from typing import Any

from crossopt.instances.layers.problem import Written, problem_of
from crossopt.instances.layers.question import LayersQuestion
from tests.paths import reference

FIGURE = {"modelsize": "size", "bops": "bops", "latency": "time"}


def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reference("layers/hawq.json").read_text(encoding="utf-8"), parse_float=Decimal)
    return found


def question(network: str, constraint: str, level: str) -> LayersQuestion:
    """Least quality lost, within a level between the use of 4 bits and that of 8."""
    found, figure = document()["networks"][network], FIGURE[constraint]
    layers: dict[str, dict[str, dict[str, float]]] = {}
    for name, weights, macs, trace, *rest in found["layers"]:
        deltas, latencies = rest[:2], rest[2:]
        layers[name] = {}
        for bits, delta, latency in zip((4, 8), deltas, latencies, strict=True):
            use = {"modelsize": Decimal(weights * bits) / 8, "bops": Decimal(macs * bits * bits), "latency": Decimal(latency)}[constraint]
            layers[name][f"int{bits}"] = {"quality": float(trace * delta), figure: float(use)}
    least, most = (sum(Decimal(repr(layer[name][figure])) for layer in layers.values()) for name in ("int4", "int8"))
    budget = {figure: float(least + Decimal(level) * (most - least))}
    names = list(layers)
    ties = [[names[one] for one in tied] for tied in found["tied"]]
    problem = problem_of(Written(layers, [], "quality", budget, ties))
    return LayersQuestion(f"{network} {constraint} {level}", problem, budget, {})
