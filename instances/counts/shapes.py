"""Instances of a model on the threads of a server (`kind: instances`), by measured latencies, in whole numbers.

A shape is a pair of threads and batch with its measured latency. With n_s instances of shape s, and i of them in total:

    sum n_s threads_s  = threads, or at most that where threads may stay idle; each instance within one socket
    sum n_s batch_s    = batch
    latency            = f(i) max of latency_s over n_s > 0,   throughput = sum n_s batch_s / latency_s / f(i)

where f(i) is the stated factor by which i instances slow each other down, 1 by default. Latencies are whole numbers of a unit 10^-k s, and
requests a second of a shape whole numbers of a unit of their own, in which all sums stay below 2^52. A shape that was not measured is not
offered, and nothing is assumed to grow with threads or batch.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from sys import float_info
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bounds, Bytes, Doc, Duration, NonZero, NotNegative, Positive, Prose, Throughput, Unset
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.tables import Cells, table_in, text_of
from crossopt.instances.files.units import exact, parse_number, quoted
from crossopt.instances.files.written import Written, short_repr

MOST_THREADS, MOST_BATCH, MOST_SHAPES = 1_024, 1 << 20, 20_000
GREATEST = 1 << 52
"""Whole numbers below this are exact as floats, too."""
_FINEST = 18
_LARGEST = Fraction(float_info.max)
_COLUMNS = ("threads", "batch", "latency_ms")
Objective = Literal["latency", "throughput"]


@dataclass(frozen=True, slots=True)
class MeasuredShape:
    """A measured instance."""

    threads: Annotated[int, Bounds(1, MOST_THREADS), Doc("threads of the instance")]
    batch: Annotated[int, Bounds(1, MOST_BATCH), Doc("requests that it processes together")]
    latency: Annotated[Duration, NonZero(), Doc("of the batch, measured with no other instance running")]


@dataclass(frozen=True, slots=True)
class InstancesFile:
    """How many instances of how many threads and requests each?"""

    kind: Annotated[Literal["instances"], Doc("problem type")]
    threads: Annotated[int, Bounds(1, MOST_THREADS), Doc("threads of the server")]
    profile: Annotated[
        str | tuple[MeasuredShape, ...], Doc("measured shapes, or a CSV file of them with the columns threads, batch and latency_ms")
    ]
    batch: Annotated[int | None, Bounds(1, MOST_BATCH), Unset(), Doc("requests in flight; only `throughput` may leave it open")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    objective: Annotated[Objective, Doc("latency of the slowest instance, or requests a second of all, as time per request")] = "latency"
    idle_threads: Annotated[bool, Doc("whether threads may stay idle")] = True
    sockets: Annotated[Positive, Doc("sockets that share the threads evenly; an instance stays within one")] = 1
    latency: Annotated[Duration | None, NonZero(), Doc("service level: the most that an instance may take")] = None
    memory: Annotated[Bytes | None, Doc("memory for all instances")] = None
    memory_per_instance: Annotated[Bytes | None, NonZero(), Doc("memory of one instance: weights and workspace")] = None
    work: Annotated[float | None, Bounds(0.0), NonZero(), Doc("FLOPs of a request, for the utilisation: of ResNet-50 8.18e9")] = None
    peak: Annotated[Throughput | None, NonZero(), Doc("FLOP/s of a thread at its peak, for the utilisation")] = None
    interference: Annotated[
        dict[str, NotNegative] | None, Doc("factor on latencies by the number of instances from which on it holds, such as {4: 1.1}")
    ] = None


@dataclass(frozen=True, slots=True)
class Shape:
    """A measured shape in whole numbers."""

    threads: int
    batch: int
    latency: int
    """In units of the problem."""
    rate: int
    """Requests a second, in units of the problem."""


@dataclass(frozen=True)
class InstancesQuestion:
    """Measured shapes, and what all instances together have to keep."""

    name: str
    file: InstancesFile
    shapes: tuple[Shape, ...]
    """In ascending order of threads, then of batches."""
    places: int
    """Latencies are in units of 10^-places s."""
    rate_places: int
    document: dict[str, Any]

    __repr__ = short_repr

    @property
    def per_socket(self) -> int:
        return self.file.threads // self.file.sockets

    @cached_property
    def factors(self) -> tuple[tuple[int, Fraction], ...]:
        """Numbers of instances with the factor that holds from there on, from 1 on."""
        stated = {int(count): exact(factor) for count, factor in (self.file.interference or {}).items()}
        return tuple(sorted(({1: Fraction(1)} | stated).items()))

    @cached_property
    def most_instances(self) -> int:
        """Number of instances that threads, batch and memory allow."""
        file = self.file
        limits = [file.sockets * (self.per_socket // min(shape.threads for shape in self.shapes))]
        limits += [file.batch // min(shape.batch for shape in self.shapes)] if file.batch is not None else []
        return min([*limits, *([] if self.memory_instances is None else [self.memory_instances])])

    @property
    def memory_instances(self) -> int | None:
        """Number of instances that the memory holds; None without a limit."""
        if self.file.memory is None or self.file.memory_per_instance is None:
            return None
        return int(exact(self.file.memory) // exact(self.file.memory_per_instance))

    @cached_property
    def limit(self) -> Fraction | None:
        """The service level in units of latency."""
        return None if self.file.latency is None else exact(self.file.latency) * 10**self.places

    def factor(self, instances: int) -> Fraction:
        """Factor on all latencies where so many instances run."""
        return [factor for count, factor in self.factors if count <= instances][-1]

    def seconds(self, units: Fraction | int) -> float:
        """A latency in seconds, correctly rounded."""
        return float(Fraction(units) / 10**self.places)

    def seconds_per_request(self, units: Fraction | int) -> float:
        """Time per request at a throughput in units, correctly rounded."""
        return float(Fraction(10**self.rate_places) / units)


def size_of(question: InstancesQuestion) -> str:
    """How large the question is, in words."""
    batch = "" if question.file.batch is None else f" for {question.file.batch:,} requests"
    return f"{len(question.shapes):,} measured shapes on {question.file.threads:,} threads{batch}"


def places_for(values: Sequence[Fraction], most: Fraction) -> int:
    """Decimal places in which all values are whole, or as many as keep sums of up to `most` below the greatest number."""
    fits = next(places for places in range(_FINEST, -_FINEST * 20, -1) if most * Fraction(10) ** places < GREATEST)
    needed = next((places for places in range(_FINEST) if all((value * 10**places).denominator == 1 for value in values)), _FINEST)
    return min(needed, fits)


def unshared(place: str, names: str, unit: str, values: Collection[Fraction], places: int) -> Iterator[tuple[str, str]]:
    """A fault where whole numbers of a decimal unit do not keep eight digits of one of the values."""
    if any(abs(round(value * Fraction(10) ** places) / Fraction(10) ** places - value) > value / 10**8 for value in values):
        least, most = (f"{float(value):.3g} {unit}".rstrip() for value in (min(values), max(values)))
        yield place, f"{names} from {least} to {most} have no common unit that keeps eight digits of each (remove what lies far off)"


def _near_limit(file: InstancesFile, latencies: Collection[Fraction], places: int) -> Iterator[tuple[str, str]]:
    """A fault where the common unit moves a latency over the limit, or below it."""
    if file.latency is None:
        return
    scale, limit = Fraction(10) ** places, exact(file.latency)
    factors = {Fraction(1), *(exact(factor) for factor in (file.interference or {}).values())}
    if any(
        (factor * latency <= limit) != (factor * round(latency * scale) <= limit * scale) for latency in latencies for factor in factors
    ):
        yield "latency", f"a measured latency is beside it by less than their common unit of 1e-{places} s (round the latencies to it)"


def read(written: Written) -> InstancesQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(InstancesFile)
    written.refuse(_faults(file))
    rows = _rows_of_file(file.profile, written) if isinstance(file.profile, str) else _rows(file.profile)
    latencies = {(threads, batch): latency for threads, batch, latency in rows}
    written.refuse(_profile_faults(file, latencies))
    places = places_for(list(latencies.values()), max(latencies.values()))
    written.refuse(unshared("profile", "latencies", "s", latencies.values(), places))
    written.refuse(_near_limit(file, latencies.values(), places))
    units = {shape: max(round(latency * Fraction(10) ** places), 1) for shape, latency in latencies.items()}
    rates = {shape: Fraction(shape[1]) * Fraction(10) ** places / latency for shape, latency in units.items()}
    rate_places = places_for(list(rates.values()), max(rates.values()) * file.threads)
    written.refuse(unshared("profile", "throughputs", "requests/s", rates.values(), rate_places))
    shapes = [Shape(*shape, units[shape], max(round(rates[shape] * Fraction(10) ** rate_places), 1)) for shape in sorted(units)]
    return InstancesQuestion(file.name or Path(written.source).stem, file, tuple(shapes), places, rate_places, written.document)


def _rows(profile: Sequence[MeasuredShape]) -> Iterator[tuple[int, int, Fraction]]:
    return ((row.threads, row.batch, exact(row.latency)) for row in profile)


def _rows_of_file(name: str, written: Written) -> list[tuple[int, int, Fraction]]:
    """Rows of a CSV file."""
    with written.reading("profile"):
        text = written.files.text(name, text_of)
    faults, found, lines = list[Fault](), list[tuple[int, int, Fraction]](), dict[tuple[int, int], int]()
    for cells in table_in(text, name, _COLUMNS, _COLUMNS, "measured shape").lines:
        said = [*([cells.fault] if cells.fault else [])]
        threads, batch, latency = (cell_number(cells, column, said, whole=column != "latency_ms") for column in _COLUMNS)
        shape = int(threads), int(batch)
        if not said and not (shape[0] <= MOST_THREADS and shape[1] <= MOST_BATCH):
            said.append(f"{shape[0]} threads and a batch of {shape[1]} are beyond {MOST_THREADS:,} and {MOST_BATCH:,} (remove the row)")
        if not said and shape in lines:
            said.append(_twice(*shape, f"on line {lines[shape]}"))
        faults += [Fault(cells.line, 1, "", message) for message in said]
        lines.setdefault(shape, cells.line)
        found.append((*shape, latency / 1000))
    if faults:
        raise InstanceError(name, faults)
    return found


def cell_number(cells: Cells, column: str, faults: list[str], whole: bool = False, zero: bool = False) -> Fraction:
    """The number in a cell, exactly; 1 with a fault where it is none."""
    text = cells.given.get(column, "")
    try:
        value = parse_number(text)
    except ValueError:
        value = None
    kind = "whole number" if whole else "number"
    if value is not None and value > _LARGEST:
        faults.append(f"{column}: {quoted(text)} is too large")
        return Fraction(1)
    if value is not None and (value > 0 or (zero and value == 0)) and (not whole or value.denominator == 1):
        return value
    if not cells.fault:
        faults.append(f"{column}: {quoted(text)} is none, a {kind} {'from 0 on' if zero else 'above 0'} is needed")
    return Fraction(1)


def _twice(threads: int, batch: int, where: str) -> str:
    return f"{threads} threads with a batch of {batch} are given twice, also {where} (keep one row)"


def _faults(file: InstancesFile) -> Iterator[tuple[str, str]]:
    if file.batch is None and file.objective == "latency":
        yield "batch", "the number of requests in flight is needed (such as batch: 64; only objective: throughput may leave it open)"
    if file.threads % file.sockets:
        yield "sockets", f"{file.threads} threads cannot be shared evenly by {file.sockets} sockets (give a divisor of the threads)"
    if (file.memory is None) != (file.memory_per_instance is None):
        missing = "memory" if file.memory is None else "memory_per_instance"
        yield ("memory_per_instance" if file.memory is None else "memory"), f"it says nothing without {missing} (add that, or remove this)"
    for count, factor in (file.interference or {}).items():
        if not (count.isdecimal() and 1 <= int(count) <= MOST_THREADS):
            yield f"interference.{count}", f"{quoted(count)} is no number of instances (give a whole number from 1 to {MOST_THREADS:,})"
        elif factor <= 0.0:
            yield f"interference.{count}", "a factor above 0 is needed"
    if not isinstance(file.profile, str):
        places = dict[tuple[int, int], int]()
        for index, row in enumerate(file.profile):
            shape = row.threads, row.batch
            if shape in places:
                yield f"profile[{index}]", _twice(*shape, f"as item {places[shape]}")
            places.setdefault(shape, index)


def _profile_faults(file: InstancesFile, latencies: Mapping[tuple[int, int], Fraction]) -> Iterator[tuple[str, str]]:
    if not 1 <= len(latencies) <= MOST_SHAPES:
        yield "profile", f"{len(latencies):,} shapes are measured, 1 to {MOST_SHAPES:,} are needed"
        return
    if len({int(count) for count in file.interference or {}}) < len(file.interference or {}):
        yield "interference", "a number of instances is given twice (keep one)"
    per_socket = file.threads // file.sockets
    least = min(threads for threads, _ in latencies)
    if least > per_socket:
        where = "the server" if file.sockets == 1 else "a socket"
        yield "threads", f"every measured instance has {least} threads or more, and {where} has {per_socket} (measure smaller instances)"
    smallest = min(batch for _, batch in latencies)
    if file.batch is not None and smallest > file.batch:
        yield (
            "batch",
            f"every measured instance takes {smallest} requests or more, and {file.batch} are in flight (measure smaller batches)",
        )
