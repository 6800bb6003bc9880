"""A whole training run as a goal: so many tokens, until when and for how much; and the step time that this leaves. Prices, too.

    steps         tokens / tokens of a step, rounded up
    rent          devices x rent of an hour x hours
    purchase      devices x price + nodes x price of a node, all of it; with a lifetime, that x seconds of the run / lifetime
    electricity   devices x rated power x PUE x seconds x price of energy
    seconds       steps x step time / share of the time that lasts where devices fail now and then (`crossflow.goodput`)

That share is one of the devices and their number alone, so that it shortens the longest step as a factor, whatever the plan.

Money is what is paid in any case and what a second costs, so that a budget is a limit on the step time:

    step time  <=  (budget - paid in any case) / (money of a second x steps) x share that lasts
"""

from collections.abc import Callable
from dataclasses import fields, replace
from math import ceil, inf

from crossopt.crossflow.cost import Prices
from crossopt.crossflow.goodput import Failures, goodput
from crossopt.crossflow.records import dataclass
from crossopt.instances.catalogue.uncertain import PRICES, multiplied
from crossopt.instances.codesign.section import ClusterSection, CodesignFile, PricesSection

CEILINGS = ("time_per_sample", "worst_step_time", "energy_per_token", "rated_energy_per_token", "cost_per_token")
"""Limits of the budget on what is an objective, which follow from the prices of a design."""
_HOUR = 3600.0
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
    """Money for a device and an hour."""
    purchase: Purchase | None = None
    """In place of a rent."""
    lasting: float = 1.0
    """The share of the time that is work which lasts."""

    @property
    def steps(self) -> int:
        return ceil(self.tokens / self.step_tokens)

    def seconds(self, step_time: float) -> float:
        """How long the run takes."""
        return self.steps * step_time / self.lasting if self.lasting else inf

    def items(self, step_time: float) -> tuple[tuple[str, float], ...]:
        """What is paid for the run, item by item; none where neither rent nor purchase is given."""
        seconds, bought = self.seconds(step_time), self.purchase
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
        return longest if self.lasting == 1.0 or longest == inf else max(longest * self.lasting, _AT_ONCE)

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
    if goal is None:
        return []
    if goal.budget is not None and goal.rent is None and goal.purchase is None:
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
    asked = file.objective == "cost_per_token" or file.budget.cost_per_token is not None
    if file.prices is None and (usual is None or not asked):
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
    names = {"defects_per_square_metre": "defect_density"}
    stated = ((field.name, getattr(section, field.name)) for field in fields(section))
    faults: list[tuple[str, str]] = []
    prices = replace(base, **{names.get(name, name): value for name, value in stated if value is not None})
    prices = multiplied(prices, file.factors.get(PRICES, {}), f"factors.{PRICES}", faults)
    for path, message in faults:
        report(path, message)
    return prices


def ceilings_of(file: CodesignFile, goal: Goal | None) -> tuple[tuple[str, float], ...]:
    """Objectives that a design may have at most so much of: those of the budget, and the step by the slowest constants where the whole run
    is to keep its limits by these."""
    given = {name: most for name in CEILINGS if (most := getattr(file.budget, name)) is not None}
    if goal is not None and file.goal is not None and file.goal.by == "slowest" and goal.step_time < inf:
        given["worst_step_time"] = min(given.get("worst_step_time", inf), goal.step_time)
    return tuple((name, given[name]) for name in CEILINGS if name in given)


def asks_for_slowest(file: CodesignFile) -> list[str]:
    """The keys that look at the slowest of several sets of constants."""
    asked = {
        "budget.worst_step_time": file.budget.worst_step_time is not None,
        "goal.by": file.goal is not None and file.goal.by == "slowest",
        "objective": file.objective == "worst_step_time",
    }
    return [key for key, looks in asked.items() if looks]


def goal_of(file: CodesignFile, tokens: int, devices: int, power: float, usual_node: int) -> Goal | None:
    """The whole run at steps of so many tokens, with the devices, which are rated at `power`, bought where that is asked."""
    if (given := file.goal) is None:
        return None
    bought, purchase = given.purchase, None
    if bought is not None:
        nodes = ceil(devices / min(file.cluster.devices_per_node or usual_node, devices))
        purchase = Purchase(
            capital=devices * bought.device + nodes * bought.node,
            lifetime=bought.lifetime or inf,
            power=devices * float(power) * bought.pue,
            electricity=bought.electricity,
        )
    failures = failures_of(file.cluster)
    lasting = 1.0 if failures is None else goodput(failures, devices).share
    return Goal(given.tokens, tokens, devices, given.deadline or inf, given.budget or inf, given.rent, purchase, lasting)


def failures_of(cluster: ClusterSection) -> Failures | None:
    """How often devices fail, where the question says it."""
    given = cluster.failures
    return None if given is None else Failures(given.mean_time, given.checkpoint, given.restart)
