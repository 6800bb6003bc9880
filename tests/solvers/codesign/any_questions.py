"""Questions of every workload, chip, cluster, stack and setting, drawn at random: what prices of blocks must stand."""

import numpy as np

from crossopt.crossflow.plan import OFFLOAD
from crossopt.instances.catalogue.registry import names
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.stack_rules import STACKS
from crossopt.instances.errors import InstanceError
from tests.solvers.codesign.wide_questions import wide_text

_DRAWN = (
    "layers: 8, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512",
    "layers: 6, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocabulary: 8200, sequence: 512, experts: 4, experts_per_token: 2",
    "layers: 9, hidden: 768, heads: 12, kv_heads: 4, ffn: 2816, vocabulary: 50257, sequence: 1024, gated: true, tied: false",
)
_SKEWED = ("1", "1.1", "1.5")
_OTHERS = (
    "lstm: {layers: 2, hidden: 2048, vocabulary: 10000, sequence: 20}, global_batch: 256",
    "model: deepflow-lstm, global_batch: 128",
    "model: gemm-4096",
    "model: gemm-1024",
)
_OBJECTIVES = (
    "step_time",
    "time_per_sample",
    "worst_step_time",
    "energy_per_token",
    "rated_energy_per_token",
    "cost_per_token",
    "power",
    "die_area",
)
_DIMENSIONS = (
    "[{size: 4, shape: ring, bandwidth: 90 GB/s}, {size: 2, shape: ring, bandwidth: 90 GB/s}]",
    "[{size: 2, shape: fully_connected, bandwidth: 200 GB/s}, {size: 4, shape: switch, bandwidth: 25 GB/s}]",
    "[{size: 2, shape: switch, bandwidth: 300 GB/s}, {size: 4, shape: rails, bandwidth: 40 GB/s, latency: 5 us, reduces: true}]",
    "[{size: 4, shape: fully_connected, bandwidth: 200 GB/s}, {size: 4, shape: ring, bandwidth: 50 GB/s}]",
    "[{size: 2, shape: ring, bandwidth: 60 GB/s}, {size: 2, shape: ring, bandwidth: 60 GB/s}, {size: 4, shape: ring, bandwidth: 60 GB/s}]",
)
_SIZES = (8, 8, 8, 16, 16)
_SETTINGS: dict[str, tuple[str, ...]] = {
    "context": ("1", "2"), "expert": ("1", "2", "4"), "expert_tensor": ("0", "1", "2"), "expert_exchange": ("exposed", "hidden"),
    "microbatch": ("1", "2"), "interleave": ("1", "2"), "sequence_parallel": ("false", "true"), "tensor_exchange": ("exposed", "hidden"),
    "recompute": ("none", "full", "norms", "elements", "selective-elements", "dense-part", "experts", "expert-activation"),
    "recompute_layers": ("0", "1", "2"), "zero": ("0", "1", "2", "3"), "shard": ("0", "2", "4"), "overlap": ("none", "data", "pipeline",
    "both"), "offload": OFFLOAD, "schedule": ("1f1b", "zero-bubble", "zero-bubble-v", "dualpipe"), "first_stage_layers": ("0", "1", "-1"),
    "last_stage_layers": ("0", "1", "-1"), "placement": ("tensor-context-data-pipeline", "data-tensor-context-pipeline",
    "pipeline-data-tensor-context"),
}  # fmt: skip
_MOST = 6
"""Options of a choice of the chip, so that many chips differ in one part alone."""


def any_question(seed: int, few: bool = False) -> Instance:
    """A question like no other, with all settings of plans open or with few designs; those that nothing can answer are drawn again."""
    for attempt in range(100):
        random = np.random.default_rng([seed, attempt])
        try:
            return read_question({"text": _apart(random, _text(random, few)), "source": "question.yaml", "settings": []})
        except InstanceError:
            continue
    raise AssertionError(f"seed {seed}: no question was drawn in 100 attempts")


def _text(random: np.random.Generator, few: bool) -> str:
    transformer = random.random() < 0.85
    sets = random.random() < 0.15
    objective = "worst_step_time" if sets else random.choice(_OBJECTIVES)
    lines = [f"workload: {_workload(random, transformer, few)}", f"cluster: {_cluster(random)}", f"objective: {objective}"]
    lines += ["sets: ranges"] if sets else []
    lines += [f"efficiency: {{overlap_loss: {random.choice([0, 0.1])}}}"] if random.random() < 0.2 else []
    if random.random() < 0.5:
        return "\n".join(["kind: codesign", *lines, *_bought(random, transformer), "choices:", *_plans(random, transformer, few)])
    own_prices = random.random() < 0.5
    kept = ("technology:", "budget:", "choices:", "  ", *(() if own_prices else ("prices:",)))
    text = (
        wide_text(int(random.integers(1 << 30)), 2 if few else 8, 2 if few else _MOST).split("  tensor: divisors")[0].split("  split:")[0]
    )
    chip = [line for line in text.splitlines() if line.startswith(kept)]
    dies = [f"  dies: {random.choice(['1', '[1, 2]', '[2, 4]'])}"] if random.random() < 0.3 else []
    prices = [f"prices: {_made(random)}"] if own_prices else []
    return "\n".join(["kind: codesign", *lines, *prices, *chip, *dies, *_plans(random, transformer, few)])


def _apart(random: np.random.Generator, text: str) -> str:
    """Some questions with groups that exchange rarely; drawn last, so that all others are as without them."""
    if random.random() >= 0.2 or "sets:" in text or "global_batch" not in text or "budget: {step_time" in text:
        return text
    lines = ["objective: mean_step_time" if line.startswith("objective:") else line for line in text.splitlines()]
    every, overlaps = random.choice([1, 2, 7, 30, 100], 2, replace=False), random.choice([0, 1, 3], 2, replace=False)
    kinds = str(random.choice(["synchronous", "asynchronous", "[synchronous, asynchronous]"]))
    figures = f"bandwidth: {10.0 ** random.uniform(7.0, 12.0):.4g} b/s, latency: {random.choice([0, 20])} ms"
    ways = f"sync_every: [{every[0]}, {every[1]}], overlap_steps: [{overlaps[0]}, {overlaps[1]}], fragments: [1, 4], exchange: {kinds}"
    table = f"quality: [{{sync_every: {every[0]}, steps: 1.07}}, {{steps: 1.2}}], straggler: {random.choice([0, 0.02])}"
    lines += [f"sites: {{groups: {random.choice([1, 2, 4])}, {figures}, {ways}, {table}}}"]
    if random.random() < 0.3 and "goal:" not in text:
        lines = ["objective: run_cost" if line.startswith("objective:") else line for line in lines] + ["goal: {tokens: 1e9, rent: 2 USD}"]
    return "\n".join(lines)


def _workload(random: np.random.Generator, transformer: bool, small: bool) -> str:
    precision = str(random.choice(["", "", ", precision: fp16", ", precision: fp8"]))
    if not transformer:
        return f"{{{random.choice(_OTHERS)}{precision.replace('8', '16')}}}"
    if random.random() < (0.1 if small else 0.5):
        models = [name for name in names("workloads") if "gemm" not in name and "lstm" not in name]
        model = f"model: {random.choice(models)}, sequence: {random.choice([1024, 2048])}"
    else:
        drawn = str(random.choice(_DRAWN))
        model = f"transformer: {{{drawn}}}" + (f", capacity_factor: {random.choice(_SKEWED)}" if "experts" in drawn else "")
    attention = str(random.choice(["", "", ", attention: unfused"]))
    return f"{{{model}, global_batch: {random.choice([16, 32, 48, 64])}{attention}{precision}}}"


def _cluster(random: np.random.Generator) -> str:
    host = f", host: {{memory: {random.choice([16, 512])} GiB, bandwidth: {random.choice([4, 60])} GB/s}}" if random.random() < 0.4 else ""
    way = random.random()
    if way < 0.3:
        number = int(random.integers(len(_DIMENSIONS)))
        return f"{{devices: {_SIZES[number]}, network: {_DIMENSIONS[number]}{host}}}"
    devices = int(random.choice([4, 8, 16, 64]))
    pod = f", devices_per_pod: {devices // 2}" if way > 0.85 and devices > 4 else ""
    return f"{{devices: {devices}, devices_per_node: {random.choice([1, 2, 4]) if not pod else 2}{pod}{host}}}"


def _bought(random: np.random.Generator, transformer: bool) -> list[str]:
    stack = [f"stack: {random.choice(list(STACKS))}"] if transformer and random.random() < 0.5 else []
    price = f"prices: {{electricity: 0.1 USD/kWh, lifetime: 4 year, device: {random.choice([9000, 31234.5])} USD}}"
    return [f"hardware: {random.choice(names('hardware'))}", price, *stack]


def _made(random: np.random.Generator) -> str:
    joined = f", bonding_loss: {random.choice([0.01, 0.3])}, interposer: 1 USD/mm^2, lane: 3 USD" if random.random() < 0.5 else ""
    return (
        f"{{electricity: 0.1 USD/kWh, lifetime: 4 year, wafer: 9000 USD, defects_per_square_metre: {random.choice([0, 700, 1000, 20000])},"
        f" clustering: {random.choice([0.5, 1, 2, 2.7, 3])}, stack: 120 USD, package: 900 USD{joined}}}"
    )


def _plans(random: np.random.Generator, transformer: bool, few: bool) -> list[str]:
    if not transformer:
        return ["  split: [rows-columns, inner]", "  rows: divisors", "  columns: divisors", "  data: divisors"]
    if few:
        names = ["tensor", "pipeline", *random.choice([*_SETTINGS], 5, replace=False)]
        return [f"  {name}: [{', '.join(random.permutation(_SETTINGS.get(name, ('1', '2', '4')))[:2])}]" for name in names]
    return ["  rest: all", *(["  zero: [0, 1, 3]", "  interleave: [1, 2]"] if random.random() < 0.3 else [])]
