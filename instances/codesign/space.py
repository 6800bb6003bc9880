"""Enumeration of a question's designs in blocks: hardware points with their devices, and valid parallel plans.

Both are counted in the order in which the choices stand, the last one fastest. Blocks keep memory flat however many designs there are.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import lru_cache
from itertools import combinations as combinations_of
from itertools import islice, product
from math import prod
from typing import Any, Final, cast

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real
from crossopt.crossflow.cost import Made, device_price
from crossopt.crossflow.hardware import Hardware, Link, Memory, take
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.kernels.kernel_plan import broken_rules as broken_kernel_rules
from crossopt.crossflow.plan import (
    CANONICAL_SETTINGS,
    PLAN_FIELDS,
    Plan,
    Plans,
    Rule,
    code,
    joined,
    keeps_rules_on,
    option,
    rows_of,
    rules,
    table,
)
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import FreeHardware, Instance, Options, remembered
from crossopt.instances.codesign.plan_choices import codes_of, comings, index_of_none, is_listed, with_settings

_COMBINATIONS = 1 << 16
"""Number of combinations of plan choices in a block."""
_AT_ONCE = 1 << 13
"""Number of combinations below which plans are enumerated directly instead of setting by setting."""
_FEW = 1 << 18
"""Number of combinations up to which plans are listed once and cached."""
_DRAWN = 1 << 14
"""Largest number of random plans."""
_KERNEL_COMBINATIONS = 1 << 10
"""Largest number of random plans for workloads evaluated one plan at a time."""

_LOOKED_AFTER: Final = ("microbatch", "interleave", "tensor_exchange")
"""Settings after which partial plans are also pruned by rules that depend on settings not yet known."""
_ENABLING: Final = ("sequence_parallel", "schedule")
"""Settings whose other values may satisfy a rule that the default violates."""

_DEFAULTS: Final = tuple((name, code(name, getattr(Plan(), name))) for name in PLAN_FIELDS)
"""Code of a setting that is not yet assigned."""

LAYOUT: Final = frozenset({"tensor", "context", "pipeline", "data"})
"""Settings whose product is the number of devices."""

AnyPlans = Plans | tuple[KernelPlan, ...]


@dataclass(frozen=True, slots=True)
class Devices:
    """A block of hardware points."""

    hardware: Hardware
    """Devices as arrays over the buildable points."""
    points: Ints
    """Numbers of the points in the whole space."""
    unbuilt: int
    """Number of points without cores, memory or links."""


def hardware_points(instance: Instance) -> int:
    """Number of hardware points."""
    return prod(len(values) for _, values in _hardware_options(instance))


def hardware_choice(instance: Instance, point: int) -> dict[str, Any]:
    """Choices of one hardware point, by name."""
    options = _hardware_options(instance)
    places = np.unravel_index(point, [len(values) for _, values in options]) if options else ()
    return {name: values[int(index)] for (name, values), index in zip(options, places, strict=True)}


def hardware_point(instance: Instance, choice: dict[str, Any]) -> int:
    """Number of the hardware point with these choices; a ValueError if the question does not allow it."""
    options = _hardware_options(instance)
    if set(choice) != {name for name, _ in options}:
        known = ", ".join(name for name, _ in options) or "none"
        raise ValueError(f"the hardware choices are {', '.join(choice) or 'none'}, those of the question are {known}")
    places = []
    for name, values in options:
        if choice[name] not in values:
            raise ValueError(f"{name} {choice[name]!r} is not among the options")
        places.append(values.index(choice[name]))
    return int(np.ravel_multi_index(places, [len(values) for _, values in options])) if options else 0


def devices(instance: Instance, start: int, stop: int) -> Devices:
    """The buildable hardware points from `start` up to `stop`."""
    points = np.arange(start, stop)
    if isinstance(instance.hardware, Hardware):
        return Devices(with_prices(instance, instance.hardware), points, 0)
    from crossopt.instances.codesign.chips import generated  # noqa: PLC0415 - most questions name a device

    hardware, made = generated(instance.hardware, points)
    built = np.broadcast_to(buildable(hardware), points.shape)
    built_devices = take(with_prices(instance, as_arrays(hardware, len(points)), made), np.flatnonzero(built))
    return Devices(built_devices, points[built], int(len(points) - built.sum()))


def device_at(instance: Instance, point: int) -> Hardware:
    """The device of one hardware point, generated alone; a ValueError if it cannot be built."""
    if isinstance(instance.hardware, Hardware):
        return with_prices(instance, instance.hardware)
    from crossopt.instances.codesign.chips import generated  # noqa: PLC0415 - most questions name a device

    hardware, made = generated(instance.hardware, np.asarray(point))  # numbers, several times faster than arrays of one
    if not np.all(buildable(hardware)):
        raise ValueError("this split of the chip leaves it without cores, memory or links")
    return _in_parts(_as_numbers, with_prices(instance, hardware, made))


def combinations(instance: Instance) -> int:
    """Number of combinations of plan choices, before validity rules."""
    return combined(instance, layouts_of(instance))


def combined(instance: Instance, layouts: Ints) -> int:
    return len(layouts) * prod(len(values) for _, values in _other_options(instance))


def plan_blocks(instance: Instance) -> Iterator[AnyPlans]:
    """All plans in blocks, some possibly empty; small sets are listed once and cached."""
    yield from _few_blocks(instance) if combinations(instance) <= _FEW else _blocks(instance)


@remembered
def _few_blocks(instance: Instance) -> tuple[AnyPlans, ...]:
    return tuple(_blocks(instance))


def _blocks(instance: Instance) -> Iterator[AnyPlans]:
    """Plans of a transformer are built setting by setting (unless few), so that most invalid combinations are pruned early."""
    if not isinstance(instance.workload, Transformer):
        yield from _kernel_plan_blocks(instance)
        return
    layouts = sound_layouts(instance)
    if combined(instance, layouts) <= _AT_ONCE:
        yield _all_of(instance, layouts)
        return
    blocks, known = iter((plain(layouts),)), LAYOUT
    for name, _ in _other_options(instance):
        known |= {name}
        blocks = _grown(instance, blocks, name, known)
    yield from blocks


def blocks_with_shares(instance: Instance) -> Iterator[tuple[AnyPlans, float]]:
    """Blocks of plans, each with the cumulative share of combinations covered."""
    layouts, kernels = layouts_of(instance), -(-combinations(instance) // _KERNEL_COMBINATIONS)
    share = 0.0
    for number, plans in enumerate(plan_blocks(instance), start=1):
        if not isinstance(plans, Plans):
            share = number / kernels
        elif len(plans):
            last = [getattr(plans, name)[-1] for name in ("tensor", "context", "pipeline", "data")]
            share = (int(np.flatnonzero((layouts == last).all(axis=1))[0]) + 1) / len(layouts)
        yield plans, share


def _grown(instance: Instance, blocks: Iterator[Plans], name: str, known: frozenset[str]) -> Iterator[Plans]:
    """Partial plans extended by every option of one more setting, in the order of the choices.
    Equivalent options are dropped, and plans that break a rule whatever the settings are that are not known yet.
    """
    for plans in _batches(blocks, max(1, _COMBINATIONS // len(codes_of(instance, name)))):
        if not len(plans):
            yield plans
            continue
        came, first = comings(instance, plans, name)
        if len(first) == first.sum() and first[:, 0].all():
            grown = replace(plans, **{name: came[:, 0].copy()})
            valid = _may_keep_rules(instance, grown, name, known)
            yield grown if valid.all() else rows_of(grown, np.flatnonzero(valid))
        else:
            rows, places = np.nonzero(first)
            column = came[rows, places]
            valid = _may_keep_rules(instance, _Gathered.of(plans, rows, name, column), name, known)
            yield replace(rows_of(plans, rows[valid]), **{name: column[valid]})


class _Gathered(Plans):
    """Rows of plans with one setting changed, of which only the columns that are looked at are gathered: rules look at few."""

    __slots__ = ("rows", "source")
    source: Plans
    rows: Ints

    @classmethod
    def of(cls, source: Plans, rows: Ints, name: str, column: Ints) -> "_Gathered":
        found = cls.__new__(cls)
        for field, value in (("source", source), ("rows", rows), (name, column)):
            object.__setattr__(found, field, value)
        return found

    def __getattr__(self, name: str) -> Ints:
        if name not in PLAN_FIELDS:
            raise AttributeError(name)
        column: Ints = getattr(self.source, name).take(self.rows)
        object.__setattr__(self, name, column)
        return column


def _batches(blocks: Iterator[Plans], size: int) -> Iterator[Plans]:
    """The plans in blocks of up to this size: small ones are joined, large ones cut evenly, and others pass without being copied. Empty
    blocks are passed on so that callers can check the time."""
    waiting: list[Plans] = []
    for number, plans in enumerate(blocks):
        waiting.append(plans)
        if (count := sum(map(len, waiting))) > size // 2:
            every, parts = joined(waiting), -(-count // size)
            yield from (rows_of(every, slice(count * part // parts, count * (part + 1) // parts)) for part in range(parts))
            waiting = []
        elif number:
            yield joined([])
    yield joined(waiting)


def _may_keep_rules(instance: Instance, plans: Plans, name: str, known: frozenset[str]) -> Mask:
    """Mask of partial plans that may still satisfy the rules: with open settings at their defaults, or with other values of
    those in `_ENABLING`, after the settings in `_LOOKED_AFTER`.

    Each rule is looked at when the last setting that it depends on, which is `name`, has become known.
    """
    model = cast("Transformer", instance.workload)
    found = _launched(instance, plans, name, known) & keeps_rules_on(model, plans, instance.cluster.devices, name, known)
    if name not in _LOOKED_AFTER:
        return found
    alone = replace(instance, stack=None)
    open_ones = [{setting: number} for setting in _ENABLING if setting not in known for number in codes_of(instance, setting)]
    ways: list[dict[str, int]] = [{}, *open_ones, *(setting | second_setting for setting, second_setting in combinations_of(open_ones, 2))]
    undecided = found.copy()
    for way in ways:
        if not undecided.any():
            break
        undecided &= ~keeps_rules(alone, with_settings(plans, way))
    return found & ~undecided


def _launched(instance: Instance, plans: Plans, name: str, known: frozenset[str]) -> Mask:
    """Partial plans that satisfy the stack's rules about this setting and no open one."""
    found: Mask = np.ones(len(plans), bool)
    if instance.stack is not None:
        about = instance.stack.about_only(known).about_any(frozenset({name}))
        for _, column in about.rules(cast("Transformer", instance.workload), plans, instance.machine):
            found &= column
    return found


def draw_plans(instance: Instance, random: "np.random.Generator", most: int) -> AnyPlans:
    """All plans if there are at most `most` combinations, else up to that many drawn at random."""
    if not isinstance(instance.workload, Transformer):
        every = tuple(plan for block in _kernel_plan_blocks(instance) for plan in block)
        return every if len(every) <= most else tuple(every[int(row)] for row in np.sort(random.choice(len(every), most, replace=False)))
    layouts = sound_layouts(instance)
    total = combined(instance, layouts)
    if total > most:
        return _random_options(instance, rows_of(plain(layouts), random.integers(len(layouts), size=min(most, _DRAWN))), random)
    return _all_of(instance, layouts)


def _all_of(instance: Instance, layouts: Ints) -> Plans:
    """The plans with these layouts, all at once."""
    plans = plans_numbered(instance, layouts, np.arange(combined(instance, layouts)))
    return rows_of(plans, np.flatnonzero(keeps_rules(instance, plans)))


def _random_options(instance: Instance, plans: Plans, random: "np.random.Generator") -> Plans:
    """Layouts extended by random options setting by setting; invalid ones are replaced by copies of others."""
    known, rows = LAYOUT, np.arange(len(plans))
    for name, _ in _other_options(instance):
        known |= {name}
        came, first = comings(instance, plans, name)
        option = (random.random(first.shape) * first).argmax(axis=1)
        plans = replace(plans, **{name: came[rows, option]})
        valid = np.flatnonzero(first[rows, option] & _may_keep_rules(instance, plans, name, known))
        if not len(valid):
            return rows_of(plans, valid)
        plans = rows_of(plans, random.choice(valid, len(rows)))
    every = np.column_stack([getattr(plans, name) for name in PLAN_FIELDS])
    return rows_of(plans, np.sort(np.unique(every, axis=0, return_index=True)[1]))


def allows(instance: Instance, plan: object) -> str | None:
    """Reason why the question does not allow this plan; None if it does."""
    row = table([plan]) if isinstance(plan, Plan) else None
    for name, values in instance.plan_options:
        plainly = getattr(plan, name) in values and (row is None or name not in CANONICAL_SETTINGS)
        if not plainly and (row is None or not is_listed(instance, row, name)):
            return f"{name} {getattr(plan, name)} is not among the options"
    return None


def unlaunched(instance: Instance, plan: object) -> tuple[str, ...]:
    """Rules of the question's stack that a plan violates."""
    if instance.stack is None or not isinstance(plan, Plan):
        return ()
    columns = instance.stack.rules(cast("Transformer", instance.workload), table([plan]), instance.machine)
    return tuple(sentence for sentence, holds in columns if not holds[0])


def plan_values(instance: Instance) -> Options:
    """The listed options of a plan, and the other effective values of conditional ones."""
    if not isinstance(instance.workload, Transformer):
        return instance.plan_options
    plans = plain(sound_layouts(instance))
    return tuple((name, (*values, *_others(instance, plans, name))) for name, values in instance.plan_options)


def _others(instance: Instance, plans: Plans, name: str) -> tuple[Any, ...]:
    came, first = comings(instance, plans, name)
    return tuple(option(name, number) for number in sorted({*came[first].tolist()} - {*codes_of(instance, name)}))


def _hardware_options(instance: Instance) -> Options:
    return instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()


def layouts_of(instance: Instance) -> Ints:
    """Degrees of tensor, context, pipeline and data parallelism whose product is the number of devices, one row each."""
    options = dict(instance.plan_options)
    names = ("tensor", "context", "pipeline") if isinstance(instance.workload, Transformer) else ("rows", "columns", "layers")
    return _layouts(instance.cluster.devices, options["data"], *(options[name] for name in names))


@lru_cache(64)
def _layouts(count: int, replicas: tuple[Any, ...], *degrees: tuple[Any, ...]) -> Ints:
    """Rows of degrees and of replicas with this product, which nobody changes."""
    rows = np.zeros((1, 0), np.int64)
    for values in degrees:
        rows = np.column_stack([np.repeat(rows, len(values), axis=0), np.tile(np.array(values, np.int64), len(rows))])
        rows = rows[count % rows.prod(axis=1) == 0]
    data = count // rows.prod(axis=1)
    found = np.column_stack([rows, data])[np.isin(data, np.array(replicas, np.int64))]
    found.flags.writeable = False
    return found


def _other_options(instance: Instance) -> Options:
    degrees = {"tensor", "context", "pipeline", "data", "rows", "columns", "layers"}
    return tuple((name, values) for name, values in instance.plan_options if name not in degrees)


def sound_layouts(instance: Instance) -> Ints:
    """Layouts valid with all other settings at their defaults; other settings only add conditions."""
    layouts = layouts_of(instance)
    return layouts[keeps_rules(of_layouts(instance), plain(layouts))]


def of_layouts(instance: Instance) -> Instance:
    """The question with stack rules about degrees alone, since others may forbid the defaults of settings."""
    return instance if instance.stack is None else replace(instance, stack=instance.stack.about_only(LAYOUT))


def plain(layouts: Ints) -> Plans:
    """The layouts with all other settings at their defaults."""
    columns = {name: np.full(len(layouts), number, np.int64) for name, number in _DEFAULTS}
    columns.update(zip(("tensor", "context", "pipeline", "data"), layouts.T, strict=True))
    return Plans(**columns)


def plan_rules(instance: Instance, plans: Plans) -> tuple[Rule, ...]:
    """The rules for plans of the question, each with a column that is true where it holds."""
    model = cast("Transformer", instance.workload)
    own = () if instance.stack is None else instance.stack.rules(model, plans, instance.machine)
    return (*rules(model, plans, instance.cluster.devices), *own)


def keeps_rules(instance: Instance, plans: Plans) -> Mask:
    holds = np.ones(len(plans), bool)
    for _, column in plan_rules(instance, plans):
        holds &= column
    return holds


MEANT: dict[str, dict[str, int]] = {"shard": {"zero": 1}, "expert_exchange": {"expert": 2}}
"""Settings that depend on another setting, in addition to degrees."""


def plans_numbered(instance: Instance, layouts: Ints, numbers: Ints) -> Plans:
    """The combinations with these numbers as columns, without equivalents of earlier ones."""
    others = _other_options(instance)
    shape = (len(layouts), *(len(values) for _, values in others))
    places = np.unravel_index(numbers, shape)
    columns = dict(zip(("tensor", "context", "pipeline", "data"), layouts[places[0]].T, strict=True))
    own, number, bare = np.ones(len(numbers), bool), dict[str, Ints](), plain(layouts)
    for (name, _), picked in zip(others, places[1:], strict=True):
        came, first = comings(instance, with_settings(bare, MEANT.get(name, {})), name)
        columns[name], own, number[name] = came[places[0], picked], own & first[places[0], picked], picked
    for name, alone in (("shard", columns["zero"] == 0), ("expert_exchange", columns["expert"] == 1)):
        # These mean nothing where nothing is shared, or spread: one option stands for all.
        columns[name], own = np.where(alone, 0, columns[name]), own & (~alone | (number[name] == index_of_none(instance, name)))
    return Plans(*(np.ascontiguousarray(columns[name] if own.all() else columns[name][own]) for name in PLAN_FIELDS))


def kernel_plans(instance: Instance) -> Iterator[KernelPlan]:
    splits = dict(instance.plan_options)["split"]
    for split, (rows, columns, layers, data) in product(splits, layouts_of(instance)):
        yield KernelPlan(split=split, rows=int(rows), columns=int(columns), layers=int(layers), data=int(data))


def _kernel_plan_blocks(instance: Instance) -> Iterator[tuple[KernelPlan, ...]]:
    count = instance.cluster.devices
    plans = kernel_plans(instance)
    while block := tuple(islice(plans, _KERNEL_COMBINATIONS)):
        yield tuple(plan for plan in block if not broken_kernel_rules(instance.workload, plan, count))  # type: ignore[arg-type]


def buildable(hardware: Hardware) -> Mask:
    """Points with cores, all memories, and all links that the network levels use."""
    needed: list[Real] = [hardware.throughput, hardware.bundles]
    for memory in (hardware.dram, hardware.l2, hardware.l1, hardware.registers):
        needed += [memory.capacity, memory.bandwidth]
    needed += [link.bandwidth for link in hardware.links]
    built: Mask = np.asarray(True)
    for value in needed:
        built = built & (np.asarray(value) > 0.0)
    return built


def as_arrays(hardware: Hardware, count: int) -> Hardware:
    """The devices with every array as long as the block; the generator's arrays have the shape of their inputs."""

    return _in_parts(lambda value: np.full(count, value, np.float64), hardware)


def _as_numbers(value: Array) -> float:
    return float(value.reshape(-1)[0])


def _in_parts(change: Callable[[Array], object], hardware: Hardware) -> Hardware:
    """The devices with every array of theirs, and every number of numpy, changed."""

    def changed(record: Hardware | Memory | Link) -> dict[str, Any]:
        own = ((field.name, getattr(record, field.name)) for field in fields(record))
        return {name: change(np.asarray(value)) for name, value in own if isinstance(value, np.ndarray | np.floating)}

    inner = {name: replace(memory, **changed(memory)) for name in _MEMORIES for memory in [getattr(hardware, name)]}
    return replace(hardware, **changed(hardware), **inner, links=tuple(replace(link, **changed(link)) for link in hardware.links))


_MEMORIES: Final = ("dram", "l2", "l1", "registers")


def with_prices(instance: Instance, hardware: Hardware, made: Made | None = None) -> Hardware:
    """The devices with prices from their composition; for devices on the market, only the die is known."""
    if instance.prices is None:
        return hardware
    if made is None:
        return replace(hardware, price=device_price(instance.prices, Made(hardware.die_area)))
    figures = np.broadcast_arrays(hardware.die_area, *(getattr(made, field.name) for field in fields(Made)))[1:]
    full = Made(*(np.array(figure, np.float64) for figure in figures))
    return replace(hardware, price=device_price(instance.prices, full))
