"""What of a chosen chip is at its most: limits that are full, the clock, places for stacks, the edge for links, and L2 beside its stacks.

None of it is worth anything for sure: what a little more of each would buy, `explain` finds by asking again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from crossopt.crossflow.device import Architecture, Dram
from crossopt.crossflow.dies import perimeter_of
from crossopt.crossflow.generator import Split, generate, wires_of
from crossopt.crossflow.technology import LinkTechnology, Technology
from crossopt.crossflow.voltage import UNLIMITED_FREQUENCY
from crossopt.instances.codesign.chips import PART_OF, split_of
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.solvers.codesign.answer import ChosenDesign, most_stacks

FULL: Final = 0.995
_SLOW: Final = 0.95
"""Of their rate: stacks above it are as good as at it."""
_LARGEST: Final = 1.0e6
_LEVELS: Final = (("node_network", "links in the node"), ("network", "links out of it"))


def held_words(instance: Instance | None, design: ChosenDesign, full: Sequence[str] = ()) -> str:
    """All that is at its most, limits first; nothing of a device that is given."""
    if instance is None or not isinstance(free := instance.hardware, FreeHardware):
        return ""
    chosen = {name: np.array([value], np.float64) for name, value in design.hardware.choices.items()}
    split = split_of(free, chosen)
    built = generate(free.technology, split)
    all_full = " and ".join([one for one in (", ".join(full[:-1]), *full[-1:]) if one])
    words = [all_full]
    words += [*_clock(free.technology, built), places_words(instance, design)]
    words += [told for told, held in links_words(free.technology, split, tuple(chosen)) if held]
    return "; ".join([one for one in (*words, *_slowed(free.technology, split)) if one])


def places_words(instance: Instance | None, design: ChosenDesign) -> str:
    """That a chip has all the stacks that lie along the largest die of its question; nothing where more might."""
    hardware = design.hardware.choices
    if instance is None or not isinstance(free := instance.hardware, FreeHardware) or "hbm_stacks" not in hardware:
        return ""
    dies, stacks = hardware.get("dies", free.dies), hardware["hbm_stacks"]
    beside = "the largest die" if dies == 1.0 else f"{dies:g} of the largest dies"
    return f"{stacks:g} HBM stacks, all that lie along two sides of {beside} there may be" if stacks >= most_stacks(instance, dies) else ""


def links_words(made: Technology, split: Split, chosen: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Of the links whose area was chosen how many there are, what share of the edge they may have, and whether that is all it holds."""
    edge = perimeter_of(split.die_area, split.dies)
    for name, words in _LEVELS:
        part = PART_OF[name]
        link: LinkTechnology = getattr(made, part)
        area, power, share = (getattr(record, part) for record in (split.areas, split.powers, split.edges))
        links, more = (float(np.max(wires_of(link, area, length, power))) for length in (share * edge, _LARGEST))
        if f"{name}_area" in chosen and links:
            held = links < more
            beyond = f", all that {float(np.max(share)):.0%} of the edge hold, of {more:.0f} by their area and power" if held else ""
            yield f"{words}: {links:.0f} wires{beyond}", held


def slowed_stacks(made: Technology, split: Split) -> tuple[Dram, Dram] | None:
    """The stacks as they run beside their L2 and as they might; nothing where it lets all through."""
    unslowed = replace(made, dram=replace(made.dram, least_l2=0.0))
    runs, might = (generate(one, split).dram for one in (made, unslowed))
    slower = made.dram.least_l2 and float(np.max(runs.bandwidth)) < float(np.max(might.bandwidth)) * (1.0 - 1e-9)
    return (runs, might) if slower else None


def _clock(made: Technology, built: Architecture) -> Iterator[str]:
    clock, most = float(np.max(built.core.frequency)), made.core.maximum_frequency
    if most < UNLIMITED_FREQUENCY and clock >= FULL * most:
        yield f"the highest clock of the technology, {most / 1e9:.2f} GHz"


def _slowed(made: Technology, split: Split) -> Iterator[str]:
    if stacks := slowed_stacks(made, split):
        share = float(np.max(stacks[0].bandwidth)) / float(np.max(stacks[1].bandwidth))
        if share < _SLOW:
            yield f"L2, beside which stacks run at {share:.0%} of their rate"
