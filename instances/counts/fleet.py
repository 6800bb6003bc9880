"""A fleet of several kinds of devices for classes of requests (`kind: fleet`), in exact rational numbers.

With l_k requests a second of class k, and a device of kind w that serves r_wk of them a second at the service level, or costs c_w an hour:

    minimise    sum over w of c_w n_w
    such that   sum over w of a_wk = 1 for each class k,   sum over k of l_k a_wk / r_wk <= n_w,   n_w integer,   a_wk >= 0

a_wk is the share of class k that devices of kind w serve, and r_wk is lowered where devices may not be busy all the time. With `slices: s`
every share is a multiple of 1/s, as in Melange. Prices are whole numbers of a decimal unit, so that sums are exact; rates are the decimals
of the file, or those of the best batch and format of a network on the device (`networks`). Where the utilisation is to be greatest, c_w is
the peak of a device: the work is given, so that the least peak is used most.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil, gcd, inf
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bounds, Doc, In, NonZero, Prose, Ratio, Unset
from crossopt.instances.counts.networks import NetworkRun, NetworkSection, PricedNetworks, entries_of, networks_in
from crossopt.instances.counts.shapes import cell_number, places_for, unshared
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.tables import table_in, text_of
from crossopt.instances.files.units import exact, nearest, quoted, rounded_quantity
from crossopt.instances.files.written import Written, short_repr

MOST_KINDS, MOST_CLASSES, MOST_SLICES, MOST_AVAILABLE = 200, 400, 10_000, 1_000_000
_SMALLEST, _LARGEST = 1e-6, 1e9
"""Of prices and rates above 0."""
_COLUMNS = ("device", "class", "rate")
Objective = Literal["cost", "utilisation"]
Rate = Annotated[float, Bounds(0.0, _LARGEST), In("requests/s")]


@dataclass(frozen=True, slots=True)
class DeviceSection:
    """A kind of device, or a replica of several, that serves requests on its own."""

    price: Annotated[float, Bounds(_SMALLEST, _LARGEST), In("USD/h"), Doc("of one device")]
    rates: Annotated[dict[str, Rate] | None, Doc("requests a second of one device at the service level, by class; default: none")] = None
    available: Annotated[int | None, Bounds(0, MOST_AVAILABLE), Unset(), Doc("number of devices that can be had")] = None
    hardware: Annotated[
        str | None, Doc("what prices networks: a device of `crossopt list hardware` or the path of a file; default: the kind's own name")
    ] = None


@dataclass(frozen=True, slots=True)
class FleetFile:
    """How many devices of each kind serve all requests for the least cost?"""

    kind: Annotated[Literal["fleet"], Doc("problem type")]
    classes: Annotated[dict[str, Rate], Doc("requests a second by class, such as short and long prompts")]
    devices: Annotated[dict[str, DeviceSection], Doc("kinds of devices by name")]
    rates: Annotated[str | None, Doc("a CSV file of rates with the columns device, class and rate, beside those of `devices`")] = None
    networks: Annotated[
        dict[str, NetworkSection] | None, Doc("networks of classes, by their names, whose rates follow from operators on each device")
    ] = None
    objective: Annotated[
        Objective, Doc("least cost, or greatest utilisation: the least peak of all devices, each in its fastest format of the networks")
    ] = "cost"
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
    runs: Mapping[tuple[str, str], NetworkRun] = field(default_factory=dict)
    """Best batch and format of a class with a network on a kind of device."""
    work: Mapping[str, float] = field(default_factory=dict)
    """FLOPs of a request of the classes with networks."""
    peaks: Mapping[str, float] = field(default_factory=dict)
    """FLOP/s of a device in its fastest format of the networks."""

    __repr__ = short_repr

    def cost(self, units: int) -> float:
        """A cost in USD/h, or a peak in TFLOP/s where this is the objective, correctly rounded."""
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
    networks = networks_in(file.networks or {}, written)
    hardware = {kind: section.hardware for kind, section in file.devices.items() if networks}
    priced = PricedNetworks(networks, entries_of(hardware, written))
    for (name, kind), run in priced.runs.items():
        table[kind][name] = exact(run.rate)
    classes, kinds = tuple(name for name, rate in file.classes.items() if rate), tuple(file.devices)
    written.refuse(_unserved(file, classes, table, priced))
    written.refuse(_far_apart(file, classes, table))
    prices = [exact(section.price) for section in file.devices.values()]
    if file.objective == "utilisation":
        prices = [exact(priced.peaks[kind] / _TERA) for kind in kinds]
    most = max(prices) * MOST_AVAILABLE * len(prices)
    places = places_for(prices, most)
    written.refuse(unshared("devices", "prices", "", prices, places))
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
        runs=priced.runs,
        work={name: network.work for name, network in networks.items()},
        peaks=priced.peaks,
    )


_TERA = 1.0e12


def _faults(file: FleetFile) -> Iterator[tuple[str, str]]:
    if not 1 <= len(file.devices) <= MOST_KINDS:
        yield "devices", f"{len(file.devices)} kinds of devices are given, 1 to {MOST_KINDS} are needed"
    if not 1 <= len(file.classes) <= MOST_CLASSES:
        yield "classes", f"{len(file.classes)} classes are given, 1 to {MOST_CLASSES} are needed"
    elif not any(file.classes.values()):
        yield "classes", "no class has any requests (give a rate above 0)"
    for kind, section in file.devices.items():
        if section.rates is None and file.rates is None and not file.networks:
            yield f"devices.{kind}", "its rates are needed (requests a second by class, such as rates: {short: 12})"
        for name in section.rates or {}:
            if name in (file.networks or {}):
                yield f"devices.{kind}.rates.{name}", "the rate of a class with a network follows from it (take one of them away)"
            elif file.classes and name not in file.classes:
                yield f"devices.{kind}.rates.{name}", f"there is no class {quoted(name)}{_like(name, file.classes)}"

    for name in file.networks or {}:
        if name not in file.classes:
            yield f"networks.{name}", f"there is no class {quoted(name)}{_like(name, file.classes)}"
    if file.objective == "utilisation" and (strange := [name for name in file.classes if name not in (file.networks or {})]):
        yield "objective", f"the work of {quoted(strange[0])} is not known (give it a network, or minimise the cost)"


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
        if not said and of in (file.networks or {}):
            said.append(f"class: the rate of {quoted(of)} follows from its network (take one of them away)")
        if not said and of in table[kind]:
            said.append(f"the rate of {quoted(of)} on {quoted(kind)} is given twice (keep one)")
        if not said:
            table[kind][of] = rate
        faults += [Fault(cells.line, 1, "", message) for message in said]
    if faults:
        raise InstanceError(name, faults)


def _unserved(
    file: FleetFile, classes: tuple[str, ...], table: Mapping[str, Mapping[str, Fraction]], priced: PricedNetworks
) -> Iterator[tuple[str, str]]:
    for name in classes:
        if any(rates.get(name) for rates in table.values()):
            continue
        section = (file.networks or {}).get(name)
        if section is None:
            yield f"classes.{name}", "no device serves this class (give the rate of one that does, or leave the class out)"
        elif name in priced.fastest:
            latency, kind = priced.fastest[name]
            asked = rounded_quantity(section.latency or inf, "time", 4)
            yield f"networks.{name}.latency", f"{asked} are asked, and {kind}, the fastest, takes {rounded_quantity(latency, 'time', 4)}"
        else:
            yield f"networks.{name}.formats", f"no device has memory for the network and a peak in {' or '.join(section.formats)}"


def _far_apart(file: FleetFile, classes: tuple[str, ...], table: Mapping[str, Mapping[str, Fraction]]) -> Iterator[tuple[str, str]]:
    """Rates that are nothing, and classes that take more devices of a kind than anyone has."""
    for name in classes:
        rates = {kind: row[name] for kind, row in table.items() if row.get(name)}
        kind = min(rates, key=lambda kind: rates[kind])
        devices = exact(file.classes[name]) / rates[kind]
        busy = devices / exact(file.utilization)
        if min(file.classes[name], float(rates[kind])) < _SMALLEST:
            yield f"classes.{name}", f"rates above 0 are from {_SMALLEST:g} requests/s on (leave out what is less, or change the unit)"
        elif devices > MOST_AVAILABLE:
            yield f"classes.{name}", f"{float(devices):.3g} devices of kind {kind} would serve it (leave that rate out, or change the unit)"
        elif busy > MOST_AVAILABLE:
            yield (
                "utilization",
                f"{float(busy):.3g} devices of kind {kind} so idle would serve {quoted(name)} (raise it, or leave that rate out)",
            )
