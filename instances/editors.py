"""JSON schemas of every kind of file, and the tables of keys in the reference of the site (`docs/hooks.py`).

`python -m crossopt.instances.editors FOLDER` writes the schemas into the folder of the questions (`make reference`).
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, get_args

from crossopt.crossflow.hardware import Efficiency
from crossopt.instances.catalogue.entries import CONSTANTS, DeviceEntry, ModelEntry, TechnologyEntry, is_calibrated, range_of, set_text
from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.codesign.stacks.rules import STACKS
from crossopt.instances.files.json_schema import json_schema, reference, table, units
from crossopt.instances.kinds import KINDS


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
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": {"$ref": _beside(kind)}} for kind in sorted(kinds)
    ]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A question of crossopt", "type": "object"}
    body = {"properties": {"kind": {"enum": sorted(kinds)}}, "required": ["kind"], "allOf": rules}
    return json.dumps(head | body, indent=1) + "\n"


def _beside(kind: str) -> str:
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
    word = "derived" if not is_calibrated(entry, stack) else "measured on the device" if whose else "**measured**"
    return f"{word}: {whose}{set_text(name, entry, stack).rpartition('; ')[2]}"


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
