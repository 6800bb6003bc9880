"""Devices as their makers describe them: what a data sheet says, and what follows for the rest from the nearest class of devices.

A file of a device needs its matrix peaks, its memory and the bandwidth inside a node. What else it leaves out is derived and told: from the
shipped class (A100, H100 or B200) whose 16-bit peak is nearest in ratio, with what has to do with speed scaled by that ratio, and the
fitted constants of that class.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log
from typing import Any, Final

from crossopt.crossflow.fields import Derived, Given, Unit
from crossopt.crossflow.hardware import Link, Memory
from crossopt.instances.catalogue.entries import ARITHMETIC, DeviceEntry, NetworkEntry
from crossopt.instances.catalogue.stack_sets import carried
from crossopt.instances.files.annotations import slots_of
from crossopt.instances.files.units import format_quantity

CLASSES: Final = ("a100-80g", "h100-sxm", "b200")
"""Devices of the registry that others may be like; each says everything."""
_SPEEDS: Final = {"l2", "l1", "registers"}
"""Memories whose bandwidth goes with the peak."""


def completed(sheet: Given[DeviceEntry], known: Callable[[str], DeviceEntry]) -> DeviceEntry:
    """The device with every figure and constant; `known` gives the classes, and is not asked where nothing is left out."""
    given = dict(sheet.values)
    left_out = [slot.name for slot in slots_of(DeviceEntry) if slot.mark(Derived) is not None and slot.name not in given]
    missing = [name for name in left_out if name != "energy_per_flop"]
    energies = not given.get("energy_per_flop")
    links = _links_left_out(given["network"])
    own = bool(given.get("efficiency") or given.get("optimistic"))
    if own and not (missing or energies or links):
        return DeviceEntry(**{**given, "network": _network(given["network"], None)})
    name, ratio = _nearest(given["peak"], known)
    like = known(name)
    given.update({part: _scaled(part, getattr(like, part), ratio) for part in missing})
    given["ranges"] = {**like.ranges, **given.get("ranges", {})}
    if "idle_power" in missing:
        given["idle_power"] = _rounded(like.idle_power / like.power * given["power"])
    if energies:
        given["energy_per_flop"] = {
            precision: _rounded(ARITHMETIC * (given["power"] - given["idle_power"]) / peak) for precision, peak in given["peak"].items()
        }
    given["network"] = _network(given["network"], like.network)
    if not own:
        given.update({part: getattr(like, part) for part in ("efficiency", "optimistic", "pessimistic")})
        given["taken_over"] = like.taken_over or name
        given["stacks"] = {**carried(like.stacks, name), **given.get("stacks", {})}
    told = [f"{part} {_shown(part, given[part])}" for part in missing]
    told += ["energy_per_flop"] * energies + links + ["efficiency"] * (not own)
    return DeviceEntry(**given, derived=tuple(told), like=name)


def derived_words(entry: DeviceEntry) -> str:
    """What was derived and from what, in a sentence; nothing where the file says everything."""
    return f"as of the nearest class, {entry.like}: {', '.join(entry.derived)}" if entry.derived else ""


def _nearest(peaks: Mapping[str, float], known: Callable[[str], DeviceEntry]) -> tuple[str, float]:
    """The class whose peak is nearest, and how much faster the device is."""
    ratios = {name: _peak(peaks) / _peak(known(name).peak) for name in CLASSES}
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


def _links_left_out(network: Given[NetworkEntry]) -> list[str]:
    """Links of which something is left out."""
    links = {level: link for level in ("node", "cluster", "pod") if (link := network.get(level)) is not None}
    told = [] if "cluster" in links else ["network.cluster"]
    return told + [f"network.{level}.latency" for level, link in links.items() if link.get("latency") is None]


def _network(given: Given[NetworkEntry], like: NetworkEntry | None) -> NetworkEntry:
    """The links; those of the class fill what is left out."""
    inner, outer = (like.node, like.cluster) if like else (None, None)
    node, cluster, pod = _link(given.get("node"), inner), _link(given.get("cluster"), outer), given.get("pod")
    if node is None or cluster is None:
        raise ValueError("a network needs the links inside a node and between nodes (give both)")
    return NetworkEntry(node, cluster, None if pod is None else _link(pod, outer))


def _link(given: Given[Link] | None, like: Link | None) -> Link | None:
    if given is None:
        return like
    if given.get("latency") is not None or like is None:
        return Link(**{"latency": 0.0, **given.values})
    return replace(like, **{"shares": (), **given.values})


def _shown(part: str, value: Any) -> str:  # noqa: ANN401 - of any part
    if isinstance(value, Memory):
        return f"{format_quantity(float(value.capacity), 'bytes')} at {format_quantity(float(value.bandwidth), 'bandwidth')}"
    unit = next((slot.mark(Unit) for slot in slots_of(DeviceEntry) if slot.name == part), None)
    return format_quantity(value, unit.dimension) if unit else f"{value:g}"
