"""A question with all names resolved and all figures in SI: what the engines answer and the verifier checks against."""

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from crossopt.crossflow.cost import Prices
from crossopt.crossflow.goodput import Failures
from crossopt.crossflow.hardware import Budget, Cluster, Efficiency, Hardware, Link, Memory, Shape
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Workload
from crossopt.instances.codesign.goals import Goal
from crossopt.instances.codesign.stacks.table import Machine, Stack

if TYPE_CHECKING:
    from crossopt.crossflow.generator import Edges
    from crossopt.crossflow.technology import Parts, Technology
    from crossopt.instances.catalogue.uncertain import Range

Options = tuple[tuple[str, tuple[Any, ...]], ...]
"""Names of choices and their options, in the order in which designs are counted."""


@dataclass(frozen=True, slots=True)
class Join:
    """How a network level joins units of the one inside, how many where that counts, and its share of the links that it uses."""

    shape: Shape
    units: int
    share: float


@dataclass(frozen=True, slots=True)
class FreeHardware:
    """Hardware that is to be chosen: the technology, and what a chip is like where nothing is chosen."""

    technology: "Technology"
    die_area: float
    package_area: float
    power: float
    power_density: float
    """That its usual cooling takes away."""
    reticle: float
    """Square metres of the largest die."""
    dies: float
    areas: "Parts"
    """Shares of the die area."""
    sold_l2: float
    """Banks of L2 for each core in the chip that is sold."""
    powers: "Parts"
    """Shares of the power."""
    edges: "Edges"
    reserved_memory: float
    host: Memory | None
    efficiency: Efficiency
    variants: tuple[Efficiency, ...]
    """Other sets of constants that may hold, the optimistic and the pessimistic one; none where nothing was fitted."""
    setups: tuple[float, float]
    """Seconds to start a collective inside a node and between nodes, measured on the device whose constants these are."""
    levels: tuple[str, ...]
    """Which of the links, `intra` and `inter`, each network level uses."""
    overrides: tuple[Link | None, ...]
    """Given links of those levels, where the question gives them."""
    joins: tuple[Join, ...]
    """The shapes of those levels."""
    options: Options
    """Choices of hardware."""
    prices: Prices | None = None
    """Those of the technology, for questions that give none."""
    like: str | None = None
    """The device whose constants price the chips; none where they are priced by the model's own."""
    sources: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """Where figures of the technology are from."""
    sold: Hardware | None = field(default=None, compare=False)
    """That device as it is sold, in the same cluster, where the chips are of its node and of its memory."""


@dataclass(frozen=True, slots=True)
class Other:
    """The hardware under another set of constants."""

    name: str
    hardware: Hardware | FreeHardware


@dataclass(frozen=True, slots=True)
class Instance:
    """One co-design question."""

    name: str
    workload: Workload
    cluster: Cluster
    hardware: Hardware | FreeHardware
    plan_options: Options
    budget: Budget
    objective: str
    prices: Prices | None
    document: dict[str, Any]
    """The question as it was written, for results that can be checked without the file."""
    only: tuple[str, ...] = ()
    """Settings that plans have as they are listed, or are no plans of the question; others hold where they mean something."""
    failures: Failures | None = None
    machine: Machine = field(default_factory=Machine)
    stack: Stack | None = None
    """What plans must be launched by, where the question names it: the rows of its table are rules of plans."""
    derived: str = ""
    """Which figures of the device its file leaves out, and what was taken instead."""
    priced_by: str = field(default="", compare=False)
    """Which set of constants prices it, of which stack and versions, and where that is from: words about it."""
    reserve_given: bool = False
    """Whether the question says how much of each device's memory no plan may use."""
    goal: Goal | None = None
    """The whole run, whose limits are in the budget as a step time."""
    ceilings: tuple[tuple[str, float], ...] = ()
    """Objectives that a design may have at most so much of, beside those of the budget."""
    ranges: tuple["Range", ...] = ()
    """Constants of which sources leave a range."""
    others: tuple[Other, ...] = ()
    """Other sets of constants that may hold: a design keeps every limit under each, and its value is the greatest of all."""
    unnamed: tuple[str, ...] = field(default=(), compare=False)
    """Settings of a transformer's plan that the question does not speak of: words about it, no part of what is asked."""


def under_each(instance: Instance) -> tuple[tuple[str, Instance], ...]:
    """The question under each of its other sets of constants, with the same choices, room and limits."""
    own = instance.hardware
    shared: dict[str, Any] = {"reserved_memory": own.reserved_memory, "host": own.host}
    shared |= {"options": own.options} if isinstance(own, FreeHardware) else {}
    return tuple((other.name, replace(instance, hardware=replace(other.hardware, **shared), others=())) for other in instance.others)


@dataclass(frozen=True, slots=True)
class Portfolio:
    """Several workloads that share the chip and the cluster, each with a plan of its own.

    Every part is a question of its own with the hardware, cluster, budget and objective of all; its name is the workload's.
    """

    name: str
    parts: tuple[Instance, ...]
    weights: tuple[float, ...]
    combine: str
    """`weighted_sum`, or `worst_regret`: the greatest v_k / v_k* - 1, where v_k* is the optimum of a workload alone."""
    document: dict[str, Any]
    """The question as it was written."""

    @property
    def objective(self) -> str:
        return self.parts[0].objective


class Place(NamedTuple):
    """What sets one of several questions apart: devices; the batch, 0 where there is one only; the network, empty where there is one."""

    devices: int
    batch: int = 0
    network: str = ""


@dataclass(frozen=True, slots=True)
class MultiScaleQuestion:
    """A question that leaves the number of devices open, the batch, or sizes and bandwidths of the network."""

    name: str
    objective: str
    """That of every part; or `devices`, for the fewest, where the parts ask for the least step time."""
    places: tuple[Place, ...]
    """Of each part, devices ascending."""
    parts: tuple[Instance, ...]
    """One question for each number of devices, each batch and each network."""
    document: dict[str, Any]
    """The question as it was written."""
    impossible: tuple[tuple[Place, str], ...] = ()
    """Those that no question can be asked about, beside those that are, and why."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Devices of each part."""
        return tuple(place.devices for place in self.places)

    @property
    def batches(self) -> tuple[int, ...]:
        """Samples of a step of each part; none where there is one batch."""
        return tuple(place.batch for place in self.places if place.batch)

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks with those that are impossible, each once; none where there is one."""
        every = (*self.places, *(place for place, _ in self.impossible))
        return tuple(dict.fromkeys(place.network for place in every if place.network))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of devices, each once."""
        return tuple(dict.fromkeys(self.counts))

    @property
    def asked_for(self) -> tuple[int, ...]:
        """The numbers of devices with those that are impossible, each once."""
        return tuple(dict.fromkeys((*self.counts, *(place.devices for place, _ in self.impossible))))

    @property
    def by_devices(self) -> bool:
        """Whether parts are told apart by their number of devices."""
        return len(self.asked_for) > 1 or not (self.batches or self.networks)

    @property
    def samples(self) -> tuple[int, ...]:
        """The batches, each once; none where there is one."""
        return tuple(dict.fromkeys(self.batches))

    def part_name(self, place: int) -> str:
        """What sets a part apart from the others."""
        devices, batch, network = self.places[place]
        words = [f"{devices:,} devices"] if self.by_devices else []
        return ", ".join([*words, *([f"batch {batch:,}"] if batch else []), *([network] if network else [])])
