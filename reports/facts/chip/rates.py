"""How fast L1 and L2 are by a chip's own clock and beside its memory, and what an estimated L2 holds back.

    bytes a clock and SM = bandwidth / clock / bundles of cores,   L2 against memory = bandwidth of L2 / bandwidth of DRAM

What L2 holds back is the design's step priced once more with an L2 that nothing waits for.
"""

from dataclasses import replace
from typing import Final

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.hardware import Memory
from crossopt.crossflow.technology import UNLIMITED_PORT
from crossopt.instances.catalogue.registry import UnknownNameError, device, technology_named
from crossopt.instances.codesign.chips import clock_of
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.roofline import MEMORIES, Roofs, roofs_of
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in, chosen_hardware, design_of

_WORTH: Final = 0.01
"""Of a step: less says nothing, as the model is off by more."""
_MANY: Final = 100.0
_NO_PRODUCTS: Final = ("attention", "attention in a window", "norms", "additions", "activation", "routing", "casts", "head and loss")
_L2: Final = [level for _, level in MEMORIES].index("l2")


def beside_l2(instance: Instance, design: ChosenDesign) -> str:
    """The L2 of a design by its clock, where the chip was chosen, and beside its memory."""
    hardware = chosen_hardware(instance, design)
    return by_clock(instance, design, hardware.l2, float(hardware.bundles), hardware.dram)


def by_clock(instance: Instance, design: ChosenDesign, level: Memory, bundles: float, dram: Memory | None = None) -> str:
    """Bytes a clock and SM, a bundle of cores, where the chip was chosen; and how many times the memory's bandwidth, where it is given."""
    words = []
    if isinstance(free := instance.hardware, FreeHardware):
        clock = clock_of(free, design.hardware.choices)
        each = float(level.bandwidth) / clock / bundles
        words.append(f"{each:,.0f} B a clock and SM" if each >= _MANY else f"{each:.3g} B a clock and SM")
    if dram is not None:
        times = float(level.bandwidth) / float(dram.bandwidth)
        words.append(f"{times:.3g} x memory{', which waits for it' if times < 1.0 else ''}")
        if isinstance(free, FreeHardware) and (fed := fed_share(free, level, peak_of(instance, design))):
            words.append(f"feeds {fed:.0%} of the peak")
    return ", ".join(words)


def fed_share(free: FreeHardware, l2: Memory, peak: float) -> float:
    """Times the peak of which L2 gives large products their operands; none where the technology does not say what these are."""
    asked = free.technology.l2_per_flop * peak
    return float(l2.bandwidth) / asked if asked else 0.0


def peak_of(instance: Instance, design: ChosenDesign) -> float:
    """FLOP/s of a design's device."""
    return float(chosen_hardware(instance, design).throughput)


def l2_limit_words(instance: Instance, design: ChosenDesign) -> str:
    """That the bandwidth of L2 is an estimate and the step waits for it, with what products get of the peak through it, and what the step
    would take if nothing waited for it; nothing where no source says that it is one, or hardly anything waits."""
    if not _estimated(instance):
        return ""
    design_there = design_of(instance, candidate_in(instance, design))
    hardware = design_there.hardware
    faster = replace(hardware, l2=replace(hardware.l2, bandwidth=UNLIMITED_PORT))
    now, then = (evaluate(instance.workload, replace(design_there, hardware=one)).step_time for one in (hardware, faster))
    if now - then < _WORTH * now:
        return ""
    moved, without = rounded_quantity(float(hardware.l2.bandwidth), "bandwidth", 4), rounded_quantity(then, "time", 4)
    share = _share_of_products(roofs_of(instance, design))
    through = f": through it products get {share:.0%} of the peak at the most" if share else ""
    return f"its {moved} are an estimate, and limit{through}; with an L2 that nothing waits for this design takes {without}"


def _share_of_products(roofs: Roofs | None) -> float:
    """What products have of the peak if they wait for L2 alone."""
    works = [] if roofs is None else [work for work in roofs.works if work.name.removeprefix("dense ") not in _NO_PRODUCTS]
    moved = sum(work.moved[_L2] for work in works)
    return 0.0 if roofs is None or not moved else sum(work.flops for work in works) / (moved / roofs.bandwidths[_L2] * roofs.matrix)


def _estimated(instance: Instance) -> bool:
    """Whether the sources of the registry call the bandwidth of this L2 an estimate; own figures have none there."""
    free = isinstance(instance.hardware, FreeHardware)
    name = instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
    try:
        if free:
            return technology_named(name.partition(", ")[0])[0].sources.get("l2.bank_bytes_per_cycle", "").startswith("estimate")
        entry = device(name)
    except UnknownNameError:
        return False
    sources = entry.sources if "l2" in entry.sources or not entry.like else device(entry.like).sources
    return sources.get("l2.bandwidth", "").startswith("estimate")
