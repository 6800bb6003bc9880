"""Tables of keys in Markdown, from the types that read the files and from their JSON schema: what a key takes, its default, its meaning."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Final, TypeAlias, get_args, get_type_hints

from crossopt.crossflow.fields import Unit
from crossopt.instances.files.annotations import Slot, slots_of
from crossopt.instances.files.json_schema import json_schema
from crossopt.instances.files.units import DIMENSIONS, format_quantity

Schema: TypeAlias = Mapping[str, Any]
Headings: TypeAlias = dict[type[Any], str]

_PLAIN: Final = {"string": "text", "boolean": "`true` · `false`", "null": "", "integer": "whole number", "number": "number"}
_PHRASES: Final = {dimension.example: dimension.phrase for dimension in DIMENSIONS.values()}
_ENDING: Final = re.compile(r"(Section|Entry|Shape|File)$")


def reference(roots: Mapping[str, type[Any]]) -> str:
    """A heading for each kind of file with the table of its keys, and one for each mapping inside; what several share is told once."""
    headings: Headings = {cls: f"`{kind}`" for kind, cls in roots.items()}
    parts: list[str] = []
    for kind, root in roots.items():
        own = [root, *(cls for cls in _inside(root, headings) if cls not in headings)]
        headings |= {cls: f"`{kind}`: {_words(cls)}" for cls in own[1:]}
        schemas = json_schema(root)["$defs"]
        for cls in own:
            level = "###" if cls is root else "####"
            parts += [f"{level} {headings[cls]}", _sentence(cls), _keys(cls, schemas[cls.__name__], headings)]
    return "\n\n".join(parts)


def units() -> str:
    """The units that quantities may have."""
    rows = [
        (dimension.phrase.partition(" ")[2], f"`{dimension.example}`", ", ".join(f"`{unit}`" for unit in dimension.units if unit))
        for dimension in DIMENSIONS.values()
    ]
    return table(("quantity", "example", "units"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as Markdown."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _inside(cls: type[Any], told: Headings) -> list[type[Any]]:
    """The classes of all mappings inside, each before those inside it; of one that is told already nothing more."""
    found: dict[type[Any], None] = {}
    waiting: list[Any] = list(get_type_hints(cls).values())
    while waiting:
        kind = waiting.pop(0)
        if is_dataclass(kind) and isinstance(kind, type) and kind not in found:
            found[kind] = None
            waiting += () if kind in told else get_type_hints(kind).values()
        waiting += get_args(kind)
    return list(found)


def _words(cls: type[Any]) -> str:
    """What a mapping is called: `link` of `LinkSection`."""
    return " ".join(re.findall(r"[A-Z][a-z]*", _ENDING.sub("", cls.__name__))).lower()


def _sentence(cls: type[Any]) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0]


def _keys(cls: type[Any], schema: Schema, headings: Headings) -> str:
    links = {inner.__name__: f"[{_words(inner)}](#{slug(headings[inner])})" for inner in _inside(cls, headings)}
    slots, values = {slot.key: slot for slot in slots_of(cls)}, {field.name: field for field in fields(cls)}
    rows = [
        (f"`{key}`", _takes(value, links), _default(slots[key], values[slots[key].name]), value.get("description", ""))
        for key, value in schema["properties"].items()
    ]
    return table(("key", "takes", "default", "meaning"), rows)


def _takes(schema: Schema, links: Mapping[str, str]) -> str:
    """What may be written, in words; a dot stands between forms to choose from."""
    match schema:
        case {"anyOf": options}:
            text = " · ".join(dict.fromkeys(words for option in options if (words := _form(option, options, links))))
        case {"$ref": name}:
            text = links[name.rpartition("/")[2]]
        case {"enum": words}:
            text = " · ".join(f"`{word}`" for word in words)
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
    """One of several forms; a list of what may also stand alone needs no more words, and a range has its own section."""
    return "list" if option.get("items") in options else "range" if "properties" in option else _takes(option, links)


def _limits(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f" up to {high:,.15g}"
    return f" from {low:,.15g}" + ("" if high is None else f" to {high:,.15g}")


def _default(slot: Slot, field: Field[Any]) -> str:
    """What holds where the key is left out; nothing where its meaning says so."""
    value = field.default
    if slot.required:
        return "**needed**"
    if value is MISSING or value is None or value == () or is_dataclass(value) or slot.nullable:
        return ""
    unit = slot.mark(Unit)
    if unit and isinstance(value, float) and value:
        return f"`{format_quantity(value / unit.times, unit.dimension)}`"
    shown = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    if isinstance(shown, tuple):
        return f"`[{', '.join(map(str, shown))}]`"
    return f"`{str(shown).lower() if isinstance(shown, bool) else f'{shown:g}' if isinstance(shown, float) else shown}`"
