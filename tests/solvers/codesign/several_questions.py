"""Questions with several workloads that tests ask, and their answer by brute force."""

from functools import cache
from itertools import product

import numpy as np

from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import saved_single_scale
from crossopt.instances.codesign.space import hardware_points, plan_blocks
from crossopt.solvers.codesign.answer import candidate
from crossopt.solvers.codesign.judge import verify

TWO = """\
kind: codesign
workloads:
  - {model: gpt3-125m, global_batch: 64, weight: 3}
  - {model: gpt3-1.3b, global_batch: 32, choices: {tensor: [1, 2, 4]}}
cluster: {devices: 8, devices_per_node: 4}
technology: accelerator-7nm
choices:
  compute_area: [0.001 mm^2, 200 mm^2, 400 mm^2]
  compute_power: [100 W, 180 W, 400 W]
  l2_area: [10 mm^2, 100 mm^2]
  hbm_stacks: [2, 4]
  tensor: [1, 2]
  recompute: [none, full]
"""
"""Some chips have no cores, others break the power budget."""

_WORKLOADS = (
    "{transformer: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}, global_batch: 48",
    "{transformer: {layers: 2, hidden: 4096, heads: 8, ffn: 1024, vocabulary: 8192, sequence: 128}, global_batch: 16",
    "{transformer: {layers: 4, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocabulary: 8192, sequence: 512, experts: 4,"
    " experts_per_token: 2}, global_batch: 64",
    "{model: gpt3-1.3b, attention: unfused, global_batch: 16",
    "{model: llama2-7b, global_batch: 16",
    "{model: gemm-4096",
    "{lstm: {layers: 2, hidden: 2048, vocabulary: 10000, sequence: 20}, global_batch: 256",
)
_OWN = ("", "", ", choices: {data: divisors}")
_CHOICES = {
    "compute_area": ("[100 mm^2, 300 mm^2]", "[0.001 mm^2, 300 mm^2, 500 mm^2]"),
    "compute_power": ("[150 W, 240 W]", "[60 W, 120 W, 240 W]"),
    "l2_area": ("60 mm^2", "[20 mm^2, 120 mm^2]"),
    "hbm_stacks": ("[2, 4]", "[5, 3, 2]"),
    "tensor": ("[1, 2]", "divisors"),
    "microbatch": ("1", "[1, 2]"),
    "recompute": ("none", "[none, full]"),
    "rows": ("[1, 2]", "divisors"),
    "columns": ("divisors",),
}


@cache  # nobody changes a question
def several(text: str, *settings: str) -> Portfolio:
    """The question in a text, with settings laid over it."""
    asked = saved_single_scale({"text": text, "source": "several.yaml", "settings": list(settings)})
    if not isinstance(asked, Portfolio):
        raise TypeError("this question has one workload")
    return asked


@cache
def random_several(seed: int) -> Portfolio:
    """A small question like no other: one to three workloads of any kind, either way to combine them, loose or hard limits."""
    random = np.random.default_rng(seed)

    def one_of(options: tuple[str, ...]) -> str:
        return options[int(random.integers(len(options)))]

    combine = one_of(("weighted_sum", "worst_regret"))
    chosen = random.permutation(len(_WORKLOADS))[: int(random.integers(1, 4))]
    lines = ["kind: codesign", f"combine: {combine}", "workloads:"]
    for number, place in enumerate(chosen):
        weight = f", weight: {random.choice([0.5, 1, 7])}" if combine == "weighted_sum" else ""
        lines.append(f"  - {_WORKLOADS[place]}, precision: fp16, name: w{number}{weight}{one_of(_OWN)}}}")
    lines.append("cluster: {devices: 4, devices_per_node: 2}")
    fixed = random.integers(6) == 0
    lines.append(f"hardware: {one_of(('a100-40g', 'v100-16g'))}" if fixed else "technology: accelerator-7nm")
    lines.append(f"objective: {one_of(('step_time', 'energy_per_token', 'rated_energy_per_token', 'cost_per_token', 'power', 'die_area'))}")
    lines.append("prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, wafer: 9000 USD, stack: 120 USD, package: 900 USD}")
    step = random.choice(["", "", ", step_time: 300 ms"])
    lines.append(f"budget: {{die_area: {random.choice([700, 815])} mm^2, power: {random.choice([250, 400])} W{step}}}")
    kernels = {"rows", "columns"} if any(place >= 5 for place in chosen) else set()
    transformers = {"tensor", "microbatch", "recompute"} if any(place < 5 for place in chosen) else set()
    hardware = set() if fixed else {"compute_area", "compute_power", "l2_area", "hbm_stacks"}
    lines += ["choices:", "  data: divisors"]
    lines += [f"  {name}: {one_of(options)}" for name, options in _CHOICES.items() if name in kernels | transformers | hardware]
    return several("\n".join(lines))


def values_by_brute_force(part: Instance) -> list[list[float]]:
    """For each chip the value of every plan that keeps the limits on it, each design priced alone by the full model."""
    plans = [(block, row) for block in plan_blocks(part) for row in range(len(block))]
    found = []
    for point in range(hardware_points(part)):
        values = []
        for block, row in plans:
            try:
                verdict = verify(part, candidate(block, row, point))
            except ValueError:  # a chip that cannot be built
                continue
            values += [verdict.value] if verdict.accepted else []
        found.append(values)
    return found


def least_by_brute_force(portfolio: Portfolio) -> float:
    """The least figure over all chips and all tuples of plans; infinite where there is none."""
    return least_of_tables(portfolio, tables_by_brute_force(portfolio))


def tables_by_brute_force(portfolio: Portfolio) -> list[list[list[float]]]:
    """The values of each workload alone, which do not depend on how they are combined."""
    return [values_by_brute_force(part) for part in portfolio.parts]


def least_of_tables(portfolio: Portfolio, tables: list[list[list[float]]]) -> float:
    """The least figure of values that are known."""
    optima = [min((value for values in table for value in values), default=1.0) for table in tables]
    least = float("inf")
    for per_chip in zip(*tables, strict=True):
        few = [sorted(set(values))[:_FEW] for values in per_chip]  # a plan beyond them cannot be in the least tuple; some are left to lose
        for values in product(*few):
            if portfolio.combine == "weighted_sum":
                figure = 0.0 + sum(weight * value for weight, value in zip(portfolio.weights, values, strict=True))
            else:
                figure = max(value / optimum - 1.0 for value, optimum in zip(values, optima, strict=True))
            least = min(least, figure)
    return least


_FEW = 4
