"""Devices as their makers describe them: what a data sheet says, and what follows for the rest from the nearest class of devices.

A file of a device needs its matrix peaks, its memory and the bandwidth inside a node. What else it leaves out is derived and told: from the
shipped class (A100, H100 or B200) whose 16-bit peak is nearest in ratio, with what has to do with speed scaled by that ratio, and the
fitted constants of that class.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import log
from typing import Annotated, Any, Final

from crossopt.crossflow.fields import Area, Bandwidth, Bounds, Bytes, Doc, Duration, EnergyPerBit, Positive, Power, Prose, Ratio, Throughput
from crossopt.instances.catalogue.entries import (
    ARITHMETIC,
    CalibrationEntry,
    DeviceEntry,
    Figures,
    KernelsEntry,
    LinkEntry,
    MemoryEntry,
    NetworkEntry,
    RangeEntry,
    StackEntry,
    check_device,
)
from crossopt.instances.catalogue.stack_sets import carried
from crossopt.instances.files.units import format_quantity

CLASSES: Final = ("a100-80g", "h100-sxm", "b200")
"""Devices of the registry that others may be like; each says everything."""
_SPEEDS: Final = {"l2", "l1", "registers"}
"""Memories whose bandwidth goes with the peak."""
_WORDS: Final[Mapping[str, str]] = {
    "vector_peak": "throughput",
    "power": "power",
    "idle_power": "power",
    "die_area": "area",
    "package_area": "area",
    "reserved_memory": "bytes",
}


@dataclass(frozen=True, slots=True)
class LinkSheet:
    """One network level, seen from one device; without a latency all that is left out is the nearest class's."""

    bandwidth: Annotated[Bandwidth, Doc("what a collective sustains per device and direction (bus bandwidth)")]
    latency: Annotated[Duration | None, Doc("per step of a collective")] = None
    setup: Annotated[Duration | None, Doc("per collective; 0 beside a latency")] = None
    energy: Annotated[EnergyPerBit | None, Doc("of what is sent; 0 beside a latency")] = None
    shares: Annotated[tuple[Ratio, ...], Doc("share of the bandwidth that groups of 2, 3, 4, ... ranks sustain")] = ()
    trees: Annotated[bool | None, Doc("whether collectives may run as trees; they may beside a latency")] = None
    ring_latency: Annotated[Duration | None, Doc("per step of a ring over all ranks that share; `latency` where nothing is said")] = None

    def __post_init__(self) -> None:
        self.as_it_is()

    def as_it_is(self) -> LinkEntry:
        """The link with nothing derived."""
        trees = True if self.trees is None else self.trees
        setup, energy, hop = self.setup or 0.0, self.energy or 0.0, self.ring_latency or 0.0
        return LinkEntry(self.bandwidth, self.latency or 0.0, setup, energy, self.shares, trees, hop)


@dataclass(frozen=True, slots=True)
class NetworkSheet:
    """The network levels: links inside a node, inside a pod of nodes, and between pods or nodes."""

    node: Annotated[LinkSheet, Doc("inside a node")]
    cluster: Annotated[LinkSheet | None, Doc("between nodes, or between pods")] = None
    pod: Annotated[LinkSheet | None, Doc("inside a pod of nodes")] = None


@dataclass(frozen=True, slots=True)
class DeviceSheet:
    """A device one can buy; what is left out is derived from the nearest class of devices, and told."""

    peak: Annotated[dict[str, Throughput], Doc("dense matrix peak by precision: fp32, bf16, fp16, fp8, fp4")]
    dram: Annotated[MemoryEntry, Doc("the memory beside the die")]
    network: Annotated[NetworkSheet, Doc("links, seen from one device")]
    vector_peak: Annotated[Throughput | None, Doc("of work that is no matrix product; goes with the peak")] = None
    bundles: Annotated[Positive | None, Doc("streaming multiprocessors")] = None
    l2: Annotated[MemoryEntry | None, Doc("the last level on the die; its bandwidth goes with the peak")] = None
    l1: Annotated[MemoryEntry | None, Doc("all L1 memories together")] = None
    registers: Annotated[MemoryEntry | None, Doc("all registers together")] = None
    power: Annotated[Power | None, Doc("the rating; goes with the peak")] = None
    idle_power: Annotated[Power | None, Doc("drawn when nothing runs; a share of the rating")] = None
    energy_per_flop: Annotated[Figures, Doc("joules, by precision; from half of the power above idle")] = field(default_factory=dict)
    die_area: Annotated[Area | None, Doc("of the die")] = None
    package_area: Annotated[Area | None, Doc("of the package")] = None
    register_traffic: Annotated[float | None, Bounds(0.0), Doc("register bytes per matrix FLOP")] = None
    reserved_memory: Annotated[Bytes | None, Doc("that framework, runtime and fragmentation take")] = None
    devices_per_node: Annotated[Positive | None, Doc("of a node as it is usually bought")] = None
    name: Annotated[str | None, Doc("what results call it; the name of its file where nothing is said")] = None
    sources: Annotated[dict[str, str], Prose(), Doc("where each figure is from")] = field(default_factory=dict)
    efficiency: Annotated[Figures, Doc("constants of the model that differ from their defaults, or from the class's")] = field(
        default_factory=dict
    )
    optimistic: Annotated[Figures, Doc("what differs from them for runs as fast as one in twenty")] = field(default_factory=dict)
    pessimistic: Annotated[Figures, Doc("what differs from them for runs as slow as one in twenty")] = field(default_factory=dict)
    stacks: Annotated[dict[str, StackEntry], Doc("sets of constants by the stack which launches")] = field(default_factory=dict)
    versions: Annotated[str, Prose(), Doc("stacks and versions whose runs the constants were fitted to")] = ""
    taken_over: Annotated[str, Prose(), Doc("device whose fitted constants these are, where they are another's")] = ""
    calibration: Annotated[CalibrationEntry | None, Doc("of those constants, where they were fitted")] = None
    kernels: Annotated[dict[str, KernelsEntry], Doc("constants of operators alone, by the kind of their kernels")] = field(
        default_factory=dict
    )
    ranges: Annotated[dict[str, RangeEntry], Doc("of figures by section and name, as `l2.bandwidth`; beside them the class's")] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        check_device(self)


def completed(sheet: DeviceSheet, known: Callable[[str], DeviceEntry]) -> DeviceEntry:
    """The device with every figure and constant; `known` gives the classes, and is not asked where nothing is left out."""
    given = {one.name: getattr(sheet, one.name) for one in fields(sheet)}
    missing = [name for name, value in given.items() if value is None and name not in ("name", "calibration")]
    energies = not sheet.energy_per_flop
    links = _links_left_out(sheet.network)
    own = sheet.efficiency or sheet.optimistic
    if own and not (missing or energies or links):
        return DeviceEntry(**{**given, "network": _network(sheet.network, None)})
    name, ratio = _nearest(sheet, known)
    like = known(name)
    given.update({part: _scaled(part, getattr(like, part), ratio) for part in missing})
    given["ranges"] = {**like.ranges, **sheet.ranges}
    if "idle_power" in missing:
        given["idle_power"] = _rounded(like.idle_power / like.power * given["power"])
    if energies:
        given["energy_per_flop"] = {
            precision: _rounded(ARITHMETIC * (given["power"] - given["idle_power"]) / peak) for precision, peak in sheet.peak.items()
        }
    given["network"] = _network(sheet.network, like.network)
    if not own:
        given.update({part: getattr(like, part) for part in ("efficiency", "optimistic", "pessimistic")})
        given["taken_over"] = like.taken_over or name
        given["stacks"] = {**carried(like.stacks, name), **sheet.stacks}
    told = [f"{part} {_shown(part, given[part])}" for part in missing]
    told += ["energy_per_flop"] * energies + links + ["efficiency"] * (not own)
    return DeviceEntry(**given, derived=tuple(told), like=name)


def derived_words(entry: DeviceEntry) -> str:
    """What was derived and from what, in a sentence; nothing where the file says everything."""
    return f"as of the nearest class, {entry.like}: {', '.join(entry.derived)}" if entry.derived else ""


def _nearest(sheet: DeviceSheet, known: Callable[[str], DeviceEntry]) -> tuple[str, float]:
    """The class whose peak is nearest, and how much faster the device is."""
    ratios = {name: _peak(sheet.peak) / _peak(known(name).peak) for name in CLASSES}
    name = min(ratios, key=lambda one: abs(log(ratios[one])))
    return name, ratios[name]


def _peak(peaks: Mapping[str, float]) -> float:
    """At 16 bits, or the greatest where it has none."""
    return next((peaks[name] for name in ("bf16", "fp16") if name in peaks), max(peaks.values()))


def _scaled(part: str, usual: Any, ratio: float) -> Any:  # noqa: ANN401 - of any part
    """A part of the class, at the speed of the device."""
    if part in ("vector_peak", "power"):
        return _rounded(usual * ratio)
    return replace(usual, bandwidth=_rounded(usual.bandwidth * ratio)) if part in _SPEEDS else usual


def _rounded(figure: float) -> float:
    """No more digits than such a figure can be right to."""
    return float(f"{figure:.3g}")


def _links_left_out(network: NetworkSheet) -> list[str]:
    """Links of which something is left out."""
    levels = {"node": network.node, "cluster": network.cluster, "pod": network.pod}
    known = {level: link for level, link in levels.items() if link is not None}
    told = ["network.cluster"] if network.cluster is None else []
    return told + [f"network.{level}.latency" for level, link in known.items() if link.latency is None]


def _network(sheet: NetworkSheet, like: NetworkEntry | None) -> NetworkEntry:
    """The links; those of the class fill what is left out."""
    inner, outer = (like.node, like.cluster) if like else (None, None)
    cluster = outer if sheet.cluster is None else _link(sheet.cluster, outer)
    pod = None if sheet.pod is None else _link(sheet.pod, outer)
    return NetworkEntry(_link(sheet.node, inner), cluster, pod)  # type: ignore[arg-type]


def _link(sheet: LinkSheet, like: LinkEntry | None) -> LinkEntry:
    if sheet.latency is not None or like is None:
        return sheet.as_it_is()
    given = {one.name: getattr(sheet, one.name) for one in fields(sheet)}
    return replace(like, **{"shares": ()} | {name: value for name, value in given.items() if value not in (None, ())})


def _shown(part: str, value: Any) -> str:  # noqa: ANN401 - of any part
    if isinstance(value, MemoryEntry):
        return f"{format_quantity(value.capacity, 'bytes')} at {format_quantity(value.bandwidth, 'bandwidth')}"
    return format_quantity(value, _WORDS[part]) if part in _WORDS else f"{value:g}"
