"""A fleet of several kinds of devices for classes of requests (`kind: fleet`), in exact rational numbers.

With l_k requests a second of class k, and a device of kind w that serves r_wk of them a second at the service level, or costs c_w an hour:

    minimise    sum over w of c_w n_w
    such that   sum over w of a_wk = 1 for each class k,   sum over k of l_k a_wk / r_wk <= n_w,   n_w integer,   a_wk >= 0

a_wk is the share of class k that devices of kind w serve, and r_wk is lowered where devices may not be busy all the time. With `slices: s`
every share is a multiple of 1/s, as in Melange. Prices are whole numbers of a decimal unit, so that sums are exact; rates are the decimals
of the file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, gcd
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bounds, Doc, In, NonZero, Prose, Ratio, Unset
from crossopt.instances.counts.shapes import cell_number, exact, places_for
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.tables import table_in, text_of
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.files.written import Written, short_repr

MOST_KINDS, MOST_CLASSES, MOST_SLICES, MOST_AVAILABLE = 200, 400, 10_000, 1_000_000
_SMALLEST, _LARGEST = 1e-6, 1e9
"""Of prices and rates above 0."""
_COLUMNS = ("device", "class", "rate")
Rate = Annotated[float, Bounds(0.0, _LARGEST), In("requests/s")]


@dataclass(frozen=True, slots=True)
class DeviceSection:
    """A kind of device, or a replica of several, that serves requests on its own."""

    price: Annotated[float, Bounds(_SMALLEST, _LARGEST), In("USD/h"), Doc("of one device")]
    rates: Annotated[dict[str, Rate] | None, Doc("requests a second of one device at the service level, by class; default: none")] = None
    available: Annotated[int | None, Bounds(0, MOST_AVAILABLE), Unset(), Doc("number of devices that can be had")] = None


@dataclass(frozen=True, slots=True)
class FleetFile:
    """How many devices of each kind serve all requests for the least cost?"""

    kind: Annotated[Literal["fleet"], Doc("problem type")]
    classes: Annotated[dict[str, Rate], Doc("requests a second by class, such as short and long prompts")]
    devices: Annotated[dict[str, DeviceSection], Doc("kinds of devices by name")]
    rates: Annotated[str | None, Doc("a CSV file of rates with the columns device, class and rate, beside those of `devices`")] = None
    slices: Annotated[int | None, Bounds(1, MOST_SLICES), Unset(), Doc("equal parts of a class, each on one kind; default: any")] = None
    utilization: Annotated[Ratio, NonZero(), Doc("the most that devices may be busy, which leaves room for bursts")] = 1.0
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


@dataclass(frozen=True)
class FleetQuestion:
    """Classes with their rates, and kinds of devices with price and rates; classes without requests are left out."""

    name: str
    file: FleetFile
    classes: tuple[str, ...]
    kinds: tuple[str, ...]
    loads: tuple[Fraction, ...]
    """Requests a second of each class."""
    rates: tuple[tuple[Fraction, ...], ...]
    """Requests a second of one device at the allowed utilization, by class, then by kind; 0 where it serves none."""
    prices: tuple[int, ...]
    """Of one device, in units of 10^-places USD/h."""
    places: int
    limits: tuple[int | None, ...]
    """Devices that can be had of each kind."""
    document: dict[str, Any]

    __repr__ = short_repr

    def cost(self, units: int) -> float:
        """A cost in USD/h, correctly rounded."""
        return float(Fraction(units) / Fraction(10) ** self.places)

    @cached_property
    def price_step(self) -> int:
        """Every cost is a multiple of this."""
        return gcd(*self.prices)

    @cached_property
    def most(self) -> tuple[int, ...]:
        """Devices of each kind that are ever of use: as many as serve alone what they can, or as can be had."""
        alone = [
            ceil(sum((load / rates[kind] for load, rates in zip(self.loads, self.rates, strict=True) if rates[kind]), start=Fraction(0)))
            for kind in range(len(self.kinds))
        ]
        return tuple(need if limit is None else min(need, limit) for need, limit in zip(alone, self.limits, strict=True))


def size_of(question: FleetQuestion) -> str:
    """How large the question is, in words."""
    slices = "" if question.file.slices is None else f" in {question.file.slices} slices"
    return f"{len(question.classes):,} classes{slices} on {len(question.kinds):,} kinds of devices"


def read(written: Written) -> FleetQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(FleetFile)
    written.refuse(_faults(file))
    stated = {kind: dict(section.rates or {}) for kind, section in file.devices.items()}
    table: dict[str, dict[str, Fraction]] = {kind: {name: exact(rate) for name, rate in rates.items()} for kind, rates in stated.items()}
    if file.rates is not None:
        _add_rates(table, file, file.rates, written)
    classes, kinds = tuple(name for name, rate in file.classes.items() if rate), tuple(file.devices)
    written.refuse(_unserved(classes, table))
    written.refuse(_far_apart(file, classes, table))
    prices = [exact(section.price) for section in file.devices.values()]
    most = max(prices) * MOST_AVAILABLE * len(prices)
    places = places_for(prices, most)
    return FleetQuestion(
        name=file.name or Path(written.source).stem,
        file=file,
        classes=classes,
        kinds=kinds,
        loads=tuple(exact(file.classes[name]) for name in classes),
        rates=tuple(tuple(table[kind].get(name, Fraction(0)) * exact(file.utilization) for kind in kinds) for name in classes),
        prices=tuple(max(round(price * Fraction(10) ** places), 1) for price in prices),
        places=places,
        limits=tuple(section.available for section in file.devices.values()),
        document=written.document,
    )


def _faults(file: FleetFile) -> Iterator[tuple[str, str]]:
    if not 1 <= len(file.devices) <= MOST_KINDS:
        yield "devices", f"{len(file.devices)} kinds of devices are given, 1 to {MOST_KINDS} are needed"
    if not 1 <= len(file.classes) <= MOST_CLASSES:
        yield "classes", f"{len(file.classes)} classes are given, 1 to {MOST_CLASSES} are needed"
    elif not any(file.classes.values()):
        yield "classes", "no class has any requests (give a rate above 0)"
    for kind, section in file.devices.items():
        if section.rates is None and file.rates is None:
            yield f"devices.{kind}", "its rates are needed (requests a second by class, such as rates: {short: 12})"
        for name in section.rates or {}:
            if file.classes and name not in file.classes:
                yield f"devices.{kind}.rates.{name}", f"there is no class {quoted(name)}{_like(name, file.classes)}"


def _like(name: str, known: Mapping[str, object]) -> str:
    close = nearest(name, known)
    return f" (did you mean {close[0]}?)" if close else f" (classes and devices are those of the question: {', '.join(list(known)[:5])})"


def _add_rates(table: dict[str, dict[str, Fraction]], file: FleetFile, name: str, written: Written) -> None:
    """Rates of a CSV file, beside those that are there."""
    with written.reading("rates"):
        text = written.files.text(name, text_of)
    faults = list[Fault]()
    for cells in table_in(text, name, _COLUMNS, _COLUMNS, "rate of a device").lines:
        said, kind, of = [*([cells.fault] if cells.fault else [])], cells.given.get("device", ""), cells.given.get("class", "")
        rate = cell_number(cells, "rate", said, zero=True)
        for what, word, known in (("device", kind, file.devices), ("class", of, file.classes)):
            if not cells.fault and word not in known:
                said.append(f"{what}: the question has no {what} {quoted(word)}{_like(word, known)}")
        if not said and of in table[kind]:
            said.append(f"the rate of {quoted(of)} on {quoted(kind)} is given twice (keep one)")
        if not said:
            table[kind][of] = rate
        faults += [Fault(cells.line, 1, "", message) for message in said]
    if faults:
        raise InstanceError(name, faults)


def _unserved(classes: tuple[str, ...], table: Mapping[str, Mapping[str, Fraction]]) -> Iterator[tuple[str, str]]:
    for name in classes:
        if not any(rates.get(name) for rates in table.values()):
            yield f"classes.{name}", "no device serves this class (give the rate of one that does, or leave the class out)"


def _far_apart(file: FleetFile, classes: tuple[str, ...], table: Mapping[str, Mapping[str, Fraction]]) -> Iterator[tuple[str, str]]:
    """Rates that are nothing, and classes that take more devices of a kind than anyone has."""
    for name in classes:
        rates = {kind: row[name] for kind, row in table.items() if row.get(name)}
        kind = min(rates, key=lambda kind: rates[kind])
        devices = exact(file.classes[name]) / rates[kind]
        if min(file.classes[name], float(rates[kind])) < _SMALLEST:
            yield f"classes.{name}", f"rates above 0 are from {_SMALLEST:g} requests/s on (leave out what is less, or change the unit)"
        elif devices > MOST_AVAILABLE:
            yield f"classes.{name}", f"{float(devices):.3g} devices of kind {kind} would serve it (leave that rate out, or change the unit)"
