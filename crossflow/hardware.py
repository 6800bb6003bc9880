"""One device and its links: the derived resources through which hardware enters every cost.

A field is a float, or an array over many devices (all arrays of one `Hardware` have one length). Units are SI throughout.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from typing import Annotated, Literal, TypeAlias, TypeVar

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask, Real
from crossopt.crossflow.fields import ENERGY_PER_BYTE, Bounds, Derived, Doc, In, Key, NonZero, Unit
from crossopt.crossflow.records import dataclass

UNLIMITED_TILE = 1.0e30
"""Upper limit of elements, far above what any on-die memory holds."""
UNLIMITED_POWER = 1.0e30
"""Upper limit of watts, far above any device."""
_GUARD = 1.0e-12
"""Margin by which a device stays below its power limit, some thousand times the rounding error of its computed draw."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One level of the memory hierarchy, of the whole device."""

    capacity: Annotated[Real, Unit("bytes"), NonZero(), Doc("of the whole device")]
    bandwidth: Annotated[Real, Unit("bandwidth"), NonZero(), Doc("of the whole device")]
    energy: Annotated[Real, ENERGY_PER_BYTE, Doc("of what is moved")] = 0.0
    """Joules per byte."""
    latency: Annotated[Real, Key(None)] = 0.0
    """Seconds of an access, of memory outside the device."""


Shape = Literal["switch", "rails", "ring", "fully_connected"]
"""Topology of a level: one switch for all devices, one switch per position in the units (rails), or direct links."""


@dataclass(frozen=True, slots=True)
class Link:
    """One level of the network, as one device sees it."""

    bandwidth: Annotated[
        Real, Unit("bandwidth"), NonZero(), Doc("bandwidth that a collective sustains per device and direction (bus bandwidth)")
    ]
    """As benchmarks report it, reduction included."""
    latency: Annotated[Real, Unit("time"), Derived(), Doc("per step of a collective")]
    setup: Annotated[Real, Unit("time"), Derived(), Doc("per collective; 0 if only `latency` is given")] = 0.0
    energy: Annotated[Real, ENERGY_PER_BYTE, Derived(), Doc("of the bytes sent; 0 if only `latency` is given")] = 0.0
    """Joules per byte."""
    shares: Annotated[
        tuple[float, ...],
        Unit("ratio"),
        NonZero(),
        Bounds(0.0, 1.0),
        Doc("share of the bandwidth sustained by groups of 2, 3, 4, ... ranks"),
    ] = ()
    """All of it by default."""
    trees: Annotated[bool, Derived(), Doc("whether collectives may run as trees; true if only `latency` is given")] = True
    """Inside a node NCCL runs rings."""
    ring_latency: Annotated[Real, Unit("time"), Derived(), Doc("per step of a ring over all sharing ranks; default: `latency`")] = 0.0
    shape: Annotated[Shape, Key(None)] = "switch"
    size: Annotated[int, Key(None)] = 1
    """Units joined by the level, used if it has no switch (`collectives`)."""
    reduces: Annotated[bool, Key(None)] = False
    """Whether its switches add up what passes through them."""


Share: TypeAlias = Annotated[Real, NonZero(), Bounds(0.0, 1.0)]
Loss: TypeAlias = Annotated[Real, Bounds(0.0, 1.0, below=True)]
"""A share from 0 to below 1."""
Constant: TypeAlias = Annotated[Real, Bounds(0.0)]


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Utilisation that a well-tuned training stack reaches, as a few physical constants; every curve is affine in the work.

    `accumulation` and `half_stream` are half-saturation constants: a matrix tile costs (depth + accumulation) steps instead of depth,
    a stream of bytes costs (bytes + half_stream) / bandwidth.
    """

    matrix: Annotated[Share, Doc("share of the matrix peak that a large aligned product reaches")] = 0.82
    unaligned: Annotated[Share, Doc("share of that rate left if rows of an operand are not aligned to cache lines")] = 0.75
    """Where these are multiples of 8 values and not of 16; more where they are of 16 or 32, all where they are whole cache lines of 64, and
    less below 8."""
    eight_bit: Annotated[Share, Doc("share of that rate left in 8-bit formats")] = 0.91
    """Beside their casts large products on H100 and H200 reach 0.70 of the peak, and 0.77 in 16 bits; on B200 0.65 and 0.66
    (ai-dynamo/aiconfigurator 095f58a, TensorRT-LLM; `crossflow/README.md`)."""
    attention: Annotated[Share, Doc("share of the matrix peak reached inside fused attention")] = 0.55
    accumulation: Annotated[Constant, In("steps"), Doc("steps of the inner dimension lost to filling and draining a tile")] = 192.0
    stream: Annotated[Share, Doc("share of peak memory bandwidth reached by a long stream")] = 0.85
    half_stream: Annotated[Constant, In("bytes"), Doc("bytes at which a stream reaches half of that")] = 4.0e6
    resident: Annotated[Share, Doc("share of an on-chip memory available to the resident tile")] = 0.5
    """The rest double-buffers the streams."""
    kernel: Annotated[Constant, In("s"), Doc("between two kernels")] = 3.0e-6
    host: Annotated[Constant, In("s"), Doc("host time to launch a kernel")] = 6.0e-6
    """A layer is never faster than its launches."""
    launch: Annotated[Constant, In("s"), Doc("between two products of one grouped launch, one per expert of a rank")] = 5.0e-6
    """Cost of a cuBLAS launch without the layers above it."""
    routing: Annotated[Constant, In("s"), Doc("per small kernel of a router of experts, launched eagerly")] = 70.0e-6
    """On H100: Qwen3 235B on 256 of them went from 276 to 320 TFLOP/s with
    the router in a CUDA graph, 1.56 ms a layer and microbatch or 74 us for each of 21 kernels, at most so since the second run is of a
    later release (yanring/Megatron-MoE-ModelZoo, c1ad0b5 and bff1229). On GB200 it is 14 us: DeepSeek-V3 on 256 went from 529.55 to 540.00
    when 41 of 72 kernels were fused away, 0.57 ms a layer and microbatch (the report that `exchanges.routing` names)."""
    step: Annotated[Constant, In("s"), Doc("per step outside the model: data loading, clipping, logging")] = 20.0e-3
    data_overlap: Annotated[Share, Doc("share of the last backward pass that can hide the gradient reduce-scatter or all-reduce")] = 0.9
    pipeline_overlap: Annotated[Share, Doc("share of a stage's work that can hide the transfer of activations")] = 0.9
    gather_overlap: Annotated[Share, Doc("share of a layer's work that can hide the all-gather of sharded weights")] = 0.9
    tensor_overlap: Annotated[Share, Doc("share of the hidable tensor-parallel communication that is hidden behind products")] = 0.7
    """With it the forward passes of Llama 3
    8B and 70B on eight tensor ranks of H100 gain 28 and 19 %, where up to 29 and 20 % were measured with torchtitan (PyTorch developers,
    "Introducing async tensor parallelism", September 2024)."""
    expert_overlap: Annotated[Share, Doc("share of expert communication hidden behind work on another microbatch")] = 0.4
    """With it 14 layers of DeepSeek-V3 on 64 H100 gain
    7.3 %, where Megatron-LM's pull request 6311 (2026) measured 7.8 %; other stacks and networks hid more (`exchanges.hiding`)."""
    queued_expert_overlap: Annotated[
        Share, Doc("the same share beside tensor or context parallelism, where all kernels share one queue")
    ] = 0.2
    """Megatron-Core has them wait so (CUDA_DEVICE_MAX_CONNECTIONS=1) on devices before Blackwell. With it the same run gains 3.5 %, where
    3.7 % were measured with one queue. Later devices need none, but nothing is measured there: the cautious one holds."""
    overlap_loss: Annotated[Loss, Doc("slowdown of computation while communication runs concurrently")] = 0.159
    """Computing takes 18.9 % longer beside exchanges in the mean of A100, H100 and others (Lee et al. 2025, arXiv 2507.03114),
    1 - 1 / 1.189."""
    loss_passes: Annotated[Constant, In("passes"), Doc("passes over the logits for softmax and cross entropy")] = 20.0


@dataclass(frozen=True, slots=True)
class Doubt:
    """Uncertainty factors for constants that no training run has measured; links innermost first."""

    l2: float
    """Of the bandwidth."""
    bandwidths: tuple[float, ...]
    ring_latencies: tuple[float, ...]

    def of(self, hardware: "Hardware") -> "Hardware":
        """The device with L2 and link bandwidths, and ring latencies, multiplied by these factors."""
        factors = zip(hardware.links, self.bandwidths, self.ring_latencies, strict=True)
        links = (replace(link, bandwidth=link.bandwidth * wide, ring_latency=link.ring_latency * slow) for link, wide, slow in factors)
        return replace(hardware, l2=replace(hardware.l2, bandwidth=hardware.l2.bandwidth * self.l2), links=tuple(links))


@dataclass(frozen=True, slots=True)
class Hardware:
    """A device with its network, innermost level first."""

    name: str
    throughput: Real
    """Peak matrix FLOP/s in the precision of the workload."""
    vector_throughput: Real
    bundles: Real
    """Streaming multiprocessors (bundles); matrix tiles run on them in waves."""
    dram: Memory
    l2: Memory
    l1: Memory
    registers: Memory
    links: tuple[Link, ...]
    open_bundles: Real = 0.0
    """1 if `bundles` is the least of several possible numbers, so that whole waves must not be counted on it."""
    register_traffic: Real = 0.57
    """Register bytes per matrix FLOP after reuse inside the matrix engine."""
    l1_traffic: float = 0.0
    """Bytes through L1 per matrix FLOP; if 0 they follow from tiles that fill the registers."""
    tile: float = UNLIMITED_TILE
    """Elements of the largest tile for which L1 is read."""
    wide_share: Real = 1.0
    """16-bit throughput over `throughput`: below 1 only in 8-bit and 4-bit runs, whose attention and head stay at 16 bits."""
    energy_per_flop: Real = 0.0
    idle_power: Real = 0.0
    running_power: Real = 0.0
    """Watts above idle while any kernel runs: clocks, control and leakage at speed."""
    power: Real = 0.0
    """Power limit in watts: the rating, or for a generated device its draw in the most demanding kernels."""
    headroom: Real = UNLIMITED_POWER
    """Highest average watts above idle over a step: see `within_power`."""
    die_area: Real = 0.0
    package_area: Real = 0.0
    dies: Real = 1.0
    """Number of dies that share a generated chip's area."""
    power_density: Real = 0.0
    """Watts that a square metre of a generated die dissipates; zero for devices on the market."""
    price: Real = 0.0
    """Capital cost in dollars of one device with its share of the system."""
    reserved_memory: float = 4.0 * 2**30
    """Bytes of DRAM used by framework, runtime and fragmentation."""
    host: Memory | None = None
    """Host memory per device, with bytes per second per direction of the link to it; None if plans cannot offload."""
    efficiency: Efficiency = Efficiency()
    variants: tuple[Efficiency, ...] = ()
    """Further sets of constants consistent with measured runs, an optimistic and a pessimistic one; none without a fit."""
    doubts: tuple["Doubt", ...] = ()
    """Differences of L2 and links under each of `variants`; empty if there are none."""
    error: float | None = None
    """Mean relative error of step times on the runs used to fit the constants; None without a fit."""

    @property
    def one_die(self) -> Real:
        """Square metres of each die; of several rounded down, as the quotient of 1,626 mm^2 by 3 is above the float of 542 mm^2."""
        return self.die_area / self.dies * (1.0 - _LAST_BIT * np.greater(self.dies, 1.0))


@dataclass(frozen=True, slots=True)
class Cluster:
    """The number of devices, and how many of them each network level joins, innermost first. The last level joins all."""

    devices: int
    level_sizes: tuple[int, ...]
    are_dimensions: bool = False
    """Whether no step is shorter than what is sent over a level takes (`exchanges.shared_links`)."""

    def __post_init__(self) -> None:
        sizes = self.level_sizes
        if not sizes or sizes[-1] != self.devices:
            raise ValueError(f"the outermost network level must join all {self.devices} devices, not {sizes[-1] if sizes else 0}")
        if any(outer % inner for inner, outer in pairwise(sizes)) or sizes[0] < 1:
            raise ValueError(f"each network level must hold a whole number of the one inside it: {sizes}")


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on one device and on the step time; infinite if not given."""

    die_area: float = float("inf")
    package_area: float = float("inf")
    power: float = float("inf")
    power_density: float = float("inf")
    reticle: float = float("inf")
    """Area limit in square metres of one die."""
    step_time: float = float("inf")

    @property
    def one_die(self) -> float:
        """The reticle limit, if the budget of all dies together does not imply it."""
        return self.reticle if self.reticle < self.die_area else float("inf")


_LAST_BIT = 2.0**-52
Kind = TypeVar("Kind", Hardware, Memory, Link)
Record = TypeVar("Record", Memory, Link, Efficiency)


_OF_SUMS = 1.0 + 2.0**-49
"""What sums of a few areas or watts may be above themselves in decimals."""


def is_within(used: Real, limit: float) -> Mask:
    """Whether an area or a power is within a limit: 189.8 + 26.9 + 82 + 41 + 46.7 + 16.2 mm^2 are within 402.6 mm^2, though above it as
    computed."""
    return np.asarray(np.less_equal(used, limit * _OF_SUMS))


def headroom_of(power: Real, idle_power: Real) -> Real:
    """Watts above idle, reduced by a small margin so that their sum with idle power, as computed, stays below the power limit."""
    return (power - idle_power) * (1.0 - _GUARD)


def at_power(hardware: Hardware, power: float) -> Hardware:
    """The device held to fewer watts than it is rated for, at a lower clock f: what it draws above idle goes with f V^2 and so with f^3, as
    voltage follows the clock (Horowitz et al. 1994; DeepFlow's law in `voltage`), so that

        f = ((P - P_idle) / (P_0 - P_idle))^(1/3)   of what it computes and of what moves on the die,

    and joules of an operation go with f^2. An A100 of 250 W in place of 400 is so 0.80 to 0.86 times as fast in products, as it idles at 88
    or 50 W; NVIDIA says 0.9 for top applications, which other things bound, too. Memory and links have clocks of their own."""
    clock = ((power - hardware.idle_power) / (hardware.power - hardware.idle_power)) ** (1.0 / 3.0)
    return replace(
        hardware,
        throughput=hardware.throughput * clock,
        vector_throughput=hardware.vector_throughput * clock,
        energy_per_flop=hardware.energy_per_flop * (clock * clock),
        running_power=hardware.running_power * (clock * clock * clock),
        power=power,
        headroom=headroom_of(power, hardware.idle_power),
        l2=_clocked(hardware.l2, clock),
        l1=_clocked(hardware.l1, clock),
        registers=_clocked(hardware.registers, clock),
    )


def _clocked(memory: Memory, clock: Real) -> Memory:
    return replace(memory, bandwidth=memory.bandwidth * clock, energy=memory.energy * (clock * clock))


def within_power(seconds: Real, work: Real, devices: Real, hardware: Hardware) -> Real:
    """Seconds of a step that takes `work` joules above idle on all devices, lengthened where the average power would exceed the limit.

        T = max(seconds, W / (n (P - P_idle))),   so that the average power  (W + n P_idle T) / (n T) = W / (n T) + P_idle <= P,

    whatever chip, plan and workload, and whatever the kernels are by which P is rated. T never grows with P - P_idle, and never
    falls with W, operation by operation. What a board saves by the lower voltage of a lower clock is left out: T is rather too long.

    Boards clock down at their limit (power caps as in Choi, Dukhan, Liu and Vuduc 2014, Algorithmic Time, Energy, and Power on
    Candidate HPC Compute Building Blocks, IPDPS).
    """
    return np.maximum(seconds, work / (devices * hardware.headroom))


def variants_of(hardware: Hardware) -> tuple[Hardware, ...]:
    """The device under each further set of constants, with the uncertain figures that go with them."""
    plain = replace(hardware, variants=(), doubts=())
    devices = [doubt.of(plain) for doubt in hardware.doubts] or [plain] * len(hardware.variants)
    return tuple(replace(device, efficiency=constants) for device, constants in zip(devices, hardware.variants, strict=True))


def variants_together(hardware: Hardware) -> Hardware:
    """The device under all further sets of constants (at least one), as an array of devices."""
    devices = variants_of(hardware)
    links = tuple(side_by_side(level) for level in zip(*(device.links for device in devices), strict=True))
    return replace(
        devices[0],
        throughput=hardware.throughput * np.ones(len(devices)),
        efficiency=side_by_side([device.efficiency for device in devices]),
        l2=side_by_side([device.l2 for device in devices]),
        links=links,
    )


@lru_cache(maxsize=64)
def under_all_sets(hardware: Hardware) -> Hardware:
    """The device under its own and then each further set of constants, as an array of devices."""
    stated = Doubt(1.0, (1.0,) * len(hardware.links), (1.0,) * len(hardware.links))
    doubts = (stated, *hardware.doubts) if hardware.doubts else ()
    return variants_together(replace(hardware, variants=(hardware.efficiency, *hardware.variants), doubts=doubts))


def side_by_side(records: Sequence[Record]) -> Record:
    """One record with an array for every number in which the given ones differ."""
    columns = {field.name: [getattr(record, field.name) for record in records] for field in fields(records[0])}
    arrays = {name: np.array(values) for name, values in columns.items() if any(value != values[0] for value in values)}
    return replace(records[0], **arrays)  # type: ignore[arg-type]


def take(hardware: Kind, index: int | Ints) -> Kind:
    """The devices at `index` of an array of devices; fields shared by all stay as they are."""
    changes: dict[str, object] = {}
    for field in fields(hardware):
        value = getattr(hardware, field.name)
        if isinstance(value, np.ndarray):
            changes[field.name] = float(value[index]) if isinstance(index, int) else value[index]
        elif field.name == "links":
            changes[field.name] = tuple(take(link, index) for link in value)
        elif is_dataclass(value) and not isinstance(value, Efficiency):
            changes[field.name] = take(value, index)  # type: ignore[type-var]
    return replace(hardware, **changes)  # type: ignore[arg-type]


def devices_in(hardware: Hardware) -> int:
    """Number of devices in the arrays; 1 if every field is a single number."""
    values = (getattr(part, field.name) for _, part in _parts(hardware) for field in fields(part))
    sizes = {value.size for value in values if isinstance(value, np.ndarray)}
    if len(sizes) > 1:
        raise ValueError(f"hardware fields have different lengths: {sorted(sizes)}")
    return sizes.pop() if sizes else 1


_NEEDED = frozenset(("throughput", "vector_throughput", "bundles", "capacity", "bandwidth", "headroom"))
"""Resources that the model divides by or cannot do without; all other figures may be zero."""
_FIELDS: dict[type, tuple[str, ...]] = {kind: tuple(field.name for field in fields(kind)) for kind in (Hardware, Memory, Link)}


def faults(hardware: Hardware) -> tuple[str, ...]:
    """Invalid figures: resources that are not positive, others that are negative, and non-finite ones."""
    figures = ((name, field, getattr(part, field)) for name, part in _parts(hardware) for field in _FIELDS[type(part)])
    return tuple(
        f"{name}{field} is {value}, a finite number {'above' if field in _NEEDED else 'not below'} 0 is needed"
        for name, field, value in figures
        if isinstance(value, int | float | np.ndarray) and not _usable(value, field in _NEEDED)
    )


def _usable(value: Real, needed: bool) -> bool:
    if not isinstance(value, np.ndarray):  # by far the most, and numpy takes ten times as long for a single one
        return isfinite(value) and (value > 0.0 if needed else value >= 0.0)
    return bool(np.all(np.isfinite(value) & (np.greater(value, 0.0) if needed else np.greater_equal(value, 0.0))))


def _parts(hardware: Hardware) -> tuple[tuple[str, Hardware | Memory | Link], ...]:
    """The device and its parts, each with its prefix of field names."""
    levels = ("dram", "l2", "l1", "registers", *(("host",) if hardware.host else ()))
    memories = ((f"{level}.", getattr(hardware, level)) for level in levels)
    return (("", hardware), *memories, *((f"links[{number}].", link) for number, link in enumerate(hardware.links)))
