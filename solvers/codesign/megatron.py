"""The expert rule, as Megatron-LM's users choose: the technology's usual chip scaled to the question, and the plan without a search."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from time import monotonic
from typing import Final, TypeVar

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.generator import bank_area, cores_of
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import OFFLOAD, OVERLAP, Plan, Plans, code, plan_at, rows_of
from crossopt.crossflow.recomputation import ATTENTION, LAYER, PARTLY
from crossopt.crossflow.records import dataclass
from crossopt.instances.catalogue.chips import PART_OF, fed_by_ports
from crossopt.instances.codesign.boxes import Boxes, Corners, Grid, corners, grid, point_number, root_box, within
from crossopt.instances.codesign.instance import FreeHardware, Instance, remembered
from crossopt.instances.codesign.plan_groups import family_blocks
from crossopt.instances.codesign.space import AnyPlans, device_at, hardware_choice, plan_blocks
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.objective import deciding_memory_of, hosted, memory_of

# The chips that practice would take: the technology's usual chip, scaled to what the question allows by one rule.
#
# Cores, registers, L1 and L2 grow and shrink together, so that each core has as many banks of L2 as in the chip that is sold, which give it
# as many bytes a cycle, and every bundle keeps its tiles; links and shares of the edge stay as they are. Where none is listed that is as
# large, both the nearest and the next above are tried. Of each size the clock is the fastest for which the watts last: a larger die at a
# lower clock, as B200 has two dies of H100's size, or a smaller one at a higher clock. The number of dies is the usual one, or that with
# which the peak is the greatest; the stacks are as many as there can be, or as each usual die has.

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

    def tried(self, name: str) -> Ints:
        """Some places of a choice from the lowest to the highest; one where it is none."""
        if name not in self.space.names:
            return np.zeros(1, np.int64)
        choice = self.space.names.index(name)
        low, high = int(self.box.low[0, choice]), int(self.box.high[0, choice])
        return np.unique(np.linspace(low, high, min(high - low + 1, _FRAMES)).round().astype(np.int64))

    def chosen(self, places: Ints, name: str, usual: float) -> Array:
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
    request = Asked(instance, instance.hardware, space, box)
    chosen = {name.rpartition("_")[0] for name in space.names}
    memories, links = (tuple(part for part in parts if part in chosen) for parts in (_MEMORIES, _LINKS))
    roundings = [replace(request, above=parts) for parts in dict.fromkeys(((), memories, links, (*memories, *links)))]
    places = np.unique(np.concatenate([_clocked(rounding, _sized(rounding, _frames(rounding))) for rounding in roundings]), axis=0)
    chips = corners(instance, space, Boxes(places, places))
    alive = np.flatnonzero(chips.alive)
    if not len(alive):
        return ()
    places, hardware = places[alive], chips.hardware
    memory, peak = hardware.dram.capacity[alive], hardware.throughput[alive]  # type: ignore[index]
    wanted = _wanted(request, places, memory, peak)
    groups = [np.flatnonzero(wanted & (memory == size)) for size in np.unique(memory[wanted])[::-1]]
    return tuple(tuple(point_number(space, places[row]) for row in group[np.argsort(-peak[group], kind="stable")]) for group in groups)


def expert_point(instance: Instance) -> int | None:
    """The chip with the most memory and then the greatest peak; None where there is none."""
    return next((group[0] for group in usual_chips(instance)), None)


def usual_points(instance: Instance) -> tuple[int, ...]:
    """With each memory the chip with the greatest peak."""
    return tuple(group[0] for group in usual_chips(instance))


def _frames(request: Asked) -> Ints:
    """One row of places for each number of dies with each number of stacks."""
    pairs = list(product(request.tried("dies"), request.tried("hbm_stacks")))
    places = np.repeat(request.box.low, len(pairs), axis=0)
    for column, name in enumerate(("dies", "hbm_stacks")):
        if name in request.space.names:
            places[:, request.space.names.index(name)] = [pair[column] for pair in pairs]
    return places


def _wanted(request: Asked, places: Ints, memory: Array, peak: Array) -> Mask:
    """Chips with the usual number of dies or that of the greatest peak, and of each size the most memory or the stacks of usual dies."""
    free = request.free
    dies, stacks = request.chosen(places, "dies", free.dies), request.chosen(places, "hbm_stacks", 0.0)
    usual = np.round(free.areas.dram * free.die_area / free.technology.dram.controller_area) / free.dies
    wanted = (dies == dies[np.argmin(np.abs(dies - free.dies))]) | (dies == dies[np.argmax(peak)])
    _, kinds = np.unique(np.column_stack([dies, request.chosen(places, "compute_area", 1.0)]), axis=0, return_inverse=True)
    most, apart = np.zeros(len(places)), np.full(len(places), np.inf)
    np.maximum.at(most, kinds.ravel(), memory)
    np.minimum.at(apart, kinds.ravel(), np.abs(stacks - usual * dies))
    return np.asarray(wanted & ((memory == most[kinds.ravel()]) | (np.abs(stacks - usual * dies) == apart[kinds.ravel()])))


def _sized(request: Asked, frames: Ints) -> Ints:
    """Each frame with cores of several sizes, and with what follows from them."""
    if "compute_area" not in request.space.names:
        return _following(request, frames)
    choice = request.space.names.index("compute_area")
    most = _most(request, frames, choice, _within_budgets)
    options = request.space.options[choice]
    wished = (options[most][:, None] * _SIZES).ravel()
    places = np.repeat(frames, len(_SIZES), axis=0)
    places[:, choice] = np.clip(_nearest(options, wished), request.box.low[0, choice], np.repeat(most, len(_SIZES)))
    return _following(request, np.unique(places, axis=0))


def _clocked(request: Asked, places: Ints) -> Ints:
    """Each chip with all the watts for its cores that the budgets leave; where its L2 does not feed so high a clock, with the most that it
    does."""
    if "compute_power" not in request.space.names:
        return places
    choice = request.space.names.index("compute_power")
    found = places.copy()
    found[:, choice] = most = _most(request, places, choice, _within_budgets)
    starved = np.flatnonzero(~_alive(request.instance, corners(request.instance, request.space, Boxes(found, found))))
    found[starved, choice] = _most(request, places[starved], choice, _alive, most[starved])
    return found


def _most(request: Asked, places: Ints, choice: int, holds: Callable[[Instance, Corners], Mask], most: Ints | None = None) -> Ints:
    """The highest place of a choice with which something holds of each chip, by halving: areas, powers and peaks rise with it."""
    low, high = np.full(len(places), request.box.low[0, choice]), most
    high = np.full(len(places), request.box.high[0, choice]) if high is None else high
    while (low < high).any():
        middle = (low + high + 1) // 2
        tried = places.copy()
        tried[:, choice] = middle
        tried = _following(request, tried)
        fits = holds(request.instance, corners(request.instance, request.space, Boxes(tried, tried)))
        low, high = np.where(fits, middle, low), np.where(fits, high, np.maximum(middle - 1, low))
    return low


def _alive(_: Instance, chips: Corners) -> Mask:
    """Which chips are some: all parts are there, and L2 feeds the cores."""
    return np.asarray(chips.alive)


def _within_budgets(instance: Instance, chips: Corners) -> Mask:
    """Which chips keep the budgets under every set of constants, whether all of their parts are there or not."""
    sides = ((instance, replace(chips, others=())), *chips.others)
    return np.asarray(np.logical_and.reduce([within(question, side.hardware) for question, side in sides]))


def _following(request: Asked, places: Ints) -> Ints:
    """The chips with every other choice as the size of the cores has it."""
    free, found = request.free, places.copy()
    share = request.chosen(places, "compute_area", 1.0)
    if "compute_area" in request.space.names:
        share = share / (free.areas.core * free.die_area)
    for choice, (name, options) in enumerate(zip(request.space.names, request.space.options, strict=True)):
        part, _, kind = name.rpartition("_")
        low, high = int(request.box.low[0, choice]), int(request.box.high[0, choice])
        if part not in PART_OF or part == "compute" or name == "hbm_stacks":
            continue
        wished = _usual(free, part, kind) * (share if part in _MEMORIES else np.ones(len(places)))
        wished = _fed(request, places) if name == "l2_area" else wished
        if part in request.above and (kind == "area" or (kind == "power" and part in _LINKS)):
            index = np.searchsorted(options, wished)
        elif kind == "power" and part in fed_by_ports(free.technology):
            index = np.full(len(places), high)  # ports draw what they move, however much they are given
        else:
            index = _nearest(options, wished)
        found[:, choice] = np.clip(index, low, high)
    return found


def _fed(request: Asked, places: Ints) -> Array:
    """Square metres of L2 with as many banks for each core as in the chip that is sold, and a controller in each for every bundle."""
    free, core = request.free, request.free.technology.core
    area = request.chosen(places, "compute_area", _usual(free, "compute", "area"))
    cores = cores_of(core, area, request.chosen(places, "dies", free.dies))
    return np.asarray(np.ceil(free.sold_l2 * cores) * bank_area(free.technology.l2, cores // core.cores_per_bundle))


def _usual(free: FreeHardware, part: str, kind: str) -> float:
    """What the usual chip has of a part."""
    shares, total = {"area": (free.areas, free.die_area), "power": (free.powers, free.power), "edge": (free.edges, 1.0)}[kind]
    return float(getattr(shares, PART_OF[part])) * total


def _nearest(options: Array, wished: Array) -> Ints:
    """The place of the option nearest to each wish."""
    above = np.clip(np.searchsorted(options, wished), 0, len(options) - 1)
    below = np.maximum(above - 1, 0)
    return np.asarray(np.where(wished - options[below] <= options[above] - wished, below, above))


# The expert rule: the design a practitioner would choose without searching, as a baseline to the optimum.
#
# Hardware: as many memory stacks as the package holds, and the technology's usual chip scaled to what the budgets then leave
# (`usual_chips`). Plan (Narayanan et al. 2021, "takeaways"; Korthikanti et al. 2022): selective recomputation with sequence
# parallelism; tensor parallelism up to a node, then pipeline stages until the model fits, the rest data parallel with a sharded
# optimizer; as large a microbatch as leaves four microbatches a stage.

_RECOMPUTE_RANK = np.array(
    [{ATTENTION: 0, 0: 1}.get(number, PARTLY if number & LAYER else 1 + number.bit_count()) for number in range(PARTLY)]
)
"""Attention, nothing, the fewer modules the better, or all of a layer."""
_ZERO_RANK = np.array([2, 0, 1, 3])
_OVERLAP_RANK = np.array([{"both": 0, "data": 1, "pipeline": 2, "none": 3}[overlap] for overlap in OVERLAP])

T = TypeVar("T")
Ranked = tuple[tuple[float, ...], Candidate]


def expert_design(instance: Instance, deadline: float = float("inf")) -> Candidate | None:
    """The rule's design, or None if no plan of the question fits the rule's device; a TimeoutError at the deadline."""
    point = expert_point(instance)
    if point is None:
        return None
    device = chip_at(instance, point)
    widest = max((_widest(instance, block.heads, device) for block in until(deadline, family_blocks(instance))), default=1)
    for narrowed in _classes(instance):
        best: Ranked | None = None
        for plans in until(deadline, plan_blocks(narrowed)):
            ranked = _best(instance, plans, device, point, widest)
            if ranked is not None and (best is None or ranked[0] < best[0]):
                best = ranked
        if best is not None:
            return best[1]
    return None


def _classes(instance: Instance) -> Iterator[Instance]:
    """The question with the leading settings of the rule's order fixed, the most wanted first: offloading as a last resort, then little
    sharding, then recomputation."""
    options = dict(instance.plan_options)
    if "zero" not in options:
        yield instance
        return
    sharding = [tuple(stage for stage in options["zero"] if (stage > 1) == much) for much in (False, True)]
    again = sorted(options["recompute"], key=lambda mode: int(_RECOMPUTE_RANK[code("recompute", mode) % PARTLY]))
    away = sorted(options["offload"], key=lambda tensors: (OFFLOAD.index(tensors).bit_count(), OFFLOAD.index(tensors)))
    for offload, stages, mode in product(away, filter(None, sharding), again):
        yield replace(instance, plan_options=tuple({**options, "offload": (offload,), "zero": stages, "recompute": (mode,)}.items()))


def chip_at(instance: Instance, point: int) -> Hardware:
    """The device of one hardware point, generated once for all rules."""
    return _chip_at((instance, point))


@remembered
def _chip_at(request: tuple[Instance, int]) -> Hardware:
    return device_at(*request)


def on_chip(instance: Instance, point: int) -> Instance:
    """The question with no hardware but that of one point."""
    if isinstance(instance.hardware, Hardware):
        return instance
    options = tuple((name, (value,)) for name, value in hardware_choice(instance, point).items())
    return replace(instance, hardware=replace(instance.hardware, options=options))


def with_plan(instance: Instance, plan: Plan | KernelPlan) -> Instance:
    """The question with no plan but one."""
    return replace(instance, plan_options=tuple((name, (getattr(plan, name),)) for name, _ in instance.plan_options))


def until(deadline: float, items: Iterable[T]) -> Iterator[T]:
    """The items, with a TimeoutError at the deadline (of the monotonic clock)."""
    for item in items:
        if monotonic() >= deadline:
            raise TimeoutError
        yield item


def _widest(instance: Instance, heads: AnyPlans, device: Hardware) -> int:
    """The widest tensor parallelism inside a node among the families of which a member fits."""
    if not isinstance(heads, Plans):
        return 1
    tensor = heads.tensor[deciding_memory_of(instance, heads, [device]) + device.reserved_memory <= device.dram.capacity]
    return int(tensor[tensor <= instance.cluster.level_sizes[0]].max(initial=1))


def _best(instance: Instance, plans: AnyPlans, device: Hardware, point: int, widest: int) -> Ranked | None:
    if isinstance(plans, Plans):
        return _best_plans(instance, plans, device, point, widest)
    return _best_kernel_plan(instance, plans, device, point)


def _best_plans(instance: Instance, plans: Plans, device: Hardware, point: int, widest: int) -> Ranked | None:
    """The plan of the block that the rule ranks first among those that fit."""
    fits = fitting(instance, plans, device)
    if not len(fits):
        return None
    chosen = rows_of(plans, fits)
    keys = _plan_keys(instance, chosen, widest)
    first = int(np.lexsort(keys[::-1])[0])
    return tuple(float(value) for value in keys[:, first]), Candidate(point, plan_at(chosen, first))


def _plan_keys(instance: Instance, plans: Plans, widest: int) -> Array:
    """Columns by which plans of a class are ranked, the most important first; smaller is better.

    A pipeline beside less tensor parallelism than the `widest` that a node holds is off the rule's path.
    """
    node, batch = instance.cluster.level_sizes[0], getattr(instance.workload, "global_batch", 1)
    microbatches = batch // (plans.data * plans.microbatch)
    off_path = (plans.pipeline > 1) & (plans.tensor < widest)
    columns = (
        plans.context,
        (plans.tensor > node) | off_path,
        plans.tensor * plans.pipeline,
        -plans.sequence_parallel,
        _ZERO_RANK[plans.zero],
        microbatches < 4 * plans.pipeline,
        np.where(microbatches < 4 * plans.pipeline, plans.microbatch, -plans.microbatch),
        -plans.interleave,
        _OVERLAP_RANK[plans.overlap],
        plans.placement,
        -plans.expert,
        plans.shard,
        plans.expert_tensor,
        plans.tensor_exchange,
        plans.expert_exchange,
        plans.schedule,
        plans.first_stage_layers,
        plans.last_stage_layers,
    )
    return np.array([np.asarray(column, np.float64) for column in columns])


def _best_kernel_plan(instance: Instance, plans: tuple[KernelPlan, ...], device: Hardware, point: int) -> Ranked | None:
    """As much data parallelism as fits, the rest split over the rows and columns of the products."""
    fits = fitting(instance, plans, device)
    ranked = [((-float(plan.data), float(plan.layers), float(plan.columns)), plan) for plan in (plans[row] for row in fits)]
    if not ranked:
        return None
    key, plan = min(ranked, key=lambda pair: pair[0])
    return key, Candidate(point, plan)


def fitting(instance: Instance, plans: AnyPlans, device: Hardware) -> Ints:
    """The rows of the plans that fit the device's memory."""
    if not len(plans):
        return np.zeros(0, np.int64)
    needed = memory_of(instance.workload, plans) + device.reserved_memory
    return np.flatnonzero((needed <= device.dram.capacity) & hosted(instance, plans))
