"""What a field of a dataclass says of itself, once: dimension, limits, key in files, meaning.

A parameter is declared where it is used, as in `power: Annotated[Power, Doc("the rating")]`. Parsers, error messages, JSON schemas and
tables of keys read these marks (`instances.files`); nothing here reads a file.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from crossopt.crossflow.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unit:
    """The number is a quantity of this dimension of `instances.files.units` and is read into SI."""

    dimension: str
    times: int = 1
    """By how much the model's figure is larger: 8 where it counts bytes, and files say bits."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest number allowed, in SI; None where there is no such limit."""

    low: float | None = None
    high: float | None = None
    below: bool = False
    """Whether the greatest number itself is refused."""


@dataclass(frozen=True, slots=True)
class In:
    """Files state a plain number that counts in this unit."""

    unit: str


@dataclass(frozen=True, slots=True)
class NonZero:
    """Zero is refused: the model divides by the number, or nothing runs without it."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Files state a whole number, whatever the model computes with."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The tuple holds options, read without duplicates; numbers are sorted and may also be given as a range.

    A range is a mapping of `from`, `to` and one of `step`, `count` (evenly spread, both ends included) and `factor`. With `step`
    and `factor` the last value is the last one not above `to`. Whole numbers need none of the three: their step is 1.
    """


@dataclass(frozen=True, slots=True)
class Doc:
    """What the field means, for JSON schemas and tables of keys."""

    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """The text may run over several lines; others are names, which stand in lines of texts and in names of files."""


@dataclass(frozen=True, slots=True)
class Short:
    """A single value in place of the mapping is that of this key."""

    key: str


@dataclass(frozen=True, slots=True)
class Key:
    """What files call the field, where that is not its name; None where no file states it."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Later:
    """No file states the field beside the others; a record that is read has this value until it is known."""

    value: object


@dataclass(frozen=True, slots=True)
class As:
    """Unit, limits and meaning are those of the field of that name of another record, where nothing else is said."""

    record: type[Any]


@dataclass(frozen=True, slots=True)
class Derived:
    """Files may leave the field out: it then follows from others. A record with such a field is read as `Given`."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Files must state the field although it has a default."""


@dataclass(frozen=True, slots=True)
class Unset:
    """The default means that nothing is stated: no limit, or what `Doc` says. It is no figure to show or to multiply."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of plans that questions may open: a field of the choices, with the options of the field's type."""

    open: tuple[object, ...] = ()
    """Options where everything is open, if not the word, or all of the type."""
    word: str | None = None
    """Stands in questions for options that follow from the network or the cluster."""
    usual: object = None
    """What holds where a question says nothing, if not the default of a plan."""
    after: str | None = None
    """The setting behind which combinations count this one, if not the field above."""


@dataclass(frozen=True, slots=True)
class Given(Generic[T]):
    """What a file states of a record, by the names of its fields, before the rest is derived."""

    kind: type[T]
    values: Mapping[str, Any]

    def get(self, name: str) -> Any:  # noqa: ANN401 - of any field
        """The value of a field; None where the file leaves it out."""
        return self.values.get(name)


Area: TypeAlias = Annotated[float, Unit("area")]
Power: TypeAlias = Annotated[float, Unit("power")]
Bytes: TypeAlias = Annotated[float, Unit("bytes")]
Bandwidth: TypeAlias = Annotated[float, Unit("bandwidth")]
Frequency: TypeAlias = Annotated[float, Unit("frequency")]
Duration: TypeAlias = Annotated[float, Unit("time")]
Voltage: TypeAlias = Annotated[float, Unit("voltage")]
Length: TypeAlias = Annotated[float, Unit("length")]
Throughput: TypeAlias = Annotated[float, Unit("throughput")]
Energy: TypeAlias = Annotated[float, Unit("energy")]
EnergyPerBit: TypeAlias = Annotated[float, Unit("energy_per_bit")]
ENERGY_PER_BYTE = Unit("energy_per_bit", 8)
PowerPerArea: TypeAlias = Annotated[float, Unit("power_per_area")]
PowerPerBit: TypeAlias = Annotated[float, Unit("power_per_bit")]
AreaPerBit: TypeAlias = Annotated[float, Unit("area_per_bit")]
PerLength: TypeAlias = Annotated[float, Unit("per_length")]
Money: TypeAlias = Annotated[float, Unit("money")]
PricePerEnergy: TypeAlias = Annotated[float, Unit("price_per_energy")]
PricePerArea: TypeAlias = Annotated[float, Unit("price_per_area")]
Ratio: TypeAlias = Annotated[float, Unit("ratio"), Bounds(0.0, 1.0)]
NotNegative: TypeAlias = Annotated[float, Bounds(0.0)]
Positive: TypeAlias = Annotated[int, Bounds(1)]
Count: TypeAlias = Annotated[float, Whole(), Bounds(1)]

AreaChoice: TypeAlias = Annotated[tuple[float, ...], Unit("area"), Choice()]
PowerChoice: TypeAlias = Annotated[tuple[float, ...], Unit("power"), Choice()]
BandwidthChoice: TypeAlias = Annotated[tuple[float, ...], Unit("bandwidth"), Choice()]
RatioChoice: TypeAlias = Annotated[tuple[float, ...], Unit("ratio"), Bounds(0.0, 1.0), Choice()]
CountChoice: TypeAlias = Annotated[tuple[int, ...], Bounds(1), Choice()]
