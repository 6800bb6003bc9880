"""JSON schemas of every kind of file, and the tables of keys in the reference documentation (`docs/hooks.py`).

`python -m crossopt.instances.schema_export FOLDER` writes the schemas into the folder of the questions (`make reference`).
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args, get_type_hints

from crossopt.crossflow.fields import Bounds, Choice, NonZero, Several, Short, Unit
from crossopt.crossflow.hardware import Efficiency
from crossopt.instances.catalogue.entries import CONSTANTS, DeviceEntry, ModelEntry, TechnologyEntry, is_calibrated, range_of, set_text
from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.codesign.stack_rules import STACKS
from crossopt.instances.files.schema import (
    Kind,
    Marks,
    Slot,
    mark_of,
    options_of,
    origin_of,
    range_slots,
    slots_of,
    takes_range,
    text_of,
    unwrap,
)
from crossopt.instances.files.units import DIMENSIONS, dimension_named, format_quantity, pattern_of
from crossopt.instances.kinds import KINDS

_JSON_TYPES: Final[Mapping[Kind, str]] = {
    str: "string", int: "integer", float: "number", Fraction: "number", bool: "boolean", type(None): "null"
}  # fmt: skip


def json_schema(cls: type[object]) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of the files that `read_as` accepts for this dataclass; identical at every call."""
    classes: dict[type[object], dict[str, Any]] = {}
    root = _schema(cls, (), classes)
    named = {kind.__name__: schema for kind, schema in classes.items()}
    if len(named) < len(classes):
        raise TypeError(f"two dataclasses below {cls.__name__} have the same name (rename one)")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": dict(sorted(named.items()))}


def _schema(kind: Kind, marks: Marks, classes: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    """The schema of a type; every dataclass on the way is added to `classes` and referred to by name."""
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
    if names := text_of(kind):
        return {"enum": [value.value if isinstance(value, Enum) else value for value in names.values()]}
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
    """A list; also a single element if that is a scalar, and a range if the tuple is a choice of numbers."""
    element, *others = get_args(kind)
    item = _schema(element, marks, classes)
    several: dict[str, Any] = {"type": "array", "items": item} | ({"minItems": 1} if mark_of(marks, Choice) else {})
    if Ellipsis not in others:
        return several | {"minItems": 1 + len(others), "maxItems": 1 + len(others)}
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
    if slot.mark(Several) is not None:
        names = _schema(get_args(slot.kind)[0] if text_of(unwrap(slot.kind, ())[0]) else str, (), classes)
        schema = {"anyOf": [*schema.get("anyOf", [schema]), {"type": "array", "items": names, "minItems": 1}]}
    return {"anyOf": [schema, {"type": "null"}]} if slot.nullable else schema


# Tables of keys in Markdown, from the types that read the files and from their JSON schema: what a key takes, its default, its meaning.

Schema: TypeAlias = Mapping[str, Any]
Headings: TypeAlias = dict[type[Any], str]

_PLAIN: Final = {"string": "text", "boolean": "`true` · `false`", "null": "", "integer": "whole number", "number": "number"}
_PHRASES: Final = {dimension.example: dimension.phrase for dimension in DIMENSIONS.values()}
_ENDING: Final = re.compile(r"(Section|Entry|Shape|File)$")


def reference(roots: Mapping[str, type[Any]]) -> str:
    """Key tables as Markdown: a heading for each kind of file and each inner mapping; shared ones appear once."""
    headings: Headings = {cls: f"`{kind}`" for kind, cls in roots.items()}
    parts: list[str] = []
    for kind, root in roots.items():
        own = [root, *(cls for cls in _inside(root, headings) if cls not in headings)]
        headings |= {cls: f"`{kind}`: {_text(cls)}" for cls in own[1:]}
        schemas = json_schema(root)["$defs"]
        for cls in own:
            level = "###" if cls is root else "####"
            parts += [f"{level} {headings[cls]}", _sentence(cls), _keys(cls, schemas[cls.__name__], headings)]
    return "\n\n".join(parts)


def units() -> str:
    """The units of quantities."""
    rows = [
        (dimension.phrase.partition(" ")[2], f"`{dimension.example}`", ", ".join(f"`{unit}`" for unit in dimension.units if unit))
        for dimension in DIMENSIONS.values()
    ]
    return table(("quantity", "example", "units"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def slug(heading: str) -> str:
    """The anchor that GitHub assigns to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _inside(cls: type[Any], listed: Headings) -> list[type[Any]]:
    """The classes of all inner mappings, outer before inner; classes in `listed` are listed, but not searched further."""
    found: dict[type[Any], None] = {}
    waiting: list[Any] = list(get_type_hints(cls).values())
    while waiting:
        kind = waiting.pop(0)
        if is_dataclass(kind) and isinstance(kind, type) and kind not in found:
            found[kind] = None
            waiting += () if kind in listed else get_type_hints(kind).values()
        waiting += get_args(kind)
    return list(found)


def _text(cls: type[Any]) -> str:
    """Name of a mapping's class: `link` for `LinkSection`."""
    return " ".join(re.findall(r"[A-Z][a-z]*", _ENDING.sub("", cls.__name__))).lower()


def _sentence(cls: type[Any]) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0]


def _keys(cls: type[Any], schema: Schema, headings: Headings) -> str:
    links = {inner.__name__: f"[{_text(inner)}](#{slug(headings[inner])})" for inner in _inside(cls, headings)}
    slots, values = {slot.key: slot for slot in slots_of(cls)}, {field.name: field for field in fields(cls)}
    rows = [
        (f"`{key}`", _takes(value, links), _default(slots[key], values[slots[key].name]), value.get("description", ""))
        for key, value in schema["properties"].items()
    ]
    return table(("key", "takes", "default", "meaning"), rows)


def _takes(schema: Schema, links: Mapping[str, str]) -> str:
    """Allowed values in words, alternatives separated by dots."""
    match schema:
        case {"anyOf": options}:
            text = " · ".join(dict.fromkeys(names for option in options if (names := _form(option, options, links))))
        case {"$ref": name}:
            text = links[name.rpartition("/")[2]]
        case {"enum": names}:
            text = " · ".join(f"`{name}`" for name in names)
        case {"examples": [example]}:
            text = _PHRASES[example].partition(" ")[2]
        case {"items": items}:
            text = f"list of {_takes(items, links)}"
        case {"additionalProperties": dict() as values}:
            text = f"by name: {_takes(values, links)}"
        case _:
            text = _PLAIN[schema["type"]] + _limits(schema.get("minimum"), schema.get("maximum"))
    return text


def _form(option: Schema, options: Sequence[Schema], links: Mapping[str, str]) -> str:
    """One of several alternatives in words. It is "list" if the elements may also stand alone, and "range" for ranges, which
    have their own section.
    """
    return "list" if option.get("items") in options else "range" if "properties" in option else _takes(option, links)


def _limits(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f" up to {high:,.15g}"
    return f" from {low:,.15g}" + ("" if high is None else f" to {high:,.15g}")


def _default(slot: Slot, field: Field[Any]) -> str:
    """The default value of a key; empty if its meaning states it."""
    value = field.default
    if slot.required:
        return "**needed**"
    if value is MISSING or value is None or value in ((), "") or is_dataclass(value) or slot.nullable:
        return ""
    unit = slot.mark(Unit)
    if unit and isinstance(value, float) and value:
        return f"`{format_quantity(value / unit.times, unit.dimension)}`"
    shown = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    if isinstance(shown, tuple):
        return f"`[{', '.join(map(str, shown))}]`"
    return f"`{str(shown).lower() if isinstance(shown, bool) else f'{shown:g}' if isinstance(shown, float) else shown}`"


def _of_questions() -> dict[str, type[Any]]:
    """The form of each problem type: the dataclass in the module of its question whose `kind` can only be its name."""
    found = dict[str, type[Any]]()
    for kind, row in KINDS.items():
        declared = vars(import_module(row.file or row.question)).values()
        (found[kind],) = {form for form in declared if isinstance(form, type) and is_dataclass(form) and _kind_of(form) == Literal[kind]}
    return found


def _kind_of(form: type[Any]) -> object:
    """The declared values of `kind`, without its marks; None of a form without it."""
    return next((get_args(field.type)[0] for field in fields(form) if field.name == "kind" and get_args(field.type)), None)


FORMS: Final[Mapping[str, type[Any]]] = {**_of_questions(), "device": DeviceEntry, "technology": TechnologyEntry, "model": ModelEntry}
"""Forms of YAML files: a question of each kind, or an entry of a registry."""


def schema_text(form: str = "codesign") -> str:
    """The JSON schema of a form of files."""
    return json.dumps(json_schema(FORMS[form]), indent=1, ensure_ascii=False) + "\n"


def schema_path(form: str, folder: Path) -> Path:
    """Path of a form's schema below the folder of the questions; questions beside it refer to that of the joint design."""
    return folder / f"{form}.schema.json" if form == "codesign" else folder / "schemas" / f"{form}.schema.json"


QUESTION: Final = "question"
"""The schema of a question of any kind, which refers to that of its kind."""


def question_schema_text() -> str:
    """The schema that editors take for every question, whatever its `kind`."""
    kinds = [kind for kind in FORMS if kind in KINDS]
    rules = [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": {"$ref": _sibling_path(kind)}}
        for kind in sorted(kinds)
    ]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A question of crossopt", "type": "object"}
    body = {"properties": {"kind": {"enum": sorted(kinds)}}, "required": ["kind"], "allOf": rules}
    return json.dumps(head | body, indent=1) + "\n"


def _sibling_path(kind: str) -> str:
    """The file of a kind's schema as seen from `schemas`."""
    return f"../{kind}.schema.json" if kind == "codesign" else f"{kind}.schema.json"


def reference_text() -> str:
    """All keys, the constants of the model, and the units of quantities."""
    defaults = asdict(Efficiency())
    rows = [(f"`{name}`", slot.unit, range_of(slot), f"`{defaults[name]:g}`", slot.text) for name, slot in CONSTANTS.items()]
    constants = table(("constant", "unit", "takes", "default", "meaning"), rows)
    parts = {"What stacks launch": _stacks(), "Constants of the model": constants, "Units": units()}
    return "\n\n".join([reference(FORMS), *(f"### {heading}\n\n{text}" for heading, text in parts.items())])


def support_text() -> str:
    """Devices by training stacks: whether constants were fitted to measured runs there, or where they are taken from."""
    rows = [(f"`{name}`", *(_support(name, stack) for stack in STACKS)) for name in names("hardware")]
    return table(("device", *STACKS), rows)


def _support(name: str, stack: str) -> str:
    entry = device(name)
    whose = "" if stack in entry.stacks else "the device's constants, "
    level = "derived" if not is_calibrated(entry, stack) else "measured on the device" if whose else "**measured**"
    return f"{level}: {whose}{set_text(name, entry, stack).rpartition('; ')[2]}"


def _stacks() -> str:
    """Rules that a stack imposes on plans, with their sources."""
    rows = [(stack.name, row.sentence, str(row.source)) for stack in STACKS.values() for row in stack.rows]
    rows += [(stack.name, f"*no rule:* {text}", str(source)) for stack in STACKS.values() for text, source in stack.also]
    return table(("stack", "what every plan keeps", "read in"), rows)


def main(folder: Path) -> None:
    """Write all schemas."""
    (folder / "schemas").mkdir(exist_ok=True)
    for form in FORMS:
        schema_path(form, folder).write_text(schema_text(form), encoding="utf-8")
    schema_path(QUESTION, folder).write_text(question_schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
