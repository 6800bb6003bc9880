"""The cluster of a question: its keys, and the network levels that they describe, as nodes and pods or as a list of dimensions."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import Annotated, Literal

from crossopt.crossflow.hardware import Cluster, Link, Shape
from crossopt.instances.files.quantities import Bandwidth, Bytes, CountChoice, Duration, EnergyPerBit, Positive, Ratio
from crossopt.instances.files.schema import Doc

Report = Callable[[str, str], None]
Links = Literal["node", "pod", "cluster"]
"""Links of the hardware."""
_MOST_DIMENSIONS = 8
_OF_LEVELS = ("devices_per_node", "devices_per_pod", "node", "pod", "cluster")
"""Keys in whose place a list of dimensions stands."""


@dataclass(frozen=True, slots=True)
class LinkSection:
    """Figures of a network level that differ from those of the hardware."""

    bandwidth: Annotated[Bandwidth | None, Doc("what a collective sustains per device and direction, about 0.8 of a port's rating")] = None
    latency: Annotated[Duration | None, Doc("per step of a collective")] = None
    setup: Annotated[Duration | None, Doc("per collective")] = None
    ring_latency: Annotated[Duration | None, Doc("per step of a ring over all ranks that share, if longer than `latency`")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionSection(LinkSection):
    """One dimension of a network; figures that it leaves out are those of the hardware's links."""

    size: Annotated[Positive, Doc("units of the dimension inside that it joins, devices of the innermost one")]
    shape: Annotated[
        Shape,
        Doc(
            "one switch for all devices; `rails`, a switch for those with the same place in each unit; a ring; or links from each to each, "
            "both between devices with the same place"
        ),
    ] = "switch"
    links: Annotated[
        Links | None, Doc("of the hardware, whose figures these are; `node` as far as its usual node goes, `cluster` beyond")
    ] = None
    share: Annotated[
        Ratio | None,
        Doc("of the bandwidth of those links; an equal one where several dimensions have the same ones, all of it if all are switches"),
    ] = None


@dataclass(frozen=True, slots=True)
class HostSection:
    """The memory of the host, to which plans may offload."""

    memory: Annotated[Bytes, Doc("for each device")]
    bandwidth: Annotated[Bandwidth, Doc("of each device's link to it, in either direction")]
    energy: Annotated[EnergyPerBit, Doc("of the link and the memory; an estimate where nothing is said")] = 25e-12


@dataclass(frozen=True, slots=True)
class FailuresSection:
    """How often devices fail, and what a run loses then."""

    mean_time: Annotated[Duration, Doc("between two failures of one device; 50,000 h were seen on 16,384 H100 (Llama team 2024)")]
    checkpoint: Annotated[Duration, Doc("that writing a checkpoint holds the run up")]
    restart: Annotated[Duration, Doc("from a failure until the run goes on from its last checkpoint")]


@dataclass(frozen=True, slots=True)
class ClusterSection:
    """How many devices there are and how the network joins them."""

    devices: Annotated[CountChoice, Doc("how many; of several numbers the best is asked for")]
    devices_per_node: Annotated[
        Positive | None, Doc("devices on the innermost network level; the hardware's usual number, of a technology 1")
    ] = None
    devices_per_pod: Annotated[Positive | None, Doc("devices on the middle level, for networks of three levels")] = None
    node: Annotated[LinkSection, Doc("links inside a node")] = LinkSection()
    pod: Annotated[LinkSection, Doc("links inside a pod, where there are pods")] = LinkSection()
    cluster: Annotated[LinkSection, Doc("links between nodes, or between pods")] = LinkSection()
    network: Annotated[
        tuple[DimensionSection, ...] | None, Doc("dimensions, innermost first, in place of nodes and pods and their links")
    ] = None
    host: Annotated[HostSection | None, Doc("the host's memory for each device; without it no plan offloads")] = None
    reserved_memory: Annotated[
        Bytes | None, Doc("of each device that no plan may use; what the framework takes by the hardware's file where nothing is said")
    ] = None
    failures: Annotated[
        FailuresSection | None,
        Doc("the answer then says how much of the time failures and checkpoints leave, and deadlines and budgets of `goal` count it"),
    ] = None

    @property
    def number(self) -> int:
        """The number of devices of a question that asks for one."""
        [number] = self.devices
        return number


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the network as the question has it."""

    links: Links
    """Whose figures it has where the question gives none."""
    path: str
    """Where it is written."""
    units: int
    """Of the level inside that it joins."""
    given: LinkSection
    shape: Shape = "switch"
    share: float = 1.0
    """Of the bandwidth of the links of the hardware."""

    @property
    def joined(self) -> int:
        """The units, where they count."""
        return 1 if self.shape == "switch" else self.units


Levels = tuple[Level, ...]


def levels_of(section: ClusterSection, usual_node: int, report: Report) -> tuple[Levels, Cluster | None]:
    """The levels that join more devices than the one inside, innermost first; none after a fault."""
    return _levels(section, usual_node, report) if section.network is None else _dimensions(section, usual_node, report)


def _levels(section: ClusterSection, usual_node: int, report: Report) -> tuple[Levels, Cluster | None]:
    per_node = min(section.devices_per_node or usual_node, section.number)
    if section.devices_per_pod is not None and not per_node < section.devices_per_pod < section.number:
        report(
            "cluster.devices_per_pod", f"a pod joins more devices than a node ({per_node}) and fewer than the cluster ({section.number})"
        )
        return (), None
    sizes: list[tuple[Links, int]] = [("node", per_node), ("pod", section.devices_per_pod or 0), ("cluster", section.number)]
    kept: list[tuple[Links, int]] = []
    for name, size in sizes:
        if size > (kept[-1][1] if kept else 1):
            kept.append((name, size))
    kept = kept or [("node", 1)]
    for (_, inner), (name, outer) in pairwise(kept):
        if outer % inner:
            place = "cluster.devices" if name == "cluster" else f"cluster.devices_per_{name}"
            report(place, f"{outer} devices are no whole number of groups of {inner} (make it a multiple of {inner})")
            return (), None
    given = {"node": section.node, "pod": section.pod, "cluster": section.cluster}
    inside = (1, *(size for _, size in kept))
    levels = tuple(Level(name, f"cluster.{name}", size // one, given[name]) for (name, size), one in zip(kept, inside, strict=False))
    return levels, Cluster(section.number, tuple(size for _, size in kept))


def _dimensions(section: ClusterSection, usual_node: int, report: Report) -> tuple[Levels, Cluster | None]:
    listed = section.network or ()
    faults = list(_faults(section, listed))
    for path, message in faults:
        report(path, message)
    if faults:
        return (), None
    reaches = tuple(accumulate((one.size for one in listed), mul))
    levels = tuple(
        Level(one.links or ("node" if reach <= usual_node else "cluster"), f"cluster.network[{place}]", one.size, one, one.shape)
        for place, (one, reach) in enumerate(zip(listed, reaches, strict=True))
        if one.size > 1
    )
    kept = tuple(reach for one, reach in zip(listed, reaches, strict=True) if one.size > 1)
    if not levels:
        return (Level("node", "cluster.network[0]", 1, LinkSection()),), Cluster(1, (1,))
    return _shared(levels, [one.share for one in listed if one.size > 1], report), Cluster(section.number, kept)


def _faults(section: ClusterSection, listed: Sequence[DimensionSection]) -> Iterator[tuple[str, str]]:
    usual = ClusterSection(section.devices)
    for name in _OF_LEVELS:
        if getattr(section, name) != getattr(usual, name):
            yield f"cluster.{name}", "`network` says how devices are joined (remove this key, or `network`)"
    if not 1 <= len(listed) <= _MOST_DIMENSIONS:
        yield "cluster.network", f"{len(listed)} dimensions are listed, 1 to {_MOST_DIMENSIONS} are needed"
    elif (joined := prod(one.size for one in listed)) != section.number:
        sizes = " x ".join(str(one.size) for one in listed)
        yield (
            "cluster.network",
            f"sizes {sizes} join {joined} devices, and there are {section.number} (make their product {section.number})",
        )
    inside = 1
    for place, one in enumerate(listed):
        at = f"cluster.network[{place}]"
        if one.shape == "rails" and inside == 1:
            yield f"{at}.shape", "rails join devices of several units, and no dimension lies inside (write switch)"
        if one.share is not None and one.bandwidth is not None:
            yield f"{at}.share", "a bandwidth that is given is no share of the hardware's links (remove one of the two)"
        if one.share == 0.0:
            yield f"{at}.share", "no share is no link (give one above 0, or remove the dimension)"
        inside *= one.size


def _shared(levels: Levels, asked: Sequence[float | None], report: Report) -> Levels:
    """The levels with their shares of the hardware's links, which those have together that take their bandwidth from the same ones."""
    taken = [None if level.given.bandwidth is not None else level.links for level in levels]
    with_own = {links for level, links in zip(levels, taken, strict=True) if links is not None and level.shape != "switch"}
    with_own |= {links for links, share in zip(taken, asked, strict=True) if links is not None and share is not None}
    told = Counter[str | None]()
    for links, share in zip(taken, asked, strict=True):
        told[links] += share or 0.0  # type: ignore[assignment]
    open_ones = Counter(links for links, share in zip(taken, asked, strict=True) if share is None)
    for links in sorted(links for links in with_own if told[links] > 1.0 or (told[links] == 1.0 and open_ones[links])):
        report("cluster.network", f"shares of the {links} links leave nothing for others, or are above 1 in all (give smaller ones)")
        return ()
    shares = [
        1.0 if links not in with_own else (1.0 - told[links]) / open_ones[links] if share is None else share
        for links, share in zip(taken, asked, strict=True)
    ]
    return tuple(replace(level, share=share) for level, share in zip(levels, shares, strict=True))


def link_of(level: Level, usual: Link) -> Link:
    """The link of a level on hardware with such links."""
    given = level.given
    return Link(
        bandwidth=usual.bandwidth * level.share if given.bandwidth is None else given.bandwidth,
        latency=usual.latency if given.latency is None else given.latency,
        setup=usual.setup if given.setup is None else given.setup,
        energy=usual.energy,
        shares=usual.shares,
        trees=usual.trees,
        ring_latency=usual.ring_latency if given.ring_latency is None else given.ring_latency,
        shape=level.shape,
        size=level.joined,
    )


def whole_link_of(level: Level, report: Report) -> Link | None:
    """A link that the question gives; none where it follows from the technology."""
    given = LinkSection(level.given.bandwidth, level.given.latency, level.given.setup, level.given.ring_latency)
    if given == LinkSection():
        return None
    if given.bandwidth is None:
        report(level.path, "a link of a technology is given whole or not at all (add its bandwidth)")
        return None
    return Link(given.bandwidth, given.latency or 0.0, given.setup or 0.0, shape=level.shape, size=level.joined)


def link_bandwidths(section: ClusterSection) -> list[tuple[str, float | None]]:
    """Every bandwidth of a link that is written, and where."""
    levels = [("cluster.node", section.node), ("cluster.pod", section.pod), ("cluster.cluster", section.cluster)]
    listed = [(f"cluster.network[{place}]", one) for place, one in enumerate(section.network or ())]
    return [(f"{path}.bandwidth", given.bandwidth) for path, given in (*levels, *listed)]
