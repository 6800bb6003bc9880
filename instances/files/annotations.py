"""What annotations say of a field: its type, unit and bounds, the keys of a dataclass; read by `schema` and `json_schema`."""

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from crossopt.instances.files.ranges import MOST_VALUES
from crossopt.instances.files.units import dimension_named

T = TypeVar("T")
Kind: TypeAlias = Any  # a type as annotations write it
Marks: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """The number is a quantity of this dimension of `instances.files.units` and is read into SI."""

    dimension: str

    def __post_init__(self) -> None:
        dimension_named(self.dimension)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest number allowed, in SI; None where there is no such limit."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The tuple holds options, read without duplicates; numbers are sorted and may also be given as a range.

    A range is a mapping of `from`, `to` and one of `step`, `count` (evenly spread, both ends included) and `factor`. With `step`
    and `factor` the last value is the last one not above `to`. Whole numbers need none of the three: their step is 1.
    """


@dataclass(frozen=True, slots=True)
class Doc:
    """What the field means, for the JSON schema."""

    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """The text may run over several lines; others are names, which stand in lines of texts and in names of files."""


@dataclass(frozen=True, slots=True)
class Short:
    """A single value in place of the mapping is that of this key."""

    key: str


@dataclass(frozen=True, slots=True)
class Slot:
    """A key that a mapping may have, the argument it becomes, and its type."""

    name: str
    key: str
    kind: Kind
    marks: Marks
    required: bool


def slots_of(cls: Kind) -> list[Slot]:
    """The keys of a dataclass; a field named after a Python word, such as `from_`, has the key without the underscore."""
    return _slots_of(cls)


@cache
def _slots_of(cls: Kind) -> list[Slot]:
    hints = get_type_hints(cls, include_extras=True)
    return [
        Slot(field.name, field.name.rstrip("_"), hints[field.name], (), field.default is MISSING and field.default_factory is MISSING)
        for field in fields(cls)
        if field.init
    ]


def unwrap(kind: Kind, marks: Marks) -> tuple[Kind, Marks]:
    """The bare type and all that is said of it, the innermost first."""
    if origin_of(kind) is Annotated:
        return kind.__origin__, kind.__metadata__ + marks
    return kind, marks


@cache
def origin_of(kind: Kind) -> object:
    """`tuple` of `tuple[int, ...]`, and so on; None for a plain type."""
    return get_origin(kind)


def options_of(kind: Kind, marks: Marks) -> list[tuple[Kind, Marks]]:
    """The members of a union, bare; a type that is no union is its only member."""
    kind, marks = unwrap(kind, marks)
    members = get_args(kind) if origin_of(kind) in (Union, types.UnionType) else (kind,)
    return [unwrap(member, () if member is type(None) else marks) for member in members]


def mark_of(marks: Marks, cls: type[T]) -> T | None:
    return next((mark for mark in marks if isinstance(mark, cls)), None)


def words_of(kind: Kind) -> Mapping[str, object]:
    """The words of a Literal or Enum and what each stands for; none for other types."""
    if origin_of(kind) is Literal:
        return {str(value): value for value in get_args(kind)}
    return {str(member.value): member for member in kind} if isinstance(kind, type) and issubclass(kind, Enum) else {}


def takes_range(kind: Kind, marks: Marks) -> bool:
    """Whether a tuple may be given as a range."""
    return mark_of(marks, Choice) is not None and unwrap(get_args(kind)[0], ())[0] in (int, float)


def range_slots(number: Kind, marks: Marks) -> list[Slot]:
    """The keys of a range; floats stay exact until the options are known, so that rounding errors cannot add up."""
    exact = int if number is int else Fraction
    unit = tuple(mark for mark in marks if isinstance(mark, Unit))
    return [
        Slot("start", "from", exact, marks, required=True),
        Slot("end", "to", exact, marks, required=True),
        Slot("step", "step", exact, unit, required=False),
        Slot("count", "count", int, (Bounds(1, MOST_VALUES),), required=False),
        Slot("factor", "factor", Fraction, (), required=False),
    ]


@lru_cache(maxsize=16)
def places_of(cls: Kind) -> Mapping[str, tuple[str, ...]]:
    """Where a key of any section below a dataclass stands, as paths from its top, the shortest first."""
    found: dict[str, list[str]] = {}
    for path in sorted(_paths(cls, (), ()), key=len):
        found.setdefault(path[-1], []).append(".".join(path))
    return {key: tuple(paths) for key, paths in found.items()}


def _paths(cls: Kind, above: tuple[str, ...], within: tuple[Kind, ...]) -> Iterator[tuple[str, ...]]:
    """The path of every key, but for those inside lists and mappings of names."""
    for slot in slots_of(cls):
        yield (*above, slot.key)
        for kind, _ in options_of(slot.kind, slot.marks):
            if is_dataclass(kind) and kind not in within:
                yield from _paths(kind, (*above, slot.key), (*within, cls))
