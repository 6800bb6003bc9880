"""Would the proven chips be built? `python -m tests.benchmarks.would_it_be_built` solves twenty wide questions and writes the page.

Everything of the chip is open, and the degrees and usual settings of the plan. Each proven optimum is held to what can be built and to what
was ever measured, and set beside a bought device of the same node, area and power, with its own proven plan. Takes some minutes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.generator import generate
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.technology import Technology
from crossopt.instances.catalogue.chips import split_of
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.reports.facts.chip import SHARES, published
from crossopt.solvers.codesign.answer import DesignResult, chosen_hardware
from tests.paths import ROOT
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import ask

PAGE: Final = ROOT / "reports" / "gallery" / "would-it-be-built.md"
PLANS: Final = """\
choices:
  tensor: divisors
  pipeline: divisors
  microbatch: [1, 2, 4, 8]
  interleave: divisors
  sequence_parallel: [true, false]
  recompute: [none, selective, full]
  zero: [0, 1, 2, 3]
  overlap: [none, data, pipeline, both]
"""
CHIPS: Final = """\
  compute_area: {from: 200 mm^2, to: 640 mm^2, step: 20 mm^2}
  compute_power: {from: 60 W, to: 560 W, step: 20 W}
  l1_area: {from: 5 mm^2, to: 65 mm^2, step: 10 mm^2}
  l2_area: {from: 5 mm^2, to: 155 mm^2, step: 10 mm^2}
  l2_power: {from: 15 W, to: 135 W, step: 20 W}
  registers_area: {from: 5 mm^2, to: 85 mm^2, step: 10 mm^2}
  registers_power: {from: 15 W, to: 75 W, step: 10 W}
  node_network_area: {from: 5 mm^2, to: 55 mm^2, step: 10 mm^2}
  node_network_power: {from: 5 W, to: 65 W, step: 10 W}
  network_power: {from: 2 W, to: 14 W, step: 4 W}
  hbm_stacks: [1, 2, 3, 4, 5, 6, 7, 8]
"""
COSTS: Final = "prices={electricity: 0.08 USD/kWh, lifetime: 4 year}"
"""The rest as it is usual for the technology."""
A100: Final = SHARES["A100"]
_STEP: Final = 1.05
"""By so much the cores may take more than a level gives: a step of the ranges."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A network on devices of a node, and the device that one could buy instead."""

    model: str
    batch: int
    devices: int
    node: str = "7nm"
    memory: str = "hbm2e"
    power: int = 400
    area: int = 826
    bought: str = "a100-80g"
    settings: tuple[str, ...] = ()
    least: str = "step time"
    goal: tuple[str, ...] = ()
    """What is minimised in place of the step time, and how long a step may take."""

    def words(self) -> str:
        rest = f", {self.settings[0].partition('=')[2]} tokens" if self.settings else ""
        rest += f", least {self.least}" if self.goal else ""
        return f"{self.model}, {self.devices:,}, {self.node} {self.memory}, {self.area} mm^2, {self.power} W{rest}"

    def head(self) -> str:
        return (
            f"kind: codesign\nworkload: {{model: {self.model}, global_batch: {self.batch}}}\n"
            f"cluster: {{devices: {self.devices}, devices_per_node: 8}}\n"
        )

    def free(self) -> Instance:
        technology = f"technology: {{base: accelerator-{self.node}, memory: {self.memory}}}\n"
        budget = f"budget: {{die_area: {self.area} mm^2, package_area: 2000 mm^2, power: {self.power} W}}\n"
        return ask(f"{self.head()}{technology}{budget}{PLANS}{CHIPS}", *self.settings, *self.goal)

    def sold(self) -> Instance:
        """By step time, whatever is asked of the free chip."""
        return ask(f"{self.head()}hardware: {self.bought}\n{PLANS}", *self.settings)


QUESTIONS: Final = (
    Asked("gpt3-1.3b", 512, 32),
    Asked("llama3-8b", 512, 64),
    Asked("gpt3-13b", 512, 64),
    Asked("gpt3-13b", 512, 64, power=300),
    Asked("gpt3-13b", 512, 64, area=500),
    Asked("gpt3-13b", 512, 64, least="energy", goal=("objective=energy_per_token", "budget.step_time=7 s")),
    Asked("llama2-13b", 128, 64, settings=("workload.sequence=16384",)),
    Asked("gemma-2-27b", 1024, 128),
    Asked("llama2-70b", 1024, 256, least="cost", goal=("objective=cost_per_token", "budget.step_time=40 s", COSTS)),
    Asked("llama2-70b", 1024, 256),
    Asked("llama3-70b", 1024, 512),
    Asked("mixtral-8x7b", 1024, 128),
    Asked("gpt3-175b", 1536, 1024),
    Asked("gpt3-175b", 1536, 1024, power=300),
    Asked("megatron-530b", 2240, 2240),
    Asked("llama3-8b", 512, 64, "4nm", "hbm3", 700, 814, "h100-sxm"),
    Asked("llama3-70b", 1024, 512, "4nm", "hbm3", 700, 814, "h100-sxm"),
    Asked("llama3-70b", 1024, 512, "4nm", "hbm3e", 700, 814, "h200"),
    Asked("gpt3-175b", 1536, 1024, "4nm", "hbm3", 700, 814, "h100-sxm"),
    Asked("llama3-405b", 2048, 1024, "4nm", "hbm3e", 700, 814, "h200"),
)


@dataclass(frozen=True, slots=True)
class Chip:
    """A proven optimum, and what the device that is sold does with its own proven plan."""

    asked: Asked
    instance: Instance
    result: DesignResult
    hardware: Hardware
    sold: Hardware
    seconds_sold: float | None

    @property
    def technology(self) -> Technology:
        assert isinstance(self.instance.hardware, FreeHardware)
        return self.instance.hardware.technology

    @property
    def share(self) -> float:
        found = self.result.details.evaluation
        assert found is not None
        return found.utilisation

    @property
    def step(self) -> float:
        found = self.result.details.evaluation
        assert found is not None
        return found.step_time

    @property
    def stacks(self) -> int:
        return round(float(self.hardware.dram.capacity) / self.technology.dram.stack_capacity)

    @property
    def places(self) -> int:
        """Stacks that lie along two sides of dies that are as slender as they may be."""
        side, dies = min(0.033, sqrt(1.5 * float(self.hardware.one_die))), round(float(self.hardware.dies))
        return 2 * dies * int(side / self.technology.dram.stack_edge * (1.0 + 1e-9))

    @property
    def voltage(self) -> float:
        """Of the cores."""
        design, hardware = self.result.answer.design, self.instance.hardware
        assert design is not None
        assert isinstance(hardware, FreeHardware)
        chosen = {name: np.float64(value) for name, value in design.hardware.choices.items()}
        return float(generate(hardware.technology, split_of(hardware, chosen)).core.voltage)  # type: ignore[arg-type]

    def each(self, level: str) -> float:
        """KiB of a level for each bundle of cores."""
        return float(getattr(self.hardware, level).capacity) / float(self.hardware.bundles) / 1024


def main() -> None:
    """Solve all, and write the page."""
    chips = []
    for asked in QUESTIONS:
        chips.append(found(asked))
        print(f"{asked.words():60} {chips[-1].step:8.3f} s {chips[-1].result.seconds:6.1f} s  {'; '.join(faults(chips[-1]))}", flush=True)
    PAGE.write_text(page(chips), encoding="utf-8")


def found(asked: Asked) -> Chip:
    """The proven answers to both questions."""
    instance, sold = asked.free(), asked.sold()
    result, bought = answered(instance, "auto"), answered(sold, "auto")
    assert result.proved
    assert bought.proved
    design = result.answer.design
    assert design is not None
    assert isinstance(sold.hardware, Hardware)
    return Chip(asked, instance, result, chosen_hardware(instance, design), sold.hardware, bought.value)


def faults(chip: Chip) -> tuple[str, ...]:
    """What an architect would refuse, each with its limit."""
    asked = chip.technology.l2_per_flop * float(chip.hardware.throughput)
    rules: tuple[tuple[str, Callable[[], float], float], ...] = (
        ("W/mm^2", lambda: float(chip.hardware.power_density) / 1e6, 1.0),
        ("stacks", lambda: float(chip.stacks), float(chip.places)),
        ("bytes/s of L2 over what its banks give", lambda: _over_banks(chip), 1.0),
        ("times what registers give that the cores take", lambda: _taken(chip, "registers", chip.hardware.register_traffic), _STEP),
        ("times what L1 gives that the cores take", lambda: _taken(chip, "l1", chip.hardware.l1_traffic), _STEP),
        ("of L2's bytes/s from memory", lambda: float(chip.hardware.dram.bandwidth / chip.hardware.l2.bandwidth), 4.8 / 6.3),
        ("of the peak, that L2 of devices that are sold feeds, are missing", lambda: 0.76 - float(chip.hardware.l2.bandwidth) / asked, 0.0),
        ("V too little for registers and L1", lambda: 0.65 - chip.voltage, 0.0),
        ("share of peak above the best measured", lambda: chip.share - published(chip.asked.devices)[0], 0.05),
        ("KiB of L1 a bundle that are missing", lambda: 144.0 - chip.each("l1"), 0.0),
        ("KiB of registers a bundle that are missing", lambda: 252.0 - chip.each("registers"), 0.0),
    )
    return tuple(f"{value():.3g} {words}, {limit:g} at most" for words, value, limit in rules if value() > limit * (1.0 + 1e-9))


def _over_banks(chip: Chip) -> float:
    """At the clock that the peak of its cores tells."""
    l2, core = chip.technology.l2, chip.technology.core
    banks = float(chip.hardware.l2.capacity) / l2.bank_capacity
    clock = float(chip.hardware.throughput) / (float(chip.hardware.bundles) * core.cores_per_bundle * core.flop_per_cycle)
    return float(chip.hardware.l2.bandwidth) / (banks * l2.bank_bytes_per_cycle * clock * l2.utilisation)


def _taken(chip: Chip, level: str, traffic: Real) -> float:
    """What the cores take of a level at their peak, over what it gives."""
    return float(traffic * chip.hardware.throughput / getattr(chip.hardware, level).bandwidth)


def reasons(chip: Chip) -> str:
    """What the chip has more or less of than the one that is sold, where that is above a tenth."""
    ours, theirs = chip.hardware, chip.sold
    pairs = (
        ("peak", ours.throughput, theirs.throughput),
        ("memory", ours.dram.capacity, theirs.dram.capacity),
        ("its bandwidth", ours.dram.bandwidth, theirs.dram.bandwidth),
        ("L2", ours.l2.capacity, theirs.l2.capacity),
        ("node links", ours.links[0].bandwidth, theirs.links[0].bandwidth),
        ("links out", ours.links[-1].bandwidth, theirs.links[-1].bandwidth),
    )
    ratios = ((words, float(one) / float(other) - 1.0) for words, one, other in pairs)
    return ", ".join(f"{words} {ratio:+.0%}" for words, ratio in ratios if abs(ratio) > 0.1) or "nothing by more than a tenth"


def peak_words(chips: list[Chip]) -> str:
    """How much more of the peak the fastest chips of an A100's node, area and power have."""
    alike = [
        chip for chip in chips if (chip.asked.bought, chip.asked.area, chip.asked.power, chip.asked.goal) == ("a100-80g", 826, 400, ())
    ]
    ratios = [float(chip.hardware.throughput) / float(chip.sold.throughput) - 1.0 for chip in alike]
    if not ratios:
        return "another share of its peak"
    low, high = (f"{end(ratios):+.1%}" for end in (min, max))
    return f"{low} of its peak" if low == high else f"{low} to {high} of its peak"


def page(chips: list[Chip]) -> str:
    """The page in Markdown."""
    return _INTRODUCTION.format(count=len(chips)) + "\n".join(_tables(chips)) + "\n"


def _tables(chips: list[Chip]) -> Iterator[str]:
    yield from (
        "| question | step | proved in | compute, L1, registers, L2 in mm^2 | die mm^2 | W/mm^2 | stacks, room for | share of peak |",
    )
    yield "|---" * 8 + "|"
    for chip in chips:
        design = chip.result.answer.design
        assert design is not None
        areas = " · ".join(f"{design.hardware.choices[f'{part}_area'] * 1e6:.0f}" for part in ("compute", "l1", "registers", "l2"))
        heat, die = float(chip.hardware.power_density) / 1e6, float(chip.hardware.die_area) * 1e6
        yield (
            f"| {chip.asked.words()} | {chip.step:.4g} s | {chip.result.seconds:.1f} s | {areas} | {die:.0f} | {heat:.2f} "
            f"| {chip.stacks}, {chip.places} | {chip.share:.1%} |"
        )
    yield "\n## Beside the device that is sold\n"
    yield "| question | L2 MiB, TB/s | memory bytes a kFLOP | sold | its step | chip is faster by | it has |"
    yield "|---" * 7 + "|"
    for chip in chips:
        ours = chip.hardware
        l2 = f"{float(ours.l2.capacity) / 2**20:.0f}, {float(ours.l2.bandwidth) / 1e12:.1f}"
        ratio = float(ours.dram.bandwidth) / float(ours.throughput) * 1e3
        slow = chip.seconds_sold
        gain = "no plan fits" if slow is None else f"{slow / chip.step - 1.0:.1%}"
        took = "none" if slow is None else f"{slow:.4g} s"
        yield f"| {chip.asked.words()} | {l2} | {ratio:.2f} | {chip.asked.bought} | {took} | {gain} | {reasons(chip)} |"
    yield "\n## What breaks a rule\n"
    broken = [f"- {chip.asked.words()}: {words}" for chip in chips for words in faults(chip)]
    yield from broken or ["Nothing."]
    yield _READ.format(peak=peak_words(chips))


_INTRODUCTION = f"""\
# Would it be built?

{{count}} wide questions: eleven parts of the chip are open, and the degrees and settings of the plan; every answer is proved. Each chip is
held to what cooling takes away (1 W/mm^2), to the stacks that lie along two of its sides, to what the banks of its L2 give, to the tiles
that registers and L1 hold (252 and 144 KiB a bundle), to registers and L1 that feed the cores at their peak (but for one step of the
ranges, 5 %), to an L2 that is as much faster than the memory as that of an H200 (6.3 and 4.8 TB/s) and gives products the operands of 0.76
of the peak, as that of a B200 does, to a supply of 0.65 V, and to the largest share of the peak that was published for A100:
{A100[0][1]:.1%} on up to {A100[0][0]} devices ({A100[0][2]}), {A100[1][1]:.1%} on up to {A100[1][0]}
({A100[1][2]}) and {A100[2][1]:.1%} on more
({A100[2][2]}), and 5 points. Beside it stands the device that is sold at that node, area and power,
with its own proven plan of the least step. Two questions ask for the least energy and the least cost, of a step not much longer.
`python -m tests.benchmarks.would_it_be_built` solves all of it again.

"""


_READ: Final = """
## How to read it

At 7 nm a free chip is an A100 with {peak}, three tenths less L2, often fewer links in the node, and on some questions a stack more,
as this one plan needs it, and 3 to 7 % faster; another network on the same chip may not be. With 300 W or on 500 mm^2 it is slower than an
A100, which has more of both. At 4 nm it is as fast as an H100 or an H200, to 3 %: their proportions are near the best. Stacks of HBM3E run
there as fast as L2 lets them, 3 % slower than an H200's.
"""


if __name__ == "__main__":
    main()
