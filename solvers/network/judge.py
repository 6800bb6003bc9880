"""Bandwidths of a network, and their judge: times of the workloads from the question's own figures, the cost, and every limit."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf

from crossopt.crossflow.astra.collective import fluid_bytes
from crossopt.instances.files.units import format_quantity
from crossopt.instances.network.question import NetworkFile, NetworkQuestion, WorkloadSection, loads_of
from crossopt.solvers.answer import Verdict

# Bandwidths of a network, and what the judge says of them.


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """Of an NPU on each dimension, bytes a second."""

    bandwidths: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Exchanged:
    """Collectives of one sort: bytes and seconds on each dimension, of which the longest is their time."""

    workload: str
    collective: str
    bytes: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """What a network does."""

    times: tuple[float, ...]
    """Seconds of each workload, its work and its collectives."""
    exchanged: tuple[Exchanged, ...]
    total: float
    """Bytes a second of all dimensions together."""
    cost: float | None
    """USD; None where a dimension has no price."""


# The judge of bandwidths: times of the workloads from the question's own figures, the cost, and every limit counted exactly.


def judge(question: NetworkQuestion, answer: Bandwidths) -> Verdict[Network]:
    """Seconds, weighted, of all workloads, or these times the cost; a ValueError where the answer is none of the question."""
    rates, file = answer.bandwidths, question.file
    if len(rates) != len(file.dimensions):
        raise ValueError(f"{len(rates)} bandwidths are given for {len(file.dimensions)} dimensions")
    if not all(0.0 < rate < inf for rate in rates):
        raise ValueError("bandwidths are more than nothing")
    exchanged = [list(_exchanged(file, workload, rates)) for workload in file.workloads]
    times = tuple(
        fsum((workload.compute, *(max(one.seconds) for one in sorts))) for workload, sorts in zip(file.workloads, exchanged, strict=True)
    )
    cost = None if question.costs is None else fsum(price * rate for price, rate in zip(question.costs, rates, strict=True))
    value = fsum(workload.weight * time for workload, time in zip(file.workloads, times, strict=True))
    value = value * cost if file.objective == "time_cost" and cost is not None else value
    details = Network(times, tuple(one for sorts in exchanged for one in sorts), fsum(rates), cost)
    return Verdict(value, tuple(_violations(question, rates)), details)


def _exchanged(file: NetworkFile, workload: WorkloadSection, rates: tuple[float, ...]) -> Iterator[Exchanged]:
    for section in workload.collectives:
        sizes = fluid_bytes(section.collective, section.bytes * section.count, section.group)
        seconds = tuple(load / rate for load, rate in zip(loads_of(file, section), rates, strict=True))
        yield Exchanged(workload.name, section.collective, sizes, seconds)


def _violations(question: NetworkQuestion, rates: tuple[float, ...]) -> Iterator[str]:
    dimensions = question.file.dimensions
    for dimension, rate, low, high in zip(dimensions, rates, question.lows, question.highs, strict=True):
        said = format_quantity(rate, "bandwidth")
        if dimension.options is not None and rate not in dimension.options:
            yield f"{dimension.name}: {said} is none of the options"
        elif not low <= rate <= high:
            yield f"{dimension.name}: {said} is not within {format_quantity(low, 'bandwidth')} and what it may have at the most"
    for more, less in question.descending:
        if rates[more] < rates[less]:
            yield f"{dimensions[more].name} has less than {dimensions[less].name}"
    for row in question.rows:
        used = sum(Fraction(factor) * Fraction(rate) for factor, rate in zip(row.factors, rates, strict=True))
        if used > Fraction(row.most):
            yield f"{row.name}: {abs(float(used)):.15g} where {abs(row.most):.15g} is the limit"
