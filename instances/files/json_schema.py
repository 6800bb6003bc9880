"""The JSON schema with which editors complete and check the files that a dataclass describes."""

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, Final, cast, get_args

from crossopt.crossflow.fields import Bounds, Choice, NonZero, Short, Unit
from crossopt.instances.files.annotations import (
    Kind,
    Marks,
    Slot,
    mark_of,
    options_of,
    origin_of,
    range_slots,
    slots_of,
    takes_range,
    unwrap,
    words_of,
)
from crossopt.instances.files.units import dimension_named, pattern_of

_JSON_TYPES: Final[Mapping[Kind, str]] = {
    str: "string", int: "integer", float: "number", Fraction: "number", bool: "boolean", type(None): "null"
}  # fmt: skip


def json_schema(cls: type[object]) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of the files that `read_as` accepts for this dataclass, for editors; the same at every call."""
    classes: dict[type[object], dict[str, Any]] = {}
    root = _schema(cls, (), classes)
    named = {kind.__name__: schema for kind, schema in classes.items()}
    if len(named) < len(classes):
        raise TypeError(f"two dataclasses below {cls.__name__} have the same name (rename one)")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": dict(sorted(named.items()))}


def _schema(kind: Kind, marks: Marks, classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    """The schema of a type; every dataclass on the way is added to `classes` and referred to by its name."""
    options = [_schema_one(*option, classes) for option in options_of(kind, marks)]
    return options[0] if len(options) == 1 else {"anyOf": options}


def _schema_one(kind: Kind, marks: Marks, classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    if is_dataclass(kind):
        record, short = _schema_of_record(cast("type[Any]", kind), classes), mark_of(marks, Short)
        single = [_schema(slot.kind, slot.marks, classes) for slot in slots_of(kind) if short and slot.key == short.key]
        return {"anyOf": [record, *single]} if single else record
    if origin_of(kind) is dict:
        return {"type": "object", "additionalProperties": _schema(get_args(kind)[1], marks, classes)}
    if origin_of(kind) is tuple:
        return _schema_of_tuple(kind, marks, classes)
    if words := words_of(kind):
        return {"enum": [value.value if isinstance(value, Enum) else value for value in words.values()]}
    if unit := mark_of(marks, Unit):
        return _schema_of_quantity(unit.dimension)
    bounds = mark_of(marks, Bounds) or Bounds()
    above = 0 if mark_of(marks, NonZero) else None
    high = "exclusiveMaximum" if bounds.below else "maximum"
    limits = {"minimum": bounds.low, "exclusiveMinimum": above, high: bounds.high} if kind in (int, float, Fraction) else {}
    return {"type": _JSON_TYPES[kind]} | {key: limit for key, limit in limits.items() if limit is not None}


def _schema_of_quantity(name: str) -> dict[str, Any]:
    dimension = dimension_named(name)
    kinds = ["number", "string"] if "" in dimension.units else ["string"]
    return {"type": kinds, "description": dimension.phrase, "examples": [dimension.example], "pattern": pattern_of(name)}


def _schema_of_tuple(kind: Kind, marks: Marks, classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    """A list, a single element where that is a scalar, and a range where the tuple is a choice of numbers."""
    element = get_args(kind)[0]
    item = _schema(element, marks, classes)
    several: dict[str, Any] = {"type": "array", "items": item} | ({"minItems": 1} if mark_of(marks, Choice) else {})
    ranges = [_schema_of_slots(range_slots(*unwrap(element, marks)), classes)] if takes_range(kind, marks) else []
    return {"anyOf": [*([] if "$ref" in item else [item]), several, *ranges]}


def _schema_of_record(cls: type[Any], classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    if cls not in classes:
        classes[cls] = {}  # stands for the class while its own fields are described: they may hold it again
        classes[cls] = _schema_of_slots(slots_of(cls), classes)
        if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):  # that is what dataclass writes where there is none
            classes[cls]["description"] = cls.__doc__.strip().partition("\n")[0]
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _schema_of_slots(slots: Sequence[Slot], classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    properties = {slot.key: _schema_of_slot(slot, classes) | ({"description": slot.text} if slot.text else {}) for slot in slots}
    required = [slot.key for slot in slots if slot.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _schema_of_slot(slot: Slot, classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    schema = _schema(slot.kind, slot.marks, classes)
    return {"anyOf": [schema, {"type": "null"}]} if slot.nullable else schema
