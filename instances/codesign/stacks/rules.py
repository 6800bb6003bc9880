"""Conclusions from the stacks' tables: the options that a stack supports, and the nearest supported plan."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.crossflow.plan import END_STAGES, PLAN_FIELDS, Plan, Plans, code, plan_at, rows_of, rules, table
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.stacks import launched
from crossopt.instances.codesign.stacks.table import NAMED_OPTIONS, Machine, Row, Stack

STACKS: Final[dict[str, Stack]] = {
    stack.name: stack for stack in (launched.STACK, launched.TORCHTITAN_STACK, launched.DEEPSPEED_STACK, launched.FSDP_STACK)
}
_BITS: Final = ("recompute", "overlap", "offload")


def broken_rows(stack: Stack, model: Transformer, plan: Plan, machine: Machine) -> tuple[Row, ...]:
    """Rows of the stack's table that a plan violates."""
    plans = table([plan])
    return tuple(row for row in stack.rows if not row.holds(model, plans, machine)[0])


def opened_by(stack: Stack, setting: str, options: Any) -> Any:  # noqa: ANN401 - words, numbers, or `divisors`
    """Options of an open setting: those that the stack supports under some condition."""
    if setting in NAMED_OPTIONS:
        return launchable(stack, setting, tuple(options))
    if setting == "recompute_layers":
        return options if launchable(stack, "recompute", ("full-1",)) else (0,)
    fixed = [row.then.values for row in stack.rows if not row.when and row.then.quantity == setting]
    return fixed[0] if fixed else options


def launchable(stack: Stack, setting: str, options: tuple[Any, ...]) -> tuple[Any, ...]:
    """Options of a setting that the stack supports under some condition; no plan has the others."""
    plain = [row for row in stack.rows if not row.when and row.settings == {setting}]
    plans = table([replace(Plan(), **{setting: option}) for option in options])
    supported = np.ones(len(plans), bool)
    for row in plain:
        supported &= row.holds(_ANY, plans, Machine())
    return tuple(option for option, keeps in zip(options, supported, strict=True) if keeps)


_ANY: Final = Transformer("any", layers=1, hidden=1, heads=1, ffn=1, vocabulary=1, sequence=1, global_batch=1)
"""A placeholder model for rows that do not depend on it."""


def nearest(stack: Stack, model: Transformer, plan: Plan, machine: Machine) -> tuple[Plan, ...]:
    """The nearest plans that the stack supports: same degrees, as few changed settings as possible; empty if there is none. Placements are
    as near to each other, so that there may be several."""
    own = {name: tuple(dict.fromkeys((*options, getattr(plan, name)))) for name, options in NAMED_OPTIONS.items()}
    ways = {name: launchable(stack, name, options) for name, options in own.items()} | {
        "interleave": (plan.interleave, 1),
        "shard": (plan.shard, 0),
    }
    ways["expert_tensor"] = tuple(dict.fromkeys((plan.expert_tensor, *ways["expert_tensor"])))
    ways |= {name: tuple(dict.fromkeys((getattr(plan, name), 0))) for name in END_STAGES}
    every = _in_all_ways(plan, ways)
    supported = np.ones(len(every), bool)
    for _, column in (*rules(model, every, plan.devices), *stack.rules(model, every, machine)):
        supported &= column
    found = rows_of(every, np.flatnonzero(supported))
    if not len(found):
        return ()
    changed, distance = _differences(found, plan)
    first = int(np.lexsort((distance, changed))[0])
    equivalent = changed == changed[first]
    for name in PLAN_FIELDS:
        equivalent &= (getattr(found, name) == getattr(found, name)[first]) | (name == "placement")
    return tuple(plan_at(found, int(row)) for row in np.flatnonzero(equivalent))


def _in_all_ways(plan: Plan, ways: dict[str, tuple[Any, ...]]) -> Plans:
    """The plan with every combination of changes."""
    columns = [np.array([code(name, value) for value in values], np.int64) for name, values in ways.items()]
    combined = [column.ravel() for column in np.meshgrid(*columns, indexing="ij")]
    every = {name: np.full(len(combined[0]), code(name, getattr(plan, name)), np.int64) for name in PLAN_FIELDS}
    return Plans(**{**every, **dict(zip(ways, combined, strict=True))})


def _differences(plans: Plans, plan: Plan) -> tuple[Ints, Ints]:
    """Distance of two plans: number of different settings, then distance of their values."""
    changed, distance = np.zeros(len(plans), np.int64), np.zeros(len(plans), np.int64)
    for name in PLAN_FIELDS:
        column, own = getattr(plans, name), code(name, getattr(plan, name))
        differs: Mask = column != own
        changed += differs
        distance += _bits(column ^ own) if name in _BITS else 0 if name == "placement" else np.abs(column - own)
    return changed, distance


def _bits(numbers: Ints) -> Ints:
    """Number of set bits."""
    top = int(numbers.max(initial=0)).bit_length()
    return sum(((numbers >> bit) & 1 for bit in range(top)), np.zeros(len(numbers), np.int64))
