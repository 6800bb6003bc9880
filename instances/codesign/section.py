"""The cluster section of a question: devices, their network as nodes and pods or as a list of dimensions, and the host."""

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
    DieChoice,
    Doc,
    Duration,
    Energy,
    EnergyPerBit,
    Given,
    Money,
    NonZero,
    Positive,
    Power,
    PowerChoice,
    PowerPerArea,
    PricePerEnergy,
    Prose,
    Ratio,
    RatioChoice,
    Setting,
    Several,
    Short,
)
from crossopt.crossflow.hardware import Shape
from crossopt.crossflow.plan import CANONICAL_SETTINGS, NAMED_OPTIONS, Plan
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Precision
from crossopt.instances.catalogue.entries import DeviceEntry, TechnologyEntry
from crossopt.instances.catalogue.workload import WorkloadSection
from crossopt.instances.files.schema import Kind, Slot, slots_of, unwrap
from crossopt.instances.files.written import Keys

Links = Literal["node", "pod", "cluster"]
"""Links of the hardware."""


@dataclass(frozen=True, slots=True)
class LinkSection:
    """Figures of a network level that differ from the hardware's."""

    bandwidth: Annotated[
        Bandwidth | None, Doc("bandwidth that a collective sustains per device and direction, about 0.8 of a port's rating")
    ] = None
    latency: Annotated[Duration | None, Doc("per step of a collective")] = None
    setup: Annotated[Duration | None, Doc("per collective")] = None
    ring_latency: Annotated[
        Duration | None,
        Doc("per step of a ring over all sharing ranks, if longer than `latency`; default: the hardware's if neither is given"),
    ] = None
    reduces: Annotated[bool, Doc("whether the switches add up all-reduces that pass them (SHARP)")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionSection:
    """One dimension of a network; missing figures are those of the hardware's links."""

    size: Annotated[
        CountChoice | Literal["divisors"],
        Doc("units of the inner dimension that it joins (devices for the innermost); if several are given, the best is sought"),
    ]
    shape: Annotated[
        Shape,
        Doc(
            "one switch for all devices; `rails`: a switch per position in the units; `ring`; or links between all pairs "
            "(both between devices of the same position)"
        ),
    ] = "switch"
    links: Annotated[Links | None, Doc("link of the hardware whose figures apply; `node` within the usual node, `cluster` beyond")] = None
    bandwidth: Annotated[
        BandwidthChoice | None,
        Doc(
            "bandwidth that a collective of all ranks sustains per device and direction, over all links along the "
            "dimension together; few ranks sustain the share that the hardware's file states for switches on a node's "
            "links (an A100 84 % between two)"
        ),
    ] = None
    latency: Annotated[Duration | None, Doc("per step of a collective")] = None
    setup: Annotated[Duration | None, Doc("per collective")] = None
    ring_latency: Annotated[
        Duration | None,
        Doc("per step of a ring over all sharing ranks, if longer than `latency`; default: the hardware's if neither is given"),
    ] = None
    share: Annotated[
        RatioChoice | None,
        Doc(
            "share of the bandwidth of those links; default: equal shares for dimensions on the same links, everything if all are switches"
        ),
    ] = None
    reduces: Annotated[bool, Doc("whether the switches add up all-reduces that pass them (SHARP)")] = False


@dataclass(frozen=True, slots=True)
class HostSection:
    """The host memory to which plans may offload."""

    memory: Annotated[Bytes, Doc("per device")]
    bandwidth: Annotated[Bandwidth, Doc("of each device's link to it, per direction")]
    energy: Annotated[EnergyPerBit, Doc("of the link and the memory; default: an estimate")] = 25e-12
    latency: Annotated[Duration, Doc("of an access")] = 0.0
    shared_by: Annotated[
        Positive,
        Doc("devices that share memory and link, such as those of a node or of a pool: each has its part of both, and is served in turn"),
    ] = 1


@dataclass(frozen=True, slots=True)
class FailuresSection:
    """Failure rate of devices, and the time that a failure costs."""

    mean_time: Annotated[Duration, Doc("mean time between failures of one device; 50,000 h were observed on 16,384 H100 (Llama team 2024)")]
    checkpoint: Annotated[Duration, Doc("time for which writing a checkpoint stops the run")]
    restart: Annotated[Duration, Doc("time from a failure until the run continues from its last checkpoint")]


@dataclass(frozen=True, slots=True)
class QualityRow:
    """How many steps training takes with some exchanges, relative to data parallelism. Keys that are left out match everything."""

    steps: Annotated[float, Bounds(0.0), Doc("steps needed, over those of data parallelism with the same global batch; above 0")]
    sync_every: Annotated[Positive | None, Doc("of rows about this many steps between exchanges")] = None
    groups: Annotated[Positive | None, Doc("of rows about this many groups")] = None
    compression: Annotated[Ratio | None, Doc("of rows about this compression")] = None
    overlap_steps: Annotated[int | None, Bounds(0), Doc("of rows about this overlap")] = None
    exchange: Annotated[Literal["synchronous", "asynchronous"] | None, Doc("of rows about this kind of exchange")] = None


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """How well a small number of nodes scaled in one synchronous group."""

    nodes: Annotated[int, Bounds(2), Doc("nodes that wait for each other")]
    share: Annotated[Ratio, NonZero(), Doc("of linear: throughput over that of so many nodes alone")]


@dataclass(frozen=True, slots=True)
class SitesSection:
    """Groups of devices, each synchronous inside, that exchange rarely or asynchronously over slow links (DiLoCo, 15-PF)."""

    groups: Annotated[
        Positive, Several(), Doc("equal groups that share devices and global batch, such as sites; a list compares several numbers")
    ] = 2
    bandwidth: Annotated[Bandwidth | None, Doc("of the link of a group to the others, per direction, such as 10 Gbit/s")] = None
    latency: Annotated[Duration, Doc("of an exchange, beside its transfer")] = 0.0
    exchange: Annotated[
        tuple[Literal["synchronous", "asynchronous"], ...],
        Choice(),
        Doc("groups wait for each other's exchange, or exchange with a parameter server and never wait"),
    ] = ("synchronous",)
    sync_every: Annotated[
        CountChoice, Doc("steps between two exchanges of the same parameter; 1 with `synchronous` is data parallelism")
    ] = (1,)
    fragments: Annotated[CountChoice, Doc("parts of the network that are exchanged at different steps (streaming DiLoCo)")] = (1,)
    overlap_steps: Annotated[tuple[int, ...], Bounds(0), Choice(), Doc("steps that may run before an exchange must have arrived")] = (0,)
    compression: Annotated[RatioChoice, Doc("bytes sent over bytes of the parameters, above 0")] = (1.0,)
    bytes_per_parameter: Annotated[float, Bounds(0.0), Doc("bytes of a parameter before compression")] = 2.0
    straggler: Annotated[
        Ratio, Doc("relative spread s of the step times of nodes: n nodes that wait for each other take 1 + s sqrt(2 ln n) as long")
    ] = 0.0
    scaling: Annotated[tuple[ScalingRow, ...], Doc("runs of few nodes to which `straggler` is fitted, instead of that key")] = ()
    quality: Annotated[
        tuple[QualityRow, ...],
        Doc("steps that training needs; the first row that matches counts. Needed where ways to learn are compared that differ"),
    ] = ()


@dataclass(frozen=True, slots=True)
class ClusterSection:
    """The number of devices and their network."""

    devices: Annotated[CountChoice, Doc("number of devices; if several are given, the best is sought")]
    devices_per_node: Annotated[
        Positive | None, Doc("devices on the innermost network level; default: the hardware's, 1 for a technology")
    ] = None
    devices_per_pod: Annotated[Positive | None, Doc("devices on the middle level, for networks of three levels")] = None
    node: Annotated[LinkSection, Doc("links inside a node")] = LinkSection()
    pod: Annotated[LinkSection, Doc("links inside a pod, where there are pods")] = LinkSection()
    cluster: Annotated[LinkSection, Doc("links between nodes, or between pods if there are any")] = LinkSection()
    network: Annotated[tuple[DimensionSection, ...] | None, Doc("dimensions, innermost first, instead of nodes, pods and their links")] = (
        None
    )
    network_bandwidth: Annotated[
        Bandwidth | None, Doc("upper limit of the sum of the bandwidths of all dimensions, each of which must be given")
    ] = None
    host: Annotated[HostSection | None, Doc("host memory per device; without it no plan offloads")] = None
    reserved_memory: Annotated[
        Bytes | None, Doc("of each device, not available to plans; default: the framework's reserve in the hardware's file")
    ] = None
    failures: Annotated[
        FailuresSection | None,
        Doc("failures: answers then state the goodput after failures and checkpoints, and deadline and budget of `goal` include it"),
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
    "run_cost",
    "die_area",
    "power",
    "devices",
    "mean_step_time",
]
StackName = Literal["megatron-core", "torchtitan", "deepspeed", "fsdp"]
Degrees = CountChoice | Literal["divisors"]


@dataclass(frozen=True, slots=True)
class TechnologySection:
    """A technology, with other generations of its parts."""

    base: Annotated[str | TechnologyEntry, Doc("a name from `crossopt list technologies`, or the path of your own file of that form")]
    logic: Annotated[str | None, Doc("logic node, such as 7nm")] = None
    memory: Annotated[str | None, Doc("generation of stacked memory, such as hbm2")] = None
    network: Annotated[str | None, Doc("generation of the links between nodes, such as step-4")] = None
    package: Annotated[str | None, Several(), Doc("package of dies and stacks, such as organic or interposer, or a list to compare")] = None
    links: Annotated[str | None, Several(), Doc("links inside a node, such as optical-in-package, or a list to compare")] = None
    constants: Annotated[str | None, Doc("device of `crossopt list hardware` whose fitted constants apply to the chip")] = None


@dataclass(frozen=True, slots=True)
class BudgetSection:
    """Limits on one device and on the step time."""

    die_area: Annotated[Area | None, Doc("of a free chip, all dies together; default: its technology's")] = None
    package_area: Annotated[Area | None, Doc("of the interposer, a box around dies and stacks; default: its technology's")] = None
    power: Annotated[Power | None, Doc("of one device; default: the usual one")] = None
    power_density: Annotated[PowerPerArea | None, Doc("of a free chip's die; default: what its technology's usual cooling removes")] = None
    reticle: Annotated[Area | None, Doc("of one die of a free chip; default: its technology's")] = None
    step_time: Annotated[Duration | None, Doc("of a step, for other objectives than time, such as the smallest die with steps of 5 s")] = (
        None
    )
    time_per_sample: Annotated[Duration | None, Doc("step time / samples per step")] = None
    mean_step_time: Annotated[Duration | None, Doc("mean step of groups that exchange rarely (`sites`), times the factor on steps")] = None
    worst_step_time: Annotated[Duration | None, Doc("of a step with the slowest of the device's sets of constants")] = None
    energy_per_token: Annotated[Energy | None, Doc("per token")] = None
    rated_energy_per_token: Annotated[Energy | None, Doc("rated power x time per token")] = None
    cost_per_token: Annotated[Money | None, Doc("per token; needs `prices`")] = None
    run_cost: Annotated[Money | None, Doc("of the whole run, as `goal.budget`; needs `goal` and a rent")] = None


@dataclass(frozen=True, slots=True)
class PricesSection:
    """Prices that replace those of the technology: the device's, or the wafer's and related ones; for devices on the market, their own."""

    electricity: Annotated[float, As(Prices)] = 0.0806 / 3.6e6
    lifetime: Annotated[float, As(Prices)] = 4.0 * 365.25 * 86400.0
    device: Annotated[float | None, As(Prices)] = None
    wafer: Annotated[float | None, As(Prices)] = None
    wafer_diameter: Annotated[float, As(Prices)] = 0.3
    defects_per_square_metre: Annotated[
        float | None, Bounds(0.0), Doc("defect density of the wafer; more defects mean fewer good dies")
    ] = None
    clustering: Annotated[float, As(Prices)] = 3.0
    stack: Annotated[float | None, As(Prices)] = None
    package: Annotated[float | None, As(Prices)] = None
    interposer: Annotated[float | None, As(Prices)] = None
    bonding_loss: Annotated[float | None, As(Prices)] = None
    lane: Annotated[float | None, As(Prices)] = None


@dataclass(frozen=True, slots=True)
class PurchaseSection:
    """Devices bought for a run, and their power."""

    device: Annotated[Money, Doc("price of one device")]
    node: Annotated[Money, Doc("price of the other parts of a node: host, network, rack")] = 0.0
    lifetime: Annotated[Duration | None, Doc("write-off period; a run pays its share. Default: paid in full")] = None
    electricity: Annotated[PricePerEnergy, Doc("price of energy at the rated power of the devices during the run")] = 0.0
    pue: Annotated[float, Bounds(1.0), Doc("power of the building / power of the devices (PUE)")] = 1.0


@dataclass(frozen=True, slots=True)
class GoalSection:
    """A whole training run: total tokens, deadline and budget. Its limits become limits on the step time."""

    tokens: Annotated[float, Bounds(1.0), Doc("total number of training tokens, such as 15e12")]
    deadline: Annotated[Duration | None, Doc("longest duration of the run")] = None
    target: Annotated[Duration | None, Doc("wanted duration of the run: answers say whether they reach it; not a limit as `deadline`")] = (
        None
    )
    budget: Annotated[Money | None, Doc("highest cost of the run; needs a rent or `purchase`")] = None
    rent: Annotated[Money | None, Doc("of one device per hour; default: its list price, where the registry has one")] = None
    rents: Annotated[dict[str, Money], NonZero(), Doc("`rent` of each device by its name, where several are compared")] = field(
        default_factory=dict
    )
    purchase: Annotated[PurchaseSection | None, Doc("instead of `rent`: purchased devices and electricity")] = None
    by: Annotated[
        Literal["central", "slowest"],
        Doc("whether deadline and budget apply to the central constants of the device, or also to the slowest of its sets"),
    ] = "central"


SETTINGS: Final = {slot.key: (slot, slot.mark(Setting) or Setting()) for slot in slots_of(Plan)}
"""Declarations of plan fields that questions may leave open."""


def _in_counting_order() -> tuple[str, ...]:
    found: list[str] = []
    for name, (_, setting) in SETTINGS.items():
        found.insert(found.index(setting.after) + 1 if setting.after else len(found), name)
    return tuple(found)


TRANSFORMER_CHOICES: Final = _in_counting_order()


def open_options(name: str) -> Any:  # noqa: ANN401 - a word or options
    """Options of a setting if everything is open."""
    _, setting = SETTINGS[name]
    return setting.open or setting.keyword or NAMED_OPTIONS.get(name, (False, True))


def _choice_of(slot: Slot) -> tuple[str, Kind, Any]:
    """A plan setting as questions state it: name, type and default."""
    kind, marks = unwrap(slot.kind, ())
    _, setting = SETTINGS[slot.key]
    bounds = tuple(mark for mark in marks if isinstance(mark, Bounds))
    options: Kind = Annotated[(tuple[kind, ...], *bounds, Choice())]  # type: ignore[valid-type]
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
                    "settings that every plan must have exactly as listed; other settings apply where they have an effect, such as "
                    "overlap of stages in pipelines"
                ),
            ],
            field(default=()),
        ),
    ],
    frozen=True,
    slots=True,
)
"""The settings of a transformer's plan, from `crossflow.plan.Plan`."""


@dataclass(frozen=True, slots=True)
class ChoicesSection(_PlanChoices):  # type: ignore[misc]
    """The choices. Settings not named are fixed: the technology's default split, one device, no recomputation and so on."""

    die_area: Annotated[AreaChoice | None, Doc("of the die; default: as large as its parts")] = None
    dies: Annotated[DieChoice | None, Doc("number of identical dies in the package, which share all parts; default: the usual number")] = (
        None
    )
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
    hbm_stacks: Annotated[CountChoice | None, Doc("number of memory stacks")] = None
    recompute_layers: Annotated[
        tuple[int, ...],
        Bounds(0, 999_999),
        Choice(),
        Doc("layers per chunk recomputed by `recompute: full`; the others store everything; 0 is all; the default with `best` is any"),
    ] = (0,)
    split: Annotated[
        tuple[Literal["rows-columns", "inner"], ...],
        Choice(),
        Doc("LSTM and GEMM: split of a product, by rows and columns or by its inner dimension"),
    ] = ("rows-columns",)
    rows: Annotated[Degrees, Doc("LSTM and GEMM: ranks over the rows of a product, or over its inner dimension")] = (1,)
    columns: Annotated[Degrees, Doc("LSTM and GEMM: ranks over the columns of a product")] = (1,)
    layers: Annotated[Degrees, Doc("LSTM: devices in a chain over the depth")] = (1,)
    rest: Annotated[
        Literal["fixed", "all"],
        Doc("settings of the plan that are not named: fixed at their defaults, or `all` for open; `choices: all` opens every one"),
    ] = "fixed"


@dataclass(frozen=True, slots=True)
class TrainedWorkloadSection(WorkloadSection):
    """The workload of a question that has one."""

    precision: Annotated[Precision, Several(), Doc("precision of matrix products, or a list of them to compare")] = "bf16"


@dataclass(frozen=True, slots=True)
class SharingSection(WorkloadSection):
    """One of several workloads that share chip and cluster, each with its own plan."""

    name: Annotated[str | None, Doc("name; default: the model's")] = None
    weight: Annotated[float, Bounds(0.0), Doc("weight of its objective in the weighted sum; above 0")] = 1.0
    choices: Annotated[ChoicesSection, Short("rest"), Doc("plan choices that replace those of the question")] = ChoicesSection()


@dataclass(frozen=True, slots=True)
class StackSection:
    """A training stack, optionally with a version."""

    name: Annotated[StackName, Doc("of the stack")]
    version: Annotated[
        str | None, Doc("such as 2.0 for PyTorch, whose recomputation runs to the end of the layer; default: the newest known")
    ] = None


@dataclass(frozen=True, slots=True)
class CodesignFile:
    """A joint-design question: which hardware and which parallel plan minimise the objective within the budget?"""

    kind: Annotated[Literal["codesign"], Doc("problem type")]
    cluster: Annotated[ClusterSection, Doc("number of devices, and their network")]
    workload: Annotated[TrainedWorkloadSection | None, Doc("the workload; or several `workloads`")] = None
    workloads: Annotated[tuple[SharingSection, ...] | None, Doc("several workloads on one chip, each with its own plan")] = None
    combine: Annotated[
        Literal["weighted_sum", "worst_regret"] | None,
        Doc(
            "combination of several objectives: the sum of weight x objective (default), or the greatest v / v* - 1, with "
            "v* the optimum alone on a chip"
        ),
    ] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("one line for `crossopt list instances`")] = None
    technology: Annotated[str | TechnologySection | None, Doc("open hardware: technology of the chip, a name or a path")] = None
    hardware: Annotated[
        str | Given[DeviceEntry] | None,
        Several(),
        Doc("fixed hardware: a name from `crossopt list hardware`, the path of a file, or a list of them to compare"),
    ] = None
    budget: Annotated[BudgetSection, Doc("limits on one device and on the step time")] = BudgetSection()
    goal: Annotated[GoalSection | None, Doc("a whole run of this many tokens, with a deadline or a budget")] = None
    choices: Annotated[ChoicesSection, Short("rest"), Doc("choices to optimise; the rest is fixed")] = ChoicesSection()
    stack: Annotated[
        StackSection | None, Short("name"), Doc("training stack that launches the plan; only plans that it supports are considered")
    ] = None
    sites: Annotated[SitesSection | None, Doc("groups of devices that exchange rarely, over slow links")] = None
    objective: Annotated[
        Objective, Doc("quantity to minimise; default with several batches: `time_per_sample`, with `sites`: `mean_step_time`")
    ] = "step_time"
    prices: Annotated[PricesSection | None, Doc("for `cost_per_token`")] = None
    efficiency: Annotated[dict[str, float], Doc("model constants that differ from the hardware's")] = field(default_factory=dict)
    factors: Annotated[
        dict[str, dict[str, Annotated[float, Bounds(0.0)]]],
        Doc("factors on constants of the technology or device, of the model's `efficiency` and of `prices`"),
    ] = field(default_factory=dict)
    sets: Annotated[
        tuple[dict[str, dict[str, Annotated[float, Bounds(0.0)]]], ...] | Literal["ranges"],
        Doc(
            "alternative sets of constants (factors) for `worst_step_time`: a design must satisfy every limit under all, "
            "and the slowest counts; `ranges` means sets with one constant of the technology or device at either end of "
            "its range"
        ),
    ] = ()

    @property
    def launcher(self) -> StackName | None:
        """The name of the stack."""
        return None if self.stack is None else self.stack.name


KEYS = Keys(frozenset(field.name for field in fields(CodesignFile)), "choices", "rest")
"""A one-part setting such as `tensor=8` is a choice, unless the question has a top-level key of that name."""
