"""A parameter is declared once, on the dataclass that computes with it: all that files, errors, schemas and tables say follows."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Annotated

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.fields import As, Bytes, Count, Doc, Key, Needed, NonZero, NotNegative, Power, Ratio, Unit, Unset
from crossopt.crossflow.plan import Plan
from crossopt.instances.errors import Fault
from crossopt.instances.files.document import read_text
from crossopt.instances.files.json_schema import json_schema, reference
from crossopt.instances.files.schema import figures_of, read_as
from tests.paths import ROOT


@dataclass(frozen=True, slots=True)
class Fan:
    """What cools a device."""

    power: Annotated[Power, NonZero(), Doc("of the motor")]
    blades: Annotated[Count, Doc("of the rotor")] = 7
    speed: Annotated[Real, Key("pace"), Unit("frequency"), Needed(), Doc("of the rotor")] = 50.0
    limit: Annotated[NotNegative, Unset(), Doc("of noise; none where nothing is said")] = 1.0e30
    wear: Annotated[float, Key(None)] = 0.0
    """Computed, and stated by no file."""


def faults_in(text: str) -> list[tuple[str, str]]:
    faults: list[Fault] = []
    assert read_as(Fan, read_text(text, "fan.yaml"), faults) is None
    return [(fault.path, fault.message) for fault in faults]


def fan_in(text: str) -> Fan:
    fan = read_as(Fan, read_text(text, "fan.yaml"), [])
    assert fan is not None
    return fan


def test_a_record_is_read_by_its_keys() -> None:
    assert fan_in("power: 3 W\npace: 60 Hz\nblades: 5\nlimit: 4") == Fan(3.0, 5, 60.0, 4.0)
    assert fan_in("power: 3 W\npace: 60 Hz\nlimit: null") == Fan(3.0, speed=60.0)
    assert isinstance(fan_in("power: 3 W\npace: 60 Hz\nblades: 5").blades, int)


def test_a_fault_has_its_place_and_its_remedy() -> None:
    assert faults_in("power: 0 W\nblades: 2.5\npace: 60 Hz") == [
        ("power", "zero is no figure to work with (give one above 0)"),
        ("blades", "'2.5' is not a whole number"),
    ]
    assert faults_in("power: 3 W") == [("pace", "this key is missing, a frequency is needed (for example '1.4 GHz')")]
    [(path, message)] = faults_in("power: 3 W\npace: 60 Hz\nwear: 1")
    assert (path, message.partition(" (")[0]) == ("wear", "unknown key")


def test_the_figures_of_a_record_are_those_that_somebody_states() -> None:
    """Counts are no measured figures; an array and a limit that is none are not stated."""
    assert {slot.key: value for slot, value in figures_of(Fan(3.0, 5, 60.0))} == {"power": 3.0, "pace": 60.0}
    assert {slot.key for slot, _ in figures_of(Fan(3.0, 5, np.ones(2), 4.0))} == {"power", "limit"}


def test_schema_and_table_of_keys_follow_from_the_declaration() -> None:
    schema = json_schema(Fan)["$defs"]["Fan"]
    assert (list(schema["properties"]), schema["required"]) == (["power", "blades", "pace", "limit"], ["power", "pace"])
    assert schema["properties"]["blades"] == {"type": "integer", "minimum": 1, "description": "of the rotor"}
    assert schema["properties"]["limit"]["anyOf"] == [{"type": "number", "minimum": 0.0}, {"type": "null"}]
    assert reference({"fan": Fan}).splitlines()[-4:] == [
        "| `power` | power | **needed** | of the motor |",
        "| `blades` | whole number from 1 | `7` | of the rotor |",
        "| `pace` | frequency | **needed** | of the rotor |",
        "| `limit` | number from 0 |  | of noise; none where nothing is said |",
    ]


def test_one_more_line_is_one_more_parameter() -> None:
    """Nothing else is written to have it read, checked, described and multiplied."""

    @dataclass(frozen=True, slots=True)
    class QuietFan(Fan):
        memory: Annotated[Bytes, Doc("of its controller")] = 4096.0
        duty: Annotated[Ratio, Doc("share of the time")] = 1.0

    faults: list[Fault] = []
    fan = read_as(QuietFan, read_text("power: 3 W\npace: 60 Hz\nmemory: 8 KiB\nduty: 50 %", "fan.yaml"), faults)
    assert (fan, faults) == (QuietFan(3.0, speed=60.0, memory=8192.0, duty=0.5), [])
    assert "| `memory` | size in bytes | `4 KiB` | of its controller |" in reference({"fan": QuietFan})
    assert {"memory", "duty"} <= {slot.key for slot, _ in figures_of(QuietFan(3.0))}
    assert read_as(QuietFan, read_text("power: 3 W\npace: 60 Hz\nduty: 2", "fan.yaml"), faults) is None
    assert [(fault.path, fault.message) for fault in faults] == [("duty", "'2' is too large (at most 1)")]


def records(room: str) -> Iterator[tuple[str, set[str]]]:
    """Each dataclass of a room with the fields whose meaning it states."""
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                stated = (line for line in node.body if isinstance(line, ast.AnnAssign) and "Doc(" in ast.unparse(line.annotation))
                yield node.name, {ast.unparse(line.target) for line in stated}


def test_no_record_of_files_states_again_what_a_record_of_the_model_states() -> None:
    """Five names in common may be chance: parts of a chip, figures of a link that differ from a device's, those of another generation."""
    model = dict(records("crossflow"))
    assert len(model["CoreTechnology"]) > 15 and len(model["Plan"]) == len(dataclass_fields(Plan))
    again = [(name, other) for name, stated in records("instances") for other, known in model.items() if len(stated & known) > 5]
    assert again == []


def test_a_section_takes_unit_limits_and_meaning_from_the_record_that_it_sets() -> None:
    @dataclass(frozen=True, slots=True)
    class FanSection:
        power: Annotated[float | None, As(Fan)] = None
        blades: Annotated[float | None, As(Fan), Doc("of this fan")] = None

    faults: list[Fault] = []
    assert read_as(FanSection, read_text("power: 3 kW", "fan.yaml"), faults) == FanSection(3000.0)
    assert read_as(FanSection, read_text("power: 0 W", "fan.yaml"), faults) is None
    assert [fault.message for fault in faults] == ["zero is no figure to work with (give one above 0)"]
    properties = json_schema(FanSection)["$defs"]["FanSection"]["properties"]
    assert [one["description"] for one in properties.values()] == ["of the motor", "of this fan"]
