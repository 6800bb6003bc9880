"""Trees become dataclasses by their annotations, or a list of faults at the right places; what is declared once follows everywhere."""

import ast
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from enum import Enum
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.fields import As, Bounds, Bytes, Choice, Count, Doc, Key, Needed, NonZero, NotNegative, Power, Ratio, Unit, Unset
from crossopt.crossflow.plan import Plan
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import fault_at, fault_at_key, read_text
from crossopt.instances.files.schema import MOST_VALUES, expand, figures_of, read_as
from crossopt.instances.files.units import parse_quantity, pattern_of
from crossopt.instances.schema_export import json_schema, reference
from tests.every import every
from tests.extent import examples
from tests.paths import ROOT
from tests.work import calls_in

# Trees become dataclasses by their annotations, or a list of faults at the right places.

Area = Annotated[float, Unit("area")]
Areas = Annotated[tuple[float, ...], Unit("area"), Choice()]
Counts = Annotated[tuple[int, ...], Bounds(1), Choice()]


class Metal(Enum):
    COPPER = "copper"
    GOLD = "gold"


@dataclass(frozen=True, slots=True)
class Window:
    """Two instants, the first before the last.

    More is said here than the schema repeats.
    """

    from_: float
    to: float

    def __post_init__(self) -> None:
        if self.from_ > self.to:
            raise ValueError("'from' is after 'to' (exchange them)")


@dataclass(frozen=True, slots=True)
class Cluster:
    nodes: Annotated[int, Bounds(1, 1000), Doc("machines in all")]
    price: Annotated[float | None, Unit("money")] = None
    inner: "Cluster | None" = None


@dataclass(frozen=True, slots=True)
class Question:
    """Every type that can be read."""

    name: str = "unnamed"
    number: float = 1.0
    count: int = 1
    flag: bool = False
    word: Literal["ring", "tree"] = "ring"
    stage: Literal[0, 1, 2] = 0
    metal: Metal = Metal.GOLD
    area: Annotated[Area, Bounds(1e-6, 9e-4)] = 1e-4
    size: Annotated[int, Unit("bytes")] = 0
    share: Annotated[float, Unit("ratio"), Bounds(0.0, 1.0)] = 1.0
    limit: float | None = None
    cluster: str | Cluster = "none"
    window: Window | None = None
    names: tuple[str, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    factors: dict[str, float] = field(default_factory=dict)
    areas: Areas = ()
    ratios: Annotated[tuple[float, ...], Unit("ratio"), Choice()] = ()
    counts: Counts = ()
    degrees: Counts | Literal["divisors"] = (1,)
    words: Annotated[tuple[Literal["none", "some", "full"], ...], Choice()] = ("none",)
    flags: Annotated[tuple[bool, ...], Choice()] = (False,)


def read(text: str) -> Question:
    """The dataclass, or the InstanceError that a caller would raise."""
    faults: list[Fault] = []
    question = read_as(Question, read_text(text, "f.yaml"), faults)
    assert (question is None) == bool(faults)
    if question is None:
        raise InstanceError("f.yaml", faults)
    return question


READ = [
    ("name: no", "name", "no"),
    ("name: 8", "name", "8"),
    ("name: 'null'", "name", "null"),
    ("number: 1e9", "number", 1e9),
    ("number: -.5", "number", -0.5),
    ("number: 010", "number", 10.0),
    ("count: 1e3", "count", 1000),
    ("count: 8.0", "count", 8),
    ("count: -3", "count", -3),
    ("count: 9223372036854775807", "count", 2**63 - 1),
    ("flag: true", "flag", True),
    ("word: tree", "word", "tree"),
    ("word: 'tree'", "word", "tree"),
    ("stage: 2", "stage", 2),
    ("metal: copper", "metal", Metal.COPPER),
    ("area: 815 mm^2", "area", 815e-6),
    ("area: '1 mm^2'", "area", 1e-6),
    ("size: 80 GiB", "size", 80 * 2**30),
    ("share: 85 %", "share", 0.85),
    ("limit: null", "limit", None),
    ("limit:", "limit", None),
    ("limit: 3", "limit", 3.0),
    ("cluster: dgx", "cluster", "dgx"),
    ("cluster: {nodes: 4}", "cluster", Cluster(4)),
    ("cluster: {nodes: 4, price: $5, inner: {nodes: 2}}", "cluster", Cluster(4, 5.0, Cluster(2))),
    ("window: {from: 1, to: 2}", "window", Window(1.0, 2.0)),
    ("names: [b, a, b]", "names", ("b", "a", "b")),
    ("names: a", "names", ("a",)),
    ("names: []", "names", ()),
    ("clusters: [{nodes: 1}, {nodes: 2}]", "clusters", (Cluster(1), Cluster(2))),
    ("factors: {a: 1, b-2.0: 2.5}", "factors", {"a": 1.0, "b-2.0": 2.5}),
    ("factors: {}", "factors", {}),
    ("areas: 3 mm^2", "areas", (3e-6,)),
    ("areas: [3 mm^2, 100 um^2, 3 mm^2]", "areas", (1e-10, 3e-6)),
    ("areas: {from: 150 mm^2, to: 180 mm^2, step: 10 mm^2}", "areas", (150e-6, 160e-6, 170e-6, 180e-6)),
    ("areas: {from: 150 mm^2, to: 179 mm^2, step: 10 mm^2}", "areas", (150e-6, 160e-6, 170e-6)),
    ("areas: {from: 100 mm^2, to: 800 mm^2, count: 8}", "areas", tuple(n * 100 / 1e6 for n in range(1, 9))),
    ("areas: {from: 1 um^2, to: 1 cm^2, factor: 10}", "areas", (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)),
    ("ratios: {from: 10 %, to: 1, step: 0.1}", "ratios", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    ("ratios: {from: 1, to: 2.25, factor: 1.5}", "ratios", (1.0, 1.5, 2.25)),
    ("counts: 4", "counts", (4,)),
    ("counts: [8, 2, 8]", "counts", (2, 8)),
    ("counts: {from: 2, to: 5}", "counts", (2, 3, 4, 5)),
    ("counts: {from: 1, to: 9, step: 3}", "counts", (1, 4, 7)),
    ("counts: {from: 1, to: 64, factor: 2}", "counts", (1, 2, 4, 8, 16, 32, 64)),
    ("counts: {from: 1, to: 10, count: 4}", "counts", (1, 4, 7, 10)),
    ("counts: {from: 3, to: 3, count: 5}", "counts", (3,)),
    ("counts: {from: 3, to: 3, count: 1}", "counts", (3,)),
    ("degrees: divisors", "degrees", "divisors"),
    ("degrees: [4, 2]", "degrees", (2, 4)),
    ("degrees: {from: 1, to: 4, factor: 2}", "degrees", (1, 2, 4)),
    ("words: [some, none, some]", "words", ("some", "none")),
    ("flags: [true, false]", "flags", (False, True)),
]

RANGE_WAY = "a range needs exactly one of 'step', 'count' and 'factor'"
FACTOR = "'factor' needs to be above 1, and 'from' above zero"

REFUSED = [
    ("number: fast", "1:9: number: 'fast' is not a number"),
    ("number: .nan", "1:9: number: '.nan' is not a number"),
    ("number: 80 GiB", "1:9: number: '80 GiB' is not a number (write '80', without a unit)"),
    ("number: '8'", "1:9: number: '8' is in quotes, a number is needed (remove the quotes)"),
    ("number: 1e999", "1:9: number: '1e999' is too large"),
    ("number:", "1:8: number: there is no value, a number is needed"),
    ("number: [1]", "1:9: number: this is a list, a number is needed (write one value, without brackets)"),
    ("number: {a: 1}", "1:9: number: this is a mapping, a number is needed"),
    ("count: 2.5", "1:8: count: '2.5' is not a whole number"),
    ("count: 9223372036854775808", "1:8: count: '9223372036854775808' is too large (at most 9223372036854775807)"),
    ("flag: yes", "1:7: flag: 'yes' is unknown (one of true, false)"),
    ("flag: True", "1:7: flag: 'True' is unknown (did you mean 'true'?)"),
    ("flag: 'true'", "1:7: flag: 'true' is in quotes, true or false is needed (remove the quotes)"),
    ("word: rng", "1:7: word: 'rng' is unknown (did you mean 'ring'?)"),
    ("word: mesh", "1:7: word: 'mesh' is unknown (one of ring, tree)"),
    ("word: []", "1:7: word: this is a list, a word is needed (one of ring, tree)"),
    ("stage: 3", "1:8: stage: '3' is unknown (one of 0, 1, 2)"),
    ("area: 815", "1:7: area: '815' has no unit, an area is needed (for example '815 mm^2')"),
    ("area: 901 mm^2", "1:7: area: '901 mm^2' is too large (at most 900 mm^2)"),
    ("area: 0 mm^2", "1:7: area: '0 mm^2' is too small (at least 1 mm^2)"),
    ("area: ~", "1:7: area: there is no value, an area is needed (for example '815 mm^2')"),
    ("size: 0.3 B", "1:7: size: '0.3 B' is not a whole number"),
    ("share: 101 %", "1:8: share: '101 %' is too large (at most 1)"),
    ("share: 80", "1:8: share: '80' is too large (at most 1; write '80 %' for a share)"),
    ("cluster: [a]", "1:10: cluster: this is a list, a text or a mapping is needed (write one value, without brackets)"),
    ("cluster: {}", "1:10: cluster.nodes: this key is missing, a whole number is needed"),
    ("cluster: {node: 4}", "1:11: cluster.node: unknown key (did you mean 'nodes'?)"),
    ("cluster: {nodes: 0}", "1:18: cluster.nodes: '0' is too small (at least 1)"),
    ("cluster: {nodes: 4, inner: {nodes: 1001}}", "1:36: cluster.inner.nodes: '1001' is too large (at most 1000)"),
    ("cluster: {nodes: 4, price: []}", "1:28: cluster.price: this is a list, an amount of money is needed (for example '1200 USD')"),
    ("window: noon", "1:9: window: this is a single value, a mapping is needed (with from, to)"),
    ("cluster: {nodes: 4, xyz: 1}", "1:21: cluster.xyz: unknown key (the known keys are nodes, price, inner)"),
    ("window: {from: 3, to: 2}", "1:9: window: 'from' is after 'to' (exchange them)"),
    ("names: [a, ]\nnumbers: 3", "2:1: numbers: unknown key (did you mean 'number'?)"),
    ("names: [a, [b]]", "1:12: names[1]: this is a list, a text is needed (write one value, without brackets)"),
    ("names: {a: b}", "1:8: names: this is a mapping, a text or a list is needed"),
    ("clusters: dgx", "1:11: clusters: this is a single value, a list of mappings is needed"),
    ("factors: {a: 1, b: x}", "1:20: factors.b: 'x' is not a number"),
    ("factors: 3", "1:10: factors: this is a single value, a mapping is needed"),
    ("areas: []", "1:8: areas: an empty list leaves nothing to choose (give at least one value)"),
    ("areas: [1 mm^2, 2]", "1:17: areas[1]: '2' has no unit, an area is needed (for example '815 mm^2')"),
    ("areas: {from: 2 mm^2, to: 1 mm^2, count: 2}", "1:8: areas: the range is empty: 'from' is above 'to' (exchange them)"),
    ("areas: {from: 1 mm^2, to: 2 mm^2}", f"1:8: areas: {RANGE_WAY}"),
    ("areas: {from: 1 mm^2, to: 2 mm^2, step: 1 mm^2, count: 2}", f"1:8: areas: {RANGE_WAY}"),
    ("areas: {from: 1 mm^2, to: 2 mm^2, step: 0 mm^2}", "1:8: areas: 'step' must be above zero"),
    ("areas: {from: 1 mm^2, to: 2 mm^2, stepp: 1 mm^2}", "1:35: areas.stepp: unknown key (did you mean 'step'?)"),
    ("areas: {from: 1 mm^2, step: 1 mm^2}", "1:8: areas.to: this key is missing, an area is needed (for example '815 mm^2')"),
    ("areas: {from: 1 mm^2, to: 2 mm^2, factor: 1}", f"1:8: areas: {FACTOR}"),
    ("areas: {from: 0 mm^2, to: 2 mm^2, factor: 2}", f"1:8: areas: {FACTOR}"),
    ("ratios: {from: 0, to: 1, step: 1e-9}", "1:9: ratios: the range has more than 100,000 values (choose a larger 'step')"),
    ("ratios: {from: 1e-300, to: 1e300, step: 1e-300}", "1:9: ratios: the range has more than 100,000 values (choose a larger 'step')"),
    ("ratios: {from: 1, to: 1e300, factor: 1.000001}", "1:9: ratios: the range has more than 100,000 values (choose a larger 'factor')"),
    ("counts: 0", "1:9: counts: '0' is too small (at least 1)"),
    ("counts: {from: 1, to: 100001}", "1:9: counts: the range has more than 100,000 values (choose a larger 'step')"),
    ("counts: {from: 0, to: 4}", "1:16: counts.from: '0' is too small (at least 1)"),
    ("counts: {from: 1, to: 3, count: 1}", "1:9: counts: a 'count' of 1 cannot hold both ends (give 2 or more, or a single value)"),
    ("counts: {from: 1, to: 3, count: 200000}", "1:33: counts.count: '200000' is too large (at most 100000)"),
    (
        "counts: {from: 1, to: 10, count: 5}",
        "1:9: counts: this 'count' gives numbers that are not whole (choose another, or list the values)",
    ),
    ("degrees: divisor", "1:10: degrees: 'divisor' is unknown (did you mean 'divisors'?)"),
    ("degrees: many", "1:10: degrees: 'many' is not a number"),
    ("degrees:", "1:9: degrees: there is no value, a whole number, a list or a range or a word is needed (one of divisors)"),
    ("words: [none, ful]", "1:15: words[1]: 'ful' is unknown (did you mean 'full'?)"),
    ("words: {from: none, to: full}", "1:8: words: this is a mapping, a word or a list is needed (one of none, some, full)"),
    ("just text", "1:1: this is a single value, a mapping is needed (write 'key: value' lines)"),
    ("[1]", "1:1: this is a list, a mapping is needed (write 'key: value' lines)"),
]


@every(("text", "name", "value"), READ)
def test_a_field_is_read_by_its_annotation(text: str, name: str, value: object) -> None:
    answer = getattr(read(text), name)
    assert answer == value
    assert type(answer) is type(value)


@every(("text", "message"), REFUSED)
def test_a_bad_value_names_place_value_and_remedy(text: str, message: str) -> None:
    with pytest.raises(InstanceError) as raised:
        read(text)
    assert str(raised.value) == f"f.yaml:{message}\n1 fault, nothing solved"


def test_what_is_not_given_has_its_default() -> None:
    assert read("name: x") == Question(name="x")
    assert read("{}") == Question()


def test_every_fault_of_a_document_comes_at_once() -> None:
    with pytest.raises(InstanceError) as raised:
        read("nme: x\ncount: 1.5\ncluster:\n  price: 3 W\nnames: [[], {}]\nareas: {from: 1, to: 2 W, steps: 3}\n")
    assert str(raised.value).splitlines() == [
        "f.yaml:1:1: nme: unknown key (did you mean 'name'?)",
        "f.yaml:2:8: count: '1.5' is not a whole number",
        "f.yaml:4:3: cluster.nodes: this key is missing, a whole number is needed",
        "f.yaml:4:10: cluster.price: '3 W' is a power, an amount of money is needed (for example '1200 USD')",
        "f.yaml:5:9: names[0]: this is a list, a text is needed (write one value, without brackets)",
        "f.yaml:5:13: names[1]: this is a mapping, a text is needed",
        "f.yaml:6:15: areas.from: '1' has no unit, an area is needed (for example '815 mm^2')",
        "f.yaml:6:22: areas.to: '2 W' is a power, an area is needed (for example '815 mm^2')",
        "f.yaml:6:27: areas.steps: unknown key (did you mean 'step'?)",
        "9 faults, nothing solved",
    ]


def test_faults_are_added_to_those_already_found() -> None:
    """A caller may read several documents into one list; earlier faults do not spoil a sound one."""
    faults = [Fault(1, 1, "", "earlier")]
    assert read_as(Cluster, read_text("nodes: 3", "f.yaml"), faults) == Cluster(3)
    assert faults == [Fault(1, 1, "", "earlier")]


def test_a_caller_places_faults_that_concern_several_fields() -> None:
    root = read_text("cluster:\n  nodes: 4\n  price: 5 USD\n", "f.yaml")
    assert fault_at(root, "cluster.price", "too dear") == Fault(3, 10, "cluster.price", "too dear")
    assert fault_at_key(root, "cluster.price", "not needed") == Fault(3, 3, "cluster.price", "not needed")
    assert fault_at(root, "cluster.inner", "needed here") == Fault(2, 3, "cluster.inner", "needed here")


@given(st.integers(0, 500), st.integers(1, 40), st.integers(0, 200))
def test_a_range_gives_what_a_user_would_have_listed(first: int, step: int, steps: int) -> None:
    """No rounding error adds up: each value is the float of its own decimal text."""
    last = first + step * steps
    areas = read(f"areas: {{from: {first / 10} mm^2, to: {last / 10} mm^2, step: {step / 10} mm^2}}").areas
    assert areas == tuple(parse_quantity(f"{value / 10} mm^2", "area") for value in range(first, last + 1, step))


@given(st.integers(1, 99), st.sampled_from(["2", "1.5", "3", "1.1", "10"]), st.integers(0, 12))
def test_a_geometric_range_holds_both_its_ends(first: int, factor: str, steps: int) -> None:
    """The end is the exact power written out in decimals; an inexact comparison would lose it now and then."""
    digits = len(factor.partition(".")[2]) * steps
    last = first * int(factor.replace(".", "")) ** steps
    text = f"{str(last)[:-digits] or '0'}.{str(last)[-digits:].zfill(digits)}" if digits else str(last)
    ratios = read(f"ratios: {{from: {first}, to: {text}, factor: {factor}}}").ratios
    assert (len(ratios), ratios[0], ratios[-1]) == (steps + 1, float(first), float(text))


def test_a_range_is_refused_before_it_is_listed_and_costs_few_calls_a_value() -> None:
    whole, ways = Fraction(10**9), {"step": Fraction(1)}
    with pytest.raises(ValueError, match="more than 100,000 values"):
        expand(Fraction(0), whole, ways, integral=True)

    def refused() -> None:
        with suppress(ValueError):
            expand(Fraction(0), whole, ways, integral=True)

    assert calls_in(refused) < 200
    assert calls_in(lambda: expand(Fraction(1, 3), Fraction(1000), ways, integral=False)) < 6_000


def test_the_longest_range_is_read() -> None:
    assert read(f"counts: {{from: 1, to: {MOST_VALUES}}}").counts == tuple(range(1, MOST_VALUES + 1))


@dataclass(frozen=True)
class Unreadable:
    field: complex = 0j


def test_a_type_that_cannot_be_read_is_the_programmers_error() -> None:
    with pytest.raises(TypeError, match="complex"):
        read_as(Unreadable, read_text("field: 1", "f.yaml"), [])


YAML_VALUES = st.recursive(
    st.sampled_from(["1", "8.5", "none", "400 W", "3 mm^2", "~", "true", "'x'", "divisors", "-1", "1e9", "''"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(["from", "to", "step", "count", "factor", "nodes", "inner", "x"]), inner, max_size=4).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=6,
)


@examples(300)
@given(st.dictionaries(st.sampled_from(sorted(Question.__dataclass_fields__)), YAML_VALUES, max_size=3))
def test_any_document_gives_a_question_or_faults(document: dict[str, str]) -> None:
    text = "\n".join(f"{key}: {value}" for key, value in document.items()) or "{}"
    try:
        assert isinstance(read(text), Question)
    except InstanceError as error:
        assert all(fault.path.split(".")[0].split("[")[0] in document for fault in error.faults)


def test_the_json_schema_describes_the_same_types() -> None:
    money = {"type": ["string"], "description": "an amount of money", "examples": ["1200 USD"], "pattern": pattern_of("money")}
    assert json_schema(Cluster) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": "#/$defs/Cluster",
        "$defs": {
            "Cluster": {
                "type": "object",
                "properties": {
                    "nodes": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "machines in all"},
                    "price": {"anyOf": [money, {"type": "null"}]},
                    "inner": {"anyOf": [{"$ref": "#/$defs/Cluster"}, {"type": "null"}]},
                },
                "required": ["nodes"],
                "additionalProperties": False,
            }
        },
    }


def test_the_json_schema_names_words_ranges_and_docs() -> None:
    schema = json_schema(Question)["$defs"]
    properties = schema["Question"]["properties"]
    assert schema["Question"]["description"] == "Every type that can be read."
    assert schema["Window"]["description"] == "Two instants, the first before the last."
    assert list(schema["Window"]["properties"]) == ["from", "to"]
    assert properties["stage"] == {"enum": [0, 1, 2]}
    assert properties["metal"] == {"enum": ["copper", "gold"]}
    assert properties["share"]["type"] == ["number", "string"]
    assert properties["cluster"] == {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Cluster"}]}
    assert properties["clusters"] == {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Cluster"}}]}
    assert properties["factors"] == {"type": "object", "additionalProperties": {"type": "number"}}
    single, several, ranged = properties["counts"]["anyOf"]
    assert (single, several["minItems"]) == ({"type": "integer", "minimum": 1}, 1)
    assert list(ranged["properties"]) == ["from", "to", "step", "count", "factor"]
    assert properties["degrees"]["anyOf"][1] == {"enum": ["divisors"]}


def test_the_json_schema_is_json_and_the_same_each_time() -> None:
    assert json.dumps(json_schema(Question), allow_nan=False) == json.dumps(json_schema(Question), allow_nan=False)


def test_two_dataclasses_of_one_name_have_no_json_schema() -> None:
    def other() -> type[object]:
        @dataclass(frozen=True)
        class Cluster:
            nodes: int = 1

        return Cluster

    @dataclass(frozen=True)
    class Both:
        first: Cluster
        second: other()  # type: ignore[valid-type]

    with pytest.raises(TypeError, match="same name"):
        json_schema(Both)


# A parameter is declared once, on the dataclass that computes with it: all that files, errors, schemas and tables say follows.


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
