"""What the registries describe: devices, technologies and networks by name, each figure with its source."""

from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal

from crossopt.instances.catalogue.constants import check_constants
from crossopt.instances.files.quantities import (
    Area,
    AreaPerBit,
    Bandwidth,
    Bytes,
    Duration,
    EnergyPerBit,
    Frequency,
    PerLength,
    Positive,
    Power,
    PowerPerBit,
    Ratio,
    Throughput,
    Voltage,
)
from crossopt.instances.files.schema import Bounds, Doc


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One level of on-chip or stacked memory, of the whole device."""

    capacity: Bytes
    bandwidth: Bandwidth
    energy: EnergyPerBit = 0.0

    def __post_init__(self) -> None:
        _check_above_zero(("capacity", self.capacity), ("bandwidth", self.bandwidth))


@dataclass(frozen=True, slots=True)
class LinkEntry:
    """One network level, seen from one device."""

    bandwidth: Annotated[Bandwidth, Doc("what a collective sustains per device and direction (bus bandwidth)")]
    latency: Annotated[Duration, Doc("per step of a collective")]
    setup: Annotated[Duration, Doc("per collective")] = 0.0
    energy: EnergyPerBit = 0.0
    shares: Annotated[tuple[Ratio, ...], Doc("share of the bandwidth that groups of 2, 3, 4, ... ranks sustain")] = ()
    trees: Annotated[bool, Doc("whether collectives may run as trees")] = True

    def __post_init__(self) -> None:
        _check_above_zero(("bandwidth", self.bandwidth), *(("shares", share) for share in self.shares))


@dataclass(frozen=True, slots=True)
class NetworkEntry:
    """The network levels: links inside a node, inside a pod of nodes, and between pods or nodes."""

    node: LinkEntry
    cluster: LinkEntry
    pod: LinkEntry | None = None


Figures = dict[str, Annotated[float, Bounds(0.0)]]
"""By name: values of the model's constants, or errors by source."""


@dataclass(frozen=True, slots=True)
class CalibrationEntry:
    """Where fitted constants come from, and what they leave unexplained."""

    rows: Annotated[dict[str, Positive], Doc("measured step times by source")]
    error: Annotated[float, Bounds(0.0), Doc("mean absolute relative error of all rows, each with its weight in the fit")]
    errors: Annotated[Figures, Doc("mean absolute relative error by source")]
    left_out: Annotated[Figures, Doc("the same for each source by constants fitted without it")]
    left_out_by_model: Annotated[Figures, Doc("the same, each row by constants fitted without its model's hidden size")]
    below: Annotated[dict[str, Ratio], Doc("share of the rows that are faster than all three sets of constants say")]
    above: Annotated[dict[str, Ratio], Doc("share of the rows that are slower")]
    at_bound: Annotated[tuple[str, ...], Doc("constants that ended on a bound")]
    uncertainty: Annotated[
        dict[str, tuple[Annotated[float, Bounds(0.0)], ...]], Doc("10th and 90th percentile of each constant over resampled fits")
    ]

    def __post_init__(self) -> None:
        for name, interval in self.uncertainty.items():
            if len(interval) != 2 or interval[0] > interval[1]:
                raise ValueError(f"uncertainty.{name}: two figures are needed, the lower one first")


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """A device one can buy."""

    peak: Annotated[dict[str, Throughput], Doc("dense matrix peak by precision: fp32, bf16, fp16, fp8")]
    vector_peak: Throughput
    bundles: Annotated[Positive, Doc("streaming multiprocessors")]
    dram: MemoryEntry
    l2: MemoryEntry
    l1: MemoryEntry
    registers: MemoryEntry
    network: NetworkEntry
    power: Power
    idle_power: Power
    energy_per_flop: Annotated[Figures, Doc("joules, by precision")]
    die_area: Area
    package_area: Area
    register_traffic: Annotated[float, Bounds(0.0), Doc("register bytes per matrix FLOP")]
    reserved_memory: Bytes
    devices_per_node: Positive
    name: Annotated[str | None, Doc("what results call it; the name of its file where nothing is said")] = None
    sources: Annotated[dict[str, str], Doc("where each figure is from")] = field(default_factory=dict)
    efficiency: Annotated[Figures, Doc("constants of the model that differ from their defaults")] = field(default_factory=dict)
    optimistic: Annotated[Figures, Doc("what differs from them for runs as fast as one in twenty")] = field(default_factory=dict)
    pessimistic: Annotated[Figures, Doc("what differs from them for runs as slow as one in twenty")] = field(default_factory=dict)
    calibration: Annotated[CalibrationEntry | None, Doc("of those constants, where they were fitted")] = None

    def __post_init__(self) -> None:
        if bool(self.optimistic) != bool(self.pessimistic):
            raise ValueError("optimistic and pessimistic constants belong together (give both or neither)")
        _check_above_zero(*((f"peak.{name}", peak) for name, peak in self.peak.items()), ("vector_peak", self.vector_peak))
        if missing := [name for name in self.peak if name not in self.energy_per_flop]:
            raise ValueError(f"energy_per_flop: {', '.join(missing)} is missing (each precision of `peak` needs its energy)")
        if "fp8" in self.peak and "bf16" not in self.peak:
            raise ValueError("peak: with fp8 bf16 is needed, too (attention and head stay at 16 bits)")
        for section in ("efficiency", "optimistic", "pessimistic"):
            check_constants(section, getattr(self, section))


@dataclass(frozen=True, slots=True)
class CoreEntry:
    """Matrix cores of a logic process."""

    area: Area
    nominal_power: Power
    flop_per_cycle: Positive
    cores_per_bundle: Positive
    nominal_frequency: Frequency
    nominal_voltage: Voltage
    threshold_voltage: Voltage
    margin_voltage: Voltage
    maximum_voltage: Voltage
    utilisation: Ratio

    def __post_init__(self) -> None:
        _check_physics("CoreTechnology", asdict(self))


@dataclass(frozen=True, slots=True)
class SramEntry:
    """One on-chip memory level."""

    area_per_bit: AreaPerBit
    energy_per_bit: EnergyPerBit
    static_power_per_bit: PowerPerBit
    bank_capacity: Bytes
    controller_area: Area
    overhead: Ratio
    utilisation: Ratio

    def __post_init__(self) -> None:
        _check_physics("SramTechnology", asdict(self))


@dataclass(frozen=True, slots=True)
class DramEntry:
    """A generation of stacked memory."""

    stack_capacity: Bytes
    stack_area: Area
    controller_area: Area
    links_per_stack: Positive
    links_per_metre: PerLength
    energy_per_bit: EnergyPerBit
    static_power_per_bit: PowerPerBit
    nominal_frequency: Frequency
    nominal_voltage: Voltage
    threshold_voltage: Voltage
    margin_voltage: Voltage
    maximum_voltage: Voltage
    utilisation: Ratio
    latency: Duration

    def __post_init__(self) -> None:
        _check_physics("DramTechnology", asdict(self))


@dataclass(frozen=True, slots=True)
class WireEntry:
    """Wires between devices."""

    area: Area
    links_per_metre: PerLength
    energy_per_bit: EnergyPerBit
    nominal_frequency: Frequency
    nominal_voltage: Voltage
    threshold_voltage: Voltage
    margin_voltage: Voltage
    maximum_voltage: Voltage
    degree: Positive
    utilisation: Ratio
    latency: Duration

    def __post_init__(self) -> None:
        _check_physics("LinkTechnology", asdict(self))


@dataclass(frozen=True, slots=True)
class PartsEntry:
    """One figure for each part of the chip."""

    compute: Ratio
    registers: Ratio
    l1: Ratio
    l2: Ratio
    hbm: Ratio
    node_network: Ratio
    network: Ratio


@dataclass(frozen=True, slots=True)
class ShareEntry:
    """The split that a chip has where nothing else is chosen: shares of the die area, of the power, and of the die edge."""

    die_area: Area
    package_area: Area
    power: Power
    areas: PartsEntry
    powers: PartsEntry
    hbm_edge: Ratio
    node_network_edge: Ratio
    network_edge: Ratio

    def __post_init__(self) -> None:
        _check_above_zero(("die_area", self.die_area), ("package_area", self.package_area), ("power", self.power))


@dataclass(frozen=True, slots=True)
class GenerationEntry:
    """What another generation of stacked memory changes, as factors of energy and voltage and as figures for the rest."""

    stack_capacity: Bytes
    stack_area: Area
    links_per_stack: Positive
    nominal_frequency: Frequency
    energy_factor: Annotated[float, Bounds(0.0)]
    voltage_factor: Annotated[float, Bounds(0.0)]


@dataclass(frozen=True, slots=True)
class TechnologyEntry:
    """A technology: what one core, bit, stack and wire takes, the scaling of later generations, and the usual split of a chip."""

    core: CoreEntry
    registers: SramEntry
    l1: SramEntry
    l2: SramEntry
    dram: DramEntry
    node_network: WireEntry
    network: WireEntry
    split: ShareEntry
    logic_steps: Annotated[dict[str, Annotated[int, Bounds(0)]], Doc("names of logic nodes, and how many scaling steps each is on")]
    network_steps: Annotated[dict[str, Annotated[int, Bounds(0)]], Doc("names of network generations, and their scaling steps")]
    memories: Annotated[dict[str, GenerationEntry], Doc("generations of stacked memory")]
    idle_share: Annotated[Ratio, Doc("share of the power budget drawn when idle")]
    reserved_memory: Bytes
    name: Annotated[str | None, Doc("what results call it; the name of its file where nothing is said")] = None
    sources: Annotated[dict[str, str], Doc("where each figure is from")] = field(default_factory=dict)
    efficiency: Annotated[Figures, Doc("constants of the model that differ from their defaults")] = field(default_factory=dict)
    constants: Annotated[str | None, Doc("instead of them: the device of `crossopt list hardware` whose fitted constants these are")] = None

    def __post_init__(self) -> None:
        check_constants("efficiency", self.efficiency)
        if self.efficiency and self.constants is not None:
            raise ValueError("efficiency and constants are both given (give one of them: constants fitted together stay together)")


@dataclass(frozen=True, slots=True)
class TransformerShape:
    """A transformer by its shapes."""

    layers: Positive
    hidden: Positive
    heads: Positive
    ffn: Positive
    vocabulary: Positive
    sequence: Annotated[Positive, Doc("tokens of one sample, unless the workload says otherwise")]
    kv_heads: Annotated[int, Bounds(0), Doc("key-value heads; 0 means as many as heads")] = 0
    head_size: Annotated[int, Bounds(0), Doc("0 means hidden / heads")] = 0
    gated: Annotated[bool, Doc("SwiGLU instead of GELU")] = False
    tied: Annotated[bool, Doc("the head shares the embedding's weights")] = True
    learned_positions: bool = True
    biases: bool = True
    dropout: bool = False
    experts: Positive = 1
    experts_per_token: Positive = 1


@dataclass(frozen=True, slots=True)
class LstmShape:
    """An LSTM language model by its shapes."""

    layers: Positive
    hidden: Positive
    vocabulary: Positive
    sequence: Positive
    gates: Positive = 4


@dataclass(frozen=True, slots=True)
class GemmShape:
    """One matrix product, rows x depth by depth x columns."""

    rows: Positive
    depth: Positive
    columns: Positive


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A network that can be trained; exactly one of the shapes."""

    source: str
    transformer: TransformerShape | None = None
    lstm: LstmShape | None = None
    gemm: GemmShape | None = None


def _check_physics(record: str, figures: dict[str, float]) -> None:
    """Refuse what crossflow's record of this name refuses."""
    from crossopt.crossflow import technology  # noqa: PLC0415 - most questions name a device, and need none of it

    getattr(technology, record)(**figures)


def _check_above_zero(*figures: tuple[str, float]) -> None:
    """Refuse figures by which the model divides, or without which nothing runs, where they are zero."""
    if wrong := [name for name, value in figures if not value > 0.0]:
        raise ValueError(f"{', '.join(wrong)}: zero is no figure to work with (give one above 0)")


Precision = Literal["fp32", "bf16", "fp16", "fp8"]
