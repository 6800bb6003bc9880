"""The stacks' tables, read from their files, and conclusions: the options that a stack supports, and the nearest supported plan."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
import yaml

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.crossflow.plan import END_STAGES, PLAN_FIELDS, Plan, Plans, code, plan_at, rows_of, rules, table
from crossopt.crossflow.recomputation import WHOLE_PARTS, sets_of
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.section import StackName
from crossopt.instances.codesign.stack_table import NAMED_OPTIONS, Edition, Fact, Machine, Row, Source, Stack


def _read(name: str) -> Stack:
    """The table in the file of this name. A source is a list of repository, path and version, or the name of such a list."""
    text = Path(__file__).with_name("stacks").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    table = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - the quicker one is as safe

    def source(written: str | list[str]) -> Source:
        return Source(*(table["sources"][written] if isinstance(written, str) else written))

    def facts(written: Mapping[str, str | list[object]]) -> tuple[Fact, ...]:
        return tuple(_fact(quantity, condition) for quantity, condition in written.items())

    rows = tuple(Row(row["rule"], facts(row["then"])[0], source(row["source"]), facts(row.get("when", {}))) for row in table["rows"])
    editions = tuple(Edition(**edition) for edition in table["editions"])
    also = tuple((item["text"], source(item["source"])) for item in table.get("also", ()))
    own = table["facts"] | {"decided": tuple(table["facts"].get("decided", ()))}
    return Stack(name, table["about"], rows, editions, also, **own)


def _fact(quantity: str, condition: str | list[object]) -> Fact:
    """A condition on a quantity: `above N`, or a list of values, among them `sets of` modules of recomputation."""
    if isinstance(condition, str):
        return Fact(quantity, above=int(condition.removeprefix("above ")))
    return Fact(quantity, tuple(dict.fromkeys(value for item in condition for value in _values(item))))


def _values(item: object) -> Sequence[object]:
    """A value; of `sets of` modules every set of these and of whole modules, which any network may have, and full layers."""
    if isinstance(item, str) and item.startswith("sets of "):
        return (*dict.fromkeys(sets_of((*item.removeprefix("sets of ").split(", "), *WHOLE_PARTS))), "full")
    return (item,)


STACKS: Final[dict[str, Stack]] = {name: _read(name) for name in get_args(StackName)}
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
