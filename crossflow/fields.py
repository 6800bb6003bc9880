"""Marks that state a field's dimension, limits, key in files and meaning once, on the dataclass.

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
    """Factor from the file's figure to the model's: 8 where the model counts bytes and files state bits."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest number allowed, in SI; None for no limit."""

    low: float | None = None
    high: float | None = None
    below: bool = False
    """Whether the greatest number is excluded."""


@dataclass(frozen=True, slots=True)
class In:
    """Files state a plain number in this unit."""

    unit: str


@dataclass(frozen=True, slots=True)
class NonZero:
    """Zero is refused because the model divides by the number or needs the resource."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Files state an integer, whatever type the model uses."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The tuple holds options, read without duplicates and sorted; numbers may also be given as a range.

    A range is a mapping of `from`, `to` and one of `step`, `count` (evenly spread, both ends included) and `factor`. With `step`
    and `factor` the last value is the last one not above `to`. Whole numbers need none of the three: their step is 1.
    """


@dataclass(frozen=True, slots=True)
class Several:
    """A list of names in place of one asks a question about each; the problem type takes them apart before it reads the rest."""


@dataclass(frozen=True, slots=True)
class Doc:
    """What the field means, for JSON schemas and tables of keys."""

    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """The text may have several lines; others are names used within lines and in file names."""


@dataclass(frozen=True, slots=True)
class Short:
    """A scalar in place of the mapping is read as the value of this key."""

    key: str


@dataclass(frozen=True, slots=True)
class Key:
    """Key in files where it is not the field's name; None if files do not state the field."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Later:
    """Files do not state the field beside the others; records that are read hold this value until the real one is known."""

    value: object


@dataclass(frozen=True, slots=True)
class As:
    """Unit, limits and meaning are taken from the field of the same name of another record unless stated here."""

    record: type[Any]


@dataclass(frozen=True, slots=True)
class Derived:
    """Files may omit the field, which then follows from others. A record with such a field is read as `Given`."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Files must state the field although it has a default."""


@dataclass(frozen=True, slots=True)
class Unset:
    """The default means "not stated" (no limit, or as `Doc` says) and is not a number to show or multiply."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A plan setting that questions may leave open: a field of the choices, with the options of the field's type."""

    open: tuple[object, ...] = ()
    """Options if everything is open: these, the keyword's, or all values of the type."""
    keyword: str | None = None
    """Keyword in questions for options that follow from the network or the cluster."""
    usual: object = None
    """Value if a question does not state the setting, if not a plan's default."""
    after: str | None = None
    """Setting after which combinations count this one, if not the field above."""


@dataclass(frozen=True, slots=True)
class Given(Generic[T]):
    """The values of a record that a file states, by field name, before the rest is derived."""

    kind: type[T]
    values: Mapping[str, Any]

    def get(self, name: str) -> Any:  # noqa: ANN401 - of any field
        """The stated value of a field; None if the file omits it."""
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

AreaChoice: TypeAlias = Annotated[tuple[float, ...], Unit("area"), Bounds(high=1.0), Choice()]
PowerChoice: TypeAlias = Annotated[tuple[float, ...], Unit("power"), Bounds(high=1e6), Choice()]
BandwidthChoice: TypeAlias = Annotated[tuple[float, ...], Unit("bandwidth"), Choice()]
RatioChoice: TypeAlias = Annotated[tuple[float, ...], Unit("ratio"), Bounds(0.0, 1.0), Choice()]
CountChoice: TypeAlias = Annotated[tuple[int, ...], Bounds(1), Choice()]
DieChoice: TypeAlias = Annotated[tuple[int, ...], Bounds(1, 1000), Choice()]
