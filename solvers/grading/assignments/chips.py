"""Assignment 4: which chips to build for which networks, in a weak and in a strong form; both are solved and relaxed by the grader."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import numpy as np

from crossopt.solvers.grading.handed_model import OBJECTIVE, Plan, relaxation, saying, solved
from crossopt.solvers.grading.marks import (
    FULL,
    Assignment,
    Case,
    Slip,
    Task,
    Verdict,
    apart,
    figure,
    given_first,
    integers_in,
    nearly,
    public,
    shown,
    wrong,
)
from crossopt.solvers.grading.running import Call

Costs = list[list[int]]
"""What each network costs on each chip."""

_RELAXED = 1e-6
"""Relative: how far apart two relaxations in floating point may be and still be the same. The handout says so."""
_CHOICES = 4
"""Drawn to try a model with."""
_PRICES_RIGHT, _PRICES_NEARLY = 0.05, 0.15
"""How far below the strong relaxation the bound of prices may be."""


@dataclass(frozen=True, slots=True)
class Chips:
    """A question and what is known of it."""

    costs: Costs
    opening: list[int]
    best: int
    weak: float
    strong: float
    plans: tuple[Plan, ...]
    """That a model of it is tried with."""


def tasks(seed: str) -> tuple[Task, ...]:
    """Few chips, so that all subsets of them can be tried here, but of one question not in a model, and many networks."""
    random, handed = Random(f"{seed}/04"), public("04-strong-and-weak")
    rng = Random(f"{seed}/04/plans")
    given = ask_with(handed["costs"], handed["opening"], rng)
    every = [given, *(_chips(random, rng, networks, chips) for networks, chips in ((12, 5), (16, 12), (30, 8)))]
    return (
        Task("a model with one row for each chip: weak_model", 12, given_first(_case("weak_model", chips, judge_weak) for chips in every)),
        Task(
            "a model with a strong relaxation: strong_model", 21, given_first(_case("strong_model", chips, judge_strong) for chips in every)
        ),
        Task("the relaxation of the weak one in closed form: weak_bound", 12, given_first(_weak_bound_case(chips) for chips in every)),
        Task("prices that prove a bound: prices", 15, given_first(_case("prices", chips, judge_prices) for chips in every)),
    )


def cheapest(costs: Costs, opening: list[int]) -> int:
    """Of all subsets of the chips, every network on the chip that suits it best."""
    table, least = np.array(costs), None
    for subset in range(1, 1 << len(opening)):
        built = [chip for chip in range(len(opening)) if subset >> chip & 1]
        cost = int(table[:, built].min(axis=1).sum()) + sum(opening[chip] for chip in built)
        least = cost if least is None else min(least, cost)
    return least or 0


def weak_bound(costs: Costs, opening: list[int]) -> float:
    """With sum over i of x[i, j] <= n y[j] a fraction of a chip costs each of n networks opening / n: sum of min (c[i, j] + f[j] / n)."""
    networks = len(costs)
    return float(sum(min(cost + fee / networks for cost, fee in zip(row, opening, strict=True)) for row in costs))


def strong_model(costs: Costs, opening: list[int]) -> dict[str, object]:
    """x[i, j] <= y[j] for each network and chip (Balinski 1965)."""
    on = [[f"network {i} on {j}" for j in range(len(opening))] for i in range(len(costs))]
    build = [f"build {j}" for j in range(len(opening))]
    rows: list[dict[str, object]] = [{"terms": dict.fromkeys(names, 1), "equals": 1} for names in on]
    rows += [{"terms": {name: 1, chip: -1}, "at_most": 0} for names in on for name, chip in zip(names, build, strict=True)]
    prices = {name: cost for names, row in zip(on, costs, strict=True) for name, cost in zip(names, row, strict=True)}
    variables = {name: [0, 1] for names in (*on, build) for name in names}
    return {"variables": variables, "minimise": prices | dict(zip(build, opening, strict=True)), "rows": rows}


def judge_weak(handed: object, chips: Chips) -> Verdict:
    """The right answers, and the relaxation that one row for each chip has."""
    return _judged(handed, chips, _as_weak)


def judge_strong(handed: object, chips: Chips) -> Verdict:
    """The right answers, and the strong relaxation."""
    return _judged(handed, chips, _as_strong)


def judge_prices(handed: object, chips: Chips) -> Verdict:
    """A bound that anyone can add up: no chip earns more by the prices than it costs, so that no set of chips costs less than their sum."""
    prices = integers_in(handed, len(chips.costs))
    if prices is None or len(prices) != len(chips.costs):
        return wrong(f"{len(chips.costs)} whole numbers are meant, not {shown(handed)}")
    for chip, fee in enumerate(chips.opening):
        paid = sum(max(0, price - row[chip]) for price, row in zip(prices, chips.costs, strict=True))
        if paid > fee:
            return wrong(f"networks would pay {paid} for chip {chip}, which costs {fee}: these prices prove nothing")
    bound = sum(prices)
    gap = 1.0 - bound / chips.strong
    why = f"the prices prove {bound}, where {int(chips.strong)} can be proved"
    if gap <= _PRICES_RIGHT:
        return FULL
    if prices == [min(row) for row in chips.costs]:
        return wrong(why, "each price is the least cost of its network, so that no network pays for any chip")
    return nearly("the prices can still be raised: chips have room left", why) if gap <= _PRICES_NEARLY else wrong(why)


def _judged(handed: object, chips: Chips, relaxing: Callable[[float, Chips], Verdict]) -> Verdict:
    try:
        values, claimed = solved(handed)
        cost = _cost(values, chips)
        second = relaxing(relaxation(handed), chips)
    except ValueError as error:
        return wrong(str(error))
    if claimed != cost:
        return wrong(f"the objective says {claimed}, but what is built and run costs {cost}", OBJECTIVE)
    if cost != chips.best:
        return wrong(f"what is built and run costs {cost}, {chips.best} can be had")
    complete = saying(FULL, handed, chips.plans)
    return replace(complete, share=0.0) if complete.share < 1.0 else second


STRONGER = "the model is right, but its rows are stronger than one for each chip"
WEAK = "the model is right, but no stronger than one row for each chip"
BETWEEN = "the model is right and stronger than one row for each chip, but some of its rows are still weak"
LOOSE = "the model is right, but its rows are weaker than one for each chip: more than the number of networks is allowed on a chip"


def _as_weak(value: float, chips: Chips) -> Verdict:
    if abs(value - chips.weak) <= _RELAXED * chips.weak:
        return FULL
    given, weak = apart(value, chips.weak)
    return nearly(STRONGER if value > chips.weak else LOOSE, f"its relaxation is {given}, that of one row for each chip is {weak}")


def _as_strong(value: float, chips: Chips) -> Verdict:
    if value >= chips.strong * (1.0 - _RELAXED):
        return FULL
    given, weak, strong = apart(value, chips.weak, chips.strong)
    why = f"its relaxation is {given}, between {weak} (weak) and {strong} (strong)"
    return wrong(why, WEAK) if value <= chips.weak * (1.0 + _RELAXED) else nearly(BETWEEN, why)


def _cost(values: dict[str, int], chips: Chips) -> int:
    """What the solution costs, chip by chip and network by network; a ValueError where it is no answer."""
    built = [chip for chip in range(len(chips.opening)) if values.get(f"build {chip}") == 1]
    cost = sum(chips.opening[chip] for chip in built)
    for network, row in enumerate(chips.costs):
        on = [chip for chip in range(len(row)) if values.get(f"network {network} on {chip}") == 1]
        if len(on) != 1:
            raise ValueError(f"network {network} is on {len(on)} chips in the best solution (variables `network {network} on 0`, ...)")
        if on[0] not in built:
            raise ValueError(f"network {network} is on chip {on[0]}, which is not built in the best solution (variables `build 0`, ...)")
        cost += row[on[0]]
    return cost


def _chips(random: Random, rng: Random, networks: int, chips: int) -> Chips:
    """Costs so that some chips are worth building and none is for everything."""
    work = [random.randrange(100, 1000) for _ in range(networks)]
    costs = [[round(cost * random.uniform(1.0, 3.0)) for _ in range(chips)] for cost in work]
    opening = [round(sum(work) * random.uniform(0.1, 0.3)) for _ in range(chips)]
    return ask_with(costs, opening, rng)


def ask_with(costs: Costs, opening: list[int], random: Random) -> Chips:
    """A question, and plans of it that are drawn."""
    strong = relaxation(strong_model(costs, opening))
    return Chips(costs, opening, cheapest(costs, opening), weak_bound(costs, opening), strong, draw_plans(random, costs, opening))


def draw_plans(random: Random, costs: Costs, opening: list[int]) -> tuple[Plan, ...]:
    """Chips that are built, each for some network that it suits best; and, for each chip, a network on it though it is not built."""
    chips = range(len(opening))
    subsets = [random.sample(chips, random.randint(1, len(chips))) for _ in range(_CHOICES)]
    plans = [_plan(costs, opening, _suited(costs, built)) for built in subsets]
    lost = _suited(costs, subsets[0])
    left_out = random.randrange(len(costs))
    nowhere = {**_plan(costs, opening, lost).named, f"network {left_out} on {lost[left_out]}": 0}
    plans.append(Plan(nowhere, None, f"network {left_out} on no chip"))
    for chip in chips if len(chips) > 1 else ():
        on, moved = _suited(costs, [other for other in chips if other != chip]), random.randrange(len(costs))
        named = {**_plan(costs, opening, on).named, f"network {moved} on {on[moved]}": 0, f"network {moved} on {chip}": 1}
        plans.append(Plan(named, None, f"network {moved} on chip {chip}, which is not built"))
    return tuple(plans)


def _suited(costs: Costs, built: Sequence[int]) -> list[int]:
    """The chip of each network that costs least of those that are built."""
    return [min(built, key=lambda chip: (row[chip], chip)) for row in costs]


def _plan(costs: Costs, opening: list[int], on: list[int]) -> Plan:
    """Each network on its chip, and no chip built in vain."""
    built = sorted(set(on))
    price = sum(row[chip] for row, chip in zip(costs, on, strict=True)) + sum(opening[chip] for chip in built)
    named = {f"build {chip}": int(chip in built) for chip in range(len(opening))}
    named |= {f"network {network} on {chip}": int(chip == given) for network, given in enumerate(on) for chip in range(len(opening))}
    return Plan(named, price, f"to build the chips {shown(built)}, each network on the one of them that suits it best")


def _case(function: str, chips: Chips, judge: Callable[[object, Chips], Verdict]) -> Case:
    return Case(_text(chips), Call(function, (chips.costs, chips.opening)), lambda handed: judge(handed, chips))


def _weak_bound_case(chips: Chips) -> Case:
    costs, fees, networks = chips.costs, chips.opening, len(chips.costs)

    def least(fee: Callable[[int], float]) -> float:
        return float(sum(min(cost + fee(j) for j, cost in enumerate(row)) for row in costs))

    first = [min(range(len(fees)), key=lambda j, row=row: row[j]) for row in costs]  # type: ignore[misc]
    slips = [
        Slip(
            "a fraction of a chip costs a network its share of it: opening[j] / number of networks, not of chips",
            least(lambda j: fees[j] / len(fees)),
        ),
        Slip(
            "each network takes the chip that is cheapest without its opening",
            sum(row[j] + fees[j] / networks for row, j in zip(costs, first, strict=True)),
        ),
        Slip("shares of an opening are rounded down", least(lambda j: fees[j] // networks)),
        Slip("what chips cost to open is left out", least(lambda _: 0.0), share=0.0),
        Slip("every network pays a whole chip", least(lambda j: fees[j]), share=0.0),
        Slip("this is the best cost, not the relaxation", chips.best, share=0.0),
        Slip("this is the strong relaxation", chips.strong, share=0.0),
    ]
    return Case(_text(chips), Call("weak_bound", (costs, fees)), partial(figure, right=chips.weak, slips=slips))


def _text(chips: Chips) -> str:
    return f"{len(chips.costs)} networks, {len(chips.opening)} chips"


CHIPS = Assignment("04-strong-and-weak", "The same choice, in a strong and in a weak form", tasks)
