"""The networks that a list of dimensions leaves open: sizes that multiply to the devices, bandwidths within their sum, shares of links."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, product
from math import inf
from typing import TypeVar

from crossopt.instances.codesign.cluster.section import ClusterSection, DimensionSection
from crossopt.instances.codesign.plans.choices import divisors
from crossopt.instances.files.units import format_quantity, parse_quantity

T = TypeVar("T")
Dimensions = tuple[DimensionSection, ...]
Speed = tuple[float | None, float | None]
"""A bandwidth and a share of the hardware's links; None where the dimension names none."""
MOST_DIMENSIONS = 8


def networks_of(section: ClusterSection, number: int, most: int) -> tuple[Dimensions | None, ...]:
    """The networks of so many devices that the question leaves open, as if each were written alone, but no more than `most`; the one that
    is written where there is none, or none to choose."""
    listed = section.network
    if listed is None or len(listed) > MOST_DIMENSIONS or not is_open(listed):
        return (listed,)
    return tuple(islice(_combined(section, listed, number), most)) or (listed,)


def is_open(listed: Dimensions) -> bool:
    """Whether anything is left to choose."""
    return any(one.size == "divisors" or max(map(len, (one.size, one.bandwidth or (), one.share or ()))) > 1 for one in listed)


def _combined(section: ClusterSection, listed: Dimensions, number: int) -> Iterator[Dimensions]:
    for sizes in sizes_of(listed, number):
        for speeds in _speeds(listed, section.network_bandwidth):
            yield tuple(
                replace(one, size=(size,), bandwidth=None if speed is None else (speed,), share=None if share is None else (share,))
                for one, size, (speed, share) in zip(listed, sizes, speeds, strict=True)
            )


def sizes_of(listed: Dimensions, number: int) -> Iterator[tuple[int, ...]]:
    """One size of each dimension, whose product is the number of devices."""
    options = [divisors(number) if one.size == "divisors" else one.size for one in listed]

    @cache
    def possible(place: int, left: int) -> bool:
        """Whether dimensions from this one on can join what is left; so that none is followed to no end."""
        if place == len(options):
            return left == 1
        return any(left % size == 0 and possible(place + 1, left // size) for size in options[place])

    def chosen(place: int, left: int) -> Iterator[tuple[int, ...]]:
        if place == len(options):
            yield ()
            return
        for size in options[place]:
            if left % size == 0 and possible(place + 1, left // size):
                yield from ((size, *others) for others in chosen(place + 1, left // size))

    return chosen(0, number) if possible(0, number) else iter(())


def _speeds(listed: Dimensions, most: float | None) -> Iterator[tuple[Speed, ...]]:
    """A bandwidth or a share of each dimension that names any: bandwidths no more than `most` together, shares no more than all of the same
    links, as far as links are named. What the least of those to come leave is held to this, so that none is followed to no end."""

    def is_within(taken: Sequence[Speed], behind: Dimensions) -> bool:
        least = [(min(one.bandwidth or (None,), key=_of_none), min(one.share or (None,), key=_of_none)) for one in behind]
        shares: dict[str | None, float] = {}
        for one, (_, share) in zip(listed, (*taken, *least), strict=True):
            shares[one.links] = shares.get(one.links, 0.0) + (share or 0.0)
        speeds = sum(speed or 0.0 for speed, _ in (*taken, *least))
        return speeds <= (inf if most is None else most) and max(shares.values()) <= 1.0

    def chosen(taken: tuple[Speed, ...]) -> Iterator[tuple[Speed, ...]]:
        if len(taken) == len(listed):
            yield taken
            return
        one = listed[len(taken)]
        for speed in product(one.bandwidth or (None,), one.share or (None,)):
            if is_within((*taken, speed), listed[len(taken) + 1 :]):
                yield from chosen((*taken, speed))

    return chosen(())


def _of_none(value: float | None) -> float:
    return value or 0.0


def only(values: Sequence[T]) -> T:
    """The one of them."""
    [value] = values
    return value


def network_words(listed: Dimensions, chosen: Dimensions) -> str:
    """One of several networks: its sizes, and what else is chosen of it; empty where nothing is."""
    if listed == chosen:
        return ""
    words = " x ".join(str(only(one.size)) for one in chosen)
    if any(one.bandwidth is not None and len(one.bandwidth) > 1 for one in listed):
        speeds = (one.bandwidth for one in chosen)
        words += f" at {', '.join('-' if speed is None else _speed(only(speed)) for speed in speeds)}"
    if any(one.share is not None and len(one.share) > 1 for one in listed):
        words += f" with {', '.join('-' if one.share is None else f'{only(one.share):g}' for one in chosen)} of the links"
    return words


def _speed(bandwidth: float) -> str:
    """In words that no other one has."""
    words = format_quantity(bandwidth, "bandwidth")
    return words if parse_quantity(words, "bandwidth") == bandwidth else f"{bandwidth!r} B/s"


def network_settings(listed: Dimensions, chosen: Dimensions) -> Iterator[str]:
    """The settings that make a question one about this network."""
    for place, (one, mine) in enumerate(zip(listed, chosen, strict=True)):
        at = f"cluster.network.{place}"
        if one.size != mine.size:
            yield f"{at}.size={only(mine.size)}"
        if one.bandwidth != mine.bandwidth and mine.bandwidth is not None:
            yield f"{at}.bandwidth={_speed(only(mine.bandwidth))}"
        if one.share != mine.share and mine.share is not None:
            yield f"{at}.share={only(mine.share)!r}"
