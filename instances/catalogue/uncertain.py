"""Uncertain constants: ranges by source as factors of a figure, and entries with figures multiplied by such factors."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import ceil
from typing import Any, Final, TypeVar

from crossopt.crossflow.cost import Prices
from crossopt.crossflow.fields import NonZero
from crossopt.crossflow.hardware import Doubt, Efficiency, Hardware
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.technology import Activity
from crossopt.instances.catalogue.entries import CONSTANTS, DeviceEntry, GenerationEntry, RangeEntry, TechnologyEntry, constant_fault
from crossopt.instances.files.schema import ZERO, figures_of
from crossopt.instances.files.units import nearest, quoted

Factors = dict[str, dict[str, float]]
"""Ranges by section and figure."""
Fault = tuple[str, str]
"""Callback for a fault: path and message."""
T = TypeVar("T")

MODEL, PRICES = "efficiency", "prices"
"""Sections that describe neither a device nor a technology."""
SUSTAINED: Final = "sustained"
"""The most demanding kernels, whose shares are multiplied together."""
_NO_PART: Final = (MODEL, PRICES, "technology", "hardware")
"""Sections without alternative sets: model constants have fitted sets, the others are limits and shares of a budget."""
_LEAST_FACTOR, _MOST_FACTOR = 1e-6, 1e6
_NO_FACTOR: Final = f"factors above 0 are from {_LEAST_FACTOR:g} to {_MOST_FACTOR:g} (take one nearer 1)"
_FIFTH: Final = 0.2
_ESTIMATE: Final = "estimate: a fifth either way, as no source gives a range"
_FITTED: Final = "sets of constants fitted to public runs: between those of which one run in twenty was faster, and slower"
_OF_TECHNOLOGY: Final = (
    "core.area",
    "core.nominal_power",
    "core.maximum_frequency",
    "core.threshold_voltage",
    "core.margin_voltage",
    "registers.energy_per_bit",
    "l1.energy_per_bit",
    "l2.energy_per_bit",
    "l2.area_per_bit",
    "l2.bank_bytes_per_cycle",
    "dram.nominal_frequency",
    "dram.energy_per_bit",
    "node_network.utilisation",
    "network.utilisation",
    "uncore.area_share",
    "uncore.power_per_area",
    "uncore.steady_per_area",
    "sustained.compute",
)
_OF_SEVERAL_DIES: Final = ("die_links.links_per_metre", "die_links.energy_per_bit")
_OF_DEVICE: Final = (
    "dram.bandwidth",
    "l2.bandwidth",
    "node_network.bandwidth",
    "node_network.latency",
    "network.bandwidth",
    "network.latency",
    "network.ring_latency",
)
_OF_MODEL: Final = ("matrix", "attention", "kernel", "host", "overlap_loss")
"""Constants examined by default, about twenty: the main causes of step time, area and power."""


@dataclass(frozen=True, slots=True)
class Range:
    """Range of a figure as factors, with its source."""

    section: str
    figure: str
    low: float
    high: float
    source: str

    @property
    def name(self) -> str:
        return f"{self.section}.{self.figure}"


def doubted(device: Hardware, ranges: Mapping[str, RangeEntry], levels: Sequence[str | None]) -> Hardware:
    """The device with what sources leave of its L2 and links beside its optimistic and its pessimistic constants: for stacks of which no
    run says how far off all of them are together. `levels` are the sections of its links, innermost first; None of those whose figures
    another source vouches for."""
    if not ranges or len(device.variants) != len(_FAST_AND_SLOW):
        return device

    def end(section: str | None, figure: str, side: int) -> float:
        found = ranges.get(f"{section}.{figure}")
        return 1.0 if found is None else (found.high, found.low)[side]

    doubts = (
        Doubt(
            end("l2", "bandwidth", fast),
            tuple(end(level, "bandwidth", fast) for level in levels),
            tuple(end(level, "ring_latency", 1 - fast) for level in levels),
        )
        for fast in _FAST_AND_SLOW
    )
    return replace(device, doubts=tuple(doubts))


_FAST_AND_SLOW: Final = (0, 1)


def varied(entry: T, factors: Factors, faults: list[Fault]) -> T:
    """The device or technology with figures multiplied; invalid ones are reported. Prices and model constants are handled elsewhere."""
    for section, figures in factors.items():
        if section in (MODEL, PRICES):
            continue
        parts = _parts(entry)
        if section not in parts:
            known = (*parts, MODEL, PRICES)
            guess = nearest(section, known)
            remedy = f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(known)}"
            faults.append((f"factors.{section}", f"no constants are called so ({remedy})"))
            continue
        if section == SUSTAINED:
            entry = _sustained(entry, figures, faults)
            continue
        entry = _with(entry, section, multiplied(parts[section], figures, f"factors.{section}", faults))
        if section == "dram" and isinstance(entry, TechnologyEntry):  # other generations state some of the same figures anew
            entry = replace(entry, memories={name: _shared(memory, figures) for name, memory in entry.memories.items()})
    return entry


def _sustained(entry: Any, figures: Mapping[str, float], faults: list[Fault]) -> Any:  # noqa: ANN401 - a technology
    """The technology with the kernel activity of each part multiplied by its factor.
    It is unchanged if a share becomes invalid, which `faults` then states.
    """
    shares = ((slot.key, share * figures.get(slot.key, 1.0)) for busy in entry.sustained.values() for slot, share in figures_of(busy))
    fault = next((text for name, share in shares if (text := _share_fault(name, share))), None)
    if fault is not None:
        faults.append((f"factors.{SUSTAINED}", fault))
        return entry
    kernels = {name: multiplied(busy, figures, f"factors.{SUSTAINED}", faults) for name, busy in entry.sustained.items()}
    return replace(entry, sustained=kernels)


def _share_fault(name: str, share: float) -> str | None:
    return None if share <= 1.0 else f"{name} becomes {share:.4g} in some kernels, a share of at most 1 is needed (take a smaller factor)"


def _shared(generation: GenerationEntry, figures: Mapping[str, float]) -> GenerationEntry:
    known = {slot.key for slot, _ in figures_of(generation)}
    return multiplied(generation, {name: factor for name, factor in figures.items() if name in known}, "", [])


def multiplied(record: T, figures: Mapping[str, float], path: str, faults: list[Fault]) -> T:
    """A record with figures multiplied."""
    known = {slot.key: (slot, value) for slot, value in figures_of(record)}
    for name in figures.keys() - known.keys():
        guess = nearest(name, known)
        remedy = f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(known) or 'none'}"
        faults.append((f"{path}.{name}", f"this is no figure that can be multiplied ({remedy})"))
    changed = [(*known[name], factor) for name, factor in figures.items() if name in known]
    faults += [(path, f"{slot.key}: {ZERO}") for slot, _, factor in changed if factor == 0 and slot.mark(NonZero) is not None]
    faults += [(f"{path}.{slot.key}", _NO_FACTOR) for slot, _, factor in changed if factor and not _LEAST_FACTOR <= factor <= _MOST_FACTOR]
    try:
        return replace(record, **{slot.name: value * factor for slot, value, factor in changed})  # type: ignore[type-var]
    except ValueError as error:
        faults.append((path, str(error)))
        return record


def constants_with(efficiency: Efficiency, factors: Factors, faults: list[Fault]) -> Efficiency:
    """The model's constants multiplied by their factors. Values outside the valid range are added to `faults`, not clipped."""
    found = multiplied(efficiency, factors.get(MODEL, {}), f"factors.{MODEL}", faults)
    values = ((name, getattr(found, name)) for name in factors.get(MODEL, {}) if name in CONSTANTS)
    faults += [(f"factors.{MODEL}.{name}", fault) for name, value in values if (fault := constant_fault(name, value))]
    return found


def _parts(entry: Any) -> dict[str, Any]:  # noqa: ANN401 - a device or a technology
    """The records of an entry by section; its own figures are under `technology` or `hardware`."""
    if isinstance(entry, DeviceEntry):
        parts = {name: getattr(entry, name) for name in ("dram", "l2", "l1", "registers")}
        return {**parts, "node_network": entry.network.node, "network": entry.network.cluster, "hardware": entry}
    inner = {field.name: getattr(entry, field.name) for field in fields(entry) if field.name != "split"}
    kernels = {SUSTAINED: _busiest(entry.sustained)} if entry.sustained else {}
    return {**{name: part for name, part in inner.items() if is_dataclass(part)}, **kernels, "technology": entry}


def _busiest(kernels: Mapping[str, Activity]) -> Activity:
    """The highest activity of each part in any of the kernels."""
    [first, *others] = kernels.values()
    most = {slot.name: max(share, *(getattr(kernel, slot.name) for kernel in others), 0.0) for slot, share in figures_of(first)}
    return replace(first, **most)


def _with(entry: Any, section: str, part: Any) -> Any:  # noqa: ANN401 - a device or a technology
    if section in ("technology", "hardware"):
        return part
    if isinstance(entry, DeviceEntry) and section in ("node_network", "network"):
        return replace(entry, network=replace(entry.network, **{{"node_network": "node", "network": "cluster"}[section]: part}))
    return replace(entry, **{section: part})


def sets_of(given: Iterable[Factors] | str, ranges: Iterable[Range], factors: Factors) -> Iterator[tuple[str, Factors]]:
    """The alternative sets of constants in a question, on top of its own factors: name and factors of each."""
    ends = [
        {each.section: {each.figure: end}} for each in ranges if each.section not in _NO_PART for end in (each.low, each.high) if end != 1.0
    ]
    for changed in ends if isinstance(given, str) else given:
        name = ", ".join(f"{section}.{figure} x {factor:.4g}" for section, figures in changed.items() for figure, factor in figures.items())
        together = {section: dict(figures) for section, figures in factors.items()}
        for section, figures in changed.items():
            own = together.setdefault(section, {})
            own.update({figure: own.get(figure, 1.0) * factor for figure, factor in figures.items()})
        yield name or "all constants as they are stated", together


def ranges_of(
    entry: DeviceEntry | TechnologyEntry, efficiency: Efficiency, variants: tuple[Efficiency, ...], dies: bool = False
) -> tuple[Range, ...]:
    """The examined constants of a device or a technology, and of the model, each with its range.
    Constants of links between dies are included only with `dies`.
    """
    usual = (*_OF_TECHNOLOGY, *(_OF_SEVERAL_DIES if dies else ())) if isinstance(entry, TechnologyEntry) else _OF_DEVICE
    parts = _parts(entry)
    stated = (name for name in entry.ranges if dies or name.partition(".")[0] != "die_links")
    found = [_of_figure(name, parts, entry.ranges.get(name)) for name in dict.fromkeys((*usual, *stated))]
    return (*(span for span in found if span is not None), *_of_model(efficiency, variants))


def price_ranges(prices: Prices) -> Iterator[Range]:
    """The stated prices, each a fifth either way."""
    names = ("device", "wafer", "defect_density", "stack", "package", "interposer", "lane", "electricity", "lifetime")
    return (Range(PRICES, name, 1.0 - _FIFTH, 1.0 + _FIFTH, _ESTIMATE) for name in names if getattr(prices, name))


def _of_figure(name: str, parts: dict[str, Any], entry: RangeEntry | None) -> Range | None:
    """The range of a figure; None if the figure is zero or not stated."""
    section, _, figure = name.partition(".")
    value = {slot.key: value for slot, value in figures_of(parts[section])}.get(figure) if section in parts else None
    if not value:
        return None
    if entry is not None:
        return Range(section, figure, entry.low, entry.high, entry.source)
    most = min(1.0 + _FIFTH, 1.0 / value) if figure in ("utilisation", "area_share") or section == SUSTAINED else 1.0 + _FIFTH
    least = 1.0 - _FIFTH
    if figure == "maximum_frequency":
        least = max(least, parts[section].nominal_frequency / value)
    if figure == "area_share" and (spare := parts[section].spare_bundles):  # which lie there
        least = max(least, ceil(1e4 * spare / (1.0 + spare) / value) / 1e4)
    return Range(section, figure, least, most, _ESTIMATE)


def _of_model(efficiency: Efficiency, variants: tuple[Efficiency, ...]) -> Iterator[Range]:
    """Range between the fitted sets where they differ, else a fifth either way, clipped to valid values."""
    for name in _OF_MODEL:
        value = getattr(efficiency, name)
        sets = [getattr(variant, name) / value for variant in (efficiency, *variants)] if value else [1.0]
        if max(sets) > min(sets):
            yield Range(MODEL, name, min(sets), max(sets), _FITTED)
        elif value:
            most = 1.0 + _FIFTH if constant_fault(name, value * (1.0 + _FIFTH)) is None else 1.0 / value
            yield Range(MODEL, name, 1.0 - _FIFTH, most, _ESTIMATE)
