"""The chips that practice would take: the technology's usual chip, scaled to what the question allows by one rule.

Cores, registers, L1 and L2 grow and shrink together, so that each core has as many banks of L2 as in the chip that is sold, which give it
as many bytes a cycle, and every bundle keeps its tiles; links and shares of the edge stay as they are. Where none is listed that is as
large, both the nearest and the next above are tried. Of each size the clock is the fastest for which the watts last: a larger die at a
lower clock, as B200 has two dies of H100's size, or a smaller one at a higher clock. The number of dies is the usual one, or that with
which the peak is the greatest; the stacks are as many as there can be, or as each usual die has.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.crossflow.generator import bank_area, cores_of
from crossopt.crossflow.hardware import Hardware
from crossopt.instances.codesign.asked_before import remembered
from crossopt.instances.codesign.boxes import Boxes, Corners, Grid, corners, grid, point_number, root_box, within
from crossopt.instances.codesign.chips import PART_OF, fed_by_ports
from crossopt.instances.codesign.instance import FreeHardware, Instance

_SIZES: Final = 2.0 ** (-np.arange(25) / 8.0)
"""Of the cores, as shares of the most that the budgets hold."""
_FRAMES: Final = 8
"""Numbers of dies, and of stacks, that are tried at the most."""
_MEMORIES: Final = ("registers", "l1", "l2")
_LINKS: Final = ("network", "node_network")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question whose chip is free, with the choices that some chip within the budgets has."""

    instance: Instance
    free: FreeHardware
    space: Grid
    box: Boxes
    above: tuple[str, ...] = ()
    """Parts of which areas, and watts of links, are the next options above what is asked for, and not the nearest ones."""

    def tried(self, name: str) -> Whole:
        """Some places of a choice from the lowest to the highest; one where it is none."""
        if name not in self.space.names:
            return np.zeros(1, np.int64)
        choice = self.space.names.index(name)
        low, high = int(self.box.low[0, choice]), int(self.box.high[0, choice])
        return np.unique(np.linspace(low, high, min(high - low + 1, _FRAMES)).round().astype(np.int64))

    def chosen(self, places: Whole, name: str, usual: float) -> Array:
        """What the chips have of a choice; the usual where it is none."""
        if name not in self.space.names:
            return np.full(len(places), usual)
        choice = self.space.names.index(name)
        return np.asarray(self.space.options[choice][places[:, choice]])


@remembered
def usual_chips(instance: Instance) -> tuple[tuple[int, ...], ...]:
    """Hardware points, those of the same memory together, the one with the greatest peak first; those with the most memory before others.
    None where no chip of the rule keeps the budgets."""
    space, box = grid(instance), root_box(instance)
    if isinstance(instance.hardware, Hardware) or not (box.low < box.high).any():
        return ((point_number(space, box.low[0]),),) if corners(instance, space, box).alive[0] else ()
    asked = Asked(instance, instance.hardware, space, box)
    roundings = (replace(asked, above=(*memories, *links)) for memories, links in product(((), _MEMORIES), ((), _LINKS)))
    places = np.unique(np.concatenate([_clocked(one, _sized(one, _frames(one))) for one in roundings]), axis=0)
    chips = corners(instance, space, Boxes(places, places))
    kept = np.flatnonzero(chips.alive)
    if not len(kept):
        return ()
    places, hardware = places[kept], chips.hardware
    memory, peak = hardware.dram.capacity[kept], hardware.throughput[kept]  # type: ignore[index]
    wanted = _wanted(asked, places, memory, peak)
    groups = [np.flatnonzero(wanted & (memory == one)) for one in np.unique(memory[wanted])[::-1]]
    return tuple(tuple(point_number(space, places[row]) for row in group[np.argsort(-peak[group], kind="stable")]) for group in groups)


def expert_point(instance: Instance) -> int | None:
    """The chip with the most memory and then the greatest peak; None where there is none."""
    return next((group[0] for group in usual_chips(instance)), None)


def usual_points(instance: Instance) -> tuple[int, ...]:
    """With each memory the chip with the greatest peak."""
    return tuple(group[0] for group in usual_chips(instance))


def _frames(asked: Asked) -> Whole:
    """One row of places for each number of dies with each number of stacks."""
    pairs = list(product(asked.tried("dies"), asked.tried("hbm_stacks")))
    places = np.repeat(asked.box.low, len(pairs), axis=0)
    for column, name in enumerate(("dies", "hbm_stacks")):
        if name in asked.space.names:
            places[:, asked.space.names.index(name)] = [pair[column] for pair in pairs]
    return places


def _wanted(asked: Asked, places: Whole, memory: Array, peak: Array) -> Mask:
    """Chips with the usual number of dies or that of the greatest peak, and of each size the most memory or the stacks of usual dies."""
    free = asked.free
    dies, stacks = asked.chosen(places, "dies", free.dies), asked.chosen(places, "hbm_stacks", 0.0)
    usual = np.round(free.areas.dram * free.die_area / free.technology.dram.controller_area) / free.dies
    wanted = (dies == dies[np.argmin(np.abs(dies - free.dies))]) | (dies == dies[np.argmax(peak)])
    _, kinds = np.unique(np.column_stack([dies, asked.chosen(places, "compute_area", 1.0)]), axis=0, return_inverse=True)
    most, apart = np.zeros(len(places)), np.full(len(places), np.inf)
    np.maximum.at(most, kinds.ravel(), memory)
    np.minimum.at(apart, kinds.ravel(), np.abs(stacks - usual * dies))
    return np.asarray(wanted & ((memory == most[kinds.ravel()]) | (np.abs(stacks - usual * dies) == apart[kinds.ravel()])))


def _sized(asked: Asked, frames: Whole) -> Whole:
    """Each frame with cores of several sizes, and with what follows from them."""
    if "compute_area" not in asked.space.names:
        return _following(asked, frames)
    choice = asked.space.names.index("compute_area")
    most = _most(asked, frames, choice, _kept)
    options = asked.space.options[choice]
    wished = (options[most][:, None] * _SIZES).ravel()
    places = np.repeat(frames, len(_SIZES), axis=0)
    places[:, choice] = np.clip(_nearest(options, wished), asked.box.low[0, choice], np.repeat(most, len(_SIZES)))
    return _following(asked, np.unique(places, axis=0))


def _clocked(asked: Asked, places: Whole) -> Whole:
    """Each chip with all the watts for its cores that the budgets leave; where its L2 does not feed so high a clock, with the most that it
    does."""
    if "compute_power" not in asked.space.names:
        return places
    choice = asked.space.names.index("compute_power")
    found = places.copy()
    found[:, choice] = most = _most(asked, places, choice, _kept)
    starved = np.flatnonzero(~_alive(asked.instance, corners(asked.instance, asked.space, Boxes(found, found))))
    found[starved, choice] = _most(asked, places[starved], choice, _alive, most[starved])
    return found


def _most(asked: Asked, places: Whole, choice: int, holds: Callable[[Instance, Corners], Mask], most: Whole | None = None) -> Whole:
    """The highest place of a choice with which something holds of each chip, by halving: areas, powers and peaks rise with it."""
    low, high = np.full(len(places), asked.box.low[0, choice]), most
    high = np.full(len(places), asked.box.high[0, choice]) if high is None else high
    while (low < high).any():
        middle = (low + high + 1) // 2
        tried = places.copy()
        tried[:, choice] = middle
        tried = _following(asked, tried)
        held = holds(asked.instance, corners(asked.instance, asked.space, Boxes(tried, tried)))
        low, high = np.where(held, middle, low), np.where(held, high, np.maximum(middle - 1, low))
    return low


def _alive(_: Instance, chips: Corners) -> Mask:
    """Which chips are some: all parts are there, and L2 feeds the cores."""
    return np.asarray(chips.alive)


def _kept(instance: Instance, chips: Corners) -> Mask:
    """Which chips keep the budgets under every set of constants, whether all of their parts are there or not."""
    sides = ((instance, replace(chips, others=())), *chips.others)
    return np.asarray(np.logical_and.reduce([within(one, side.hardware) for one, side in sides]))


def _following(asked: Asked, places: Whole) -> Whole:
    """The chips with every other choice as the size of the cores has it."""
    free, found = asked.free, places.copy()
    share = asked.chosen(places, "compute_area", 1.0)
    if "compute_area" in asked.space.names:
        share = share / (free.areas.core * free.die_area)
    for choice, (name, options) in enumerate(zip(asked.space.names, asked.space.options, strict=True)):
        part, _, kind = name.rpartition("_")
        low, high = int(asked.box.low[0, choice]), int(asked.box.high[0, choice])
        if part not in PART_OF or part == "compute" or name == "hbm_stacks":
            continue
        wished = _usual(free, part, kind) * (share if part in _MEMORIES else np.ones(len(places)))
        wished = _fed(asked, places) if name == "l2_area" else wished
        if part in asked.above and (kind == "area" or (kind == "power" and part in _LINKS)):
            place = np.searchsorted(options, wished)
        elif kind == "power" and part in fed_by_ports(free.technology):
            place = np.full(len(places), high)  # ports draw what they move, however much they are given
        else:
            place = _nearest(options, wished)
        found[:, choice] = np.clip(place, low, high)
    return found


def _fed(asked: Asked, places: Whole) -> Array:
    """Square metres of L2 with as many banks for each core as in the chip that is sold, and a controller in each for every bundle."""
    free, core = asked.free, asked.free.technology.core
    area = asked.chosen(places, "compute_area", _usual(free, "compute", "area"))
    cores = cores_of(core, area, asked.chosen(places, "dies", free.dies))
    return np.asarray(np.ceil(free.sold_l2 * cores) * bank_area(free.technology.l2, cores // core.cores_per_bundle))


def _usual(free: FreeHardware, part: str, kind: str) -> float:
    """What the usual chip has of a part."""
    shares, total = {"area": (free.areas, free.die_area), "power": (free.powers, free.power), "edge": (free.edges, 1.0)}[kind]
    return float(getattr(shares, PART_OF[part])) * total


def _nearest(options: Array, wished: Array) -> Whole:
    """The place of the option nearest to each wish."""
    above = np.clip(np.searchsorted(options, wished), 0, len(options) - 1)
    below = np.maximum(above - 1, 0)
    return np.asarray(np.where(wished - options[below] <= options[above] - wished, below, above))
