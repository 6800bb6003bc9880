"""The full analytical model as one function: the cost breakdown of a design, and the limits that it satisfies."""

from dataclasses import replace

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.bill import Bill
from crossopt.crossflow.cost import Prices, step_cost
from crossopt.crossflow.hardware import Budget, Cluster, Hardware, faults, is_within, variants_of
from crossopt.crossflow.kernels.distributed_product import bill as gemm_bill
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.kernels.kernel_plan import broken_rules as broken_kernel_rules
from crossopt.crossflow.kernels.lstm import bill as lstm_bill
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.plan import broken_rules as broken_plan_rules
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.transformer import bill as transformer_bill
from crossopt.crossflow.workload import Gemm, Lstm, Transformer, Workload

_SUMS = ("area", "power", "power_per_area")
"""Dimensions of what is added up of chosen decimals."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A resource of which a design may use a limited amount."""

    name: str
    used: float
    available: float
    unit: str
    """The dimension of both figures, as the instances name it."""

    @property
    def satisfied(self) -> bool:
        return bool(is_within(self.used, self.available)) if self.unit in _SUMS else self.used <= self.available

    @property
    def share(self) -> float:
        """Used over available; above 1 if violated."""
        return self.used / self.available if self.available > 0.0 else float("inf") if self.used > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a device, by name and dimension."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Design:
    """A complete answer: a device, the number of devices, their network, and the parallel plan."""

    hardware: Hardware
    cluster: Cluster
    plan: Plan | KernelPlan


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The model's evaluation of one design, in SI units."""

    step_time: float
    likely: tuple[float, float]
    """Least and greatest step time over the device's sets of constants; both are the step time if there is one set."""
    breakdown: tuple[tuple[str, float], ...]
    """Seconds by use; they add up to the step time."""
    memory: tuple[tuple[str, float], ...]
    """Bytes by use on the fullest device."""
    limits: tuple[Limit, ...]
    device: tuple["Resource", ...]
    """Resources of one device."""
    energy: float
    """Joules of one step, all devices together."""
    average_power: float
    """Average watts of one device over the step."""
    power: float
    """Rated watts of one device."""
    die_area: float
    cost: float | None
    """Dollars of one step, if prices are given."""
    flops: float
    """Useful FLOPs of one step."""
    tokens: int
    utilisation: float
    """Useful FLOP/s over the peak of all devices (MFU)."""

    @property
    def feasible(self) -> bool:
        return all(limit.satisfied for limit in self.limits)

    @property
    def binding(self) -> tuple[str, ...]:
        """Limits of which the design uses at least 95 %."""
        return tuple(limit.name for limit in self.limits if limit.share >= 0.95)

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.step_time


_UNLIMITED = Budget()


def evaluate(
    workload: Workload, design: Design, budget: Budget = _UNLIMITED, prices: Prices | None = None, *, keeps_rules: bool = False
) -> Evaluation:
    """Evaluate one design with the full model.

    A device that lacks a resource, and a plan that is none because its degrees do not divide, are a ValueError. With `keeps_rules` the
    caller has asked for `broken_rules` before.
    """
    hardware, cluster = design.hardware, design.cluster
    if wrong := (*faults(hardware), *_missing_links(design)):
        raise ValueError(f"no plan can be evaluated on {hardware.name}: " + "; ".join(wrong))
    if not keeps_rules and (broken := broken_rules(workload, design)):
        raise ValueError(f"this is not a plan for {workload.name}: " + "; ".join(broken))
    bill = bill_of(workload, design)
    time, energy = float(bill.step_time), float(bill.energy)
    return Evaluation(
        step_time=time,
        likely=_likely(workload, design, bill),
        breakdown=_floats(bill.time),
        memory=_floats((*bill.memory, ("reserved", hardware.reserved_memory))),
        limits=limits(bill, hardware, budget),
        device=resources(hardware),
        energy=energy,
        average_power=energy / time / cluster.devices,
        power=float(hardware.power),
        die_area=float(hardware.die_area),
        cost=None if prices is None else float(step_cost(prices, hardware.price, cluster.devices, time, energy)),
        flops=bill.flops,
        tokens=workload.tokens,
        utilisation=bill.flops / (time * float(hardware.throughput) * cluster.devices),
    )


def _likely(workload: Workload, design: Design, bill: Bill) -> tuple[float, float]:
    """Range of the step time over the sets of constants. Sets may cross: what is slow on one workload need not be so on another."""
    others = bill.others or tuple(
        float(bill_of(workload, replace(design, hardware=other)).step_time) for other in variants_of(design.hardware)
    )
    times = (float(bill.step_time), *others)
    return min(times), max(times)


def resources(hardware: Hardware) -> tuple[Resource, ...]:
    """Peak, memories and links of a device, innermost link first."""
    links = tuple(Resource(f"link {level}", float(link.bandwidth), "bandwidth") for level, link in enumerate(hardware.links, start=1))
    host = (Resource("host memory", float(hardware.host.capacity), "bytes"),) if hardware.host else ()
    return (
        Resource("matrix peak", float(hardware.throughput), "throughput"),
        Resource("memory", float(hardware.dram.capacity), "bytes"),
        Resource("memory bandwidth", float(hardware.dram.bandwidth), "bandwidth"),
        Resource("L2", float(hardware.l2.capacity), "bytes"),
        Resource("L2 bandwidth", float(hardware.l2.bandwidth), "bandwidth"),
        *links,
        *host,
    )


def limits(bill: Bill, hardware: Hardware, budget: Budget) -> tuple[Limit, ...]:
    """Limits: memory always, host memory if there is any; area, power and time if there is a budget."""
    needed: Real = 0.0
    for _, size in bill.memory:
        needed = needed + size
    needed = needed + hardware.reserved_memory
    pairs = (
        ("memory", needed, hardware.dram.capacity, "bytes"),
        ("host memory", bill.host_memory, hardware.host.capacity if hardware.host else float("inf"), "bytes"),
        ("die area", hardware.die_area, budget.die_area, "area"),
        ("package area", hardware.package_area, budget.package_area, "area"),
        ("power", hardware.power, budget.power, "power"),
        ("power density", hardware.power_density, budget.power_density, "power_per_area"),
        ("reticle", hardware.one_die, budget.one_die, "area"),
        ("step time", bill.step_time, budget.step_time, "time"),
    )
    return tuple(Limit(name, float(used), float(available), unit) for name, used, available, unit in pairs if available != float("inf"))


def broken_rules(workload: Workload, design: Design) -> tuple[str, ...]:
    """Rules that the plan breaks for this workload and number of devices; empty if it is valid."""
    match workload, design.plan:
        case Transformer(), Plan():
            return broken_plan_rules(workload, design.plan, design.cluster.devices)
        case Lstm() | Gemm(), KernelPlan():
            return broken_kernel_rules(workload, design.plan, design.cluster.devices)
    return (f"a {type(design.plan).__name__} cannot spread a {type(workload).__name__}",)


def _missing_links(design: Design) -> tuple[str, ...]:
    links, levels = len(design.hardware.links), len(design.cluster.level_sizes)
    return () if links == levels else (f"links for {links} of the {levels} network levels are given, one each is needed",)


def bill_of(workload: Workload, design: Design) -> Bill:
    """The cost breakdown of the design's plan."""
    match workload, design.plan:
        case Transformer(), Plan():
            return transformer_bill(workload, design.hardware, design.cluster, design.plan)
        case Lstm(), KernelPlan():
            return lstm_bill(workload, design.hardware, design.cluster, design.plan)
        case Gemm(), KernelPlan():
            return gemm_bill(workload, design.hardware, design.cluster, design.plan)
    raise ValueError(f"a {type(design.plan).__name__} cannot spread a {type(workload).__name__}")


def _floats(items: tuple[tuple[str, object], ...]) -> tuple[tuple[str, float], ...]:
    return tuple((name, float(value)) for name, value in items)  # type: ignore[arg-type]
