"""Families of plans that differ only in their concessions and are bounded together.

A concession (`crossflow.plan.CONCESSIONS`) costs time and energy for memory, or for nothing at all. So the plan with the least of each
bounds a whole family on every device, whether or not it is a plan of the question, and whether or not it fits. Members come down to it
setting by setting, and no step may gain: first to what all of them offload, then to the most overlap, last to the least recomputation.
The last step is none where all of them offload activations (`crossflow.plan.costs_only`); there each recomputation has its own families.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import cast

import numpy as np

from crossopt.crossflow.arrays import Ints, distinct
from crossopt.crossflow.hardware import take
from crossopt.crossflow.kernels.kernel_plan import broken_rules as broken_kernel_rules
from crossopt.crossflow.plan import CONCESSION_RULES_ON, CONCESSIONS, Plan, Plans, concession_rules, costs_only, joined, rows_of, rules
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign import space
from crossopt.instances.codesign.instance import FreeHardware, Instance, MultiScaleQuestion, remembered
from crossopt.instances.codesign.plan_choices import codes_of, comings, with_settings
from crossopt.instances.codesign.space import plain
from crossopt.instances.codesign.stack_table import Stack

_FAMILIES_TOGETHER, _BLOCKS_TOGETHER = 1 << 16, 8
"""Number of families from which a block is large, and of small blocks that are joined at the most."""


@dataclass(frozen=True, slots=True)
class Families:
    """A block of families."""

    heads: space.AnyPlans
    """The plan that bounds each family: no member is faster on any device. Settings other than concessions are those of the members."""
    counts: Ints
    """Number of members of each family."""

    def __len__(self) -> int:
        return len(self.heads)


def family_blocks(instance: Instance) -> Iterator[Families]:
    """All plans, family by family; plans of other workloads than transformers are families of one."""
    for plans in _in_large_blocks(space.plan_blocks(_without_concessions(instance))):
        if isinstance(plans, Plans):
            counts = _members(instance, plans)
            rows = np.flatnonzero(counts)
            least = {name: CONCESSIONS[name](codes_of(instance, name)) for name in concessions_of(instance)}
            own = plans if len(rows) == len(plans) else rows_of(plans, rows)
            yield Families(with_settings(own, least), counts[rows])
        else:
            yield Families(plans, np.ones(len(plans), np.int64))


def _in_large_blocks(blocks: Iterator[space.AnyPlans]) -> Iterator[space.AnyPlans]:
    """The blocks, several together where they are small: to price a block takes time however few plans it has. Not many at once, so that
    callers can check the time."""
    waiting: list[Plans] = []
    for plans in blocks:
        if not isinstance(plans, Plans):
            yield plans
            continue
        waiting.append(plans)
        if len(waiting) == _BLOCKS_TOGETHER or sum(map(len, waiting)) >= _FAMILIES_TOGETHER:
            yield joined(waiting)
            waiting = []
    if waiting:
        yield joined(waiting)


def members(instance: Instance, heads: space.AnyPlans, among: tuple[str, ...] | None = None) -> space.AnyPlans:
    """All plans of these families; those that differ from the heads in some concessions alone, if these are named."""
    if not isinstance(heads, Plans):
        return heads
    names = concessions_of(instance) if among is None else among
    ways = list(product(*(codes_of(instance, name) for name in names)))
    every = rows_of(heads, np.repeat(np.arange(len(heads)), len(ways)))
    plans = every
    own = np.ones(len(every), bool)
    for index, name in enumerate(names):
        came, first = comings(instance, heads, name)
        which = np.array([codes_of(instance, name).index(way[index]) for way in ways], np.int64)
        plans, own = replace(plans, **{name: came[:, which].ravel()}), own & first[:, which].ravel()
    return rows_of(plans, np.flatnonzero(own & space.keeps_rules(instance, plans)))


def concessions_of(instance: Instance) -> tuple[str, ...]:
    """The settings in which members of a family differ: concessions whose least value bounds every plan of the question."""
    moved_by_all = CONCESSIONS["offload"](codes_of(instance, "offload"))
    return tuple(name for name in CONCESSIONS if costs_only(name, moved_by_all))


def _without_concessions(instance: Instance) -> Instance:
    """The question with every concession at its default, which no rule forbids; the stack's rules on concessions apply to members."""
    default = Plan()
    names = concessions_of(instance) if isinstance(instance.workload, Transformer) else ()
    options = tuple((name, (getattr(default, name),) if name in names else values) for name, values in instance.plan_options)
    stack = None if instance.stack is None else instance.stack.apart_from(frozenset(names))
    return replace(instance, plan_options=options, stack=stack)


def _members(instance: Instance, plain: Plans) -> Ints:
    """Number of combinations of concessions that satisfy the rules about them. The counts of those that no rule joins multiply. Plans that
    agree in all settings which these rules mention are counted once."""
    counts = np.ones(len(plain), np.int64)
    for names in _joined_concessions(instance):
        stack = None if instance.stack is None else instance.stack.about_any(frozenset(names))
        mentioned = {*CONCESSION_RULES_ON, *(() if stack is None else (name for row in stack.rows for name in row.settings))}
        rows, row_of = distinct(*(getattr(plain, name) for name in sorted(mentioned)))
        counts *= _combinations_of(instance, rows_of(plain, rows), names, stack)[row_of]
    return counts


def _combinations_of(instance: Instance, plain: Plans, names: tuple[str, ...], stack: Stack | None) -> Ints:
    """Number of combinations of these concessions that satisfy the rules about them, of each plan."""
    model, count = cast("Transformer", instance.workload), np.zeros(len(plain), np.int64)
    coming = [comings(instance, plain, name) for name in names]
    for places in product(*(range(came.shape[1]) for came, _ in coming)):
        chosen = {name: came[:, option] for name, (came, _), option in zip(names, coming, places, strict=True)}
        own = [first[:, option] for (_, first), option in zip(coming, places, strict=True)]
        plans = replace(plain, **chosen)
        about = (*concession_rules(model, plans), *(() if stack is None else stack.rules(model, plans, instance.machine)))
        count += np.logical_and.reduce([*own, *(column for _, column in about)])
    return count


def _joined_concessions(instance: Instance) -> list[tuple[str, ...]]:
    """Groups of concessions such that no rule mentions two groups. Only stack rules mention two concessions."""
    groups = [{name} for name in concessions_of(instance)]
    for row in () if instance.stack is None else instance.stack.rows:
        touched = [group for group in groups if group & row.settings]
        if len(touched) > 1:
            groups = [group for group in groups if group not in touched] + [set[str]().union(*touched)]
    return [tuple(name for name in CONCESSIONS if name in group) for group in groups]


# How many combinations of plan choices are no plans of the question, and which rule each of them breaks.

_LOOKED_AT = 1 << 20
"""Largest number of combinations that are counted exactly; beyond it, a sample of this size is drawn."""
_AT_ONCE = 1 << 16
_L2, _STACKS, _LINKS = "L2", "stacks of memory", "links"
_MEMORIES = {"l2": _L2, "l1": "L1 memories", "registers": "registers"}
_LISTED_RULES = 2
"""Number of rules listed if no plan satisfies all."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Statistics of the combinations whose degrees multiply to the number of devices."""

    combinations: int
    plans: int
    same: int
    """Combinations equivalent to another one."""
    unlike: int
    """Plans excluded by an `only` setting."""
    broken: tuple[tuple[str, int], ...]
    """Number of combinations that violate each rule, in descending order; one may violate several."""
    exact: bool
    """Whether all were counted; otherwise these are estimates from a sample."""


@remembered
def left_out(instance: Instance) -> LeftOut | None:
    """The counts, reported by every intermediate answer; None for plans of other workloads than transformers."""
    if not isinstance(instance.workload, Transformer):
        return None
    if not instance.only:
        return _with_fixed(instance, _count_left_out(instance))
    strictly, every = _count_left_out(instance), _count_left_out(replace(instance, only=()))
    return _with_fixed(instance, replace(every, plans=strictly.plans, unlike=every.plans - strictly.plans))


def _with_fixed(instance: Instance, out: LeftOut) -> LeftOut:
    """The counts; a stack rule that all combinations violate is followed by its settings' options, if each has a single one."""
    if instance.stack is None:
        return out
    about = {f"{instance.stack.name}: {row.sentence}": row.settings for row in instance.stack.rows}
    options = dict(instance.plan_options)

    def with_fixed_settings(sentence: str, count: int) -> str:
        names = sorted(about.get(sentence, ()))
        given = [options.get(name, ()) for name in names]
        if count < out.combinations or not names or any(len(options) != 1 for options in given):
            return sentence
        return f"{sentence} ({', '.join(f'{name}: {str(options[0]).lower()}' for name, options in zip(names, given, strict=True))})"

    return replace(out, broken=tuple((with_fixed_settings(sentence, count), count) for sentence, count in out.broken))


def why_no_plan(instance: Instance) -> str | None:
    """Explanation why no plan exists on these devices under any limits: the rules violated by most combinations.
    None if one exists, if the counts are estimates, or if the workload is no transformer.
    """
    out = left_out(instance)
    if out is None or out.plans or not out.exact:
        return None
    if not out.combinations:
        return f"no tensor x context x pipeline x data is the {instance.cluster.devices} devices"
    return " and ".join(rule for rule, _ in out.broken[:_LISTED_RULES]) + ": no combination keeps that"


def why_no_chip(instance: Instance) -> str | None:
    """Resources that every chip of the question lacks; None if each is on some chip."""
    from crossopt.instances.codesign.boxes import corners, full_box, grid  # noqa: PLC0415 - few questions are without a chip

    root = take(corners(instance, grid(instance), full_box(grid(instance))).hardware, 0)
    figures = {"cores": root.throughput * root.bundles, _STACKS: root.dram.capacity * root.dram.bandwidth}
    figures |= {resource: getattr(root, level).capacity * getattr(root, level).bandwidth for level, resource in _MEMORIES.items()}
    figures |= {_LINKS: min(link.bandwidth for link in root.links)}
    absent = [resource for resource, figure in figures.items() if not figure > 0.0]
    if _L2 in absent and root.dram.capacity > 0.0:  # through which stacks would deliver
        absent.remove(_STACKS)
    missing = [f"no {resource}{_needed(instance, resource)}" for resource in absent]
    return f"every chip has {' and '.join(missing)}" if missing else None


def _needed(instance: Instance, resource: str) -> str:
    """What a part that every chip lacks would need, in words with a remedy; empty if nothing is asked of it.
    For memories this is what the cores need of them, for stacks and links their room and power.
    """
    [level] = [level for level, name in _MEMORIES.items() if name == resource] or [""]
    technology = instance.hardware.technology if isinstance(instance.hardware, FreeHardware) else None
    if resource == _STACKS and technology and technology.dram.on_dies:
        return " that lie on its dies, as many on every die, with power to run (fewer stacks, a larger die_area, or more hbm_power)"
    if resource == _STACKS and technology and technology.dram.stack_edge:
        each = ", as many beside every die," if _several_dies(instance) else ""
        remedy = f"fewer stacks or wires{', a multiple of the dies' if each else ''}, a larger die_area, or more hbm_power"
        return f" that lie along its edge{each} beside its links with power to run ({remedy})"
    if resource == _L2 and technology and (fed := technology.core.least_fed):
        return f" that gives products the operands of {fed:g} of the peak (open l2_area and l2_power, or fewer cores)"
    if resource == _LINKS and technology:
        return " with area, edge and power for a lane (open node_network_power or network_power, and the areas)"
    least = getattr(getattr(technology, level, None), "least_per_bundle", 0.0)
    return f" that hold {least / 1024:g} KiB for each bundle of cores (open {level}_area, or fewer cores)" if least else ""


def _several_dies(instance: Instance) -> bool:
    free = instance.hardware
    return isinstance(free, FreeHardware) and max(dict(free.options).get("dies", (free.dies,))) > 1


def last_with_plan(question: MultiScaleQuestion) -> int:
    """The last part with a plan, usable for diagnosis; the last part if none has one."""
    return next((index for index in reversed(range(len(question.parts))) if why_no_plan(question.parts[index]) is None), -1)


def _count_left_out(instance: Instance) -> LeftOut:
    every, sound = space.layouts_of(instance), space.sound_layouts(instance)
    others = space.combined(instance, every[:1]) if len(every) else 0
    counts = Counter[str]({sentence: others * count for sentence, count in _broken(space.of_layouts(instance), plain(every)).items()})
    total = len(sound) * others
    numbers = np.arange(total) if total <= _LOOKED_AT else np.sort(np.random.default_rng(0).integers(total, size=_LOOKED_AT))
    own, valid, seen = 0, 0, Counter[str]()
    for start in range(0, len(numbers), _AT_ONCE):
        plans = space.plans_numbered(instance, sound, numbers[start : start + _AT_ONCE])
        broken, valid_of_block = _broken_by(instance, plans)
        seen, own, valid = seen + broken, own + len(plans), valid + valid_of_block
    scale = total / max(len(numbers), 1)
    counts += Counter({sentence: round(count * scale) for sentence, count in seen.items()})
    same = total - round(own * scale)
    return LeftOut(len(every) * others, round(valid * scale), same, 0, tuple(counts.most_common()), total == len(numbers))


def _broken(instance: Instance, plans: Plans) -> Counter[str]:
    return _broken_by(instance, plans)[0]


def _broken_by(instance: Instance, plans: Plans) -> tuple[Counter[str], int]:
    """How many plans violate each rule, and how many none."""
    valid: Ints = np.ones(len(plans), bool)
    counts = Counter[str]()
    for sentence, column in space.plan_rules(instance, plans):
        valid &= column
        if broken := int(len(column) - column.sum()):
            counts[sentence] = broken
    return counts, int(valid.sum())


def broken_everywhere(instance: Instance) -> tuple[str, ...]:
    """Rules that no combination satisfies; or the statement that each can be satisfied, but not all at once."""
    never = tuple(_unlisted(instance)) or tuple(_never_kept(instance))
    if any("divides the global batch" in sentence for sentence in never) and (batches := _nearest_batches(instance)):
        remedy = f" (with a batch of {' or '.join(map(str, batches))} there are plans)"
        never = tuple(f"{sentence}{remedy if 'divides the global batch' in sentence else ''}" for sentence in never)
    return never or ("each rule of a plan holds for some combination of the choices, but no combination satisfies all of them",)


def _nearest_batches(instance: Instance) -> list[int]:
    """The nearest smaller and larger global batch with a plan, among multiples of the devices' divisors."""
    model, count = instance.workload, instance.cluster.devices
    if not isinstance(model, Transformer):
        return []
    given, found = model.global_batch, list[int]()
    steps = [step for step in range(1, count + 1) if count % step == 0]
    near = {multiple * step for step in steps for multiple in (given // step, given // step + 1)} - {0, given}
    for side in (sorted((batch for batch in near if batch < given), reverse=True), sorted(batch for batch in near if batch > given)):
        of_batch = (replace(instance, workload=replace(model, global_batch=batch)) for batch in side)
        found += [
            part.workload.global_batch for part in of_batch if isinstance(part.workload, Transformer) and _count_left_out(part).plans
        ][:1]
    return found


def _unlisted(instance: Instance) -> Iterator[str]:
    """`only` settings that no degrees can have as listed, with the rules violated there."""
    model, degrees = instance.workload, plain(space.layouts_of(instance))
    if not isinstance(model, Transformer) or not len(degrees):
        return
    for name in instance.only:
        meant = with_settings(degrees, space.MEANT.get(name, {}))
        if comings(instance, meant, name)[1].any():
            continue
        listed = [rules(model, with_settings(meant, {name: number}), instance.cluster.devices) for number in codes_of(instance, name)]
        possible = {sentence for sentence, column in rules(model, meant, instance.cluster.devices) if column.any()}
        broken = [rows[0][0] for rows in zip(*listed, strict=True) if not any(column.any() for _, column in rows)]
        why = "; ".join(sentence for sentence in broken if sentence in possible)
        options = ", ".join(str(value) for value in dict(instance.plan_options)[name])
        yield f"no degrees have {name}: {options} as `only` asks{f' ({why})' if why else ''}"


def _never_kept(instance: Instance) -> list[str]:
    count = instance.cluster.devices
    if not isinstance(instance.workload, Transformer):
        broken = [broken_kernel_rules(instance.workload, plan, count) for plan in space.kernel_plans(instance)]
        return [sentence for sentence in (broken[0] if broken else ()) if all(sentence in others for others in broken)]
    satisfiable: dict[str, bool] = {}
    for plans in _combination_blocks(instance, space.layouts_of(instance)):
        for sentence, column in space.plan_rules(instance, plans):
            satisfiable[sentence] = satisfiable.get(sentence, False) or bool(column.any())
    return [sentence for sentence, can_hold in satisfiable.items() if not can_hold]


def _combination_blocks(instance: Instance, layouts: Ints) -> Iterator[Plans]:
    """All combinations of these layouts with all other settings."""
    total = space.combined(instance, layouts)
    for start in range(0, total, _AT_ONCE):
        yield space.plans_numbered(instance, layouts, np.arange(start, min(start + _AT_ONCE, total)))
