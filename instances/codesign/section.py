"""The cluster of a question as the user writes it: devices, their network as nodes and pods or as a list of dimensions, and the host."""

from dataclasses import field, fields, make_dataclass
from typing import Annotated, Any, Final, Literal

from crossopt.crossflow.cost import Prices
from crossopt.crossflow.fields import (
    Area,
    AreaChoice,
    As,
    Bandwidth,
    BandwidthChoice,
    Bounds,
    Bytes,
    Choice,
    CountChoice,
    Doc,
    Duration,
    Energy,
    EnergyPerBit,
    Given,
    Money,
    Positive,
    Power,
    PowerChoice,
    PowerPerArea,
    PricePerEnergy,
    Prose,
    RatioChoice,
    Setting,
    Short,
)
from crossopt.crossflow.hardware import Shape
from crossopt.crossflow.plan import CANONICAL_SETTINGS, NAMED_OPTIONS, Plan
from crossopt.crossflow.records import dataclass
from crossopt.instances.catalogue.entries import DeviceEntry, TechnologyEntry
from crossopt.instances.catalogue.workload import WorkloadSection
from crossopt.instances.files.schema import Kind, Slot, slots_of, unwrap
from crossopt.instances.files.written import Keys

Links = Literal["node", "pod", "cluster"]
"""Links of the hardware."""


@dataclass(frozen=True, slots=True)
class LinkSection:
    """Figures of a network level that differ from those of the hardware."""

    bandwidth: Annotated[Bandwidth | None, Doc("what a collective sustains per device and direction, about 0.8 of a port's rating")] = None
    latency: Annotated[Duration | None, Doc("per step of a collective")] = None
    setup: Annotated[Duration | None, Doc("per collective")] = None
    ring_latency: Annotated[
        Duration | None,
        Doc("per step of a ring over all ranks that share, if longer than `latency`; the hardware's where neither is given"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionSection:
    """One dimension of a network; figures that it leaves out are those of the hardware's links."""

    size: Annotated[
        CountChoice | Literal["divisors"],
        Doc("units of the dimension inside that it joins, devices of the innermost one; of several the best is asked for"),
    ]
    shape: Annotated[
        Shape,
        Doc(
            "one switch for all devices; `rails`, a switch for those with the same place in each unit; a ring; or links from each to each, "
            "both between devices with the same place"
        ),
    ] = "switch"
    links: Annotated[
        Links | None, Doc("of the hardware, whose figures these are; `node` as far as its usual node goes, `cluster` beyond")
    ] = None
    bandwidth: Annotated[
        BandwidthChoice | None,
        Doc(
            "what a collective of all ranks sustains per device and direction, over all its links along the dimension together; of it few "
            "ranks sustain the share that the hardware's file says of switches on a node's links (an A100 84 % between two)"
        ),
    ] = None
    latency: Annotated[Duration | None, Doc("per step of a collective")] = None
    setup: Annotated[Duration | None, Doc("per collective")] = None
    ring_latency: Annotated[
        Duration | None,
        Doc("per step of a ring over all ranks that share, if longer than `latency`; the hardware's where neither is given"),
    ] = None
    share: Annotated[
        RatioChoice | None,
        Doc("of the bandwidth of those links; an equal one where several dimensions have the same ones, all of it if all are switches"),
    ] = None


@dataclass(frozen=True, slots=True)
class HostSection:
    """The memory of the host, to which plans may offload."""

    memory: Annotated[Bytes, Doc("for each device")]
    bandwidth: Annotated[Bandwidth, Doc("of each device's link to it, in either direction")]
    energy: Annotated[EnergyPerBit, Doc("of the link and the memory; an estimate where nothing is said")] = 25e-12


@dataclass(frozen=True, slots=True)
class FailuresSection:
    """How often devices fail, and what a run loses then."""

    mean_time: Annotated[Duration, Doc("between two failures of one device; 50,000 h were seen on 16,384 H100 (Llama team 2024)")]
    checkpoint: Annotated[Duration, Doc("that writing a checkpoint holds the run up")]
    restart: Annotated[Duration, Doc("from a failure until the run goes on from its last checkpoint")]


@dataclass(frozen=True, slots=True)
class ClusterSection:
    """How many devices there are and how the network joins them."""

    devices: Annotated[CountChoice, Doc("how many; of several numbers the best is asked for")]
    devices_per_node: Annotated[
        Positive | None, Doc("devices on the innermost network level; the hardware's usual number, of a technology 1")
    ] = None
    devices_per_pod: Annotated[Positive | None, Doc("devices on the middle level, for networks of three levels")] = None
    node: Annotated[LinkSection, Doc("links inside a node")] = LinkSection()
    pod: Annotated[LinkSection, Doc("links inside a pod, where there are pods")] = LinkSection()
    cluster: Annotated[LinkSection, Doc("links between nodes, or between pods")] = LinkSection()
    network: Annotated[
        tuple[DimensionSection, ...] | None, Doc("dimensions, innermost first, in place of nodes and pods and their links")
    ] = None
    network_bandwidth: Annotated[
        Bandwidth | None, Doc("the most that the bandwidths of all dimensions, each of which is given, add up to")
    ] = None
    host: Annotated[HostSection | None, Doc("the host's memory for each device; without it no plan offloads")] = None
    reserved_memory: Annotated[
        Bytes | None, Doc("of each device that no plan may use; what the framework takes by the hardware's file where nothing is said")
    ] = None
    failures: Annotated[
        FailuresSection | None,
        Doc("the answer then says how much of the time failures and checkpoints leave, and deadlines and budgets of `goal` count it"),
    ] = None

    @property
    def number(self) -> int:
        """The number of devices of a question that asks for one."""
        [number] = self.devices
        return number


# The question as the user writes it: workload, cluster, technology or hardware, budget, choices, objective.

Objective = Literal[
    "step_time",
    "time_per_sample",
    "worst_step_time",
    "energy_per_token",
    "rated_energy_per_token",
    "cost_per_token",
    "die_area",
    "power",
    "devices",
]
StackName = Literal["megatron-core", "torchtitan", "deepspeed", "fsdp"]
Degrees = CountChoice | Literal["divisors"]


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

    die_area: Annotated[Area | None, Doc("of a free chip, all its dies together; its technology's usual one where nothing is said")] = None
    package_area: Annotated[Area | None, Doc("of the interposer, a box around dies and stacks; its technology's where nothing is said")] = (
        None
    )
    power: Annotated[Power | None, Doc("of one device; the usual one where nothing is said")] = None
    power_density: Annotated[PowerPerArea | None, Doc("of a free chip's die; what its technology's usual cooling takes away")] = None
    reticle: Annotated[Area | None, Doc("of one die of a free chip; its technology's where nothing is said")] = None
    step_time: Annotated[
        Duration | None, Doc("of a step, for objectives other than time, as in: the smallest die that trains in 5 s a step")
    ] = None
    time_per_sample: Annotated[Duration | None, Doc("step time / samples of a step")] = None
    worst_step_time: Annotated[Duration | None, Doc("of a step by the slowest of the device's sets of constants")] = None
    energy_per_token: Annotated[Energy | None, Doc("that a token may take")] = None
    rated_energy_per_token: Annotated[Energy | None, Doc("rated power x time of a token")] = None
    cost_per_token: Annotated[Money | None, Doc("of a token; needs `prices`")] = None


@dataclass(frozen=True, slots=True)
class PricesSection:
    """Prices in place of those of the technology: the device's, or the wafer's with what follows; of a device that is bought its own."""

    electricity: Annotated[float, As(Prices)] = 0.0806 / 3.6e6
    lifetime: Annotated[float, As(Prices)] = 4.0 * 365.25 * 86400.0
    device: Annotated[float | None, As(Prices)] = None
    wafer: Annotated[float | None, As(Prices)] = None
    wafer_diameter: Annotated[float, As(Prices)] = 0.3
    defects_per_square_metre: Annotated[float | None, Bounds(0.0), Doc("of the wafer; more of them, fewer good dies")] = None
    clustering: Annotated[float, As(Prices)] = 3.0
    stack: Annotated[float | None, As(Prices)] = None
    package: Annotated[float | None, As(Prices)] = None
    interposer: Annotated[float | None, As(Prices)] = None
    bonding_loss: Annotated[float | None, As(Prices)] = None
    lane: Annotated[float | None, As(Prices)] = None


@dataclass(frozen=True, slots=True)
class PurchaseSection:
    """Devices that are bought for a run, and their power."""

    device: Annotated[Money, Doc("price of one device")]
    node: Annotated[Money, Doc("price of what a node has beside its devices: host, network, rack")] = 0.0
    lifetime: Annotated[Duration | None, Doc("over which all is written off; a run pays its share. Paid in full where nothing is said")] = (
        None
    )
    electricity: Annotated[PricePerEnergy, Doc("price of energy, for the rated power of the devices during the run")] = 0.0
    pue: Annotated[float, Bounds(1.0), Doc("power of the building / power of the devices")] = 1.0


@dataclass(frozen=True, slots=True)
class GoalSection:
    """A whole run: what is trained in all, until when, and for how much. Its limits are limits on the step time."""

    tokens: Annotated[float, Bounds(1.0), Doc("to train on in all, such as 15e12")]
    deadline: Annotated[Duration | None, Doc("how long the run may take")] = None
    budget: Annotated[Money | None, Doc("what the run may cost; needs `rent` or `purchase`")] = None
    rent: Annotated[Money | None, Doc("of one device for an hour")] = None
    purchase: Annotated[PurchaseSection | None, Doc("in place of `rent`: devices that are bought, and electricity")] = None
    by: Annotated[
        Literal["central", "slowest"],
        Doc("whether deadline and budget are held by the central constants of the device, or by the slowest of its sets as well"),
    ] = "central"


SETTINGS: Final = {slot.key: (slot, slot.mark(Setting) or Setting()) for slot in slots_of(Plan)}
"""What the fields of plans say of themselves as settings that questions may open."""


def _in_counting_order() -> tuple[str, ...]:
    found: list[str] = []
    for name, (_, setting) in SETTINGS.items():
        found.insert(found.index(setting.after) + 1 if setting.after else len(found), name)
    return tuple(found)


TRANSFORMER_CHOICES: Final = _in_counting_order()


def open_options(name: str) -> Any:  # noqa: ANN401 - a word or options
    """What of a setting is open where everything is."""
    _, setting = SETTINGS[name]
    return setting.open or setting.keyword or NAMED_OPTIONS.get(name, (False, True))


def _choice_of(slot: Slot) -> tuple[str, Kind, Any]:
    """A setting of plans as questions list its options: its name, type and default."""
    kind, marks = unwrap(slot.kind, ())
    _, setting = SETTINGS[slot.key]
    said = tuple(mark for mark in marks if isinstance(mark, Bounds))
    options: Kind = Annotated[(tuple[kind, ...], *said, Choice())]  # type: ignore[valid-type]
    stated = options if setting.keyword is None else options | Literal[setting.keyword]
    usual = (getattr(Plan(), slot.name),) if setting.usual is None else setting.usual
    return slot.key, Annotated[stated, Doc(slot.text)], field(default=usual)


_ONLY: Any = Literal[(*CANONICAL_SETTINGS, "recompute")]
_PlanChoices: Any = make_dataclass(
    "_PlanChoices",
    [
        *map(_choice_of, slots_of(Plan)),
        (
            "only",
            Annotated[
                tuple[_ONLY, ...],
                Choice(),
                Doc(
                    "settings that every plan must have as listed; others hold where they mean something, as overlap of stages where there "
                    "are some"
                ),
            ],
            field(default=()),
        ),
    ],
    frozen=True,
    slots=True,
)
"""The settings of a transformer's plan, as `crossflow.plan.Plan` declares them."""


@dataclass(frozen=True, slots=True)
class ChoicesSection(_PlanChoices):  # type: ignore[misc]
    """What may be chosen. What is not named is fixed: the technology's usual split, one device, no recomputation and so on."""

    die_area: Annotated[AreaChoice | None, Doc("of the die; as large as its parts where nothing is said")] = None
    dies: Annotated[CountChoice | None, Doc("of the package, all alike, that share all parts; the usual where nothing is said")] = None
    compute_area: Annotated[AreaChoice | None, Doc("of the cores")] = None
    registers_area: Annotated[AreaChoice | None, Doc("of the registers")] = None
    l1_area: Annotated[AreaChoice | None, Doc("of the L1 memories")] = None
    l2_area: Annotated[AreaChoice | None, Doc("of the L2 memory")] = None
    network_area: Annotated[AreaChoice | None, Doc("of links between nodes")] = None
    node_network_area: Annotated[AreaChoice | None, Doc("of links inside a node")] = None
    compute_power: Annotated[PowerChoice | None, Doc("of the cores")] = None
    registers_power: Annotated[PowerChoice | None, Doc("of the registers")] = None
    l1_power: Annotated[PowerChoice | None, Doc("of the L1 memories")] = None
    l2_power: Annotated[PowerChoice | None, Doc("of the L2 memory")] = None
    hbm_power: Annotated[PowerChoice | None, Doc("of the memory stacks")] = None
    network_power: Annotated[PowerChoice | None, Doc("of links between nodes")] = None
    node_network_power: Annotated[PowerChoice | None, Doc("of links inside a node")] = None
    hbm_edge: Annotated[RatioChoice | None, Doc("share of the die's edge for wires to the stacks")] = None
    network_edge: Annotated[RatioChoice | None, Doc("share of the edge for links between nodes")] = None
    node_network_edge: Annotated[RatioChoice | None, Doc("share of the edge for links inside a node")] = None
    hbm_stacks: Annotated[CountChoice | None, Doc("stacks of memory beside the die")] = None
    recompute_layers: Annotated[
        tuple[int, ...],
        Bounds(0, 999_999),
        Choice(),
        Doc("layers of each chunk that `recompute: full` computes again, of which it keeps all of the others; 0 is all"),
    ] = (0,)
    split: Annotated[
        tuple[Literal["rows-columns", "inner"], ...],
        Choice(),
        Doc("LSTM and GEMM: what of a product is cut, its rows and columns or its inner dimension"),
    ] = ("rows-columns",)
    rows: Annotated[Degrees, Doc("LSTM and GEMM: ranks over the rows of a product, or over its inner dimension")] = (1,)
    columns: Annotated[Degrees, Doc("LSTM and GEMM: ranks over the columns")] = (1,)
    layers: Annotated[Degrees, Doc("LSTM: devices in a chain over the depth")] = (1,)
    rest: Annotated[
        Literal["fixed", "all"], Doc("settings of the plan that are not named: as told here, or `all` open; `choices: all` opens every one")
    ] = "fixed"


@dataclass(frozen=True, slots=True)
class SharingSection(WorkloadSection):
    """One of several workloads that share the chip and the cluster, each with a plan of its own."""

    name: Annotated[str | None, Doc("what to call it; the model's name where nothing is said")] = None
    weight: Annotated[float, Bounds(0.0), Doc("by which its objective counts in the weighted sum; above 0")] = 1.0
    choices: Annotated[ChoicesSection, Short("rest"), Doc("plan choices in place of those of the question")] = ChoicesSection()


@dataclass(frozen=True, slots=True)
class StackSection:
    """A training stack, by its name or with a version."""

    name: Annotated[StackName, Doc("of the stack")]
    version: Annotated[
        str | None, Doc("such as 2.0 of PyTorch, whose checkpoints go on to the end; the newest known where nothing is said")
    ] = None


@dataclass(frozen=True, slots=True)
class CodesignFile:
    """One co-design question: which hardware and which parallel plan give the best objective within the budget?"""

    kind: Annotated[Literal["codesign"], Doc("the kind of question")]
    cluster: Annotated[ClusterSection, Doc("how many devices, and how they are joined")]
    workload: Annotated[WorkloadSection | None, Doc("what is trained; or several `workloads`")] = None
    workloads: Annotated[tuple[SharingSection, ...] | None, Doc("several workloads on one chip, each with a plan of its own")] = None
    combine: Annotated[
        Literal["weighted_sum", "worst_regret"] | None,
        Doc("one figure of several workloads: the sum of weight x objective (default), or the greatest v / v* - 1, v* alone on a chip"),
    ] = None
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    technology: Annotated[str | TechnologySection | None, Doc("free hardware: what a chip can be made of; a name or a path")] = None
    hardware: Annotated[
        str | Given[DeviceEntry] | None, Doc("fixed hardware: a name from `crossopt list hardware`, or the path of a file")
    ] = None
    budget: Annotated[BudgetSection, Doc("what one device may use, and how long a step may take")] = BudgetSection()
    goal: Annotated[GoalSection | None, Doc("a whole run of so many tokens, with a deadline or a budget")] = None
    choices: Annotated[ChoicesSection, Short("rest"), Doc("what may be chosen; the rest is fixed")] = ChoicesSection()
    stack: Annotated[
        StackSection | None, Short("name"), Doc("what launches the plan: those that it does not launch are no plans of the question")
    ] = None
    objective: Annotated[Objective, Doc("what is minimised; of several batches `time_per_sample` where nothing is said")] = "step_time"
    prices: Annotated[PricesSection | None, Doc("for `cost_per_token`")] = None
    efficiency: Annotated[dict[str, float], Doc("constants of the model that differ from the hardware's")] = field(default_factory=dict)
    factors: Annotated[
        dict[str, dict[str, Annotated[float, Bounds(0.0)]]],
        Doc("by which constants of the technology or device, of the model's `efficiency` and of `prices` are multiplied"),
    ] = field(default_factory=dict)
    sets: Annotated[
        tuple[dict[str, dict[str, Annotated[float, Bounds(0.0)]]], ...] | Literal["ranges"],
        Doc(
            "further sets of constants for `worst_step_time`, factors each: a design keeps every limit under all of them, and the slowest "
            "counts; `ranges` are those with one constant of the technology or device at either end of its range"
        ),
    ] = ()

    @property
    def launcher(self) -> StackName | None:
        """The name of the stack."""
        return None if self.stack is None else self.stack.name


KEYS = Keys(frozenset(field.name for field in fields(CodesignFile)), "choices", "rest")
"""A setting with a single key, such as `tensor=8`, is one of the choices, unless the top has such a key."""
