"""The best architecture that any split between two splits could give: every resource at its highest, every cost at its lowest.

A step never gets slower when a resource grows, so a step on this architecture is at least as fast as on any architecture between
(a corner bound). Areas and powers are the least that any of them uses. The parts are the generator's own; only the ends differ:

    cores, banks, stacks, wires       by the most area, room and edge, beside the fewest bundles
    links between dies                by the fewest dies
    stacks beside L2                  deliver and draw at the most what the fastest L2 lets through, and at the least what the slowest does
    operands that L2 must give        by the least peak of any cores
    package                           by the fewest stacks beside the least dies, of any number of them the shortest and the narrowest
    power of what is no part          by the least die and the least clock, that of the most cores with the least power
    clock that streams need           by the slowest stacks and the most banks
    what products and streams move    by the least peak of any cores, and the slowest stacks
    power that is drawn anyway        by the fewest cores, banks and stacks; clocks and control by the fewest or the most cores, whichever
                                      draw less: of the least power more cores leave less to switch, and fewer may need less
    power above idle                  of all parts by the most of each, and what is no part by the clock of the fewest cores
    clocks and bandwidths             by the most power, less the least that keeps memories alive; cores as many as do most with it
    ports of banks on the die         as many as there are banks at the most, at the highest clock: the fewest cores with the most power
    bytes of registers and L1         take what they do at the lowest supply, that of the most cores with the least power
    voltage, used area, power, edge   by the least power and area; voltage, and what ports draw, at the clock of the most cores

In theory each of these is monotone. As computed, N f(P / N) may fall by a few units in the last place when N grows; where the two ends
count differently many, such a figure is therefore moved outwards by one part in 1e12, some thousand times the error of its operations.
Between equal splits the envelope is the architecture itself, to the last bit.
"""

from dataclasses import fields, replace
from functools import reduce

import numpy as np

from crossopt.crossflow import dies, generator
from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.device import Architecture, Compute, Dram, Network, Sram
from crossopt.crossflow.dies import count
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.technology import (
    MEMORIES,
    ON_DIE,
    PARTS,
    Activity,
    CoreTechnology,
    DramTechnology,
    LinkTechnology,
    Parts,
    SramTechnology,
    Technology,
)
from crossopt.crossflow.voltage import efficient_power, voltage_at

_OUTWARD = 1.0e-12


@dataclass(frozen=True, slots=True)
class Envelope:
    """Bounds that no architecture between the two splits exceeds."""

    best: Architecture
    open_bundles: Real
    """1 where the number of bundles is open; `best.core.bundles` is then the least of any chip that has bundles."""
    least_stacks: Real
    headroom: Real
    """Watts above idle that no chip may exceed."""


@dataclass(frozen=True, slots=True)
class _Cores:
    """Ends of what on-die memories depend on: bundles (of chips with any), clocks, and the lowest supply."""

    fewest: Real
    bundles: Real
    slowest: Real
    fastest: Real
    voltage: Real


def envelope(technology: Technology, least: generator.Split, most: generator.Split) -> Envelope:
    """Envelope of all splits whose areas, powers and edge lengths lie between those of `least` and `most`.

    Chips without a bundle of cores are left out: their memories need no controllers, but they compute nothing; and those without L2, whose
    stacks deliver nothing.
    """
    few, many = core_counts(technology.core, least, most)
    slow = generator.compute_of(technology.core, many, least.powers.core)
    low = slow if few is many else generator.compute_of(technology.core, few, least.powers.core)
    high = slow if most is least else generator.compute_of(technology.core, many, most.powers.core)
    fewest = np.minimum(np.maximum(low.bundles, 1.0), high.bundles)
    stacks = _stacks(technology.dram, least, most)
    slowest = tuple(_lowered(figure, low.cores < high.cores) for figure in (slow.voltage, slow.frequency))
    fast = _fastest(technology.core, low, high, most.powers.core)
    fastest = _raised(fast.frequency, low.cores < high.cores)
    cores = _Cores(fewest, high.bundles, slowest[1], fastest, slowest[0])
    registers, l1, l2 = (_sram(technology, least, most, level, cores) for level in ON_DIE)
    l2 = generator.limited(
        generator.over_joints(technology, l2, least.dies), dies.through_joints(technology.die_links, most.die_area, least.dies)
    )
    products = _least_peak(technology.core, low, slow, least.powers.core)
    l2 = generator.feeding(technology, l2, products)
    low_l2 = _least_moved(technology, least, most, cores) * np.minimum(l2.banks, 1.0)
    dram, delivered = _dram(technology, least, most, stacks, (low_l2, l2.bandwidth)), _delivered(technology, least, most, stacks, low_l2)
    clock = generator.slow_clock(technology, (registers, l1, l2), delivered, slowest[1])
    core = _core(technology.core, most.powers.core, (low, slow, high), fewest)
    best = Architecture(
        core=generator.slowed(technology.core, core, low.cores, clock),
        registers=registers,
        l1=l1,
        l2=l2,
        dram=dram,
        intra=_network(technology.intra, least, most, "intra"),
        inter=_network(technology.inter, least, most, "inter"),
        uncore_idle=generator.uncore_idle(technology, least.die_area, slowest[0]),
        uncore_switched=generator.uncore_switched(technology, least.die_area, *slowest),
        uncore_slow=generator.uncore_switched(technology, least.die_area, voltage_at(technology.core, clock), clock),
        products=products,
        streamed=delivered * technology.dram.utilisation,
        edge=generator.edge_of(technology, stacks[0], *(_fewest_links(technology, least, level) for level in ("intra", "inter"))),
        package_area=dies.package_area_of(technology.dram, stacks[0], generator.row_of(least), generator.row_of(most)),
        crossings=dies.crossings_of(least.dies),
        die_links_power=dies.die_links_power(technology.die_links, least.die_area, least.dies),
    )
    return Envelope(best, np.where(fewest < high.bundles, 1.0, 0.0)[()], stacks[0], _headroom(technology, least, most, best, fast))


def _least_peak(core: CoreTechnology, low: Compute, slow: Compute, power: Real) -> Real:
    """The lower value of two at the least power: of the fewest cores that make a bundle, and of the most. In between it rises, then
    falls."""
    few = np.minimum(np.maximum(low.cores, core.cores_per_bundle), slow.cores)
    return _lowered(np.minimum(generator.compute_of(core, few, power).peak, slow.peak), low.cores < slow.cores)


def _fastest(core: CoreTechnology, low: Compute, high: Compute, power: Real) -> Compute:
    """The fewest cores that make a bundle, with the most power: the highest clock and voltage."""
    return generator.compute_of(core, np.minimum(np.maximum(low.cores, core.cores_per_bundle), high.cores), power)


def _headroom(technology: Technology, least: generator.Split, most: generator.Split, best: Architecture, fast: Compute) -> Real:
    """Watts above idle of the busiest kernels: each part up to its power, the rest up to what the highest clock switches."""
    beside = generator.uncore_switched(technology, most.die_area, fast.voltage, fast.frequency)
    links = dies.die_links_power(technology.die_links, most.die_area, most.dies)
    upmost = replace(
        best,
        registers=_at_most(technology, best, "registers", fast.voltage),
        l1=_at_most(technology, best, "l1", fast.voltage),
        l2=generator.over_joints(technology, best.l2, most.dies),
        products=best.core.peak,
        streamed=best.dram.bandwidth * technology.dram.utilisation,
    )
    kernels = [_most_drawn(busy, most, upmost, links) for busy in technology.sustained]
    clocked = technology.core.clocked_share * most.powers.core
    upper = (beside + (clocked + reduce(np.maximum, kernels))) * (1.0 + _OUTWARD)
    return np.where(_equal(least, most), best.power(technology.sustained) - best.idle_power, upper)[()]


def _at_most(technology: Technology, best: Architecture, level: str, voltage: Real) -> Sram:
    """The memory level with energy per bit at the highest supply."""
    sram: SramTechnology = getattr(technology, level)
    built: Sram = getattr(best, level)
    return replace(built, energy=8.0 * sram.energy_per_bit * generator.swing(technology.core, sram, voltage) * np.minimum(built.banks, 1.0))


def _most_drawn(busy: Activity, most: generator.Split, upmost: Architecture, links: Real) -> Real:
    """Upper bound of the watts of all parts together: of each its share of its power, or the most that its bytes take."""
    moving = [name for name in MEMORIES if busy.paced and not (name == "dram" and busy.streams)]
    watts: Real = 0.0 if busy.paced else busy.l2 * links
    for name in PARTS:
        watts = watts + (upmost.moved(name, busy) if name in moving else getattr(busy, name) * getattr(most.powers, name))
    return watts


def _equal(least: generator.Split, most: generator.Split) -> Mask:
    """True where both splits are equal."""
    pairs = [(least.die_area, most.die_area), (least.package_area, most.package_area), (least.dies, most.dies)]
    pairs += [
        (getattr(getattr(least, record), field.name), getattr(getattr(most, record), field.name))
        for record, kind in (("areas", Parts), ("powers", Parts), ("edges", generator.Edges))
        for field in fields(kind)
    ]
    return np.asarray(reduce(np.logical_and, (np.equal(figure, counterpart) for figure, counterpart in pairs)))


def core_counts(core: CoreTechnology, least: generator.Split, most: generator.Split) -> tuple[Real, Real]:
    """The fewest and the most cores between two splits. Dies share whole bundles, and d dies leave out at most d - 1."""
    few = generator.cores_of(core, least.areas.core, least.dies)
    if most is least:
        return few, few
    many = generator.cores_of(core, most.areas.core, most.dies)
    left = np.floor(generator.cores_of(core, least.areas.core) / core.cores_per_bundle) - (most.dies - 1.0)
    open_dies = np.less(least.dies, most.dies)
    fewest = np.where(open_dies, np.maximum(left, 0.0) * core.cores_per_bundle, few)[()]
    return fewest, np.where(open_dies, generator.cores_of(core, most.areas.core), many)[()]


def _core(core: CoreTechnology, power: Real, ends: tuple[Compute, Compute, Compute], fewest: Real) -> Compute:
    """Peak by the most power on the best number of cores; voltage by the least power on the most cores.

    N f = P (f / x) with x = P / N watts a core, and f / x rises up to the efficient power and falls beyond it: so N f rises up to as many
    cores as that makes of P, and falls beyond."""
    low, slow, high = ends
    efficient = power / efficient_power(core, core.switching_power, core.leakage, core.maximum_frequency)
    best = np.minimum(np.maximum(efficient, np.maximum(low.cores, 1.0)), high.cores)
    differ = low.cores < high.cores
    leaked = core.leakage * np.maximum(low.cores, 1.0) * (slow.voltage / core.nominal_voltage) * np.minimum(low.cores, 1.0)
    return replace(
        high,
        bundles=fewest,
        peak=_raised(generator.compute_of(core, best, power).peak, differ),
        voltage=_lowered(slow.voltage, differ),
        leakage=_lowered(leaked, differ),
        clocked=_lowered(np.minimum(low.clocked, slow.clocked), differ),
        area=low.area,
        power=low.power,
    )


def _sram(technology: Technology, least: generator.Split, most: generator.Split, level: str, cores: _Cores) -> Sram:
    """As many banks as the most area holds beside the fewest bundles, and the power that the fewest banks leave at the lowest supply."""
    sram: SramTechnology = getattr(technology, level)
    taken = generator.swing(technology.core, sram, cores.voltage)
    most_banks = generator.sram_banks(sram, getattr(most.areas, level), cores.fewest)
    least_banks = generator.sram_banks(sram, getattr(least.areas, level), cores.bundles)
    alive = generator.sram_static_power(sram, least_banks)
    best = generator.sram_of(sram, most_banks, cores.fewest, getattr(most.powers, level), alive, cores.fastest, taken)
    same = (least_banks == most_banks) & np.equal(cores.fewest, cores.bundles)
    peak = generator.sram_most_power(sram, np.maximum(least_banks, 1.0), alive, cores.slowest, taken)
    power = np.minimum(np.minimum(getattr(least.powers, level), peak), best.power)
    return replace(best, area=best.area * np.where(same, 1.0, 0.0), power=power)


def _least_moved(technology: Technology, least: generator.Split, most: generator.Split, cores: _Cores) -> Real:
    """Lower bound in bytes per second on what the L2 of any chip that has one moves.

    It is that of the fewest banks at the lowest clock, with the least power less what keeps the most banks alive.
    """
    sram = technology.l2
    few, many = generator.sram_banks(sram, least.areas.l2, cores.bundles), generator.sram_banks(sram, most.areas.l2, cores.fewest)
    slow = generator.sram_moves(sram, np.maximum(few, 1.0), least.powers.l2 - generator.sram_static_power(sram, many), cores.slowest)
    return np.minimum(slow, dies.through_joints(technology.die_links, least.die_area, most.dies))


def _stacks(dram: DramTechnology, least: generator.Split, most: generator.Split) -> tuple[Real, Real]:
    """The fewest and the most stacks. Room in a package shrinks when dies grow and rises with their places; each is taken at its end."""
    small, large = generator.row_of(least), generator.row_of(most)
    rooms = dies.room_for(dram, least.package_area, small, large), dies.room_for(dram, most.package_area, large, small)
    ends = zip((least, most), rooms, dies.ends_along(dram, small, large), strict=True)
    few, many = (np.minimum(np.minimum(room, count(split.areas.dram, dram.controller_area)), along) for split, room, along in ends)
    return few, many


def _dram(technology: Technology, least: generator.Split, most: generator.Split, stacks: tuple[Real, Real], l2: tuple[Real, Real]) -> Dram:
    """Capacity and wires of the most stacks, and the clock left after keeping the fewest alive, beside the fastest L2.

    The power is that of the fewest stacks beside the slowest L2.
    """
    dram, (fewest, count) = technology.dram, stacks
    static = generator.dram_static_power(dram, fewest)
    edges = tuple(split.edges.dram * dies.perimeter_of(split.die_area, split.dies) for split in (least, most))
    few = generator.dram_of(dram, fewest, edges[0], least.powers.dram, static)
    many = few if most is least else generator.dram_of(dram, count, edges[1], most.powers.dram, static)
    low, high = generator.paced(technology, few, l2[0]), generator.paced(technology, many, l2[1])
    differ = (fewest < count) | (low.links < high.links)
    slower = np.less(l2[0], l2[1]) if dram.least_l2 else np.False_
    power = _lowered(low.power, differ | np.less(least.powers.dram, most.powers.dram) | slower)
    return replace(high, bandwidth=_raised(high.bandwidth, differ), area=low.area, power=power)


def _delivered(technology: Technology, least: generator.Split, most: generator.Split, stacks: tuple[Real, Real], l2: Real) -> Real:
    """Bytes per second of the fewest stacks beside the slowest L2, with the least power less what keeps the most stacks alive."""
    dram, (fewest, count) = technology.dram, stacks
    edge, wide = (split.edges.dram * dies.perimeter_of(split.die_area, split.dies) for split in (least, most))
    slow = generator.dram_of(dram, fewest, edge, least.powers.dram, generator.dram_static_power(dram, count))
    return np.minimum(
        _lowered(slow.bandwidth, np.less(slow.links, generator.dram_links(dram, count, wide))), generator.let_through(technology, l2)
    )


def _network(link: LinkTechnology, least: generator.Split, most: generator.Split, level: str) -> Network:
    low = _built(link, least, level)
    high = low if most is least else _built(link, most, level)
    bandwidth = _raised(high.bandwidth, low.links < high.links)
    return replace(high, bandwidth=bandwidth, area=low.area, power=low.power)


def _built(link: LinkTechnology, split: generator.Split, level: str) -> Network:
    edge = getattr(split.edges, level) * dies.perimeter_of(split.die_area, split.dies)
    return generator.network(link, getattr(split.areas, level), getattr(split.powers, level), edge)


def _fewest_links(technology: Technology, least: generator.Split, level: str) -> Real:
    edge = getattr(least.edges, level) * dies.perimeter_of(least.die_area, least.dies)
    return generator.wires_of(getattr(technology, level), getattr(least.areas, level), edge, getattr(least.powers, level))


def _raised(value: Real, differ: bool | Mask) -> Real:
    return value * np.where(differ, 1.0 + _OUTWARD, 1.0)


def _lowered(value: Real, differ: bool | Mask) -> Real:
    return value * np.where(differ, 1.0 - _OUTWARD, 1.0)
