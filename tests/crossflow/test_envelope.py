"""The envelope of two splits: no architecture between them surpasses it, not even in the last bit, whatever the technology."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Array, Mask
from crossopt.crossflow.device import Architecture
from crossopt.crossflow.dies import die_with_links, perimeter_of
from crossopt.crossflow.envelope import Envelope, envelope
from crossopt.crossflow.generator import Edges, Split, dram_power_at_nominal, generate, port_bandwidth
from crossopt.crossflow.technology import Activity, Parts, Technology, Traffic
from crossopt.instances.catalogue.registry import names, technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split
from tests.crossflow.test_generator import flat
from tests.extent import examples

TECHNOLOGIES = tuple(
    (name, logic, memory, network)
    for name in names("technologies")
    for entry in (technology(name),)
    for logic in list(entry.logic_nodes)[:: len(entry.logic_nodes) // 2]
    for memory in list(entry.memories)[:: len(entry.memories) // 2]
    for network in list(entry.network_steps)[:: len(entry.network_steps) // 2]
)
INSIDE = 40
"""Architectures looked at between two splits."""


@dataclass(frozen=True, slots=True)
class Case:
    """Two splits, some between them, and what both make."""

    least: Split
    most: Split
    inside: Architecture
    best: Envelope


def figures(split: Split) -> Array:
    """Die, package, areas, powers and edges as one column each."""
    groups = (split.areas, split.powers, split.edges)
    return np.array(
        [split.die_area, split.package_area, *(getattr(group, field.name) for group in groups for field in fields(group))], np.float64
    )


def split_of_figures(values: Array) -> Split:
    return Split(values[0], values[1], Parts(*values[2:9]), Parts(*values[9:16]), Edges(*values[16:19]))


def random_case(seed: int, one: bool = False) -> Case:
    """A technology, and splits about its usual one: near or far from each other, with absent parts, one core, no package room.

    The die is at least as large as its parts, or larger; the package is fixed, as large as the die, or grows with whole stacks.
    """
    random = np.random.default_rng(seed)
    made = _technology(seed)
    usual = figures(usual_split(technology(TECHNOLOGIES[seed % len(TECHNOLOGIES)][0])))
    usual = np.maximum(usual, np.where(np.arange(19) < 9, 1e-6, 0.1))
    factor = random.choice([1.0001, 1.1, 3.0, 30.0])
    ends = usual[:, None] * factor ** random.uniform(-1.0, 1.0, (19, 2))
    ends[random.random((19, 2)) < random.choice([0.0, 0.05])] = 0.0
    if random.random() < 0.2:
        ends[2] = made.core.area * random.integers(0, 2 * made.core.cores_per_bundle, 2)
    low, high = np.minimum(*ends.T), np.maximum(*ends.T)
    high = np.where(random.random(19) < random.choice([0.0, 0.5, 0.9, 1.0]), low, high)
    high = low if one else high
    share = random.choice([0.0, 1.0, random.random()], (19, INSIDE)) * (random.random((19, INSIDE)) < 0.8)
    inside = np.minimum(np.maximum(low[:, None] + share * (high - low)[:, None], low[:, None]), high[:, None])
    stacks, larger, package = _stacks(random, one), random.random() < 0.3, float(usual[1]) * random.choice([0.5, 1.0, 2.0])
    dies = _dies(random, one) if made.die_links.links_per_metre else (1.0, 1.0, 1.0)
    columns = zip((low, high, inside), stacks, dies, strict=True)
    splits = [_completed(made, replace(split_of_figures(values), dies=some), count, larger, package) for values, count, some in columns]
    best = envelope(made, splits[0], splits[1])
    return Case(splits[0], splits[1], generate(made, splits[2]), best)


def _technology(seed: int) -> Technology:
    """Of two in three the cores leak half of their nominal power, of one in two clocks and control take most of the rest, and of two in
    three banks have narrow ports, so that these and not the watts say what they move."""
    name, logic, memory, network = TECHNOLOGIES[seed % len(TECHNOLOGIES)]
    made, turn = build_technology(technology(name), name, logic, memory, network), seed // len(TECHNOLOGIES)
    leaks = 0.5 * made.core.nominal_power / made.core.area if turn % 3 else made.core.leakage_per_area
    made = replace(made, core=replace(made.core, leakage_per_area=leaks, clocked_share=0.9 if turn % 2 else made.core.clocked_share))
    return _with_ports(made, (None, 8.0, 0.5)[turn // 2 % 3])


def _with_ports(made: Technology, width: float | None) -> Technology:
    """The technology whose banks move so many bytes a cycle, or as many as they do; of narrow ones L2 must give the less."""
    if width is None:
        return made
    narrow = {level: replace(getattr(made, level), bank_bytes_per_cycle=width) for level in LEVELS}
    fed = 0.5 * made.core.least_fed * min(width / made.l2.bank_bytes_per_cycle, 1.0)
    return replace(made, core=replace(made.core, least_fed=fed), **narrow)


def _stacks(random: np.random.Generator, one: bool) -> tuple[Any, Any, Any]:
    """The least, the most and some numbers of stacks between; None where they follow from areas."""
    if random.random() < 0.4:
        return None, None, None
    low = int(random.integers(0, 5))
    high = low if one else low + int(random.integers(0, 5))
    return float(low), float(high), random.integers(low, high + 1, INSIDE).astype(np.float64)


def _dies(random: np.random.Generator, one: bool) -> tuple[Any, Any, Any]:
    """The least, the most and some numbers of dies between."""
    low = int(random.integers(1, 4))
    high = low if one else low + int(random.integers(0, 4))
    return float(low), float(high), random.integers(low, high + 1, INSIDE).astype(np.float64)


def _completed(made: Technology, split: Split, stacks: Any, larger: bool, package: float) -> Split:  # noqa: ANN401
    """The split whose die holds its parts, and whose package holds the stacks, as questions make them."""
    areas = split.areas if stacks is None else replace(split.areas, dram=stacks * made.dram.controller_area)
    parts = areas.core + areas.registers + areas.l1 + areas.l2 + areas.dram + areas.intra + areas.inter
    die = np.maximum(die_with_links(made.die_links, parts, split.dies), split.die_area if larger else 0.0)
    if stacks is None:
        return replace(split, areas=areas, die_area=die, package_area=package)
    power = dram_power_at_nominal(made, stacks, split.edges.dram * perimeter_of(die, split.dies)) if larger else split.powers.dram
    powers = replace(split.powers, dram=power)
    return replace(split, areas=areas, powers=powers, die_area=die, package_area=np.inf)


Figure = Callable[[Architecture], Any]
LEVELS = ("registers", "l1", "l2")


def _cores(built: Architecture) -> Mask:
    return np.asarray(built.core.bundles) > 0.0


def _fed(built: Architecture) -> Mask:
    """Which of them have stacks that deliver something, through an L2."""
    return _cores(built) & _present("l2")(built)


def _present(part: str) -> Callable[[Architecture], Mask]:
    return lambda built: np.asarray(getattr(built, part).bandwidth) > 0.0


MORE: dict[str, Figure] = {
    "FLOP/s": lambda built: built.core.peak,
    **{f"capacity of {level}": lambda built, level=level: getattr(built, level).capacity for level in (*LEVELS, "dram")},
    **{
        f"bandwidth of {level}": lambda built, level=level: getattr(built, level).bandwidth for level in (*LEVELS, "dram", "intra", "inter")
    },
    **{f"wires of {level}": lambda built, level=level: getattr(built, level).links for level in ("dram", "intra", "inter")},
    "stacks": lambda built: built.dram.stacks,
}
"""Figures that the envelope has at their highest."""
LESS: dict[str, tuple[Figure, Callable[[Architecture], Mask]]] = {
    "bundles": (lambda built: built.core.bundles, _cores),
    "voltage of the cores": (lambda built: built.core.voltage, _cores),
    "leakage of the cores": (lambda built: built.core.leakage, _cores),
    "area of the cores": (lambda built: built.core.area, _cores),
    "power of the cores": (lambda built: built.core.power, _cores),
    **{f"power of {level}": (lambda built, level=level: getattr(built, level).power, _present(level)) for level in LEVELS},
    **{f"power of {level}": (lambda built, level=level: getattr(built, level).power, _cores) for level in ("intra", "inter")},
    "power of dram": (lambda built: built.dram.power, _fed),
    "clocks and control of the cores": (lambda built: built.core.clocked, _cores),
    **{
        f"what {level} draws anyway": (lambda built, level=level: getattr(built, level).static, _present(level))
        for level in (*LEVELS, "dram")
    },
    "what the uncore draws anyway": (lambda built: built.uncore_idle, _cores),
    "clocks of the uncore": (lambda built: built.uncore_switched, _cores),
    "clocks of the uncore in streams": (lambda built: built.uncore_slow, _fed),
    "clocks and control of the cores in streams": (lambda built: built.core.slow_clocked, _fed),
    "FLOPs at the clock of streams": (lambda built: built.core.slow_flops, _fed),
    "FLOP/s of products": (lambda built: built.products, _cores),
    "bytes of streams": (lambda built: built.streamed, _fed),
    "area of dram": (lambda built: built.dram.area, _cores),
    "area of the package": (lambda built: built.package_area, _cores),
    "edge": (lambda built: built.edge, _cores),
    "power of the uncore": (lambda built: built.uncore_idle + built.uncore_switched, _cores),
    "power of links between dies": (lambda built: built.die_links_power, _cores),
    "joints that a byte passes": (lambda built: built.crossings, _cores),
}
"""Figures that it has at their lowest, and on which chips: one without the part uses nothing for it, but cannot compute."""

SEEDS = st.integers(0, 2**32 - 1)


@examples(150)
@given(SEEDS)
def test_no_architecture_between_two_splits_surpasses_their_envelope(seed: int) -> None:
    """Chips without a bundle of cores do not count: they have more room for memory, but compute nothing."""
    case = random_case(seed)
    inside, best = case.inside, case.best.best
    for name, more in MORE.items():
        assert np.all(np.asarray(more(best)) >= np.where(_cores(inside), more(inside), 0.0)), name
    for name, (less, counted) in LESS.items():
        used = np.where(counted(inside), less(inside), np.inf)
        assert np.all(np.asarray(less(best)) <= used), name
    for level in ("registers", "l1"):  # what a tile of one bundle may fill
        with np.errstate(divide="ignore", invalid="ignore"):
            room, most = (np.asarray(getattr(built, level).capacity) / built.core.bundles for built in (inside, best))
        assert np.all(most >= np.where(_cores(inside), room, 0.0)) or not _cores(inside).any(), level
    assert np.all(case.best.least_stacks <= np.asarray(inside.dram.stacks))


@examples(150)
@given(SEEDS)
def test_the_power_of_a_chip_that_works_is_never_below_that_of_the_envelope(seed: int) -> None:
    case = random_case(seed)
    works = np.ones(INSIDE, bool)
    for part in (*LEVELS, "dram"):
        works &= _present(part)(case.inside)
    paced = (Activity(core=0.9, per_flop=Traffic(0.3, 0.02, 0.006, 0.001)), Activity(core=0.1, l1=0.5, streams=True))
    for kernels in ((Activity(dram=0.5, inter=0.25), Activity(core=0.25, l1=0.0)), *((kernel,) for kernel in paced)):
        for power in (built_power(kernels), built_die_power(kernels)):
            used = np.where(works & _cores(case.inside), power(case.inside), np.inf)
            assert np.all(np.asarray(power(case.best.best)) <= used)


def built_power(kernels: tuple[Activity, ...]) -> Figure:
    return lambda built: built.power(kernels)


def built_die_power(kernels: tuple[Activity, ...]) -> Figure:
    return lambda built: built.die_power(kernels)


@examples(150)
@given(SEEDS)
def test_no_chip_that_works_draws_less_when_idle_or_running_or_more_above_idle(seed: int) -> None:
    case, made = random_case(seed), _technology(seed)
    works = np.asarray(_cores(case.inside)) & np.ones(INSIDE, bool)
    for part in (*LEVELS, "dram"):
        works &= _present(part)(case.inside)
    for power in (lambda built: built.idle_power, lambda built: built.running_power):
        assert np.all(np.asarray(power(case.best.best)) <= np.where(works, power(case.inside), np.inf))
    above = case.inside.power(made.sustained) - case.inside.idle_power
    assert np.all(np.asarray(case.best.headroom) >= np.where(works, above, -np.inf))


@examples(100)
@given(SEEDS)
def test_the_envelope_of_equal_splits_is_the_very_architecture(seed: int) -> None:
    case = random_case(seed, one=True)
    own = flat(generate(_technology(seed), case.least))
    for name, figure in flat(case.best.best).items():
        assert np.asarray(figure).tobytes() == np.asarray(own[name], np.float64).tobytes(), name
    alone = generate(_technology(seed), case.least)
    assert case.best.headroom == alone.power(_technology(seed).sustained) - alone.idle_power
    assert not np.any(case.best.open_bundles)


def test_the_random_cases_hold_working_chips_and_degenerate_ones() -> None:
    """Otherwise the properties above would say little."""
    cases = [random_case(seed) for seed in range(300)]
    working = [np.mean(_present("dram")(case.inside) & _cores(case.inside) & _present("l2")(case.inside)) for case in cases]
    assert 0.3 < float(np.mean(working)) < 0.97
    assert any(np.any(np.asarray(case.inside.core.bundles) == 0.0) for case in cases)
    assert any(np.any(np.asarray(case.inside.dram.stacks) == 0.0) for case in cases)
    assert any(case.best.open_bundles == 1.0 for case in cases)
    assert any(case.best.open_bundles == 0.0 for case in cases)
    limited = [(case, _by_ports(seed, case)) for seed, case in enumerate(cases)]
    assert 0.2 < float(np.mean([some for _, some in limited])) < 0.8
    clocks = [np.broadcast_to(case.inside.core.frequency, (INSIDE,))[some] for case, some in limited if some.any()]
    assert sum(np.ptp(some) > 0.0 for some in clocks) > 20


def _by_ports(seed: int, case: Case) -> Mask:
    """On which chips ports, and not watts, say what the L2 moves."""
    made, inside = _technology(seed).l2, case.inside
    full = inside.l2.banks * port_bandwidth(made, inside.core.frequency)
    return np.broadcast_to((inside.l2.bandwidth >= 0.999 * full) & (inside.l2.bandwidth > 0.0) & _cores(inside), (INSIDE,))


@pytest.mark.parametrize(
    ("least", "most", "bundles", "open_bundles"), [(0, 3, 0, 0), (0, 4, 1, 0), (4, 7, 1, 0), (4, 8, 1, 1), (9, 40, 2, 1)]
)
def test_bundles_are_open_where_the_cores_make_several_numbers_of_them(least: int, most: int, bundles: int, open_bundles: int) -> None:
    """Four cores of a square millimetre make a bundle; a chip without any is none, so one is the least that counts."""
    made = build_technology(technology("accelerator-7nm"), "accelerator-7nm")
    usual = usual_split(technology("accelerator-7nm"))
    ends = [replace(usual, areas=replace(usual.areas, core=cores * made.core.area)) for cores in (least, most)]
    found = envelope(made, *ends)
    assert (found.best.core.bundles, found.open_bundles) == (bundles, open_bundles)
