"""A tree of `Node`s to frozen dataclasses, directed by their annotations: one table of types serves reading and the JSON schema.

A field may be a `str`, `int`, `float`, `bool`, `Literal`, `Enum`, dataclass, `tuple[T, ...]`, `dict[str, T]`, or a union of those that
the form of the YAML tells apart (`str | Cluster`, `float | None`). `Annotated` adds `Unit`, `Bounds`, `Choice` and `Doc`. Elements
of a tuple or dict inherit what is said of the whole.
"""

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from crossopt.instances.errors import Fault
from crossopt.instances.files.document import Entry, Node, Scalar, below, fault_at, fault_at_key
from crossopt.instances.files.ranges import MOST_VALUES, WAYS, expanded
from crossopt.instances.files.units import (
    as_float,
    dimension_named,
    exact_quantity,
    format_quantity,
    nearest,
    parse_number,
    pattern_of,
    quoted,
)

__all__ = ["Bounds", "Choice", "Doc", "Unit", "fault_at", "fault_at_key", "json_schema", "read_as"]

T = TypeVar("T")
Kind: TypeAlias = Any  # a type as annotations write it
Marks: TypeAlias = tuple[object, ...]

_PHRASES: Final[Mapping[Kind, str]] = {
    str: "a text", int: "a whole number", float: "a number", Fraction: "a number", bool: "true or false", type(None): ""
}  # fmt: skip
_JSON_TYPES: Final[Mapping[Kind, str]] = {
    str: "string", int: "integer", float: "number", Fraction: "number", bool: "boolean", type(None): "null"
}  # fmt: skip
LARGEST_WHOLE: Final = 2**63 - 1  # what numpy and the solvers can hold


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


def read_as(cls: type[T], node: Node, faults: list[Fault]) -> T | None:
    """The dataclass that `node` describes, or None after adding every fault found to `faults`."""
    before = len(faults)
    value = _read(cls, (), node, faults)
    return cast("T", value) if len(faults) == before else None


def json_schema(cls: type[object]) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of the files that `read_as` accepts for this dataclass, for editors; the same at every call."""
    classes: dict[type[object], dict[str, Any]] = {}
    root = _schema(cls, (), classes)
    named = {kind.__name__: schema for kind, schema in classes.items()}
    if len(named) < len(classes):
        raise TypeError(f"two dataclasses below {cls.__name__} have the same name (rename one)")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": dict(sorted(named.items()))}


@dataclass(frozen=True, slots=True)
class _Slot:
    """A key that a mapping may have, the argument it becomes, and its type."""

    name: str
    key: str
    kind: Kind
    marks: Marks
    required: bool


def _slots(cls: Kind) -> list[_Slot]:
    """The keys of a dataclass; a field named after a Python word, such as `from_`, has the key without the underscore."""
    hints = get_type_hints(cls, include_extras=True)
    return [
        _Slot(field.name, field.name.rstrip("_"), hints[field.name], (), field.default is MISSING and field.default_factory is MISSING)
        for field in fields(cls)
        if field.init
    ]


def _unwrapped(kind: Kind, marks: Marks) -> tuple[Kind, Marks]:
    """The bare type and all that is said of it, the innermost first."""
    if _origin(kind) is Annotated:
        return kind.__origin__, kind.__metadata__ + marks
    return kind, marks


def _origin(kind: Kind) -> object:
    """`tuple` of `tuple[int, ...]`, and so on; None for a plain type."""
    return get_origin(kind)


def _options(kind: Kind, marks: Marks) -> list[tuple[Kind, Marks]]:
    """The members of a union, bare; a type that is no union is its only member."""
    kind, marks = _unwrapped(kind, marks)
    members = get_args(kind) if _origin(kind) in (Union, types.UnionType) else (kind,)
    return [_unwrapped(member, () if member is type(None) else marks) for member in members]


def _mark(marks: Marks, cls: type[T]) -> T | None:
    return next((mark for mark in marks if isinstance(mark, cls)), None)


def _words(kind: Kind) -> Mapping[str, object]:
    """The words of a Literal or Enum and what each stands for; none for other types."""
    if _origin(kind) is Literal:
        return {str(value): value for value in get_args(kind)}
    return {str(member.value): member for member in kind} if isinstance(kind, type) and issubclass(kind, Enum) else {}


def _takes(kind: Kind, marks: Marks, node: Node) -> bool:
    """Whether the form of the node (mapping, list or scalar) is one in which this type is written."""
    origin = _origin(kind)
    match node.value:
        case dict():
            return is_dataclass(kind) or origin is dict or (origin is tuple and _ranges(kind, marks))
        case tuple():
            return origin is tuple
        case Scalar():
            if origin is tuple:
                return any(_takes(*option, node) for option in _options(get_args(kind)[0], ()))
            return not is_dataclass(kind) and origin is not dict and kind is not type(None)


def _ranges(kind: Kind, marks: Marks) -> bool:
    """Whether a tuple may be given as a range."""
    return _mark(marks, Choice) is not None and _unwrapped(get_args(kind)[0], ())[0] in (int, float)


def _entries(node: Node) -> dict[str, Entry]:
    return node.value if isinstance(node.value, dict) else {}


def _wanted(kind: Kind, marks: Marks) -> str:
    """That a value of this type is needed, with an example or the words to choose from."""
    texts = [_wanted_one(*option) for option in _options(kind, marks)]
    hints = [hint for _, hint in texts if hint]
    return " or ".join(text for text, _ in texts if text) + " is needed" + (f" ({hints[0]})" if hints else "")


def _wanted_one(kind: Kind, marks: Marks) -> tuple[str, str]:
    unit, origin = _mark(marks, Unit), _origin(kind)
    if origin is tuple:
        text, hint = _wanted_one(*_unwrapped(get_args(kind)[0], marks))
        return f"{text}, a list or a range" if _ranges(kind, marks) else f"{text} or a list", hint
    if words := _words(kind):
        return "a word", f"one of {', '.join(words)}"
    if unit:
        dimension = dimension_named(unit.dimension)
        return dimension.phrase, f"for example '{dimension.example}'"
    return _PHRASES.get(kind, "a mapping"), ""


def _read(kind: Kind, marks: Marks, node: Node, faults: list[Fault]) -> object:
    """The value that `node` gives; after a fault, whether raised here as a ValueError or added below, it means nothing."""
    try:
        if isinstance(node.value, Scalar) and node.value.empty:
            return _nothing(kind, marks)
        return _read_one(*_meant(kind, marks, node), node, faults)
    except ValueError as error:
        faults.append(Fault(node.line, node.column, node.path, str(error)))
        return None


def _nothing(kind: Kind, marks: Marks) -> object:
    if all(option is not type(None) for option, _ in _options(kind, marks)):
        raise ValueError(f"there is no value, {_wanted(kind, marks)}")
    return None


def _meant(kind: Kind, marks: Marks, node: Node) -> tuple[Kind, Marks]:
    """The member of a union that the form of the node means."""
    fitting = [option for option in _options(kind, marks) if _takes(*option, node)]
    if not fitting:
        form = "mapping" if isinstance(node.value, dict) else "list" if isinstance(node.value, tuple) else "single value"
        raise ValueError(f"this is a {form}, {_wanted(kind, marks)}")
    return max(fitting, key=lambda option: _affinity(option[0], node))


def _affinity(kind: Kind, node: Node) -> int:
    """Which of several members a scalar means: the one with its very word, else with a word like it, else one without words."""
    words = _words(kind)
    if not words or not isinstance(node.value, Scalar):
        return 1
    return 3 if node.value.text in words else 2 if nearest(node.value.text, words) else 0


def _read_one(kind: Kind, marks: Marks, node: Node, faults: list[Fault]) -> object:
    match node.value:
        case dict():
            return _read_mapping(kind, marks, node, faults)
        case tuple() as nodes:
            return _read_items(kind, marks, nodes, faults)
        case Scalar() as scalar:
            return _read_items(kind, marks, (node,), faults) if _origin(kind) is tuple else _value(kind, marks, scalar)


def _read_mapping(kind: Kind, marks: Marks, node: Node, faults: list[Fault]) -> object:
    if is_dataclass(kind):
        values = _read_slots(_slots(kind), node, faults)
        return None if values is None else cast("Any", kind)(**values)  # its __post_init__ may raise a ValueError of its own
    if _origin(kind) is tuple:
        return _read_range(kind, marks, node, faults)
    return {key: _read(get_args(kind)[1], marks, entry.node, faults) for key, entry in _entries(node).items()}


def _read_slots(slots: Sequence[_Slot], node: Node, faults: list[Fault]) -> dict[str, Any] | None:
    """The arguments that a mapping gives; None after a fault. A key written wrongly is not also reported as missing."""
    entries = _entries(node)
    before, known, meant = len(faults), [slot.key for slot in slots], set[str]()
    for key, entry in entries.items():
        if key not in known:
            guess = nearest(key, known)[:1]
            meant.update(guess)
            remedy = f"did you mean '{guess[0]}'?" if guess else f"the known keys are {', '.join(known)}"
            faults.append(Fault(entry.line, entry.column, entry.node.path, f"unknown key ({remedy})"))
    for slot in slots:
        if slot.required and slot.key not in entries and slot.key not in meant:
            message = f"this key is missing, {_wanted(slot.kind, slot.marks)}"
            faults.append(Fault(node.line, node.column, below(node.path, slot.key), message))
    given = [slot for slot in slots if slot.key in entries]
    values = {slot.name: _read(slot.kind, slot.marks, entries[slot.key].node, faults) for slot in given}
    return values if len(faults) == before else None


def _read_items(kind: Kind, marks: Marks, nodes: Sequence[Node], faults: list[Fault]) -> tuple[Any, ...]:
    before = len(faults)
    values = [_read(get_args(kind)[0], marks, node, faults) for node in nodes]
    if len(faults) > before or not _mark(marks, Choice):
        return tuple(values)
    if not values:
        raise ValueError("an empty list leaves nothing to choose (give at least one value)")
    return _distinct(values)


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values without duplicates, numbers in rising order."""
    distinct = dict.fromkeys(values)
    return tuple(sorted(distinct) if all(isinstance(value, int | float) for value in distinct) else distinct)


def _value(kind: Kind, marks: Marks, scalar: Scalar) -> object:
    """The value of a scalar; a ValueError with a sentence for the user where it is none of this type."""
    if words := _words(kind):
        return _word(words, scalar.text)
    if kind is str:
        return scalar.text
    if scalar.quoted and not _mark(marks, Unit):
        raise ValueError(f"{quoted(scalar.text)} is in quotes, {_wanted(kind, marks)} (remove the quotes)")
    if kind is bool:
        return _word({"true": True, "false": False}, scalar.text)
    if kind in (int, float, Fraction):
        return _number(kind, marks, scalar.text)
    raise TypeError(f"fields of type {kind} cannot be read (see the module's list of types)")


def _word(words: Mapping[str, object], text: str) -> object:
    if text not in words:
        guess = nearest(text, words)
        raise ValueError(f"{quoted(text)} is unknown " + (f"(did you mean '{guess[0]}'?)" if guess else f"(one of {', '.join(words)})"))
    return words[text]


def _number(kind: Kind, marks: Marks, text: str) -> int | float | Fraction:
    unit, bounds = _mark(marks, Unit), _mark(marks, Bounds) or Bounds()
    exact = exact_quantity(text, unit.dimension) if unit else parse_number(text)
    value = int(exact) if kind is int else as_float(exact, text)
    if kind is int and exact.denominator != 1:
        raise ValueError(f"{quoted(text)} is not a whole number")
    if kind is int and abs(value) > LARGEST_WHOLE:
        raise ValueError(f"{quoted(text)} is too large (at most {LARGEST_WHOLE})")
    if bounds.low is not None and value < bounds.low:
        raise ValueError(f"{quoted(text)} is too small (at least {_shown(bounds.low, unit)})")
    if bounds.high is not None and value > bounds.high:
        raise ValueError(f"{quoted(text)} is too large (at most {_shown(bounds.high, unit)})")
    return exact if kind is Fraction else value


def _shown(limit: float, unit: Unit | None) -> str:
    return format_quantity(limit, unit.dimension) if unit else f"{limit:.15g}"


def _read_range(kind: Kind, marks: Marks, node: Node, faults: list[Fault]) -> tuple[Any, ...] | None:
    number, marks = _unwrapped(get_args(kind)[0], marks)
    values = _read_slots(_range_slots(number, marks), node, faults)
    if values is None:
        return None
    ways = {way: Fraction(values[way]) for way in WAYS if way in values}
    options = expanded(Fraction(values["start"]), Fraction(values["end"]), ways, whole=number is int)
    return _distinct(int(option) if number is int else float(option) for option in options)


def _range_slots(number: Kind, marks: Marks) -> list[_Slot]:
    """The keys of a range; floats stay exact until the options are known, so that rounding errors cannot add up."""
    exact = int if number is int else Fraction
    unit = tuple(mark for mark in marks if isinstance(mark, Unit))
    return [
        _Slot("start", "from", exact, marks, required=True),
        _Slot("end", "to", exact, marks, required=True),
        _Slot("step", "step", exact, unit, required=False),
        _Slot("count", "count", int, (Bounds(1, MOST_VALUES),), required=False),
        _Slot("factor", "factor", Fraction, (), required=False),
    ]


def _schema(kind: Kind, marks: Marks, classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    """The schema of a type; every dataclass on the way is added to `classes` and referred to by its name."""
    options = [_schema_one(*option, classes) for option in _options(kind, marks)]
    return options[0] if len(options) == 1 else {"anyOf": options}


def _schema_one(kind: Kind, marks: Marks, classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    if is_dataclass(kind):
        return _schema_of_record(cast("type[Any]", kind), classes)
    if _origin(kind) is dict:
        return {"type": "object", "additionalProperties": _schema(get_args(kind)[1], marks, classes)}
    if _origin(kind) is tuple:
        return _schema_of_tuple(kind, marks, classes)
    if words := _words(kind):
        return {"enum": [value.value if isinstance(value, Enum) else value for value in words.values()]}
    if unit := _mark(marks, Unit):
        return _schema_of_quantity(unit.dimension)
    bounds = _mark(marks, Bounds) or Bounds()
    limits = {"minimum": bounds.low, "maximum": bounds.high} if kind in (int, float, Fraction) else {}
    return {"type": _JSON_TYPES[kind]} | {key: limit for key, limit in limits.items() if limit is not None}


def _schema_of_quantity(name: str) -> dict[str, Any]:
    dimension = dimension_named(name)
    kinds = ["number", "string"] if "" in dimension.units else ["string"]
    return {"type": kinds, "description": dimension.phrase, "examples": [dimension.example], "pattern": pattern_of(name)}


def _schema_of_tuple(kind: Kind, marks: Marks, classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    """A list, a single element where that is a scalar, and a range where the tuple is a choice of numbers."""
    element = get_args(kind)[0]
    item = _schema(element, marks, classes)
    several: dict[str, Any] = {"type": "array", "items": item} | ({"minItems": 1} if _mark(marks, Choice) else {})
    ranges = [_schema_of_slots(_range_slots(*_unwrapped(element, marks)), classes)] if _ranges(kind, marks) else []
    return {"anyOf": [*([] if "$ref" in item else [item]), several, *ranges]}


def _schema_of_record(cls: type[Any], classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    if cls not in classes:
        classes[cls] = {}  # stands for the class while its own fields are described: they may hold it again
        classes[cls] = _schema_of_slots(_slots(cls), classes)
        if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):  # that is what dataclass writes where there is none
            classes[cls]["description"] = cls.__doc__.strip().partition("\n")[0]
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _schema_of_slots(slots: Sequence[_Slot], classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    properties = {slot.key: _schema(slot.kind, slot.marks, classes) | _documented(slot) for slot in slots}
    required = [slot.key for slot in slots if slot.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _documented(slot: _Slot) -> dict[str, str]:
    doc = _mark(_unwrapped(slot.kind, slot.marks)[1], Doc)
    return {"description": doc.text} if doc else {}
