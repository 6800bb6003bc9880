"""The options of a parallel plan without those that no plan can have, and its settings where some of them mean nothing."""

from collections.abc import Callable
from dataclasses import fields, replace
from math import isqrt, prod
from typing import Any, cast

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.crossflow.hardware import Cluster
from crossopt.crossflow.plan import CANONICAL_SETTINGS, END_STAGES, PLACEMENTS, Plans, code
from crossopt.crossflow.recomputation import BEST, meaning_of, mode_for, mode_name, number_of, sets_that_save
from crossopt.crossflow.workload import Transformer, Workload
from crossopt.instances.codesign.instance import Instance, Options
from crossopt.instances.codesign.section import TRANSFORMER_CHOICES, ChoicesSection
from crossopt.instances.files.units import quoted

# The options of a parallel plan: `divisors` spelled out, those that no plan can have left out, and a fault where none is left.

Report = Callable[[str, str], None]
"""Callback for a fault: path in the file, and message with remedy."""

KERNEL_CHOICES = ("split", "rows", "columns", "layers", "data")
_DEGREES = ("tensor", "context", "pipeline", "data", "rows", "columns", "layers")
_LISTED = 5


def plan_options(choices: ChoicesSection, workload: Workload, cluster: Cluster, report: Report) -> Options:
    """The options of every field of a plan, in enumeration order."""
    transformer = isinstance(workload, Transformer)
    names, others = (TRANSFORMER_CHOICES, KERNEL_CHOICES) if transformer else (KERNEL_CHOICES, TRANSFORMER_CHOICES)
    for name in others:
        if name not in names and getattr(choices, name) != _usual(name):
            report(f"choices.{name}", f"this is no choice for a {type(workload).__name__.lower()} (one of {', '.join(names)})")
    if not transformer and choices.recompute_layers != _usual("recompute_layers"):
        report("choices.recompute_layers", "this is no choice for a workload other than a transformer")
    listed = {name: getattr(choices, name) for name in names}
    if isinstance(workload, Transformer) and not (faults := _unknown_modes(choices.recompute)):
        try:
            listed["recompute"] = _modes(_recompute_modes(choices, workload), workload, strictly="recompute" in choices.only)
        except ValueError as error:
            report("choices.recompute", str(error))
    elif isinstance(workload, Transformer):
        for index, fault in faults:
            report(f"choices.recompute[{index}]" if len(choices.recompute) > 1 else "choices.recompute", fault)
    options = {name: _possible(name, listed[name], workload, cluster, choices.only, report) for name in names}
    if all(options.values()):
        _check_product({name: options[name] for name in names if name in _DEGREES}, cluster, report)
    return tuple(options.items())


def _unknown_modes(modes: tuple[str, ...]) -> list[tuple[int, str]]:
    """Faults of names that are not recompute modes, each at its index."""
    found = list[tuple[int, str]]()
    for index, mode in enumerate(modes):
        try:
            number_of("none" if mode == BEST else mode)
        except ValueError as error:
            found.append((index, str(error)))
    return found


def with_layers(modes: tuple[str, ...], layers: tuple[int, ...]) -> tuple[str, ...]:
    """The recompute modes, with full recomputation once per number of layers of a chunk."""
    return tuple(
        named for mode in modes for named in ([f"full-{count}" if count else mode for count in layers] if mode == "full" else [mode])
    )


def _recompute_modes(choices: ChoicesSection, model: Transformer) -> tuple[str, ...]:
    """The listed modes. `best` is every set that saves memory, and full layers in any number of those of a chunk."""
    if BEST not in choices.recompute:
        return with_layers(choices.recompute, choices.recompute_layers)
    layers = choices.recompute_layers
    if layers == _usual("recompute_layers"):
        layers = tuple(range(_most_layers(choices, model)))
    return with_layers(
        tuple(mode for listed in choices.recompute for mode in (sets_that_save(model) if listed == BEST else (listed,))), layers
    )


def _most_layers(choices: ChoicesSection, model: Transformer) -> int:
    """Layers of the largest chunk."""
    if isinstance(choices.pipeline, str) or any(getattr(choices, name) != _usual(name) for name in END_STAGES):
        return model.stack
    chunks = 1 if isinstance(choices.interleave, str) or 1 in choices.pipeline else min(choices.interleave)
    return int(-(-model.stack // (min(choices.pipeline) * chunks)))


def _modes(modes: tuple[str, ...], model: Transformer, strictly: bool) -> tuple[str, ...]:
    """Recompute modes by canonical name, without modules that this network lacks.
    With `strictly`, modes with such modules are left out instead. Of modes that mean the same for the network, the first is kept.
    A ValueError if none is left.
    """
    meant = dict[int, str]()
    for mode in modes:
        number, own = number_of(mode), mode_for(model, mode)
        if not strictly or own == mode_name(number):
            meant.setdefault(meaning_of(model, number), own)
    if not meant:
        raise ValueError(f"{model.name} has none of what {', '.join(modes)} would compute again (none is all that it comes to)")
    return tuple(meant.values())


def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    small = [part for part in range(1, isqrt(number) + 1) if number % part == 0]
    return tuple(sorted({*small, *(number // part for part in small)}))


def _chunks(layers: int) -> tuple[int, ...]:
    """Divisors of the number of layers, with and without embedding and head, whose chunks may have one layer less."""
    return tuple(sorted({*divisors(layers), *(chunks for chunks in divisors(layers + 2) if chunks <= layers)}))


def _usual(name: str) -> object:
    return next(field.default for field in fields(ChoicesSection) if field.name == name)


def _some(total: int) -> str:
    """Divisors to write, the least of many."""
    few = divisors(total)
    return ", ".join(map(str, few[:_LISTED])) + (", ..." if len(few) > _LISTED else "")


def _possible(
    name: str, values: tuple[Any, ...] | str, workload: Workload, cluster: Cluster, only: tuple[str, ...], report: Report
) -> tuple[Any, ...]:
    """The options that some plan can have; None after a fault."""
    if name == "placement":
        return _orders(tuple(values), report)
    if name == "shard" and isinstance(values, str):
        return (0, *(size for size in (cluster.level_sizes[0] * nodes for nodes in (1, 2, 4)) if size < cluster.devices))
    dividing = wholes(workload, cluster)
    if name not in dividing:
        return tuple(values)
    total, what = dividing[name]
    if isinstance(values, str):
        return divisors(total) if name != "interleave" else _chunks(total)
    if name == "expert" and total == 1 and "expert" not in only:  # a dense model: any number of ranks comes to one
        return tuple(values)
    if name == "interleave":
        fitting, rule = tuple(value for value in values if value <= total), "is at most"
    else:
        fitting, rule = tuple(value for value in values if total % value == 0), "divides"
    if not fitting:
        listed = ", ".join(str(value) for value in values[:_LISTED]) + (", ..." if len(values) > _LISTED else "")
        said = (
            f"none of {listed} {rule}" if len(values) > 1 else f"{listed} {'is more than' if name == 'interleave' else 'does not divide'}"
        )
        report(f"choices.{name}", f"{said} the {total} {what} (write {_some(total) if rule == 'divides' else 'a smaller one'})")
    return fitting


def wholes(workload: Workload, cluster: Cluster) -> dict[str, tuple[int, str]]:
    """The number that each degree must divide, and what it counts; chunks need not divide the layers."""
    found = dict.fromkeys(_DEGREES, (cluster.devices, "devices"))
    if isinstance(workload, Transformer):
        found["microbatch"] = (workload.global_batch, "samples of the global batch")
        found["interleave"] = (workload.stack, "layers")
        found["expert"] = (workload.experts, "experts")
    return found


def _orders(values: tuple[str, ...], report: Report) -> tuple[str, ...]:
    for value in values:
        if value not in PLACEMENTS:
            report("choices.placement", f"{quoted(value)} is no order of tensor, context, data and pipeline (for example {PLACEMENTS[0]})")
    return values


def _check_product(degrees: dict[str, tuple[Any, ...]], cluster: Cluster, report: Report) -> None:
    """Report a fault if no product of the degrees is the number of devices."""
    reachable = {1}
    for values in degrees.values():
        reachable = {inner * value for inner in reachable for value in values if cluster.devices % (inner * value) == 0}
    if cluster.devices not in reachable:
        most = prod(max(values) for values in degrees.values())
        names = " x ".join(degrees)
        report("choices", f"no {names} is the {cluster.devices} devices (the largest options make {most}; add options that multiply to it)")


# Settings of plans as a question lists them, and what they come to at plans to which some of them mean nothing.
#
# A setting that is listed holds where it applies: `overlap: both` is the data overlap alone at a plan of one stage, and `sequence_parallel:
# true` is nothing at a plan of tensor degree 1. So no listed value deletes a plan, and options that come to the same are one plan.


def codes_of(instance: Instance, name: str) -> tuple[int, ...]:
    """The options of a setting by their numbers."""
    return tuple(code(name, value) for value in dict(instance.plan_options)[name])


def with_settings(plans: Plans, settings: dict[str, int]) -> Plans:
    """The plans with other settings."""
    return replace(plans, **{name: np.full(len(plans), number, np.int64) for name, number in settings.items()})


def comings(instance: Instance, plans: Plans, name: str) -> tuple[Ints, Mask]:
    """What each option of a setting (columns) comes to at each plan (rows), and which are the first to come to that.

    The others are no plans of their own; nor are those that do not come to themselves where the question has a setting `only` so."""
    codes = np.array(codes_of(instance, name), np.int64)
    came: Ints = np.broadcast_to(codes, (len(plans), len(codes)))
    if name not in CANONICAL_SETTINGS:
        return came, np.ones(came.shape, bool)
    model = cast("Transformer", instance.workload)
    meant = [replace(plans, **{name: _meant(model, plans, name, number)}) for number in codes.tolist()]
    came = np.column_stack([CANONICAL_SETTINGS[name](model, plans) for plans in meant])
    first: Mask = _to_the_letter(came, codes) if name in instance.only else np.ones(came.shape, bool)
    for option in range(1, len(codes)):
        first[:, option] &= ~(first[:, :option] & (came[:, :option] == came[:, option : option + 1])).any(axis=1)
    return came, first


def _meant(model: Transformer, plans: Plans, name: str, number: int) -> Ints:
    """What an option says of each plan: layers of an end below 0 are so many fewer than the even share, which stays where none are left."""
    if name not in END_STAGES or number >= 0:
        return np.full(len(plans), number, np.int64)
    return np.maximum(model.stack // plans.pipeline + number, 0)


def _to_the_letter(came: Ints, codes: Ints) -> Mask:
    """Which options come to themselves, or to what they say of the plan."""
    found: Mask = (came == codes) | ((codes < 0) & (came > 0))
    return found


def index_of_none(instance: Instance, name: str) -> int:
    """Index of the option that counts a plan without this setting: the first option, or with `only` the one that states it as written."""
    codes = codes_of(instance, name)
    if name not in instance.only:
        return 0
    return codes.index(0) if 0 in codes else -1


def is_listed(instance: Instance, plan: Plans, name: str) -> bool:
    """Whether some option of a setting comes to what this one plan has: the first that is looked at is the one that says so."""
    own, model = int(getattr(plan, name)[0]), cast("Transformer", instance.workload)
    says_so = own >= 0 and own in codes_of(instance, name)
    if says_so and (name not in CANONICAL_SETTINGS or CANONICAL_SETTINGS[name](model, plan)[0] == own):
        return True
    return bool(listed_as(instance, plan, name).any())


def listed_as(instance: Instance, plans: Plans, name: str) -> Mask:
    """Which options of a setting (columns) come to what each plan (row) has."""
    came, _ = comings(instance, plans, name)
    found: Mask = came == np.asarray(getattr(plans, name))[:, None]
    return found & _to_the_letter(came, np.array(codes_of(instance, name))) if name in instance.only else found
