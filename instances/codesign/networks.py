"""Networks left open by a list of dimensions: sizes whose product is the number of devices, bandwidths within their sum, link shares."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import islice, pairwise, product
from math import prod
from typing import TypeVar

from crossopt.crossflow.hardware import Cluster, Link, Shape
from crossopt.crossflow.records import dataclass
from crossopt.instances.codesign.plan_choices import divisors
from crossopt.instances.codesign.section import ClusterSection, DimensionSection, Links, LinkSection
from crossopt.instances.files.units import exact, format_quantity, parse_quantity

T = TypeVar("T")
Dimensions = tuple[DimensionSection, ...]
Speed = tuple[float | None, float | None]
"""A bandwidth and a share of the hardware's links; None if the dimension states none."""
MOST_DIMENSIONS = 8


def networks_of(section: ClusterSection, number: int, most: int) -> tuple[Dimensions | None, ...]:
    """The networks left open for this many devices, at most `most`, each as if written alone.
    If nothing is open or no network is possible, the only element is the network as written, None if there is none.
    """
    listed = section.network
    if listed is None or len(listed) > MOST_DIMENSIONS or not is_open(listed):
        return (listed,)
    return tuple(islice(_combined(section, listed, number), most)) or (listed,)


def is_open(listed: Dimensions) -> bool:
    """Whether anything is left open."""
    return any(dim.size == "divisors" or max(map(len, (dim.size, dim.bandwidth or (), dim.share or ()))) > 1 for dim in listed)


def _combined(section: ClusterSection, listed: Dimensions, number: int) -> Iterator[Dimensions]:
    for sizes in sizes_of(listed, number):
        for speeds in _speeds(listed, section.network_bandwidth):
            yield tuple(
                replace(dim, size=(size,), bandwidth=None if speed is None else (speed,), share=None if share is None else (share,))
                for dim, size, (speed, share) in zip(listed, sizes, speeds, strict=True)
            )


def sizes_of(listed: Dimensions, number: int) -> Iterator[tuple[int, ...]]:
    """One size per dimension, with the number of devices as product."""
    options = [divisors(number) if dim.size == "divisors" else dim.size for dim in listed]

    @cache
    def possible(index: int, left: int) -> bool:
        """Whether dimensions from this one on can join the rest; prunes dead ends."""
        if index == len(options):
            return left == 1
        return any(left % size == 0 and possible(index + 1, left // size) for size in options[index])

    def chosen(index: int, left: int) -> Iterator[tuple[int, ...]]:
        if index == len(options):
            yield ()
            return
        for size in options[index]:
            if left % size == 0 and possible(index + 1, left // size):
                yield from ((size, *others) for others in chosen(index + 1, left // size))

    return chosen(0, number) if possible(0, number) else iter(())


def _speeds(listed: Dimensions, most: float | None) -> Iterator[tuple[Speed, ...]]:
    """A bandwidth or a share for each dimension that states any, within the total bandwidth and the shares of each link. What the least of
    those to come leave is held to this, so that none is followed to no end."""

    def is_within(taken: Sequence[Speed], behind: Dimensions) -> bool:
        least = [(min(dim.bandwidth or (None,), key=_of_none), min(dim.share or (None,), key=_of_none)) for dim in behind]
        speeds, shares = zip(*taken, *least, strict=True)
        return (most is None or _sum(speeds) <= exact(most)) and max(_sums([dim.links for dim in listed], shares).values()) <= 1

    def chosen(taken: tuple[Speed, ...]) -> Iterator[tuple[Speed, ...]]:
        if len(taken) == len(listed):
            yield taken
            return
        next_dim = listed[len(taken)]
        for speed in product(next_dim.bandwidth or (None,), next_dim.share or (None,)):
            if is_within((*taken, speed), listed[len(taken) + 1 :]):
                yield from chosen((*taken, speed))

    return chosen(())


def _of_none(value: float | None) -> float:
    return value or 0.0


def _sum(values: Iterable[float | None]) -> Fraction:
    """The sum of decimals as files write them: 0.4 + 0.2 + 0.3 + 0.1 is 1."""
    return sum((exact(value) for value in values if value is not None), Fraction(0))


def _sums(links: Sequence[str | None], shares: Sequence[float | None]) -> dict[str | None, Fraction]:
    """The sum of the shares of each kind of links."""
    return {kind: _sum(share for own, share in zip(links, shares, strict=True) if own == kind) for kind in set(links)}


def only(values: Sequence[T]) -> T:
    """The only element."""
    [value] = values
    return value


def network_text(listed: Dimensions, chosen: Dimensions) -> str:
    """Label of one of several networks: its sizes and other choices; empty if nothing is open."""
    if listed == chosen:
        return ""
    text = " x ".join(str(only(dim.size)) for dim in chosen)
    if any(dim.bandwidth is not None and len(dim.bandwidth) > 1 for dim in listed):
        speeds = (dim.bandwidth for dim in chosen)
        text += f" at {', '.join('-' if speed is None else _speed(only(speed)) for speed in speeds)}"
    if any(dim.share is not None and len(dim.share) > 1 for dim in listed):
        text += f" with {', '.join('-' if dim.share is None else f'{only(dim.share):g}' for dim in chosen)} of the links"
    return text


def _speed(bandwidth: float) -> str:
    """A unique label."""
    text = format_quantity(bandwidth, "bandwidth")
    return text if parse_quantity(text, "bandwidth") == bandwidth else f"{bandwidth!r} B/s"


def network_settings(listed: Dimensions, chosen: Dimensions) -> Iterator[str]:
    """The settings that restrict a question to this network."""
    for index, (dim, mine) in enumerate(zip(listed, chosen, strict=True)):
        at = f"cluster.network.{index}"
        if dim.size != mine.size:
            yield f"{at}.size={only(mine.size)}"
        if dim.bandwidth != mine.bandwidth and mine.bandwidth is not None:
            yield f"{at}.bandwidth={_speed(only(mine.bandwidth))}"
        if dim.share != mine.share and mine.share is not None:
            yield f"{at}.share={only(mine.share)!r}"


# The network levels of a question: from nodes and pods, or from a list of dimensions, to the devices and the link of each.

Report = Callable[[str, str], None]
_OF_LEVELS = ("devices_per_node", "devices_per_pod", "node", "pod", "cluster")
"""Keys that a list of dimensions replaces."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the network as in the question."""

    links: Links
    """The link whose figures apply where the question gives none."""
    path: str
    """Its path in the file."""
    units: int
    """Units of the inner level that it joins."""
    given: LinkSection
    shape: Shape = "switch"
    share: float = 1.0
    """Share of the bandwidth of the hardware's links."""

    @property
    def joined(self) -> int:
        """The number of units, where the topology needs it."""
        return 1 if self.shape == "switch" else self.units


Levels = tuple[Level, ...]


def levels_of(section: ClusterSection, usual_node: int, report: Report) -> tuple[Levels, Cluster | None]:
    """The levels that join more devices than the inner one, innermost first, and the cluster.
    After a fault there are no levels, and the cluster may be None.
    """
    return _levels(section, usual_node, report) if section.network is None else _dimensions(section, usual_node, report)


def _levels(section: ClusterSection, usual_node: int, report: Report) -> tuple[Levels, Cluster | None]:
    if section.network_bandwidth is not None:
        report("cluster.network_bandwidth", "no dimensions are listed (list them under `network`, or remove this key)")
    per_node = min(section.devices_per_node or usual_node, section.number)
    if section.devices_per_pod is not None and not per_node < section.devices_per_pod < section.number:
        report(
            "cluster.devices_per_pod", f"a pod joins more devices than a node ({per_node}) and fewer than the cluster ({section.number})"
        )
        return (), None
    sizes: list[tuple[Links, int]] = [("node", per_node), ("pod", section.devices_per_pod or 0), ("cluster", section.number)]
    groups: list[tuple[Links, int]] = []
    for name, size in sizes:
        if size > (groups[-1][1] if groups else 1):
            groups.append((name, size))
    groups = groups or [("node", 1)]
    for (_, inner), (name, outer) in pairwise(groups):
        if outer % inner:
            key = "cluster.devices" if name == "cluster" else f"cluster.devices_per_{name}"
            report(key, f"{outer} devices are no whole number of groups of {inner} (make it a multiple of {inner})")
            return (), None
    given = {"node": section.node, "pod": section.pod, "cluster": section.cluster}
    inside = (1, *(size for _, size in groups))
    levels = tuple(Level(name, f"cluster.{name}", size // base, given[name]) for (name, size), base in zip(groups, inside, strict=False))
    return levels, Cluster(section.number, tuple(size for _, size in groups))


def _dimensions(section: ClusterSection, usual_node: int, report: Report) -> tuple[Levels, Cluster | None]:
    listed = section.network or ()
    faults = list(_faults(section, listed)) or list(_faults_of_shares(listed))
    for path, message in faults:
        report(path, message)
    if faults:
        return (), None
    levels, shares, inside, sizes = list[Level](), list[float | None](), 1, list[int]()
    for index, dim in enumerate(listed):
        units = only(dim.size) if dim.size != "divisors" else section.number
        inside *= units
        if units > 1:
            links = dim.links or ("node" if inside <= usual_node else "cluster")
            levels.append(Level(links, f"cluster.network[{index}]", units, _given(dim), dim.shape))
            shares.append(None if dim.share is None else only(dim.share))
            sizes.append(inside)
    if not levels:
        return (Level("node", "cluster.network[0]", 1, LinkSection()),), Cluster(1, (1,))
    return _shared(tuple(levels), shares, report), Cluster(section.number, tuple(sizes), are_dimensions=True)


def _given(dim: DimensionSection) -> LinkSection:
    return LinkSection(None if dim.bandwidth is None else only(dim.bandwidth), dim.latency, dim.setup, dim.ring_latency, dim.reduces)


def _faults(section: ClusterSection, listed: Dimensions) -> Iterator[tuple[str, str]]:
    usual = ClusterSection(section.devices)
    for name in _OF_LEVELS:
        if getattr(section, name) != getattr(usual, name):
            yield f"cluster.{name}", "`network` says how devices are joined (remove this key, or `network`)"
    yield from _faults_of_all(section, listed)
    for index, dim in enumerate(listed):
        at = f"cluster.network[{index}]"
        if dim.shape == "rails" and index == 0:
            yield f"{at}.shape", "rails join devices of several units, and no dimension lies inside (write switch)"
        if dim.reduces and dim.shape not in ("switch", "rails"):
            yield f"{at}.reduces", "only switches add up what passes them (write shape: switch, or remove this key)"
        if dim.share is not None and dim.bandwidth is not None:
            yield f"{at}.share", "a bandwidth that is given is no share of the hardware's links (remove one of the two)"
        if 0.0 in (dim.share or ()):
            yield f"{at}.share", "no share is no link (give one above 0, or remove the dimension)"


def _faults_of_shares(listed: Dimensions) -> Iterator[tuple[str, str]]:
    """The fault of a network that is still open although it has no other fault: no shares fit."""
    if is_open(listed):
        yield "cluster.network", "no shares of those listed leave something for each dimension (list smaller ones)"


def _faults_of_all(section: ClusterSection, listed: Dimensions) -> Iterator[tuple[str, str]]:
    """Faults of all dimensions together. A list that is still open here allows no network."""
    if not 1 <= len(listed) <= MOST_DIMENSIONS:
        yield "cluster.network", f"{len(listed)} dimensions are listed, 1 to {MOST_DIMENSIONS} are needed"
        return
    most, needed = section.network_bandwidth, section.number
    if not any(sizes_of(listed, needed)):
        if is_open(listed):
            yield "cluster.network", f"no sizes of those listed multiply to the {needed} devices (add some that do, or write `divisors`)"
        else:
            sizes = [only(dim.size) for dim in listed if dim.size != "divisors"]
            text, joined = " x ".join(map(str, sizes)), prod(sizes)
            yield "cluster.network", f"sizes {text} join {joined} devices, and there are {needed} (make their product {needed})"
    if most is None:
        return
    if any(dim.bandwidth is None for dim in listed):
        yield "cluster.network_bandwidth", "a limit on all bandwidths needs that of each dimension (give them, or remove this key)"
    elif _sum(min(dim.bandwidth) for dim in listed if dim.bandwidth) > exact(most):
        yield "cluster.network_bandwidth", "even the least bandwidths of the dimensions add up to more (list smaller ones)"


def _shared(levels: Levels, stated: Sequence[float | None], report: Report) -> Levels:
    """The levels with their shares of the hardware's links; empty after a fault.
    Levels that take their bandwidth from the same links divide them, except switches without any stated share.
    """
    taken = [None if level.given.bandwidth is not None else level.links for level in levels]
    with_own = {links for level, links in zip(levels, taken, strict=True) if links is not None and level.shape != "switch"}
    with_own |= {links for links, share in zip(taken, stated, strict=True) if links is not None and share is not None}
    sums = _sums(taken, stated)
    open_ones = Counter(links for links, share in zip(taken, stated, strict=True) if share is None)
    for links in sorted(links for links in with_own if sums[links] > 1 or (sums[links] == 1 and open_ones[links])):
        report("cluster.network", f"shares of the {links} links leave nothing for others, or are above 1 in all (give smaller ones)")
        return ()
    shares = [
        1.0 if links not in with_own else float((1 - sums[links]) / open_ones[links]) if share is None else share
        for links, share in zip(taken, stated, strict=True)
    ]
    return tuple(replace(level, share=share) for level, share in zip(levels, shares, strict=True))


def link_of(level: Level, usual: Link) -> Link:
    """The link of a level on this hardware; a stated latency also applies to rings over all ranks."""
    given = level.given
    around = usual.ring_latency if given.latency is None else 0.0
    return Link(
        bandwidth=usual.bandwidth * level.share if given.bandwidth is None else given.bandwidth,
        latency=usual.latency if given.latency is None else given.latency,
        setup=usual.setup if given.setup is None else given.setup,
        energy=usual.energy,
        shares=usual.shares,
        trees=usual.trees,
        ring_latency=around if given.ring_latency is None else given.ring_latency,
        shape=level.shape,
        size=level.joined,
        reduces=given.reduces,
    )


def complete_link(level: Level, report: Report) -> Link | None:
    """A link stated in the question; None if it follows from the technology."""
    given = LinkSection(level.given.bandwidth, level.given.latency, level.given.setup, level.given.ring_latency)
    if given == LinkSection():
        return None
    if given.bandwidth is None:
        report(level.path, "a link of a technology is given whole or not at all (add its bandwidth)")
        return None
    added = level.given.reduces
    return Link(given.bandwidth, given.latency or 0.0, given.setup or 0.0, shape=level.shape, size=level.joined, reduces=added)


def link_bandwidths(section: ClusterSection) -> list[tuple[str, float | None]]:
    """Bandwidths of links with their paths: the least of several, None if not stated; and the limit on their sum."""
    levels = [("node", section.node.bandwidth), ("pod", section.pod.bandwidth), ("cluster", section.cluster.bandwidth)]
    listed = [(f"network[{index}]", min(dim.bandwidth)) for index, dim in enumerate(section.network or ()) if dim.bandwidth]
    limit = [("cluster.network_bandwidth", section.network_bandwidth)]
    return [*((f"cluster.{path}.bandwidth", given) for path, given in (*levels, *listed)), *limit]
