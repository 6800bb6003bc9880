"""Model constants by name (declared in `crossflow.hardware.Efficiency`), and their validation.

Constants of kernels alone, which are told by the names of their kinds, stand below.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass, replace
from math import inf, log
from re import fullmatch
from typing import Annotated, Any, Final, TypeAlias

from crossopt.crossflow.cost import Prices
from crossopt.crossflow.dies import DieLinks, UpperDies
from crossopt.crossflow.fields import (
    Area,
    As,
    Bounds,
    Bytes,
    Derived,
    Doc,
    Duration,
    EnergyPerBit,
    Frequency,
    Given,
    Key,
    Length,
    Money,
    NonZero,
    NotNegative,
    PerLength,
    Positive,
    Power,
    PowerPerArea,
    Prose,
    Ratio,
    Throughput,
    Unit,
)
from crossopt.crossflow.hardware import Efficiency, Link, Memory
from crossopt.crossflow.kernels.fitted import (
    FORMATS,
    OPERATIONS,
    CollectiveConstants,
    ContextConstants,
    ExpertConstants,
    GenerationConstants,
    ProductConstants,
)
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.technology import Activity, CoreTechnology, DramTechnology, LinkTechnology, Node, Parts, SramTechnology, Uncore
from crossopt.crossflow.workload import NARROW, Gemm, Lstm, Transformer
from crossopt.instances.files.schema import Slot, figures_of, slots_of
from crossopt.instances.files.units import format_quantity, nearest, quoted

CONSTANTS: Final = {slot.key: slot for slot in slots_of(Efficiency)}
"""Constants by name, with the declarations of their fields."""


def constant_fault(name: str, value: float) -> str | None:
    """The fault of a constant with its remedy; None if it is valid."""
    if name not in CONSTANTS:
        guess = nearest(name, CONSTANTS)[:1]
        remedy = f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(CONSTANTS)}"
        return f"the model has no such constant ({remedy})"
    slot = CONSTANTS[name]
    high, above, below = _limits(slot)
    if not 0.0 <= value < inf or value > high or (above and value == 0.0) or (below and value == high):
        return f"{value} is out of range, {range_of(slot)} is needed"
    return None


def range_of(slot: Slot) -> str:
    """The valid range of a constant, for messages."""
    high, above, below = _limits(slot)
    return "0 or more" if high == inf else f"a share {'above 0' if above else 'from 0 on'} and {'below' if below else 'up to'} {high:g}"


def _limits(slot: Slot) -> tuple[float, bool, bool]:
    """The greatest value; whether 0 is excluded, and whether the greatest is excluded."""
    bounds = slot.mark(Bounds) or Bounds()
    return inf if bounds.high is None else bounds.high, slot.mark(NonZero) is not None, bounds.below


def check_constants(section: str, constants: Mapping[str, float]) -> None:
    """Raise a ValueError with every unknown or out-of-range constant of a section."""
    faults = [f"{section}.{name}: {fault}" for name, value in constants.items() if (fault := constant_fault(name, value))]
    if faults:
        raise ValueError("; ".join(faults))


# --- of kernels alone ----------------------------------------------------------------------------------------------------------------

KernelConstants: TypeAlias = ProductConstants | ContextConstants | GenerationConstants | CollectiveConstants | ExpertConstants
_FIRST_WORDS: Final[Mapping[str, type[KernelConstants]]] = {
    **dict.fromkeys(FORMATS, ProductConstants),
    "context": ContextConstants,
    "generation": GenerationConstants,
    "experts": ExpertConstants,
    **dict.fromkeys(OPERATIONS, CollectiveConstants),
}
"""Kinds of kernels by the first word of their name."""


def constants_form(kind: str) -> type[KernelConstants]:
    """The record type of the constants for kernels of that kind; a ValueError if the kind is unknown."""
    family = kind.partition(" ")[0]
    if family not in _FIRST_WORDS:
        raise ValueError(f"kernels.{kind}: {quoted(family)} is no kind of kernels (one of {', '.join(_FIRST_WORDS)})")
    return _FIRST_WORDS[family]


def kernel_constants(kind: str, figures: Mapping[str, float]) -> KernelConstants:
    """The constants of one kind of kernels; a ValueError with every fault."""
    form = constants_form(kind)
    names = [field.name for field in fields(form)]
    strange = [name for name in figures if name not in names]
    missing = [field.name for field in fields(form) if field.default is MISSING and field.name not in figures]
    wrong = [name for name, value in figures.items() if not (value > 0.0 or (value == 0.0 and name == "pairing"))]
    faults = [f"{name}: such kernels have no such constant ({_remedy(name, names)})" for name in strange]
    faults += [f"{name}: this constant is missing" for name in missing]
    faults += [f"{name}: {figures[name]:g} is out of range, a number above 0 is needed" for name in wrong]
    if faults:
        raise ValueError("; ".join(f"kernels.{kind}.constants.{fault}" for fault in faults))
    return form(**figures)


def _remedy(name: str, names: list[str]) -> str:
    guess = nearest(name, names)[:1]
    return f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(names)}"


# What the registries describe: devices, technologies and networks by name, each figure with its source.

STACKS: Final = ("megatron-core", "megatron-lm", "torchtitan", "deepspeed", "fsdp")
"""Stacks for which a device may have a calibration set. Megatron-LM is Megatron-Core's predecessor until 2022, also on DeepSpeed: measured
runs use it, questions use current stacks."""
Figures = dict[str, Annotated[float, Bounds(0.0)]]
"""Values of constants, or errors by source, by name."""


@dataclass(frozen=True, slots=True)
class NetworkEntry:
    """The network levels: links inside a node, inside a pod of nodes, and between pods or nodes."""

    node: Annotated[Link, Doc("inside a node")]
    cluster: Annotated[Link, Derived(), Doc("between nodes, or between pods")]
    pod: Annotated[Link | None, Doc("inside a pod of nodes")] = None


@dataclass(frozen=True, slots=True)
class StackEntry:
    """The calibration set of a stack on a device."""

    constants: Annotated[Figures, Doc("constants that differ from the device's own")]
    versions: Annotated[str, Prose(), Doc("versions of the stack to which the set was fitted or applies")] = ""
    taken_over: Annotated[str, Prose(), Doc("device, or `device with stack`, whose set this is; after a comma, how it was taken over")] = ""
    rows: Annotated[dict[str, Positive], Doc("number of distinct measured runs in the fit, by source")] = field(default_factory=dict)
    error: Annotated[float | None, Bounds(0.0), Doc("mean absolute relative error on these runs")] = None
    left_out: Annotated[Figures, Doc("mean absolute relative error per source, with constants fitted without that source")] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        if self.rows and self.taken_over:
            raise ValueError("a set is fitted to rows or taken over from another (give one of both)")
        if self.rows and self.error is None:
            raise ValueError("error: a set that was fitted to rows says how far off they are (give their mean error)")
        if strange := [name for name in self.left_out if name not in self.rows]:
            raise ValueError(f"left_out: the set was not fitted to rows of {', '.join(map(quoted, strange))} (name them under rows)")

    @property
    def runs(self) -> int:
        """Number of runs in the fit."""
        return sum(self.rows.values())

    @property
    def expected(self) -> float | None:
        """Mean leave-one-source-out error of a run; None if no source was left out, as with a single source or without a fit."""
        runs = sum(self.rows[name] for name in self.left_out)
        return sum(self.rows[name] * error for name, error in self.left_out.items()) / runs if runs else None


@dataclass(frozen=True, slots=True)
class CalibrationEntry:
    """Provenance and residuals of the fitted constants."""

    rows: Annotated[dict[str, Positive], Doc("number of measured step times, by source")]
    error: Annotated[float, Bounds(0.0), Doc("mean absolute relative error of all rows, with their weights in the fit")]
    errors: Annotated[Figures, Doc("mean absolute relative error by source")]
    left_out: Annotated[Figures, Doc("mean absolute relative error of each source with constants fitted without it")]
    left_out_by_model: Annotated[Figures, Doc("mean absolute relative error with constants fitted without the row's hidden size")]
    below: Annotated[dict[str, Ratio], Doc("share of rows faster than predicted by all three sets of constants")]
    above: Annotated[dict[str, Ratio], Doc("share of rows slower than predicted by all three sets of constants")]
    at_bound: Annotated[tuple[str, ...], Doc("constants that ended on a bound")]
    uncertainty: Annotated[
        dict[str, tuple[Annotated[float, Bounds(0.0)], ...]],
        Doc("10th and 90th percentile of each constant over resampled fits, and its values when a source is left out"),
    ]
    left_out_below: Annotated[dict[str, Ratio], Doc("`below` of each source by constants fitted without it")] = field(default_factory=dict)
    left_out_above: Annotated[dict[str, Ratio], Doc("`above` of each source by constants fitted without it")] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, interval in self.uncertainty.items():
            if len(interval) != 2 or interval[0] > interval[1]:
                raise ValueError(f"uncertainty.{name}: two figures are needed, the lower one first")


@dataclass(frozen=True, slots=True)
class KernelsEntry:
    """Constants of kernels measured alone, as `crossopt calibrate --of` prints them; for serving, not for training steps."""

    constants: Annotated[dict[str, Annotated[float, Bounds(0.0)]], Doc("in SI units and shares, by name")]
    rows: Annotated[Positive, Doc("measured kernels")]
    error: Annotated[float, Bounds(0.0), Doc("mean absolute relative error")]
    left_out: Annotated[Figures, Doc("cross-validated mean error by fifths of the shapes, overall and by size")] = field(
        default_factory=dict
    )
    at_bound: Annotated[tuple[str, ...], Doc("constants that ended on a bound")] = ()


@dataclass(frozen=True, slots=True)
class RangeEntry:
    """Range of a figure as factors of the stated value."""

    low: Annotated[float, NonZero(), Bounds(0.0, 1.0), Doc("smallest factor")]
    high: Annotated[float, Bounds(1.0), Doc("largest factor")]
    source: Annotated[str, Prose(), Doc("source of the range")]


@dataclass(frozen=True, slots=True)
class RentEntry:
    """A public list price of a rented device."""

    price: Annotated[Money, NonZero(), Bounds(0.0), Doc("of one device per hour")]
    month: Annotated[str, Doc("when it was listed, such as 2026-09")]
    source: Annotated[str, Prose(), Doc("the provider, and whether on demand or reserved")]

    def __post_init__(self) -> None:
        if not fullmatch(r"20[0-9]{2}-(0[1-9]|1[0-2])", self.month):
            raise ValueError(f"month: {quoted(self.month)} is no month (write year and month, such as 2026-09)")


INTEGERS: Final = ("int16", "int8", "int4")
"""Integer formats of `integer_peak`."""


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """A device on the market. Omitted figures are derived from the nearest class of devices and reported."""

    peak: Annotated[dict[str, Throughput], NonZero(), Doc("dense matrix peak by precision: fp32, bf16, fp16, fp8, fp4")]
    dram: Annotated[Memory, Doc("the memory beside the die")]
    network: Annotated[NetworkEntry, Doc("links, seen from one device")]
    vector_peak: Annotated[Throughput, NonZero(), Derived(), Doc("throughput outside matrix products; default: in proportion to the peak")]
    bundles: Annotated[Positive, Derived(), Doc("streaming multiprocessors")]
    l2: Annotated[Memory, Derived(), Doc("the last-level on-die cache; default bandwidth: in proportion to the peak")]
    l1: Annotated[Memory, Derived(), Doc("all L1 memories together")]
    registers: Annotated[Memory, Derived(), Doc("all registers together")]
    power: Annotated[Power, Derived(), Doc("power rating; default: in proportion to the peak")]
    idle_power: Annotated[Power, Derived(), Doc("idle power; default: a share of the rating")]
    energy_per_flop: Annotated[Figures, Derived(), Doc("joules per FLOP by precision; default: from half of the power above idle")]
    die_area: Annotated[Area, Derived(), Doc("of the die")]
    package_area: Annotated[Area, Derived(), Doc("of the package")]
    register_traffic: Annotated[NotNegative, Derived(), Doc("register bytes per matrix FLOP")]
    reserved_memory: Annotated[Bytes, Derived(), Doc("reserved by framework, runtime and fragmentation")]
    devices_per_node: Annotated[Positive, Derived(), Doc("devices per node as usually sold")]
    name: Annotated[str | None, Doc("name in results; default: the file's name")] = None
    integer_peak: Annotated[dict[str, Throughput], Doc("dense matrix peak of integer formats: int8, int4; for strategies of layers")] = (
        field(default_factory=dict)
    )
    rent: Annotated[RentEntry | None, Doc("list price, for runs whose question gives none; it changes no answer but in money")] = None
    sources: Annotated[dict[str, str], Prose(), Doc("source of each figure")] = field(default_factory=dict)
    efficiency: Annotated[Figures, Doc("model constants that differ from the defaults or the class's")] = field(default_factory=dict)
    optimistic: Annotated[Figures, Doc("optimistic constants, as differences: 1 run in 20 is faster")] = field(default_factory=dict)
    pessimistic: Annotated[Figures, Doc("pessimistic constants, as differences: 1 run in 20 is slower")] = field(default_factory=dict)
    stacks: Annotated[dict[str, StackEntry], Doc("calibration sets by training stack")] = field(default_factory=dict)
    versions: Annotated[str, Prose(), Doc("stacks and versions of the runs used in the fit")] = ""
    taken_over: Annotated[str, Prose(), Doc("device from which fitted constants are taken over")] = ""
    calibration: Annotated[CalibrationEntry | None, Doc("provenance of fitted constants")] = None
    kernels: Annotated[dict[str, KernelsEntry], Doc("constants of single operators by kind of kernels")] = field(default_factory=dict)
    ranges: Annotated[
        dict[str, RangeEntry], Doc("uncertainty ranges by section and figure, such as `l2.bandwidth`; in addition to the class's")
    ] = field(default_factory=dict)
    derived: Annotated[tuple[str, ...], Key(None)] = ()
    """Figures missing from the file, with the values used instead (`data_sheets`)."""
    like: Annotated[str, Key(None)] = ""
    """The device class from which these values are taken."""

    def __post_init__(self) -> None:
        self.check_given({item.name: getattr(self, item.name) for item in fields(self)})

    @staticmethod
    def check_given(values: Mapping[str, Any]) -> None:
        """Refuse inconsistent figures of a device; energies are given for all precisions or for none."""
        if bool(values.get("optimistic")) != bool(values.get("pessimistic")):
            raise ValueError("optimistic and pessimistic constants belong together (give both or neither)")
        if not (peak := values["peak"]):
            raise ValueError("peak: no precision is given (give one of fp32, bf16, fp16, fp8, fp4)")
        if unknown := [name for name in values.get("integer_peak", {}) if name not in INTEGERS]:
            raise ValueError(f"integer_peak: {quoted(unknown[0])} is no integer format (one of {', '.join(INTEGERS)})")
        energies = values.get("energy_per_flop")
        if energies and (missing := [name for name in peak if name not in energies]):
            raise ValueError(f"energy_per_flop: {', '.join(missing)} is missing (each precision of `peak` needs its energy)")
        narrow = next((name for name in NARROW if name in peak), None)
        if narrow and "bf16" not in peak:
            raise ValueError(f"peak: with {narrow} bf16 is needed, too (attention and head stay at 16 bits)")
        for section in ("efficiency", "optimistic", "pessimistic"):
            check_constants(section, values.get(section, {}))
        check_stacks(values.get("stacks", {}))
        for kind, kernels in values.get("kernels", {}).items():
            kernel_constants(kind, kernels.constants)
        for name in values.get("ranges", {}):
            section, _, figure = name.partition(".")
            if figure not in _RANGED.get(section, ()):
                raise ValueError(f"ranges.{name}: there is no such figure (write section.figure, as in l2.bandwidth)")


ARITHMETIC = 0.5
"""Share of the power above idle that arithmetic draws at the dense peak; the rest is drawn as long as a kernel runs, whatever it computes.

An A100 that multiplies matrices at 257 of 312 TFLOP/s draws 88 + 156 + 128 W and what its memories move, of the 400 W that it may and that
limit it there (H. He, Strangely, Matrix Multiplications on GPUs Run Faster When Given Predictable Data, 2024).
"""


_OF_MEMORY, _OF_LINK = ({slot.key for slot in slots_of(cls)} - {"shares", "trees"} for cls in (Memory, Link))
_RANGED = {**dict.fromkeys(("dram", "l2", "l1", "registers"), _OF_MEMORY), **dict.fromkeys(("node_network", "network"), _OF_LINK)}
"""Figures that may have a range, by section."""


def check_stacks(stacks: Mapping[str, StackEntry]) -> None:
    """Raise a ValueError for the first stack that is unknown, or that has unknown or out-of-range constants; it names all of these."""
    for name, entry in stacks.items():
        if name not in STACKS:
            guess = nearest(name, STACKS)[:1]
            remedy = f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(STACKS)}"
            raise ValueError(f"stacks: {quoted(name)} is no stack ({remedy})")
        check_constants(f"stacks.{name}.constants", entry.constants)


@dataclass(frozen=True, slots=True)
class ShareEntry:
    """The default split of a chip: shares of die area, power and die edge."""

    die_area: Annotated[Area, NonZero(), Doc("of the usual chip, all dies together")]
    package_area: Annotated[Area, NonZero(), Doc("of the largest interposer")]
    power: Annotated[Power, NonZero(), Doc("of all its parts")]
    areas: Annotated[Parts, Doc("shares of the die area")]
    powers: Annotated[Parts, Doc("shares of the power")]
    hbm_edge: Annotated[Ratio, Doc("share of the die's edge for stacks")]
    node_network_edge: Annotated[Ratio, Doc("share of die edge for links inside a node")]
    network_edge: Annotated[Ratio, Doc("share of die edge for links between nodes")]
    dies: Annotated[Positive, Doc("of the usual chip")] = 1


@dataclass(frozen=True, slots=True)
class GenerationEntry:
    """Changes by a generation of stacked memory: factors of energy and voltage, absolute figures for the rest."""

    stack_capacity: Annotated[Bytes, Doc("of one stack")]
    stack_area: Annotated[Area, Doc("of the package under it")]
    links_per_stack: Annotated[Positive, Doc("wires of one stack")]
    nominal_frequency: Annotated[Frequency, Doc("bits a second on one wire")]
    energy_factor: Annotated[float, Bounds(0.0), Doc("factor on the energy per bit")]
    voltage_factor: Annotated[float, Bounds(0.0), Doc("factor on the nominal voltage")]
    controller_factor: Annotated[float, Bounds(0.0), Doc("factor on the area of a stack's controller")] = 1.0
    stack_edge: Annotated[Length | None, Doc("of die edge per stack, if it differs")] = None


@dataclass(frozen=True, slots=True)
class PackageEntry:
    """What joins dies and stacks: wires between dies and to stacks, money, losses, size and heat."""

    die_links: Annotated[DieLinks, Doc("wires between dies")]
    stack_links_per_metre: Annotated[PerLength, NonZero(), Doc("wires to stacks, by length of die edge")]
    interposer: Annotated[float, As(Prices)]
    bonding_loss: Annotated[float, As(Prices)]
    package_area: Annotated[Area, NonZero(), Doc("of the largest package")]
    power_density: Annotated[PowerPerArea, NonZero(), Doc("that the usual cooling removes from a die in it")]
    source: Annotated[str, Prose(), Doc("where the figures are from, and which are assumed")]
    stacks_on_dies: Annotated[bool, Doc("whether stacks are bonded on the dies, and take no edge and no room beside them")] = False
    stack_links_factor: Annotated[Positive, Doc("factor on the wires of one stack")] = 1
    stack_energy_factor: Annotated[Ratio, Doc("factor on the energy of a bit from the stacks")] = 1.0


@dataclass(frozen=True, slots=True)
class NodeLinksEntry:
    """Other links inside a node, such as optical ones; figures that it leaves out are the technology's."""

    energy_per_bit: Annotated[EnergyPerBit, Doc("of a bit that is sent, lasers included")]
    links_per_metre: Annotated[PerLength, NonZero(), Doc("lanes by length of die edge")]
    source: Annotated[str, Prose(), Doc("where the figures are from, and which are assumed")]
    area: Annotated[Area | None, Doc("of a lane on the die")] = None
    nominal_frequency: Annotated[Frequency | None, Doc("bits a second on one lane")] = None
    latency: Annotated[Duration | None, Doc("of a step of a collective")] = None
    reach: Annotated[Length | None, Doc("of a cable, which says how many devices such links may join")] = None


@dataclass(frozen=True, slots=True)
class PricesEntry:
    """Prices of a technology's chips if a question gives none: manufacturing cost without margins."""

    wafers: Annotated[dict[str, Money], Doc("of a processed wafer, by logic node")]
    stacks: Annotated[dict[str, Money], Doc("of a memory stack, by generation")]
    defects_per_square_metre: Annotated[float, Bounds(0.0), Doc("of the wafer")]
    package: Annotated[Money, Doc("substrate, test and assembly, with the device's share of board and host")]
    interposer: Annotated[float, As(Prices)] = 0.0
    bonding_loss: Annotated[float, As(Prices)] = 0.0
    lane: Annotated[Money, Doc("of port, optics, cables and switches per wire of the links between nodes")] = 0.0


@dataclass(frozen=True, slots=True)
class TechnologyEntry:
    """A technology: figures per core, bit, stack and wire, scaling to later generations, and the default split of a chip."""

    core: Annotated[CoreTechnology, Doc("matrix cores")]
    registers: Annotated[SramTechnology, Doc("registers")]
    l1: Annotated[SramTechnology, Doc("L1 memories")]
    l2: Annotated[SramTechnology, Doc("L2 memory")]
    dram: Annotated[DramTechnology, Doc("stacked memory")]
    node_network: Annotated[LinkTechnology, Doc("wires inside a node")]
    network: Annotated[LinkTechnology, Doc("wires between nodes")]
    split: Annotated[ShareEntry, Doc("shares of a chip's resources by default")]
    logic_nodes: Annotated[
        dict[str, Annotated[int, Bounds(0)] | Node], Doc("logic nodes: name, and number of scaling steps of the case study, or factors")
    ]
    network_steps: Annotated[dict[str, Annotated[int, Bounds(0)]], Doc("network generations: name and number of scaling steps")]
    memories: Annotated[dict[str, GenerationEntry], Doc("generations of stacked memory")]
    reserved_memory: Annotated[Bytes, Doc("reserved by framework, runtime and fragmentation")]
    node_links: Annotated[dict[str, NodeLinksEntry], Doc("links inside a node that a question may name instead of the usual ones")] = field(
        default_factory=dict
    )
    packages: Annotated[dict[str, PackageEntry], Doc("packages that a question may name instead of the usual one")] = field(
        default_factory=dict
    )
    uncore: Annotated[Uncore, Doc("the uncore: what a chip has beside its parts")] = field(default_factory=Uncore)
    sustained: Annotated[
        dict[str, Activity], Doc("activity of each part in the most demanding kernels, by name; by default every part counts at its peak")
    ] = field(default_factory=dict)
    power_density: Annotated[PowerPerArea | None, Doc("that the usual cooling removes from a die")] = None
    reticle: Annotated[Area | None, Doc("of the largest die (reticle limit); unlimited by default")] = None
    die_links: Annotated[DieLinks | None, Doc("wires between dies; by default a package holds one die")] = None
    upper_dies: Annotated[
        UpperDies | None, Doc("dies of cores, registers and L1 stacked on the others; by default one kind of die holds everything")
    ] = None
    name: Annotated[str | None, Doc("name in results; default: the file's name")] = None
    sources: Annotated[dict[str, str], Prose(), Doc("source of each figure")] = field(default_factory=dict)
    efficiency: Annotated[Figures, Doc("model constants that differ from their defaults")] = field(default_factory=dict)
    constants: Annotated[
        str | None, Doc("instead of `efficiency`: the device of `crossopt list hardware` whose fitted constants apply")
    ] = None
    prices: Annotated[PricesEntry | None, Doc("prices of chips if a question gives none")] = None
    ranges: Annotated[
        dict[str, RangeEntry], Doc("uncertainty ranges by section and figure, such as `core.area`; a fifth either way by default")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.ranges:
            section, _, figure = name.partition(".")
            part = self if section == "technology" else getattr(self, section, None)
            if not is_dataclass(part) or figure not in {slot.key for slot, _ in figures_of(part)}:
                raise ValueError(f"ranges.{name}: there is no such figure (write section.figure, as in core.area)")
        check_constants("efficiency", self.efficiency)
        if self.efficiency and self.constants is not None:
            raise ValueError("efficiency and constants are both given (give one of them: constants fitted together stay together)")
        if self.upper_dies is not None and self.prices is not None:
            raise ValueError("prices know of one kind of die, and there are two (leave out `prices`, or `upper_dies`)")
        if self.split.dies > 1 and self.die_links is None:
            raise ValueError(f"split.dies is {self.split.dies}, but no links join them (add `die_links`)")


@dataclass(frozen=True, slots=True)
class Numerics:
    """Figures of a network that take no time, and that a launch needs."""

    rotary_base: Annotated[float | None, Bounds(1.0), Doc("base of rotary positions (rope_theta of its config.json)")] = None
    rotary_scaling: Annotated[float | None, Bounds(1.0), Doc("factor by which rotary positions are scaled as in Llama 3.1")] = None
    norm_epsilon: Annotated[float | None, NonZero(), Doc("epsilon of norms (rms_norm_eps of its config.json)")] = None


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A network that can be trained; exactly one shape."""

    source: Annotated[str, Prose(), Doc("where the shapes are from")]
    numerics: Annotated[Numerics | None, Doc("what a launch needs beside them, from the config.json beside the weights")] = None
    context: Annotated[Positive | None, Doc("longest context of a published checkpoint with these shapes, for serving")] = None
    transformer: Annotated[Transformer | None, Doc("its shapes")] = None
    lstm: Annotated[Lstm | None, Doc("its shapes")] = None
    gemm: Annotated[Gemm | None, Doc("its shapes")] = None


# Sets of constants: one for a device and the stack that launches on it, beside the device's own, and where each is from.
#
# A set names the few constants that differ from the device's own; all others hold as they stand there. It was fitted to public runs of the
# stack, or taken over from another device or stack, or else it is a guess; `crossopt calibrate RUNS.csv --gpu NAME --stack STACK` prints a
# fitted one. Which versions of the stack ran, or are alike, is said beside it. A question that names no stack has the set of the usual one.

USUAL: Final = "megatron-core"
"""The stack whose calibration set applies if a question names none."""
OWN: Final = "own"
"""In place of a stack: use the device's own constants."""
_WITH: Final = " with "
"""Separator between device and stack from which a set is taken over."""


def carried(stacks: Mapping[str, StackEntry], device: str) -> dict[str, StackEntry]:
    """The sets of a device, as used by a device that takes them over."""
    return {
        name: replace(entry, taken_over=entry.taken_over or f"{device}{_WITH}{name}", rows={}, error=None, left_out={})
        for name, entry in stacks.items()
    }


def lender(entry: StackEntry) -> tuple[str, str]:
    """Device and stack from which this set is taken over; two empty strings if it is its own."""
    device, _, stack = entry.taken_over.partition(",")[0].partition(_WITH)
    return device, stack


def constants_for(stacks: Mapping[str, StackEntry], stack: str | None) -> dict[str, float]:
    """Constants changed by the stack (default stack if none is named); empty if the device's own constants apply."""
    entry = stacks.get(stack or USUAL)
    return {} if entry is None else entry.constants


def set_text(name: str, entry: DeviceEntry, stack: str | None) -> str:
    """One line on the calibration set for runs of that device and stack: versions and provenance."""
    if (found := entry.stacks.get(stack or USUAL)) is not None:
        unnamed = "" if stack else ", as no stack is named"
        return f"{name} with {stack or USUAL}{_versions(found.versions)}{unnamed}; {stack_text(found)}"
    own = f"{_WITH}{stack}: uncalibrated" if stack else ""
    return f"{name}{own}{_versions(entry.versions)}; {own_text(entry)}"


def is_calibrated(entry: DeviceEntry, stack: str | None) -> bool:
    """Whether the constants for runs of that device and stack were fitted to measured runs there."""
    found = entry.stacks.get(stack or USUAL)
    return entry.calibration is not None and not entry.taken_over if found is None else bool(found.rows)


def stack_text(entry: StackEntry, *, named: bool = False) -> str:
    """Provenance of a stack's set, with the names of its sources or their number."""
    if entry.rows:
        of = _in_words(entry.rows) if named else f"{len(entry.rows)} source{'' if len(entry.rows) == 1 else 's'}"
        return f"fitted to {_runs(entry.runs)} of {of}{_left_out(entry.expected, 'a source')}"
    return f"taken over from {entry.taken_over}" if entry.taken_over else "guessed, fitted to no run"


def own_text(entry: DeviceEntry) -> str:
    """Provenance of the device's own constants."""
    if entry.taken_over:
        return f"taken over from {entry.taken_over}"
    if (fit := entry.calibration) is not None:
        return f"fitted to {_runs(int(sum(fit.rows.values())))} of {len(fit.rows)} sources{_left_out(_by_model(fit), 'a model')}"
    return "guessed, fitted to no run" if entry.efficiency else "the model's defaults, fitted to no run"


def _by_model(fit: CalibrationEntry) -> float | None:
    """Leave-one-hidden-size-out error, averaged over sources."""
    return sum(fit.left_out_by_model.values()) / len(fit.left_out_by_model) if fit.left_out_by_model else None


def _left_out(error: float | None, what: str) -> str:
    return f", {error:.1%} off when {what} is left out" if error is not None else ""


def _runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"


def _in_words(names: Mapping[str, int]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _versions(text: str) -> str:
    return f" ({text})" if text else ""


# Devices as their makers describe them: what a data sheet says, and what follows for the rest from the nearest class of devices.
#
# A file of a device needs its matrix peaks, its memory and the bandwidth inside a node. What else it leaves out is derived and told: from
# the shipped class (A100, H100 or B200) whose 16-bit peak is nearest in ratio, with what has to do with speed scaled by that ratio, and the
# fitted constants of that class.

CLASSES: Final = ("a100-80g", "h100-sxm", "b200")
"""Devices of the registry that serve as classes for others; their files are complete."""
_SPEEDS: Final = {"l2", "l1", "registers"}
"""Memories whose default bandwidth is in proportion to the peak."""


def completed(sheet: Given[DeviceEntry], known: Callable[[str], DeviceEntry]) -> DeviceEntry:
    """The device with every figure and constant. `known` gives the classes, and is called only if figures or constants are missing."""
    given = dict(sheet.values)
    left_out = [slot.name for slot in slots_of(DeviceEntry) if slot.mark(Derived) is not None and slot.name not in given]
    missing = [name for name in left_out if name != "energy_per_flop"]
    energies = not given.get("energy_per_flop")
    links = _links_left_out(given["network"])
    own = bool(given.get("efficiency") or given.get("optimistic"))
    if own and not (missing or energies or links):
        return DeviceEntry(**{**given, "network": _network(given["network"], None)})
    name, ratio = _nearest(given["peak"], known)
    like = known(name)
    given.update({part: _scaled(part, getattr(like, part), ratio) for part in missing})
    given["ranges"] = {**like.ranges, **given.get("ranges", {})}
    if "idle_power" in missing:
        given["idle_power"] = _rounded(like.idle_power / like.power * given["power"])
    if energies:
        given["energy_per_flop"] = {
            precision: _rounded(ARITHMETIC * (given["power"] - given["idle_power"]) / peak) for precision, peak in given["peak"].items()
        }
    given["network"] = _network(given["network"], like.network)
    if not own:
        given.update({part: getattr(like, part) for part in ("efficiency", "optimistic", "pessimistic")})
        given["taken_over"] = like.taken_over or name
        given["stacks"] = {**carried(like.stacks, name), **given.get("stacks", {})}
    derived = [f"{part} {_shown(part, given[part])}" for part in missing]
    derived += ["energy_per_flop"] * energies + links + ["efficiency"] * (not own)
    return DeviceEntry(**given, derived=tuple(derived), like=name)


def derived_text(entry: DeviceEntry) -> str:
    """One sentence on derived figures and their source; empty if the file is complete."""
    return f"as of the nearest class, {entry.like}: {', '.join(entry.derived)}" if entry.derived else ""


def _nearest(peaks: Mapping[str, float], known: Callable[[str], DeviceEntry]) -> tuple[str, float]:
    """The class with the nearest peak, and the device's peak divided by that of the class."""
    ratios = {name: _peak(peaks) / _peak(known(name).peak) for name in CLASSES}
    name = min(ratios, key=lambda cls: abs(log(ratios[cls])))
    return name, ratios[name]


def _peak(peaks: Mapping[str, float]) -> float:
    """Peak at 16 bits, or the greatest if there is none."""
    return next((peaks[name] for name in ("bf16", "fp16") if name in peaks), max(peaks.values()))


def _scaled(part: str, usual: Any, ratio: float) -> Any:  # noqa: ANN401 - of any part
    """A part of the class, with throughput, power or cache bandwidth scaled by the ratio of the peaks; other figures are unchanged."""
    if part in ("vector_peak", "power"):
        return _rounded(usual * ratio)
    return replace(usual, bandwidth=_rounded(usual.bandwidth * ratio)) if part in _SPEEDS else usual


def _rounded(figure: float) -> float:
    """Rounded to the digits that a derived figure can have."""
    return float(f"{figure:.3g}")


def _links_left_out(network: Given[NetworkEntry]) -> list[str]:
    """Links with missing figures."""
    links = {level: link for level in ("node", "cluster", "pod") if (link := network.get(level)) is not None}
    missing = [] if "cluster" in links else ["network.cluster"]
    return missing + [f"network.{level}.latency" for level, link in links.items() if link.get("latency") is None]


def _network(given: Given[NetworkEntry], like: NetworkEntry | None) -> NetworkEntry:
    """The links, with missing figures taken from the class."""
    inner, outer = (like.node, like.cluster) if like else (None, None)
    node, cluster, pod = _link(given.get("node"), inner), _link(given.get("cluster"), outer), given.get("pod")
    if node is None or cluster is None:
        raise ValueError("a network needs the links inside a node and between nodes (give both)")
    return NetworkEntry(node, cluster, None if pod is None else _link(pod, outer))


def _link(given: Given[Link] | None, like: Link | None) -> Link | None:
    if given is None:
        return like
    if given.get("latency") is not None or like is None:
        return Link(**{"latency": 0.0, **given.values})
    return replace(like, **{"shares": (), **given.values})


def _shown(part: str, value: Any) -> str:  # noqa: ANN401 - of any part
    if isinstance(value, Memory):
        return f"{format_quantity(float(value.capacity), 'bytes')} at {format_quantity(float(value.bandwidth), 'bandwidth')}"
    unit = next((slot.mark(Unit) for slot in slots_of(DeviceEntry) if slot.name == part), None)
    return format_quantity(value, unit.dimension) if unit else f"{value:g}"
