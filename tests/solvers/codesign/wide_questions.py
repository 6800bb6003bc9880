"""Questions with many hardware choices, of any technology and generation: what bounds on whole boxes of chips must stand."""

from functools import cache

import numpy as np

from crossopt.instances.catalogue.entries import TechnologyEntry
from crossopt.instances.catalogue.registry import names, technology
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.schema import figures_of
from tests.solvers.codesign.questions import ask

_TRANSFORMERS = (
    "{transformer: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}, global_batch: 48}",
    "{transformer: {layers: 4, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocabulary: 8192, sequence: 512, experts: 4,"
    " experts_per_token: 2}, global_batch: 64}",
    "{model: gpt3-1.3b, attention: unfused, global_batch: 64}",
    "{model: llama2-7b, global_batch: 64}",
)
_OTHERS = (
    "{lstm: {layers: 2, hidden: 2048, vocabulary: 10000, sequence: 20}, precision: fp16, global_batch: 256}",
    "{model: gemm-4096, precision: fp16}",
)
_PARTS = ("compute", "registers", "l1", "l2", "network", "node_network")
_TRANSFORMER_CHOICES = """\
  tensor: divisors
  pipeline: [1, 2, 4]
  microbatch: [1, 2]
  sequence_parallel: [false, true]
  recompute: [elements, selective, full]
  zero: [0, 1, 3]
  overlap: [none, both]
"""
_OTHER_CHOICES = """\
  split: [rows-columns, inner]
  rows: divisors
  columns: divisors
"""


@cache
def wide_question(seed: int, choices: int = 20, options: int = 4) -> Instance:
    """A question like no other with at most so many hardware choices of at most so many options, in any order."""
    return ask(wide_text(seed, choices, options))


def wide_text(seed: int, choices: int, options: int) -> str:
    random = np.random.default_rng(seed)
    base = str(random.choice(names("technologies")))
    entry = technology(base)
    model = str(random.choice(_TRANSFORMERS if random.random() < 0.75 else _OTHERS))
    devices = int(random.choice([1, 4, 8, 16]))
    paid = "device" if entry.upper_dies else "wafer"
    lines = [
        "kind: codesign",
        f"workload: {model}",
        f"cluster: {{devices: {devices}, devices_per_node: {min(devices, int(random.choice([1, 2, 4])))}}}",
        f"technology: {{base: {base}{_generations(entry, random)}}}",
        f"objective: {random.choice(['step_time', 'energy_per_token', 'cost_per_token'])}",
        f"prices: {{electricity: 0.1 USD/kWh, lifetime: 4 year, {paid}: 9000 USD, wafer_diameter: {random.choice([0.05, 0.3])} m,"
        f" defects_per_square_metre: {random.choice([0, 1000, 20000])}, clustering: {random.choice([0.5, 2.7])},"
        f" stack: {random.choice([0, 120])} USD, package: 900 USD}}",
        _budget(entry, random),
        "choices:",
        *_hardware_choices(entry, random, choices, options),
    ]
    return "\n".join(lines) + "\n" + (_TRANSFORMER_CHOICES if "gemm" not in model and "lstm" not in model else _OTHER_CHOICES)


def _generations(entry: TechnologyEntry, random: np.random.Generator) -> str:
    parts = (("logic", entry.logic_nodes), ("memory", entry.memories), ("network", entry.network_steps))
    return "".join(f", {name}: {random.choice(list(steps))}" for name, steps in parts if random.random() < 0.6)


def _budget(entry: TechnologyEntry, random: np.random.Generator) -> str:
    """From far too little for most chips to enough for all of them."""
    die, package, power = random.choice([0.85, 1.0, 1.3, 3.0]), random.choice([0.9, 1.1, 1.5]), random.choice([0.7, 1.0, 1.4])
    split = entry.split
    return (
        f"budget: {{die_area: {split.die_area * die * 1e6:.6g} mm^2, package_area: {split.package_area * package * 1e6:.6g} mm^2,"
        f" power: {split.power * power:.6g} W}}"
    )


def _hardware_choices(entry: TechnologyEntry, random: np.random.Generator, most: int, options: int) -> list[str]:
    """Options about the usual figure, near or far from it, in no order; sometimes none at all of it."""
    split, spread = entry.split, float(random.choice([1.02, 1.3, 3.0, 10.0]))
    areas, powers = ({slot.key: share for slot, share in figures_of(shares)} for shares in (split.areas, split.powers))
    usual = {f"{part}_area": (max(areas[part] * split.die_area, 1e-6), "m^2") for part in _PARTS}
    usual |= {f"{part}_power": (max(powers[part] * split.power, 0.5), "W") for part in (*_PARTS, "hbm")}
    usual |= {f"{part}_edge": (max(getattr(split, f"{part}_edge"), 0.05), "") for part in ("hbm", "node_network", "network")}
    usual |= {"die_area": (split.die_area, "m^2")}
    lines = []
    for name in random.permutation([*usual, "hbm_stacks"])[: int(random.integers(1, most + 1))]:
        count = int(random.integers(1, options + 1))
        if name == "hbm_stacks":
            lines.append(f"  hbm_stacks: {sorted({int(stacks) for stacks in random.integers(1, 7, count)}, reverse=True)}")
            continue
        figure, unit = usual[str(name)]
        values = figure * spread ** random.uniform(-1.0, 1.0, count) * (random.random(count) > 0.05)
        values = np.unique(values if unit else np.minimum(values, 1.0))
        lines.append(f"  {name}: [{', '.join(_quantity(value, unit) for value in random.permutation(values))}]")
    return lines


def _quantity(value: float, unit: str) -> str:
    return f"{value * 1e6:.9g} mm^2" if unit == "m^2" else f"{value:.9g} {unit}".strip()
