"""A question with all names resolved and all figures in SI, its goals and prices, and what was worked out for it a moment ago."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import field, fields, replace
from functools import wraps
from math import ceil, inf, nextafter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from crossopt.crossflow.cost import Prices
from crossopt.crossflow.goodput import Failures, goodput
from crossopt.crossflow.hardware import Budget, Cluster, Efficiency, Hardware, Link, Memory, Shape
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Workload
from crossopt.instances.catalogue.registry import device_given, is_path, names
from crossopt.instances.catalogue.uncertain import PRICES, multiplied
from crossopt.instances.codesign.section import ClusterSection, CodesignFile, PricesSection
from crossopt.instances.codesign.stack_table import Machine, Stack
from crossopt.instances.files.units import exact, nearest
from crossopt.instances.files.written import short_repr

if TYPE_CHECKING:
    from crossopt.crossflow.generator import Edges
    from crossopt.crossflow.rare_exchanges import Groups
    from crossopt.crossflow.technology import Parts, Technology
    from crossopt.instances.catalogue.uncertain import Range


# What was worked out for a question a moment ago: an answer, its check and the baselines beside it ask the same of one question again.

Asked = TypeVar("Asked")
Known = TypeVar("Known")

_LAST = 8
"""Questions of which the answers are kept."""


def remembered(work_out: Callable[[Asked], Known]) -> Callable[[Asked], Known]:
    """The function, which looks first whether it was asked the same just before. Questions hold documents, so that they have no hash."""
    last: list[tuple[Asked, Known]] = []

    @wraps(work_out)
    def ask(question: Asked) -> Known:
        for earlier, known in last[:_LAST]:
            if earlier is question or earlier == question:
                return known
        known = work_out(question)
        last[:] = [(question, known), *last][:_LAST]
        return known

    return ask


# A whole training run as a goal: so many tokens, until when and for how much; and the step time that this leaves. Prices, too.
#
#     steps         tokens / tokens of a step, rounded up
#     rent          devices x rent of an hour x hours
#     purchase      devices x price + nodes x price of a node, all of it; with a lifetime, that x seconds of the run / lifetime
#     electricity   devices x rated power x PUE x seconds x price of energy
#     seconds       steps x step time / share of the time that lasts where devices fail now and then (`crossflow.goodput`)
#
# That share is one of the devices and their number alone, so that it shortens the longest step as a factor, whatever the plan.
#
# Money is what is paid in any case and what a second costs, so that a budget is a limit on the step time:
#
#     step time  <=  (budget - paid in any case) / (money of a second x steps) x share that lasts

CEILINGS = (
    "time_per_sample",
    "mean_step_time",
    "worst_step_time",
    "energy_per_token",
    "rated_energy_per_token",
    "cost_per_token",
    "run_cost",
)
"""Limits of the budget on what is an objective, which follow from the prices of a design."""
_HOUR = 3600.0
_NEAR = 1e-9
"""Share by which rounding surely changes no figure of a run."""
_AT_ONCE = 1e-30
"""Seconds that no step is as short as: the limit where the budget is spent before the first step."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """Devices that are bought, and the power that they draw."""

    capital: float
    """Money for all devices and nodes."""
    lifetime: float = inf
    """Seconds over which that is written off; it is paid in full where none is given."""
    power: float = 0.0
    """Watts of all devices, as they are rated, with what the building takes (PUE)."""
    electricity: float = 0.0
    """Money of a joule."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What the run shall come to. A run of N tokens has ceil(N / tokens of a step) steps, all of which take the step time."""

    tokens: float
    step_tokens: int
    devices: int
    deadline: float = inf
    """Seconds for the whole run."""
    budget: float = inf
    """Money for the whole run."""
    rent: float | None = None
    """Money for a device and an hour: as the question says, else the device's list price in the registry."""
    purchase: Purchase | None = None
    """In place of a rent."""
    lasting: float = 1.0
    """The share of the time that is work which lasts."""
    rent_source: str = field(default="", compare=False)
    """Month and provider of a list price; empty where the question gives the rent."""
    target: float = inf
    """Wanted seconds of the whole run, which no limit holds it to."""
    sites: "Groups | None" = None
    """Groups that exchange rarely: a step of one group then takes its mean time with exchanges, times the factor on the steps."""

    @property
    def wanted(self) -> float:
        """Seconds that the run should take at most, whether or not that is a limit; infinite where nothing is said."""
        return min(self.deadline, self.target)

    @property
    def steps(self) -> int:
        return ceil(self.tokens / self.step_tokens)

    def seconds(self, step_time: float) -> float:
        """How long the run takes."""
        mean = step_time if self.sites is None else cast(float, self.sites.least(step_time)[()])
        return self.steps * mean / self.lasting if self.lasting else inf

    def steps_taken(self, step_time: float) -> int:
        """Steps of the run: more than data parallelism needs where groups exchange rarely."""
        return self.steps if self.sites is None else ceil(self.steps * self.sites.steps[self.sites.chosen(step_time)])

    def items(self, step_time: float) -> tuple[tuple[str, float], ...]:
        """What is paid for the run, item by item; none where neither rent nor purchase is given."""
        return self._items(self.seconds(step_time))

    def _items(self, seconds: float) -> tuple[tuple[str, float], ...]:
        bought = self.purchase
        if bought is None:
            return () if self.rent is None else (("rent", self.devices * self.rent * seconds / _HOUR),)
        written_off = bought.capital * (1.0 if bought.lifetime == inf else seconds / bought.lifetime)
        power = (("electricity", bought.power * bought.electricity * seconds),) if bought.electricity else ()
        return (("purchase" if bought.lifetime == inf else "write-off", written_off), *power)

    def money(self, step_time: float) -> float | None:
        """What the run costs; None where neither rent nor purchase is given."""
        return sum(money for _, money in items) if (items := self.items(step_time)) else None

    @property
    def step_time(self) -> float:
        """The longest step that keeps deadline and budget; one that no design has where what is paid in any case is above the budget, or
        where failures leave nothing of the time."""
        longest = self._without_failures
        return longest if longest in (inf, _AT_ONCE) else self._as_computed(max(longest * self.lasting, _AT_ONCE))

    def _as_computed(self, longest: float) -> float:
        """The longest step near this one with which the run, as computed, keeps its limits, so that one of just these figures does."""

        def keeps(mean: float) -> bool:
            seconds = self.steps * mean / self.lasting
            return seconds <= self.deadline and (self.budget == inf or sum(money for _, money in self._items(seconds)) <= self.budget)

        low, high = longest * (1.0 - _NEAR), longest * (1.0 + _NEAR)
        if self.lasting == 0.0 or not keeps(low) or keeps(high):
            return longest
        while nextafter(low, inf) < high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if keeps(middle) else (low, middle)
        return low

    @property
    def _without_failures(self) -> float:
        if (bought := self.purchase) is None:
            hourly = self.devices * (self.rent or 0.0)
            paid = self.budget * _HOUR / hourly if hourly else inf
            return min(self.deadline, paid) / self.steps
        fixed = bought.capital if bought.lifetime == inf else 0.0
        of_a_second = bought.power * bought.electricity + (0.0 if bought.lifetime == inf else bought.capital / bought.lifetime)
        if self.budget == inf:
            return self.deadline / self.steps
        if self.budget < fixed or (of_a_second and self.budget == fixed):
            return _AT_ONCE
        return min(self.deadline, (self.budget - fixed) / of_a_second if of_a_second else inf) / self.steps


def goal_faults(file: CodesignFile) -> list[tuple[str, str]]:
    """What of a whole run does not go together."""
    goal, faults = file.goal, []
    for path, wanted in (("objective", file.objective == "run_cost"), ("budget.run_cost", file.budget.run_cost is not None)):
        if wanted and (goal is None or (goal.purchase is None and _rent_of(file)[0] is None)):
            listed = "" if file.hardware is None else "; there is no list price of this device"
            missing = "goal: {tokens: 15e12}" if goal is None else "`rent` under goal, the money for a device and an hour"
            faults.append((path, f"what a run costs needs its tokens and a rent (add {missing}{listed if goal else ''})"))
    if goal is None:
        return faults
    known = {*names("hardware"), *([file.hardware] if isinstance(file.hardware, str) else [])}
    for name in (name for name in goal.rents if name not in known and not is_path(name)):
        guess = nearest(name, known)
        faults.append(
            (f"goal.rents.{name}", f"there is no such device ({f'did you mean {guess[0]}? ' if guess else ''}see `crossopt list hardware`)")
        )
    if goal.rents and goal.purchase is not None:
        faults.append(("goal.purchase", "devices are rented or bought, here they are both (remove `rents` or `purchase`)"))
    if goal.budget is not None and goal.purchase is None and _rent_of(file)[0] is None:
        remedy = "add `rent`, the money for a device and an hour, or `purchase`, or remove `budget`"
        faults.append(("goal.budget", f"what a run costs needs the rent ({remedy})"))
    if goal.by == "slowest" and goal.deadline is None and goal.budget is None:
        remedy = "add `deadline` or `budget`, ask for objective: worst_step_time, or remove `by`"
        faults.append(("goal.by", f"the goal has no limit that the slowest constants could hold ({remedy})"))
    if goal.rent is not None and goal.purchase is not None:
        faults.append(("goal.purchase", "devices are rented or bought, here they are both (remove `rent` or `purchase`)"))
    if goal.purchase is not None and file.technology is not None:
        remedy = "give hardware, or `rent`, or objective: cost_per_token with prices"
        faults.append(("goal.purchase", f"a chip that is yet to be chosen has no price and no rated power ({remedy})"))
    return faults


def prices_of(file: CodesignFile, hardware: object, report: Callable[[str, str], None]) -> Prices | None:
    """The prices of a question, in place of the usual ones of its technology; none where no cost is asked for and none are given."""
    usual: Prices | None = getattr(hardware, "prices", None)  # of a technology
    needs_prices = file.objective == "cost_per_token" or file.budget.cost_per_token is not None
    if file.prices is None and (usual is None or not needs_prices):
        needs = "add a section `prices` with device, what one costs, or take a technology that has prices"
        if file.objective == "cost_per_token":
            report("objective", f"a cost needs prices ({needs})")
        if file.budget.cost_per_token is not None:
            report("budget.cost_per_token", f"a limit on the cost needs prices ({needs})")
        return None
    section = PricesSection() if file.prices is None else file.prices
    own = section.wafer is not None or section.device is not None
    if (section.device is None) == (section.wafer is None) and (own or usual is None):
        report("prices", "exactly one of device and wafer is needed: the price of a whole device, or of a wafer")
    if section.wafer is not None and usual is None and (section.stack is None or section.package is None):
        report("prices", "with the price of a wafer those of a stack and a package are needed too (0 USD where they are free)")
    if section.wafer is not None and getattr(getattr(hardware, "technology", None), "upper_dies", None) is not None:
        report("prices.wafer", "dies of two kinds are stacked here, of which no price follows from one wafer (give `device`)")
    base = usual or Prices(0.0, 0.0)
    named = {"defects_per_square_metre": "defect_density"}
    stated = ((field.name, getattr(section, field.name)) for field in fields(section))
    faults: list[tuple[str, str]] = []
    prices = replace(base, **{named.get(name, name): value for name, value in stated if value is not None})
    prices = multiplied(prices, file.factors.get(PRICES, {}), f"factors.{PRICES}", faults)
    for path, message in faults:
        report(path, message)
    return prices


def ceilings_of(file: CodesignFile, goal: Goal | None) -> tuple[tuple[str, float], ...]:
    """Objectives that a design may have at most so much of: those of the budget, the mean step where groups exchange and the run has
    limits, and the step by the slowest constants where the whole run is to keep its limits by these."""
    given = {name: most for name in CEILINGS if (most := getattr(file.budget, name)) is not None}
    if goal is not None and goal.sites is not None and goal.step_time < inf:
        given["mean_step_time"] = min(given.get("mean_step_time", inf), goal.step_time)
    if goal is not None and file.goal is not None and file.goal.by == "slowest" and goal.step_time < inf:
        given["worst_step_time"] = min(given.get("worst_step_time", inf), goal.step_time)
    return tuple((name, given[name]) for name in CEILINGS if name in given)


def asks_for_slowest(file: CodesignFile) -> list[str]:
    """The keys that look at the slowest of several sets of constants."""
    uses = {
        "budget.worst_step_time": file.budget.worst_step_time is not None,
        "goal.by": file.goal is not None and file.goal.by == "slowest",
        "objective": file.objective == "worst_step_time",
    }
    return [key for key, looks in uses.items() if looks]


def goal_of(file: CodesignFile, tokens: int, devices: int, power: float, usual_node: int, sites: "Groups | None" = None) -> Goal | None:
    """The whole run at steps of so many tokens, with the devices, which are rated at `power`, bought where that is asked.
    Tokens and devices are those of all groups."""
    if (given := file.goal) is None:
        return None
    bought, purchase = given.purchase, None
    if bought is not None:
        nodes = ceil(devices / min(file.cluster.devices_per_node or usual_node, devices))
        purchase = Purchase(
            capital=float(devices * exact(bought.device) + nodes * exact(bought.node)),
            lifetime=bought.lifetime or inf,
            power=devices * float(power) * bought.pue,
            electricity=bought.electricity,
        )
    failures = failures_of(file.cluster)
    lasting = 1.0 if failures is None else goodput(failures, devices).share
    rent, source = _rent_of(file)
    return Goal(
        given.tokens,
        tokens,
        devices,
        given.deadline or inf,
        given.budget or inf,
        rent,
        purchase,
        lasting,
        source,
        given.target or inf,
        sites,
    )


def _rent_of(file: CodesignFile) -> tuple[float | None, str]:
    """The rent of a device and an hour that the question gives, else its list price with month and provider; none for purchases."""
    goal, listed = file.goal, None
    if goal is not None and isinstance(file.hardware, str) and (own := goal.rents.get(file.hardware)) is not None:
        return own, ""
    if goal is not None and goal.rent is None and goal.purchase is None and file.hardware is not None:
        with suppress(ValueError):  # an unknown device is reported where it is read
            listed = device_given(file.hardware)[0].rent
    if listed is not None:
        return listed.price, f"list price of {listed.month}: {listed.source}"
    return (None if goal is None else goal.rent), ""


def failures_of(cluster: ClusterSection) -> Failures | None:
    """How often devices fail, where the question says it."""
    given = cluster.failures
    return None if given is None else Failures(given.mean_time, given.checkpoint, given.restart)


# A question with all names resolved and all figures in SI: what the engines answer and the verifier checks against.

Options = tuple[tuple[str, tuple[Any, ...]], ...]
"""Names of choices and their options, in the order in which designs are enumerated."""


@dataclass(frozen=True, slots=True)
class Join:
    """Topology of a network level, units that it joins where needed, its share of the links it uses, and whether its switches add up."""

    shape: Shape
    units: int
    share: float
    reduces: bool = False


@dataclass(frozen=True, slots=True)
class FreeHardware:
    """Hardware that is left open: the technology and the defaults of a chip."""

    technology: "Technology"
    die_area: float
    package_area: float
    power: float
    power_density: float
    """Watts per square metre that its usual cooling removes."""
    reticle: float
    """Square metres of the largest die."""
    dies: float
    areas: "Parts"
    """Shares of die area."""
    sold_l2: float
    """Banks of L2 per core in the chip on the market."""
    powers: "Parts"
    """Shares of power."""
    edges: "Edges"
    reserved_memory: float
    host: Memory | None
    efficiency: Efficiency
    variants: tuple[Efficiency, ...]
    """Alternative sets of constants: optimistic and pessimistic; none without a fit."""
    setups: tuple[float, float]
    """Start-up seconds of a collective inside a node and between nodes, measured on the device that gives the constants."""
    levels: tuple[str, ...]
    """The link, `intra` or `inter`, of each network level."""
    overrides: tuple[Link | None, ...]
    """Links of those levels stated in the question."""
    joins: tuple[Join, ...]
    """The topologies of those levels."""
    options: Options
    """Choices of hardware."""
    prices: Prices | None = None
    """Prices of the technology, for questions that give none."""
    like: str | None = None
    """The device whose constants apply to the chips; None for the model's defaults."""
    sources: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """Sources of the technology's figures."""
    reference_device: Hardware | None = field(default=None, compare=False)
    """That device as on the market, in the same cluster, if the chips have its node and memory."""


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
    """The question as written, so that results can be checked without the file."""
    only: tuple[str, ...] = ()
    """Settings that plans must have exactly as listed; other settings apply where they have an effect."""
    failures: Failures | None = None
    machine: Machine = field(default_factory=Machine)
    stack: Stack | None = None
    """The training stack that the question names; its table gives further rules of plans."""
    derived: str = ""
    """Derived figures of the device and their source."""
    priced_by: str = field(default="", compare=False)
    """Description of the calibration set: stack, versions and provenance."""
    calibrated: bool = field(default=True, compare=False)
    """Whether measured runs of the stack on the device, where that is bought, fitted the constants."""
    reserve_given: bool = False
    """Whether the question states the reserved memory of each device."""
    nodes_given: bool = True
    """Whether the question says how many devices a node holds, or every dimension of the network."""
    goal: Goal | None = None
    """The whole run, whose limits are in the budget as a step time."""
    ceilings: tuple[tuple[str, float], ...] = ()
    """Objectives with an upper limit, beside those of the budget."""
    sites: "Groups | None" = None
    """Groups that exchange rarely; workload and cluster are then those of one group."""
    ranges: tuple["Range", ...] = ()
    """Constants with uncertainty ranges."""
    others: tuple[Other, ...] = ()
    """Alternative sets of constants: a design must satisfy every limit under each, and its value is the greatest."""
    unnamed: tuple[str, ...] = field(default=(), compare=False)
    """Description of a transformer's plan settings that the question does not mention; not part of the question."""

    __repr__ = short_repr

    @property
    def measures_time(self) -> bool:
        """Whether the objective is in proportion to the step time, so that errors of one are errors of the other."""
        paid_in_full = self.goal is not None and self.goal.purchase is not None and self.goal.purchase.lifetime == inf
        return self.objective in ("step_time", "time_per_sample", "mean_step_time") or (self.objective == "run_cost" and not paid_in_full)


def under_each(instance: Instance) -> tuple[tuple[str, Instance], ...]:
    """The question under each alternative set of constants, with the same choices, room and limits."""
    own = instance.hardware
    shared: dict[str, Any] = {"reserved_memory": own.reserved_memory, "host": own.host}
    shared |= {"options": own.options} if isinstance(own, FreeHardware) else {}
    return tuple((other.name, replace(instance, hardware=replace(other.hardware, **shared), others=())) for other in instance.others)


@dataclass(frozen=True, slots=True)
class Portfolio:
    """Several workloads that share chip and cluster, each with its own plan.

    Every part is a question of its own with the hardware, cluster, budget and objective of all; its name is the workload's.
    """

    name: str
    parts: tuple[Instance, ...]
    weights: tuple[float, ...]
    combine: str
    """`weighted_sum`, or `worst_regret`: the greatest v_k / v_k* - 1, where v_k* is the optimum of workload k alone."""
    document: dict[str, Any]
    """The question as written."""

    __repr__ = short_repr

    @property
    def objective(self) -> str:
        return self.parts[0].objective


class Scale(NamedTuple):
    """Identification of one of several questions: devices; batch (0 if there is one); network, device and precision (empty if there is one
    of each)."""

    devices: int
    batch: int = 0
    network: str = ""


@dataclass(frozen=True, slots=True)
class MultiScaleQuestion:
    """A question with an open number of devices, batch, or network sizes and bandwidths."""

    name: str
    objective: str
    """Objective of every part; or `devices`, for the fewest, where the parts minimise step time."""
    scales: tuple[Scale, ...]
    """Identification of each part, devices ascending."""
    parts: tuple[Instance, ...]
    """One question per number of devices, batch and network."""
    document: dict[str, Any]
    """The question as written."""
    impossible: tuple[tuple[Scale, str], ...] = ()
    """Combinations without a valid question, and why."""
    compared: tuple[str, ...] = ("network",)
    """What `Place.network` names: any of device, precision, package, groups and network."""

    __repr__ = short_repr

    @property
    def compared_name(self) -> str:
        """The compared axes in words."""
        named = {"device": "kind of device", "links": "kind of links", "groups": "number of groups"}
        return " and ".join(named.get(axis, axis) for axis in self.compared)

    @property
    def compared_names(self) -> str:
        """Several of them in words."""
        named = {"device": "kinds of devices", "groups": "numbers of groups", "links": "kinds of links"}
        several = {axis: f"{axis}s" for axis in self.compared} | named
        return several[self.compared[0]] if len(self.compared) == 1 else f"combinations of {' and '.join(self.compared)}"

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of devices of each part."""
        return tuple(scale.devices for scale in self.scales)

    @property
    def batches(self) -> tuple[int, ...]:
        """Samples per step of each part; empty if there is one batch."""
        return tuple(scale.batch for scale in self.scales if scale.batch)

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks, devices and precisions, impossible ones included, each once; empty if there is one."""
        every = (*self.scales, *(scale for scale, _ in self.impossible))
        return tuple(dict.fromkeys(scale.network for scale in every if scale.network))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of devices, each once."""
        return tuple(dict.fromkeys(self.counts))

    @property
    def asked_for(self) -> tuple[int, ...]:
        """The numbers of devices, impossible ones included, each once."""
        return tuple(dict.fromkeys((*self.counts, *(scale.devices for scale, _ in self.impossible))))

    @property
    def by_devices(self) -> bool:
        """Whether labels of parts state the number of devices: several are asked for, or nothing else distinguishes parts."""
        return (len(self.asked_for) > 1 and "groups" not in self.compared) or not (self.batches or self.networks)

    @property
    def samples(self) -> tuple[int, ...]:
        """The batches, each once; empty if there is one."""
        return tuple(dict.fromkeys(self.batches))

    def part_name(self, index: int) -> str:
        """Label that distinguishes a part from the others."""
        devices, batch, network = self.scales[index]
        labels = [f"{devices:,} device{'s' * (devices != 1)}"] if self.by_devices else []
        return ", ".join([*labels, *([f"batch {batch:,}"] if batch else []), *([network] if network else [])])
