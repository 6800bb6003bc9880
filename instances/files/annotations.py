"""What annotations say of a field: its type, unit and bounds, the keys of a dataclass; read by `schema` and `json_schema`."""

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from crossopt.crossflow.fields import As, Bounds, Choice, Derived, Doc, Given, In, Key, Later, Needed, NonZero, Prose, Unit, Unset, Whole
from crossopt.instances.files.ranges import MOST_VALUES

T = TypeVar("T")
Kind: TypeAlias = Any  # a type as annotations write it
Marks: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """A key that a mapping may have, the argument it becomes, and its type."""

    name: str
    key: str
    kind: Kind
    marks: Marks
    required: bool
    nullable: bool = False
    """Whether nothing may stand there, which is the default, though the type has no None."""

    def mark(self, cls: type[T]) -> T | None:
        """What the field says of itself, outside of a union."""
        return mark_of(unwrap(self.kind, self.marks)[1], cls)

    @property
    def text(self) -> str:
        """What the field means."""
        doc = self.mark(Doc)
        return doc.text if doc else ""

    @property
    def unit(self) -> str:
        """In which unit files state a plain number."""
        counted = self.mark(In)
        return counted.unit if counted else ""


def slots_of(cls: Kind) -> list[Slot]:
    """The keys of a dataclass; a field named after a Python word, such as `from_`, has the key without the underscore."""
    return _slots_of(cls)


@cache
def _slots_of(cls: Kind) -> list[Slot]:
    hints = get_type_hints(cls, include_extras=True)
    slots = (_slot(field, hints[field.name]) for field in fields(cls) if field.init)
    return [slot for slot in slots if slot is not None]


@cache
def is_partial(cls: Kind) -> bool:
    """Whether something of a record, or of a record inside it, may be left to be derived; one inside that is `Given` is its own."""
    derived = any(slot.mark(Derived) is not None for slot in slots_of(cls))
    return derived or any(is_partial(inner) for slot in slots_of(cls) for inner in _records_in(slot.kind) if inner is not cls)


def _records_in(kind: Kind) -> Iterator[Kind]:
    """The dataclasses among the members of a type."""
    kind = kind.__origin__ if origin_of(kind) is Annotated else kind
    for member in get_args(kind) if origin_of(kind) in (Union, types.UnionType) else (kind,):
        if is_dataclass(member):
            yield member


@cache
def unknown_of(cls: Kind) -> Mapping[str, object]:
    """Values of the fields that become known later."""
    hints = get_type_hints(cls, include_extras=True)
    marks = ((field.name, mark_of(unwrap(hints[field.name], ())[1], Later)) for field in fields(cls))
    return {name: later.value for name, later in marks if later is not None}


def _slot(field: Field[Any], hint: Kind) -> Slot | None:
    """The key of a field; None where no file states it."""
    marks = unwrap(hint, ())[1]
    key = mark_of(marks, Key)
    if (key is not None and key.name is None) or mark_of(marks, Later) is not None:
        return None
    plain = field.default is MISSING and field.default_factory is MISSING
    name = field.name.rstrip("_") if key is None or key.name is None else key.name
    other = mark_of(marks, As)
    inherited = () if other is None else _meaning_of(cast("Kind", other.record), field.name)
    derived, unset, needed = (mark_of(marks, mark) is not None for mark in (Derived, Unset, Needed))
    return Slot(field.name, name, hint, inherited, (plain or needed) and not derived, derived or unset)


@cache
def _meaning_of(cls: Kind, name: str) -> Marks:
    """What the field of another record says of its values."""
    marks = (mark for _, marks in options_of(get_type_hints(cls, include_extras=True)[name], ()) for mark in marks)
    return tuple(mark for mark in marks if isinstance(mark, Bounds | Doc | NonZero | Prose | Unit | Whole))


def figures_of(record: Any) -> Iterator[tuple[Slot, float]]:  # noqa: ANN401 - any dataclass
    """The figures that a record states, by their keys: what is measured, and not counted."""
    defaults = {field.name: field.default for field in fields(record)}
    values = ((slot, getattr(record, slot.name)) for slot in slots_of(type(record)))
    figures = ((slot, value) for slot, value in values if isinstance(value, float))
    return ((slot, value) for slot, value in figures if slot.mark(Unset) is None or value != defaults[slot.name])


def unwrap(kind: Kind, marks: Marks) -> tuple[Kind, Marks]:
    """The bare type and all that is said of it, the innermost first."""
    if origin_of(kind) is Annotated:
        return kind.__origin__, kind.__metadata__ + marks
    return (get_args(kind)[0] if origin_of(kind) is Given else kind), marks


@cache
def origin_of(kind: Kind) -> object:
    """`tuple` of `tuple[int, ...]`, and so on; None for a plain type."""
    return get_origin(kind)


def options_of(kind: Kind, marks: Marks) -> list[tuple[Kind, Marks]]:
    """The members of a union that files may state, bare, without arrays; a type that is no union is its only member."""
    kind, marks = unwrap(kind, marks)
    members = get_args(kind) if origin_of(kind) in (Union, types.UnionType) else (kind,)
    stated = [member for member in members if getattr(origin_of(member), "__name__", "") != "ndarray"]
    whole = mark_of(marks, Whole) is not None
    return [unwrap(int if whole and member is float else member, () if member is type(None) else marks) for member in stated]


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
