"""The options of a parallel plan: `divisors` spelled out, those that no plan can have left out, and a fault where none is left."""

from collections.abc import Callable
from dataclasses import fields
from math import isqrt, prod
from typing import Any

from crossopt.crossflow.hardware import Cluster
from crossopt.crossflow.plan import PLACEMENTS
from crossopt.crossflow.recomputation import meaning_of, number_of, word_for, word_of
from crossopt.crossflow.workload import Transformer, Workload
from crossopt.instances.codesign.instance import Options
from crossopt.instances.codesign.section import TRANSFORMER_CHOICES, ChoicesSection
from crossopt.instances.files.units import quoted

Report = Callable[[str, str], None]
"""Takes the path of a fault in the file, and what is wrong with the remedy."""

KERNEL_CHOICES = ("split", "rows", "columns", "layers", "data")
_DEGREES = ("tensor", "context", "pipeline", "data", "rows", "columns", "layers")
_LISTED = 5


def plan_options(choices: ChoicesSection, workload: Workload, cluster: Cluster, report: Report) -> Options:
    """The options of every field of a plan, in the order in which plans are counted."""
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
            modes = with_layers(choices.recompute, choices.recompute_layers)
            listed["recompute"] = _modes(modes, workload, strictly="recompute" in choices.only)
        except ValueError as error:
            report("choices.recompute", str(error))
    elif isinstance(workload, Transformer):
        for place, fault in faults:
            report(f"choices.recompute[{place}]" if len(choices.recompute) > 1 else "choices.recompute", fault)
    options = {name: _possible(name, listed[name], workload, cluster, choices.only, report) for name in names}
    if all(options.values()):
        _check_product({name: options[name] for name in names if name in _DEGREES}, cluster, report)
    return tuple(options.items())


def _unknown_modes(words: tuple[str, ...]) -> list[tuple[int, str]]:
    """What is wrong with words that are no modes of recomputation, each by its place."""
    found = list[tuple[int, str]]()
    for place, word in enumerate(words):
        try:
            number_of(word)
        except ValueError as error:
            found.append((place, str(error)))
    return found


def with_layers(modes: tuple[str, ...], layers: tuple[int, ...]) -> tuple[str, ...]:
    """The modes of recomputation, full recomputation once for each number of layers of a chunk."""
    return tuple(
        word for mode in modes for word in ([f"full-{count}" if count else mode for count in layers] if mode == "full" else [mode])
    )


def _modes(words: tuple[str, ...], model: Transformer, strictly: bool) -> tuple[str, ...]:
    """Each mode of recomputation by its one word, without modules that this network does not have, or only those without such modules; of
    those that mean the same for it the first. A ValueError where none is left."""
    meant = dict[int, str]()
    for word in words:
        number, own = number_of(word), word_for(model, word)
        if not strictly or own == word_of(number):
            meant.setdefault(meaning_of(model, number), own)
    if not meant:
        raise ValueError(f"{model.name} has none of what {', '.join(words)} would compute again (none is all that it comes to)")
    return tuple(meant.values())


def divisors(whole: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    small = [part for part in range(1, isqrt(whole) + 1) if whole % part == 0]
    return tuple(sorted({*small, *(whole // part for part in small)}))


def _chunks(layers: int) -> tuple[int, ...]:
    """What divides the layers, or them with embedding and head: the chunks that hold these may have a layer less each."""
    return tuple(sorted({*divisors(layers), *(chunks for chunks in divisors(layers + 2) if chunks <= layers)}))


def _whole_nodes(cluster: Cluster) -> tuple[int, ...]:
    """Ranks of as many nodes as groups have that are worth a look: what they share stays in a node, or near it."""
    return tuple(cluster.level_sizes[0] * nodes for nodes in (1, 2, 4))


def _usual(name: str) -> object:
    return next(field.default for field in fields(ChoicesSection) if field.name == name)


def _possible(
    name: str, values: tuple[Any, ...] | str, workload: Workload, cluster: Cluster, only: tuple[str, ...], report: Report
) -> tuple[Any, ...]:
    """The options that some plan can have; none after a fault."""
    if name == "placement":
        return _orders(tuple(values), report)
    if name == "shard" and isinstance(values, str):
        return (0, *(size for size in _whole_nodes(cluster) if size < cluster.devices))
    dividing = wholes(workload, cluster)
    if name not in dividing:
        return tuple(values)
    whole, what = dividing[name]
    if isinstance(values, str):
        return divisors(whole) if name != "interleave" else _chunks(whole)
    if name == "expert" and whole == 1 and "expert" not in only:  # a dense model: any number of ranks comes to one
        return tuple(values)
    if name == "interleave":
        kept, rule = tuple(value for value in values if value <= whole), "is at most"
    else:
        kept, rule = tuple(value for value in values if whole % value == 0), "divides"
    if not kept:
        listed = ", ".join(str(value) for value in values[:_LISTED]) + (", ..." if len(values) > _LISTED else "")
        report(f"choices.{name}", f"none of {listed} {rule} the {whole} {what} (or write `divisors`)")
    return kept


def wholes(workload: Workload, cluster: Cluster) -> dict[str, tuple[int, str]]:
    """The number that each degree must divide, and what it counts; chunks of layers need not divide them."""
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
    """A fault if no product of the degrees is the number of devices."""
    reachable = {1}
    for values in degrees.values():
        reachable = {inner * value for inner in reachable for value in values if cluster.devices % (inner * value) == 0}
    if cluster.devices not in reachable:
        most = prod(max(values) for values in degrees.values())
        names = " x ".join(degrees)
        report("choices", f"no {names} is the {cluster.devices} devices (the largest options make {most}; add options that multiply to it)")
