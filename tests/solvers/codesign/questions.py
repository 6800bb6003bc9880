"""Questions that tests ask: written as YAML text, as users write them."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from crossopt.crossflow.plan import Plan
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question

TINY_FREE = """\
kind: codesign
workload: {model: gpt3-125m, global_batch: 64}
cluster: {devices: 8, devices_per_node: 4}
technology: accelerator-7nm
choices:
  compute_area: [0.001 mm^2, 200 mm^2, 400 mm^2]
  compute_power: [100 W, 400 W]
  hbm_stacks: [2, 4]
  tensor: [1, 2]
  pipeline: [1, 2]
  recompute: [none, full]
"""
"""Twelve chips, four of them without cores and others over the power budget, with eight plans each."""

COUNTED = """\
kind: codesign
workload: {transformer: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}, global_batch: 64}
cluster: {devices: [2, 4, 8, 16], devices_per_node: 2}
hardware: a100-40g
prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, device: 15000 USD}
choices: {tensor: [1, 2], pipeline: [1, 2], microbatch: [1, 2], recompute: [none, full]}
"""
"""On several numbers of devices."""

LSTM = """\
kind: codesign
workload: {lstm: {layers: 2, hidden: 2048, vocabulary: 10000, sequence: 20}, global_batch: 256, precision: fp16}
cluster: {devices: 8, devices_per_node: 1}
technology: v100-class
choices:
  compute_area: [150 mm^2, 250 mm^2]
  split: [rows-columns, inner]
  rows: divisors
  columns: divisors
"""

GEMM = """\
kind: codesign
workload: {model: gemm-4096, precision: fp16}
cluster: {devices: 8, devices_per_node: 4}
hardware: a100-80g
choices:
  split: [rows-columns, inner]
  rows: divisors
  columns: divisors
"""


@cache  # nobody changes a question
def ask(text: str, *settings: str) -> Instance:
    """The question in a text, with settings laid over it."""
    return read_question({"text": text, "source": "question.yaml", "settings": list(settings)})


_MODEL = "{layers: 4, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}"
_EXPERTS = "{layers: 4, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocabulary: 8192, sequence: 512, experts: 4, experts_per_token: 2}"
FREE_PRICES = (
    "{electricity: 0.1 USD/kWh, lifetime: 4 year, wafer: 9000 USD, defects_per_square_metre: 1000, stack: 120 USD, package: 900 USD}"
)
_PLAN_CHOICES: dict[str, tuple[str, ...]] = {
    "tensor": ("[1, 2]", "[1, 2, 4]", "divisors"),
    "context": ("1", "[1, 2]"),
    "pipeline": ("[1, 2]", "[1, 4]"),
    "microbatch": ("1", "[1, 2, 4]"),
    "interleave": ("1", "[1, 2]"),
    "sequence_parallel": ("false", "[false, true]"),
    "recompute": ("none", "[elements, selective, full]"),
    "zero": ("0", "[0, 1, 2, 3]"),
    "overlap": ("none", "[none, both]", "[none, data, pipeline, both]"),
    "placement": ("tensor-context-data-pipeline", "[tensor-context-data-pipeline, tensor-context-pipeline-data]"),
}
_HARDWARE_CHOICES: dict[str, tuple[str, ...]] = {
    "compute_area": ("300 mm^2", "[0.001 mm^2, 300 mm^2, 500 mm^2]"),
    "compute_power": ("150 W", "[120 W, 240 W]"),
    "l2_area": ("60 mm^2", "[50 mm^2, 120 mm^2]"),
    "network_power": ("5 W", "[2 W, 12 W]"),
    "hbm_stacks": ("4", "[2, 5]"),
}


def has_free_hardware(seed: int) -> bool:
    """Whether the random question of that number chooses its hardware: what is drawn first."""
    return bool(np.random.default_rng(seed).integers(2))


FREE = [seed for seed in range(60) if has_free_hardware(seed)]


@cache
def random_question(seed: int) -> Instance:
    """A small question like no other: dense or with experts, fixed or free hardware, any objective, loose or hard limits."""
    random = np.random.default_rng(seed)

    def one_of(options: tuple[Any, ...]) -> Any:  # noqa: ANN401
        return options[int(random.integers(len(options)))]

    free = bool(random.integers(2))
    model = one_of((_MODEL, _EXPERTS))
    lines = ["kind: codesign", f"workload: {{transformer: {model}, global_batch: {one_of((32, 48, 64))}}}"]
    lines.append(f"cluster: {{devices: {one_of((4, 8, 16))}, devices_per_node: {one_of((2, 4))}}}")
    lines.append(f"objective: {one_of(('step_time', 'energy_per_token', 'cost_per_token'))}")
    lines.append(f"prices: {FREE_PRICES}")
    lines.append("technology: accelerator-7nm" if free else f"hardware: {one_of(('a100-40g', 'v100-16g'))}")
    if free or random.integers(3) == 0:
        area, package, power = one_of((960, 1110)), one_of((1500, 2200)), one_of((280, 380, 560))
        lines.append(f"budget: {{die_area: {area} mm^2, package_area: {package} mm^2, power: {power} W}}")
    choices = {**(_HARDWARE_CHOICES if free else {}), **_PLAN_CHOICES, **({"expert": ("1", "[1, 2, 4]")} if model == _EXPERTS else {})}
    choices |= {
        "schedule": ("1f1b", "[1f1b, zero-bubble, zero-bubble-v, dualpipe]"),
        "last_stage_layers": ("0", "[0, 1]"),
        "expert_tensor": ("0", "[0, 1, 2]"),
        "tensor_exchange": ("exposed", "[exposed, hidden]"),
    }
    lines += ["choices:", *(f"  {name}: {one_of(options)}" for name, options in choices.items())]
    text = "\n".join(lines)
    return ask(text if "v100" not in text else text.replace(", global_batch", ", precision: fp16, global_batch"))


def meant(plan: Plan, experts: int) -> Plan:
    """What a plan's settings come to, said once more: what there is nothing for is not."""
    several = plan.data > 1 or plan.context > 1
    hidden = {"none": (), "data": ("data",), "pipeline": ("pipeline",), "both": ("data", "pipeline")}[plan.overlap]
    left = [name for name in hidden if (several if name == "data" else plan.pipeline > 1)]
    overlap: Any = "both" if len(left) == 2 else left[0] if left else "none"
    return replace(
        plan,
        overlap=overlap,
        zero=plan.zero if several else 0,
        shard=plan.shard if several and plan.zero and plan.shard < plan.data * plan.context else 0,
        interleave=plan.interleave if plan.pipeline > 1 else 1,
        sequence_parallel=plan.sequence_parallel and plan.tensor > 1,
        expert=plan.expert if experts > 1 else 1,
        schedule=plan.schedule if plan.pipeline > 1 else "1f1b",
        tensor_exchange=plan.tensor_exchange if plan.tensor > 1 else "exposed",
        expert_tensor=0 if experts == 1 or (plan.expert_tensor == plan.tensor and plan.context == 1) else plan.expert_tensor,
        first_stage_layers=plan.first_stage_layers if plan.pipeline > 1 else 0,
        last_stage_layers=plan.last_stage_layers if plan.pipeline > 1 else 0,
    )
