"""The question about bandwidths of a network as the user writes it in YAML."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isfinite, lcm, prod
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.astra.collective import Collective, Shape, fluid_loads, share_of_chunk
from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Choice, Doc, Duration, Money, Prose, Unit
from crossopt.instances.files.units import exact, float_covering, nearest, quoted
from crossopt.instances.files.written import Written, short_repr

Tier = Literal["chiplet", "package", "node", "pod"]
Objective = Literal["time", "time_cost"]
Parts = Literal["links", "whole"]


@dataclass(frozen=True, slots=True)
class PriceSection:
    """What bandwidth costs: USD for each GB/s of an NPU."""

    link: Annotated[float, Bounds(0.0, 1e9), Doc("price of a link, in USD per GB/s")]
    switch: Annotated[float, Bounds(0.0, 1e9), Doc("price of a switch if the shape is one, in USD per GB/s")] = 0.0
    nic: Annotated[float, Bounds(0.0, 1e9), Doc("price of a network card, in USD per GB/s")] = 0.0


@dataclass(frozen=True, slots=True)
class DimensionSection:
    """One dimension, innermost first."""

    name: Annotated[str, Doc("name of the dimension")]
    shape: Annotated[Shape, Doc("topology of its NPUs")]
    size: Annotated[int, Bounds(2, 1 << 20), Doc("number of NPUs along the dimension")]
    tier: Annotated[Tier | None, Doc("tier of the network, for the published prices of LIBRA")] = None
    prices: Annotated[PriceSection | None, Doc("prices of the dimension, instead of a tier's")] = None
    bandwidth: Annotated[Bandwidth | None, Doc("bandwidth of an NPU, if it is fixed")] = None
    options: Annotated[tuple[float, ...] | None, Unit("bandwidth"), Choice(), Doc("bandwidths to choose from")] = None
    at_least: Annotated[Bandwidth | None, Doc("lowest bandwidth of an NPU; default: 0.01 GB/s")] = None
    at_most: Annotated[Bandwidth | None, Doc("highest bandwidth of an NPU")] = None


@dataclass(frozen=True, slots=True)
class CollectiveSection:
    """Collectives that a workload waits for."""

    collective: Annotated[Collective, Doc("collective operation")]
    bytes: Annotated[Bytes, Doc("bytes at each NPU before the collective; for an all-gather its own share")]
    group: Annotated[tuple[int, ...], Bounds(1), Doc("group members along each dimension; 1 for an unused dimension")]
    count: Annotated[int, Bounds(1, 1 << 40), Doc("number of repetitions, one after another")] = 1


@dataclass(frozen=True, slots=True)
class WorkloadSection:
    """One workload: its work, and what it waits for."""

    name: Annotated[str, Doc("name of the workload")]
    collectives: Annotated[tuple[CollectiveSection, ...], Doc("collectives, none overlapped with computation")]
    compute: Annotated[Duration, Doc("time outside the collectives")] = 0.0
    weight: Annotated[float, Bounds(1e-6, 1e6), Doc("weight of its time in the objective")] = 1.0


@dataclass(frozen=True, slots=True)
class BudgetSection:
    """What all dimensions have together."""

    total: Annotated[Bandwidth | None, Doc("upper limit of the sum of an NPU's bandwidths")] = None
    cost: Annotated[Money | None, Doc("highest cost of the network")] = None
    at_least: Annotated[Bandwidth | None, Doc("lower limit of the sum of an NPU's bandwidths, for `time_cost`")] = None


@dataclass(frozen=True, slots=True)
class TogetherSection:
    """Dimensions that share something."""

    dimensions: Annotated[tuple[str, ...], Doc("names of the dimensions")]
    at_most: Annotated[Bandwidth, Doc("upper limit of the sum of their bandwidths")]


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """Which bandwidth does each dimension of a network have?"""

    kind: Annotated[Literal["network"], Doc("problem type")]
    dimensions: Annotated[tuple[DimensionSection, ...], Doc("dimensions, innermost first, at most eight")]
    workloads: Annotated[tuple[WorkloadSection, ...], Doc("workloads, each alone on the network")]
    budget: Annotated[BudgetSection, Doc("limits on all dimensions together")]
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    objective: Annotated[Objective, Doc("minimise `time`, or `time_cost`, time x cost")] = "time"
    part_groups: Annotated[
        Parts, Doc("bandwidth of a group in a ring or full connection: that of the `links` that it uses, or the `whole`, as in LIBRA")
    ] = "links"
    descending: Annotated[tuple[str, ...], Doc("dimensions in descending order of bandwidth")] = ()
    together: Annotated[tuple[TogetherSection, ...], Doc("limits on several dimensions together")] = ()


# From what is written to a question about bandwidths: what each workload sends on each dimension, what bandwidth costs, and limits.
#
# A dimension costs `count * links * bandwidth of a link * price`. A ring of n has 2 n links of B / 2, a full connection n (n - 1) of
# B / (n - 1), in N / n copies each; a switch joins all NPUs below it by one link of B each. So it is N B times the price in every shape,
# where the price is that of link and card, and of the switch where it is one. Published prices: LIBRA (arXiv 2109.11762), its cost models.

MOST_DIMENSIONS, MOST_COLLECTIVES, MOST_OPTIONS = 8, 64, 1_000
LEAST, MOST = 1e7, 1e18
"""Bytes a second of a dimension of which nothing is said, and that any dimension may have."""
_GIGA = 1e9
PUBLISHED: Mapping[Tier, PriceSection] = {
    "chiplet": PriceSection(2.0),
    "package": PriceSection(4.0, 13.0),
    "node": PriceSection(4.0, 13.0),
    "pod": PriceSection(7.8, 18.0, 31.6),
}


@dataclass(frozen=True, slots=True)
class Sent:
    """Collectives of one sort of a workload, all of them together: on each dimension the bytes that take as long over all its bandwidth."""

    workload: int
    weight: float
    bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A limit: sum of factor * bandwidth, at most so much."""

    name: str
    factors: tuple[float, ...]
    most: float
    unit: float = 1.0
    """By which both are multiplied."""


@dataclass(frozen=True, slots=True)
class NetworkQuestion:
    """Which bandwidths make the workloads quickest, or quickest for their cost?"""

    name: str
    file: NetworkFile
    sent: tuple[Sent, ...]
    costs: tuple[float, ...] | None
    """USD for each byte a second of an NPU, by dimension; None where a dimension has no price."""
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    """Infinite where nothing is said."""
    rows: tuple[Row, ...]
    descending: tuple[tuple[int, int], ...]
    """Places of dimensions, the first of which has no less than the second."""
    document: dict[str, Any]

    __repr__ = short_repr

    @property
    def compute(self) -> float:
        """Seconds of work, weighted."""
        return sum(workload.weight * workload.compute for workload in self.file.workloads)


def size_of(question: NetworkQuestion) -> str:
    """How large the question is, in words."""
    file = question.file
    npus = prod(dimension.size for dimension in file.dimensions)
    text = f"{len(file.dimensions)} dimension{'s' * (len(file.dimensions) > 1)} of {npus:,} NPUs"
    return f"{text}, {len(file.workloads)} workload{'s' * (len(file.workloads) > 1)} with {len(question.sent)} sorts of collectives"


def read(written: Written) -> NetworkQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(NetworkFile)
    written.refuse([*_dimension_faults(file), *_workload_faults(file), *_budget_faults(file), *_name_faults(file)])
    names = [dimension.name for dimension in file.dimensions]
    ordered = [names.index(name) for name in file.descending]
    return NetworkQuestion(
        file.name or Path(written.source).stem,
        file,
        tuple(_sent(file)),
        _costs(file),
        tuple(_low(dimension) for dimension in file.dimensions),
        tuple(_high(dimension) for dimension in file.dimensions),
        tuple(_rows(file)),
        tuple(pairwise(ordered)),
        written.document,
    )


def _low(dimension: DimensionSection) -> float:
    if dimension.bandwidth is not None:
        return dimension.bandwidth
    return dimension.options[0] if dimension.options else LEAST if dimension.at_least is None else dimension.at_least


def _high(dimension: DimensionSection) -> float:
    if dimension.bandwidth is not None:
        return dimension.bandwidth
    return dimension.options[-1] if dimension.options else float("inf") if dimension.at_most is None else dimension.at_most


def _sent(file: NetworkFile) -> Iterator[Sent]:
    for index, workload in enumerate(file.workloads):
        for section in workload.collectives:
            loads = loads_of(file, section)
            if any(loads):
                yield Sent(index, workload.weight, loads)


def loads_of(file: NetworkFile, section: CollectiveSection) -> tuple[float, ...]:
    """On each dimension the bytes of a collective that take as long over all its bandwidth."""
    return fluid_loads(section.collective, section.bytes * section.count, section.group, shares_of(file, section))


def shares_of(file: NetworkFile, section: CollectiveSection) -> list[Fraction]:
    """The share of each dimension's bandwidth that a collective has; all of it where that is how LIBRA counts."""
    if file.part_groups == "whole":
        return [Fraction(1)] * len(file.dimensions)
    groups = zip(file.dimensions, section.group, strict=True)
    return [share_of_chunk(section.collective, dim.shape, dim.size, members) for dim, members in groups]


def price_of(dimension: DimensionSection) -> PriceSection | None:
    return dimension.prices if dimension.prices is not None else PUBLISHED[dimension.tier] if dimension.tier is not None else None


def _exact_costs(file: NetworkFile) -> tuple[Fraction, ...] | None:
    """USD of a byte a second on each dimension, of all NPUs together."""
    npus, found = prod(dimension.size for dimension in file.dimensions), list[Fraction]()
    for dimension in file.dimensions:
        price = price_of(dimension)
        if price is None:
            return None
        switch = exact(price.switch) if dimension.shape == "switch" else 0
        found.append(npus * (exact(price.link) + exact(price.nic) + switch) / int(_GIGA))
    return tuple(found)


def cost_of(file: NetworkFile, rates: Sequence[float]) -> float | None:
    """USD of these bandwidths, as a budget that they keep."""
    costs = _exact_costs(file)
    if costs is None:
        return None
    return float_covering(sum((cost * exact(rate) for cost, rate in zip(costs, rates, strict=True)), Fraction(0)))


def _costs(file: NetworkFile) -> tuple[float, ...] | None:
    found = _exact_costs(file)
    return None if found is None else tuple(map(float, found))


_MOST_UNITS = 10**30
"""Up to which a unit is taken: finer prices are rounded as floats are."""


def _cost_row(costs: Sequence[Fraction], most: float) -> Row:
    """The budget in a unit in which all costs are whole, as far as 64 bits hold these, so that no rounding breaks a limit that is met."""
    unit = lcm(*(cost.denominator for cost in costs))
    unit = unit if unit <= _MOST_UNITS else int(_GIGA)
    return Row("budget.cost", tuple(float(cost * unit) for cost in costs), float(exact(most) * unit), float(unit))


def _rows(file: NetworkFile) -> Iterator[Row]:
    budget, count, costs = file.budget, len(file.dimensions), _exact_costs(file)
    if budget.total is not None:
        yield Row("budget.total", (1.0,) * count, budget.total)
    if budget.cost is not None and costs is not None:
        yield _cost_row(costs, budget.cost)
    if budget.at_least is not None:
        yield Row("budget.at_least", (-1.0,) * count, -budget.at_least)
    for number, section in enumerate(file.together):
        factors = tuple(float(dimension.name in section.dimensions) for dimension in file.dimensions)
        yield Row(f"together[{number}]", factors, section.at_most)


# --- faults --------------------------------------------------------------------------------------------------------------------------


def _dimension_faults(file: NetworkFile) -> Iterator[tuple[str, str]]:
    """What no single value of a dimension shows."""
    if not 1 <= len(file.dimensions) <= MOST_DIMENSIONS:
        yield "dimensions", f"{len(file.dimensions)} dimensions are given, 1 to {MOST_DIMENSIONS} are needed"
    names = [dimension.name for dimension in file.dimensions]
    for index, dimension in enumerate(file.dimensions):
        at = f"dimensions[{index}]"
        if dimension.name in names[:index]:
            yield f"{at}.name", f"there are two dimensions {quoted(dimension.name)} (give each a name of its own)"
        given = [key for key in ("bandwidth", "options") if getattr(dimension, key) is not None]
        if len(given) > 1 or (given and (dimension.at_least is not None or dimension.at_most is not None)):
            yield f"{at}.{given[0]}", "give one of bandwidth, options, and at_least with at_most"
        if dimension.tier is not None and dimension.prices is not None:
            yield f"{at}.prices", "prices are those of a tier or own ones (take one of the two away)"
        if len(dimension.options or ()) > MOST_OPTIONS:
            yield f"{at}.options", f"{len(dimension.options or ()):,} options are more than {MOST_OPTIONS:,} (give fewer)"
        low, high = _low(dimension), _high(dimension)
        if low < 1.0 or low > MOST or (isfinite(high) and high > MOST):
            key = given[0] if given else "at_least" if low < 1.0 or low > MOST else "at_most"
            yield f"{at}.{key}", "bandwidths lie between 1 B/s and 1000 PB/s (give one between these)"
        elif high < low:
            yield f"{at}.at_most", "at_most is below at_least, which defaults to 0.01 GB/s (exchange or correct them)"


def _workload_faults(file: NetworkFile) -> Iterator[tuple[str, str]]:
    sizes = [dimension.size for dimension in file.dimensions]
    count = sum(len(workload.collectives) for workload in file.workloads)
    if not file.workloads or count > MOST_COLLECTIVES or not count:
        yield "workloads", f"{count} collectives are given, 1 to {MOST_COLLECTIVES} are needed (those of one sort may be one with a count)"
    for index, workload in enumerate(file.workloads):
        for number, section in enumerate(workload.collectives):
            at = f"workloads[{index}].collectives[{number}]"
            if len(section.group) != len(sizes):
                text = f"{len(section.group)} numbers are given for {len(sizes)} dimensions"
                yield f"{at}.group", f"{text} (write the members along each, 1 for a dimension that is not used)"
                continue
            over = [axis for axis, (members, size) in enumerate(zip(section.group, sizes, strict=True)) if members > size]
            if over:
                text = f"the group has more members than the {sizes[over[0]]} NPUs along {quoted(file.dimensions[over[0]].name)}"
                yield f"{at}.group[{over[0]}]", f"{text} (give {sizes[over[0]]} or fewer)"
            if not 1.0 <= section.bytes * section.count <= 1e18:
                yield f"{at}.bytes", "a collective moves between a byte and 1e18 bytes, all of its count together (mend the figure)"
    if not any(any(members > 1 for members in section.group) for workload in file.workloads for section in workload.collectives):
        yield "workloads", "no collective has a group of two members, so that no bandwidth counts (give a group)"


def _budget_faults(file: NetworkFile) -> Iterator[tuple[str, str]]:
    budget = file.budget
    for key in ("total", "cost", "at_least"):
        amount = getattr(budget, key)
        if amount is not None and not 0.0 < amount <= MOST:
            yield f"budget.{key}", "this is no budget (give more than nothing, and 1e18 at the most)"
    yield from _price_faults(file) if file.objective == "time_cost" or budget.cost is not None else ()
    if file.objective == "time_cost":
        yield from _weighing_faults(file)
        return
    free = [dim for dim in file.dimensions if dim.bandwidth is None and dim.options is None and dim.at_most is None]
    if budget.at_least is not None:
        yield "budget.at_least", "more bandwidth only shortens the time (remove this, or ask for `objective: time_cost`)"
    if budget.total is None and budget.cost is None and free:
        yield "budget", f"nothing limits {quoted(free[0].name)} (give a total or a cost, or at_most of every dimension)"


def _price_faults(file: NetworkFile) -> Iterator[tuple[str, str]]:
    for dimension in file.dimensions:
        price = price_of(dimension)
        if price is None:
            yield "dimensions", f"{quoted(dimension.name)} has no price where costs count (give each dimension a tier or prices)"
        elif not price.link + price.nic:
            yield "dimensions", f"bandwidth of {quoted(dimension.name)} costs nothing, so that nothing limits it (give its link a price)"


def _weighing_faults(file: NetworkFile) -> Iterator[tuple[str, str]]:
    """What is not asked together with time times cost."""
    for key in ("total", "cost"):
        if getattr(file.budget, key) is not None:
            yield f"budget.{key}", "time_cost weighs what bandwidth costs (remove this; `at_least` says how much all dimensions have)"
    if file.together:
        yield "together", "time_cost knows no limits of some dimensions together (take them away)"
    if any(dim.options for dim in file.dimensions):
        yield "objective", "time_cost is answered where bandwidths may be anything (take the options away, or ask for time)"
    if not any(workload.compute for workload in file.workloads):
        yield "workloads", "without work time times cost is the same for a network and for twice that (give a `compute`)"


def _name_faults(file: NetworkFile) -> Iterator[tuple[str, str]]:
    names = [dimension.name for dimension in file.dimensions]
    mentions = [(f"descending[{index}]", name) for index, name in enumerate(file.descending)]
    for row, section in enumerate(file.together):
        mentions += [(f"together[{row}].dimensions[{index}]", name) for index, name in enumerate(section.dimensions)]
    for path, name in mentions:
        if name not in names:
            meant = nearest(name, names)
            remedy = f"did you mean {quoted(meant[0])}?" if meant else f"one of {', '.join(names)}"
            yield path, f"there is no dimension {quoted(name)} ({remedy})"
    if len(set(file.descending)) < len(file.descending):
        yield "descending", "a dimension stands here twice (name each once)"
