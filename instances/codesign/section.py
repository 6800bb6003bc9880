"""The question as the user writes it: workload, cluster, technology or hardware, budget, choices, objective."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from crossopt.crossflow.plan import Offload
from crossopt.instances.catalogue.entries import DeviceEntry, TechnologyEntry
from crossopt.instances.catalogue.workload import WorkloadSection
from crossopt.instances.files.quantities import (
    Area,
    AreaChoice,
    Bandwidth,
    Bytes,
    CountChoice,
    Duration,
    EnergyPerBit,
    Length,
    Money,
    Positive,
    Power,
    PowerChoice,
    PricePerEnergy,
    RatioChoice,
)
from crossopt.instances.files.schema import Bounds, Choice, Doc
from crossopt.instances.files.settings import Keys

Objective = Literal[
    "step_time", "worst_step_time", "energy_per_token", "rated_energy_per_token", "cost_per_token", "die_area", "power", "devices"
]
Degrees = CountChoice | Literal["divisors"]


@dataclass(frozen=True, slots=True)
class LinkSection:
    """Figures of a network level that differ from those of the hardware."""

    bandwidth: Bandwidth | None = None
    latency: Duration | None = None
    setup: Duration | None = None


@dataclass(frozen=True, slots=True)
class HostSection:
    """The memory of the host, to which plans may offload."""

    memory: Annotated[Bytes, Doc("for each device")]
    bandwidth: Annotated[Bandwidth, Doc("of each device's link to it, in either direction")]
    energy: Annotated[EnergyPerBit, Doc("of the link and the memory; an estimate where nothing is said")] = 25e-12


@dataclass(frozen=True, slots=True)
class ClusterSection:
    """How many devices there are and how the network joins them."""

    devices: Annotated[CountChoice, Doc("how many; of several numbers the best is asked for")]
    devices_per_node: Annotated[Positive | None, Doc("devices on the innermost network level")] = None
    devices_per_pod: Annotated[Positive | None, Doc("devices on the middle level, for networks of three levels")] = None
    node: LinkSection = LinkSection()
    pod: LinkSection = LinkSection()
    cluster: LinkSection = LinkSection()
    host: HostSection | None = None

    @property
    def number(self) -> int:
        """The number of devices of a question that asks for one."""
        [number] = self.devices
        return number


@dataclass(frozen=True, slots=True)
class TechnologySection:
    """A technology with other generations of its parts."""

    base: Annotated[str | TechnologyEntry, Doc("a name from `crossopt list technologies`, or the path of a file of yours like theirs")]
    logic: Annotated[str | None, Doc("logic node, such as 7nm")] = None
    memory: Annotated[str | None, Doc("generation of stacked memory, such as hbm2")] = None
    network: Annotated[str | None, Doc("generation of the links between nodes, such as step-4")] = None
    constants: Annotated[str | None, Doc("the device of `crossopt list hardware` whose fitted constants a chip is priced by")] = None


@dataclass(frozen=True, slots=True)
class BudgetSection:
    """What one device may use at the most, and how long a step may take."""

    die_area: Area | None = None
    package_area: Area | None = None
    power: Power | None = None
    step_time: Duration | None = None


@dataclass(frozen=True, slots=True)
class PricesSection:
    """Prices; a cost objective needs them. Either the device's price or the wafer's with what follows from it."""

    electricity: PricePerEnergy
    lifetime: Duration
    device: Money | None = None
    wafer: Money | None = None
    wafer_diameter: Length = 0.3
    defects_per_square_metre: Annotated[float, Bounds(0.0)] = 0.0
    clustering: Annotated[float, Bounds(0.1)] = 3.0
    stack: Annotated[Money | None, Doc("of one memory stack; needed with wafer")] = None
    package: Annotated[Money | None, Doc("of package, board, host and network for one device; needed with wafer")] = None


@dataclass(frozen=True, slots=True)
class ChoicesSection:
    """What may be chosen. What is not named is fixed: the technology's usual split, one device, no recomputation and so on."""

    die_area: AreaChoice | None = None
    compute_area: AreaChoice | None = None
    registers_area: AreaChoice | None = None
    l1_area: AreaChoice | None = None
    l2_area: AreaChoice | None = None
    network_area: AreaChoice | None = None
    node_network_area: AreaChoice | None = None
    compute_power: PowerChoice | None = None
    registers_power: PowerChoice | None = None
    l1_power: PowerChoice | None = None
    l2_power: PowerChoice | None = None
    hbm_power: PowerChoice | None = None
    network_power: PowerChoice | None = None
    node_network_power: PowerChoice | None = None
    hbm_edge: RatioChoice | None = None
    network_edge: RatioChoice | None = None
    node_network_edge: RatioChoice | None = None
    hbm_stacks: CountChoice | None = None
    tensor: Degrees = (1,)
    context: Degrees = (1,)
    pipeline: Degrees = (1,)
    data: Degrees = "divisors"
    expert: Degrees = (1,)
    microbatch: Degrees = (1,)
    interleave: Degrees = (1,)
    sequence_parallel: Annotated[tuple[bool, ...], Choice()] = (False,)
    recompute: Annotated[tuple[Literal["none", "selective", "full"], ...], Choice()] = ("none",)
    zero: Annotated[tuple[int, ...], Bounds(0, 3), Choice()] = (0,)
    overlap: Annotated[tuple[Literal["none", "data", "pipeline", "both"], ...], Choice()] = ("none",)
    offload: Annotated[tuple[Offload, ...], Choice()] = ("none",)
    placement: Annotated[tuple[str, ...], Choice()] = ("tensor-context-data-pipeline",)
    split: Annotated[tuple[Literal["rows-columns", "inner"], ...], Choice()] = ("rows-columns",)
    rows: Degrees = (1,)
    columns: Degrees = (1,)
    layers: Degrees = (1,)


@dataclass(frozen=True, slots=True)
class SharingSection(WorkloadSection):
    """One of several workloads that share the chip and the cluster, each with a plan of its own."""

    name: Annotated[str | None, Doc("what to call it; the model's name where nothing is said")] = None
    weight: Annotated[float, Bounds(0.0), Doc("by which its objective counts in the weighted sum; above 0")] = 1.0
    choices: Annotated[ChoicesSection, Doc("plan choices that replace those of the question for this workload")] = ChoicesSection()


@dataclass(frozen=True, slots=True)
class CodesignFile:
    """One co-design question: which hardware and which parallel plan give the best objective within the budget?"""

    kind: Literal["codesign"]
    cluster: ClusterSection
    workload: Annotated[WorkloadSection | None, Doc("what is trained; or several `workloads`")] = None
    workloads: Annotated[tuple[SharingSection, ...] | None, Doc("several workloads on one chip, each with a plan of its own")] = None
    combine: Annotated[
        Literal["weighted_sum", "worst_regret"] | None,
        Doc("one figure of several workloads: the sum of weight x objective (default), or the greatest v / v* - 1, v* alone on a chip"),
    ] = None
    name: str | None = None
    description: str | None = None
    technology: Annotated[str | TechnologySection | None, Doc("free hardware: what a chip can be made of; a name or a path")] = None
    hardware: Annotated[str | DeviceEntry | None, Doc("fixed hardware: a name from `crossopt list hardware`, or the path of a file")] = None
    budget: BudgetSection = BudgetSection()
    choices: ChoicesSection = ChoicesSection()
    objective: Objective = "step_time"
    prices: PricesSection | None = None
    efficiency: Annotated[dict[str, float], Doc("constants of the model that differ from the hardware's")] = field(default_factory=dict)


KEYS = Keys(frozenset(field.name for field in fields(CodesignFile)), "choices")
"""A setting with a single key, such as `tensor=8`, is one of the choices, unless the top has such a key."""
