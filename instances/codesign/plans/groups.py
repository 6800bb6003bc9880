"""Plans in families: those that differ in nothing but their concessions, which are bounded together.

A concession (`crossflow.plan.CONCESSIONS`) costs time and energy for memory, or for nothing at all. So the plan with the least of each
bounds a whole family on every device, whether or not it is a plan of the question, and whether or not it fits. Members come down to it
setting by setting, and no step may gain: first to what all of them offload, then to the most overlap, last to the least recomputation.
The last step is none where all of them offload activations (`crossflow.plan.costs_only`); there each recomputation has its own families.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import cast

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.crossflow.plan import CONCESSIONS, Plan, Plans, costs_only, rows_of
from crossopt.crossflow.plan_rules import concession_rules
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.settings import codes_of, comings, with_settings
from crossopt.instances.codesign.space import AnyPlans, keeps_rules, plan_blocks


@dataclass(frozen=True, slots=True)
class Families:
    """A block of families."""

    heads: AnyPlans
    """No member is faster, on any device; concessions apart, every setting is that of the members."""
    counts: Whole
    """Members of each."""

    def __len__(self) -> int:
        return len(self.heads)


def family_blocks(instance: Instance) -> Iterator[Families]:
    """All plans, family by family; a plan of another workload than a transformer is a family of its own."""
    for plain in plan_blocks(_without_concessions(instance)):
        if isinstance(plain, Plans):
            counts = _members(instance, plain)
            rows = np.flatnonzero(counts)
            least = {name: CONCESSIONS[name](codes_of(instance, name)) for name in concessions_of(instance)}
            yield Families(with_settings(rows_of(plain, rows), least), counts[rows])
        else:
            yield Families(plain, np.ones(len(plain), np.int64))


def members(instance: Instance, heads: AnyPlans) -> AnyPlans:
    """All plans of these families."""
    if not isinstance(heads, Plans):
        return heads
    names = concessions_of(instance)
    ways = list(product(*(codes_of(instance, name) for name in names)))
    every = rows_of(heads, np.repeat(np.arange(len(heads)), len(ways)))
    plans = every
    own = np.ones(len(every), bool)
    for place, name in enumerate(names):
        came, first = comings(instance, heads, name)
        which = np.array([codes_of(instance, name).index(way[place]) for way in ways], np.int64)
        plans, own = replace(plans, **{name: came[:, which].ravel()}), own & first[:, which].ravel()
    return rows_of(plans, np.flatnonzero(own & keeps_rules(instance, plans)))


def concessions_of(instance: Instance) -> tuple[str, ...]:
    """The settings in which the members of a family differ: concessions of which the least bounds every plan of the question."""
    moved_by_all = CONCESSIONS["offload"](codes_of(instance, "offload"))
    return tuple(name for name in CONCESSIONS if costs_only(name, moved_by_all))


def _without_concessions(instance: Instance) -> Instance:
    """The question with every concession at its default, which no rule forbids: what its stack says of them is left to the members."""
    default = Plan()
    names = concessions_of(instance) if isinstance(instance.workload, Transformer) else ()
    options = tuple((name, (getattr(default, name),) if name in names else values) for name, values in instance.plan_options)
    stack = None if instance.stack is None else instance.stack.apart_from(frozenset(names))
    return replace(instance, plan_options=options, stack=stack)


def _members(instance: Instance, plain: Plans) -> Whole:
    """How many combinations of concessions keep the rules that speak of them, since plain plans keep the others. The counts of those that
    no rule joins multiply."""
    model, counts = cast("Transformer", instance.workload), np.ones(len(plain), np.int64)
    for names in _joined_concessions(instance):
        stack = None if instance.stack is None else instance.stack.about_any(frozenset(names))
        coming = [comings(instance, plain, name) for name in names]
        kept = np.zeros(len(plain), np.int64)
        for places in product(*(range(came.shape[1]) for came, _ in coming)):
            chosen = {name: came[:, place] for name, (came, _), place in zip(names, coming, places, strict=True)}
            own = [first[:, place] for (_, first), place in zip(coming, places, strict=True)]
            plans = replace(plain, **chosen)
            about = (*concession_rules(model, plans), *(() if stack is None else stack.rules(model, plans, instance.machine)))
            kept += np.logical_and.reduce([*own, *(column for _, column in about)])
        counts *= kept
    return counts


def _joined_concessions(instance: Instance) -> list[tuple[str, ...]]:
    """The concessions in groups, so that no rule speaks of two groups. Only rules of stacks speak of two concessions."""
    groups = [{name} for name in concessions_of(instance)]
    for row in () if instance.stack is None else instance.stack.rows:
        met = [group for group in groups if group & row.settings]
        if len(met) > 1:
            groups = [group for group in groups if group not in met] + [set[str]().union(*met)]
    return [tuple(name for name in CONCESSIONS if name in group) for group in groups]
