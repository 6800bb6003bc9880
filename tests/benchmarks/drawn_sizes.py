"""The questions that are drawn (`drawn_questions.py` asks them): two sizes, in families that take turns."""

from dataclasses import dataclass
from random import Random
from typing import Any, Final

SEED: Final = 2026
MODELS: Final = ("gpt3-1.3b", "gpt3-2.7b", "gpt3-6.7b", "gpt3-13b", "llama3.2-3b", "llama2-7b", "llama3-8b", "llama2-13b")
QUESTION: Final = """\
kind: codesign
workload: {{model: {model}, global_batch: {batch}, sequence: {sequence}, precision: bf16}}
cluster: {{devices: {devices}, devices_per_node: 8{network}}}
technology: accelerator-7nm
budget: {{die_area: {die} mm^2, package_area: 1700 mm^2, power: {power} W}}
choices:
  compute_area: {{from: 100 mm^2, to: 700 mm^2, step: {area} mm^2}}
  compute_power: {{from: 40 W, to: 280 W, step: {watts} W}}
  l2_area: {l2}
  hbm_stacks: {stacks}
  tensor: divisors
  pipeline: divisors
  interleave: [1, 2]
  sequence_parallel: [false, true]
{plans}
objective: {objective}
"""
_FAIR: Final = {"die": (600, 700, 815), "power": (300, 350, 400, 450), "stacks": ("[2, 4, 6]",), "network": ("",)}
FAMILIES: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "usual budgets": _FAIR,
    "little power": _FAIR | {"power": (180, 200, 220, 250)},
    "small die": _FAIR | {"die": (300, 350, 400, 450)},
    "little memory": _FAIR | {"stacks": ("[1, 2]",)},
    "slow network": _FAIR | {"network": (", cluster: {bandwidth: 3 GB/s}", ", cluster: {bandwidth: 6 GB/s}")},
}
"""What is drawn from in each, with equal chances."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """How many questions of a size are drawn, and what is asked about them."""

    name: str
    count: int
    budgets: tuple[float, ...]
    """Seconds of every engine."""
    seeds: tuple[int, ...]
    prover: str
    words: str
    choices: dict[str, tuple[str, ...]]
    """What is drawn from for each choice, with equal chances."""


SMALL: Final = Drawn(
    "small",
    200,
    (0.2,),
    (0, 1, 2),
    "exhaustive",
    "11 areas and nine powers of the cores, three areas of L2; three microbatches, recomputation or none, ZeRO-1 or none",
    {
        "area": ("60",),
        "watts": ("30",),
        "l2": ("[20 mm^2, 50 mm^2, 80 mm^2]",),
        "plans": ("  microbatch: [1, 2, 4]\n  recompute: [none, full]\n  zero: [0, 1]",),
    },
)
LARGE: Final = Drawn(
    "large",
    10,
    (3.0,),
    (0,),
    "boxes",
    "areas of the cores 5 or 10 mm^2 apart, powers 5 W apart, 39 areas of L2 and 11 of L1; five microbatches, three kinds of "
    "recomputation, four of sharing, overlap or none",
    {
        "area": ("5", "10"),
        "watts": ("5",),
        "l2": ("{from: 10 mm^2, to: 200 mm^2, step: 5 mm^2}\n  l1_area: {from: 20 mm^2, to: 120 mm^2, step: 10 mm^2}",),
        "plans": ("  microbatch: [1, 2, 4, 8, 16]\n  recompute: [none, selective, full]\n  zero: [0, 1, 2, 3]\n  overlap: [none, both]",),
    },
)


def drawn(of: Drawn, family: str, random: Random) -> str:
    """The text of a question: network, devices, batch, sequence, objective and budgets, each drawn with equal chances."""
    devices = random.choice((16, 32, 64))
    return QUESTION.format(
        model=random.choice(MODELS),
        devices=devices,
        batch=devices * random.choice((2, 4, 8, 16)),
        sequence=random.choice((1024, 2048, 4096)),
        objective=random.choice(("step_time", "energy_per_token")),
        **{name: random.choice(values) for name, values in (FAMILIES[family] | of.choices).items()},
    )


def family_of(number: int) -> str:
    """The families take turns."""
    return list(FAMILIES)[number % len(FAMILIES)]
