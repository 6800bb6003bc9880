"""The question about bandwidths of a network as the user writes it in YAML."""

from dataclasses import dataclass
from typing import Annotated, Literal

from crossopt.crossflow.astra.phases import Collective, Shape
from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Choice, Doc, Duration, Money, Prose, Unit

Tier = Literal["chiplet", "package", "node", "pod"]
Objective = Literal["time", "time_cost"]
Parts = Literal["links", "whole"]


@dataclass(frozen=True, slots=True)
class PriceSection:
    """What bandwidth costs: USD for each GB/s of an NPU."""

    link: Annotated[float, Bounds(0.0, 1e9), Doc("of a link, USD per GB/s")]
    switch: Annotated[float, Bounds(0.0, 1e9), Doc("of a switch, where the shape is one, USD per GB/s")] = 0.0
    nic: Annotated[float, Bounds(0.0, 1e9), Doc("of a network card, USD per GB/s")] = 0.0


@dataclass(frozen=True, slots=True)
class DimensionSection:
    """One dimension, innermost first."""

    name: Annotated[str, Doc("of the dimension")]
    shape: Annotated[Shape, Doc("how its NPUs are joined")]
    size: Annotated[int, Bounds(2, 1 << 20), Doc("NPUs along it")]
    tier: Annotated[Tier | None, Doc("where it lies, which gives the published prices of LIBRA")] = None
    prices: Annotated[PriceSection | None, Doc("own prices, instead of a tier's")] = None
    bandwidth: Annotated[Bandwidth | None, Doc("of an NPU, where it is given and not chosen")] = None
    options: Annotated[tuple[float, ...] | None, Unit("bandwidth"), Choice(), Doc("of a catalogue, one of which is chosen")] = None
    at_least: Annotated[Bandwidth | None, Doc("of an NPU; 0.01 GB/s where nothing is said")] = None
    at_most: Annotated[Bandwidth | None, Doc("of an NPU")] = None


@dataclass(frozen=True, slots=True)
class CollectiveSection:
    """Collectives that a workload waits for."""

    collective: Annotated[Collective, Doc("what is exchanged")]
    bytes: Annotated[Bytes, Doc("at each NPU before it; of an all-gather its own part")]
    group: Annotated[tuple[int, ...], Bounds(1), Doc("members along each dimension, 1 for a dimension that is not used")]
    count: Annotated[int, Bounds(1, 1 << 40), Doc("so many of them, one after another")] = 1


@dataclass(frozen=True, slots=True)
class WorkloadSection:
    """One workload: its work, and what it waits for."""

    name: Annotated[str, Doc("of the workload")]
    collectives: Annotated[tuple[CollectiveSection, ...], Doc("none of which hides behind the work")]
    compute: Annotated[Duration, Doc("beside the collectives")] = 0.0
    weight: Annotated[float, Bounds(1e-6, 1e6), Doc("of its time among those of all workloads")] = 1.0


@dataclass(frozen=True, slots=True)
class BudgetSection:
    """What all dimensions have together."""

    total: Annotated[Bandwidth | None, Doc("the most that the bandwidths of an NPU add up to")] = None
    cost: Annotated[Money | None, Doc("the most that the network costs")] = None
    at_least: Annotated[Bandwidth | None, Doc("the least that the bandwidths of an NPU add up to, for `time_cost`")] = None


@dataclass(frozen=True, slots=True)
class TogetherSection:
    """Dimensions that share something."""

    dimensions: Annotated[tuple[str, ...], Doc("by their names")]
    at_most: Annotated[Bandwidth, Doc("that their bandwidths add up to")]


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """Which bandwidth does each dimension of a network have?"""

    kind: Annotated[Literal["network"], Doc("the kind of question")]
    dimensions: Annotated[tuple[DimensionSection, ...], Doc("innermost first, eight at the most")]
    workloads: Annotated[tuple[WorkloadSection, ...], Doc("that run on the network, each alone")]
    budget: Annotated[BudgetSection, Doc("of all dimensions together")]
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    objective: Annotated[Objective, Doc("`time`, or time times cost: the best performance per cost")] = "time"
    part_groups: Annotated[
        Parts, Doc("what a group has of a ring or full connection: the `links` that its bytes pass, or the `whole`, as in LIBRA")
    ] = "links"
    descending: Annotated[tuple[str, ...], Doc("dimensions of which none has less than the next one")] = ()
    together: Annotated[tuple[TogetherSection, ...], Doc("limits of some dimensions together")] = ()
