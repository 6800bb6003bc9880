"""Strategies of layers, their judge layer by layer, and the proof of a bound carried out anew."""

from dataclasses import dataclass
from itertools import product
from math import inf, isfinite, prod
from typing import Final

from crossopt.formulation.layers.branches import Branch, leaves
from crossopt.formulation.layers.core import WideError, core_of, steps_of
from crossopt.formulation.layers.frontier import ManyStatesError, pareto_pass, without_objective
from crossopt.instances.layers.problem import Problem, chosen
from crossopt.instances.layers.question import LayersQuestion
from crossopt.solvers.answer import Progress, Result, Verdict, Watch
from crossopt.solvers.checking import by_looking_at_all
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import Priced, PricedTree, Proof, RecomputableBound

BY_FRONTIER: Final = "a dynamic program along the graph, at prices of the budgets"
BY_TREE: Final = f"branches on strategies, and in each part {BY_FRONTIER}"
BY_ALL: Final = "a look at every choice"
MOST_CHOICES = 200_000
"""Choices that are looked at one by one."""
SMALLEST = 5e-324
"""The aim of a proof that nothing is within the budgets: whatever is surely beyond them is above it."""


@dataclass(frozen=True, slots=True)
class LayerChoices:
    """The strategy of each layer, in the order of the question."""

    strategies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LayerTotals:
    """Figures of all layers together."""

    totals: dict[str, float]
    budget_shares: dict[str, float]
    """Share of each budget that is used."""


def judge(question: LayersQuestion, answer: LayerChoices) -> Verdict[LayerTotals]:
    """Totals, broken budgets and broken ties; a ValueError where the strategies are none of the question."""
    problem = question.problem
    rows = chosen(problem, answer.strategies)
    sums = totals_of_rows(problem, rows)
    totals = {name: problem.amount(place, sums[place]) for place, name in enumerate(problem.figures)}
    limited = [(place, name, problem.limits[place]) for place, name in enumerate(problem.figures)]
    budgets = {name: (sums[place], limit) for place, name, limit in limited if limit is not None}
    violations = [
        f"{name} is {totals[name]:.9g}, above its budget {question.budgets[name]:.9g}"
        for name, (sum_, most) in budgets.items()
        if sum_ > most
    ]
    for tied in problem.ties:
        different = [problem.layers[layer] for layer in tied if answer.strategies[layer] != answer.strategies[tied[0]]]
        if different:
            violations.append(f"{problem.layers[tied[0]]} and {different[0]} are tied and differ")
    shares = {name: sum_ / most if most else float(sum_ > 0) for name, (sum_, most) in budgets.items()}
    return Verdict(totals[problem.figures[0]], tuple(violations), LayerTotals(totals, shares))


def totals_of_rows(problem: Problem, rows: tuple[int, ...]) -> list[int]:
    """Figures in whole units, one by one."""
    sums = [0] * len(problem.figures)
    tables = [problem.uses[layer][row] for layer, row in enumerate(rows)]
    tables += [link.uses[rows[link.first], rows[link.second]] for link in problem.links]
    for table in tables:
        sums = [one + int(more) for one, more in zip(sums, table.tolist(), strict=True)]
    return sums


def every_choice(problem: Problem) -> int:
    """How many choices there are, ties left aside."""
    return prod(len(names) for names in problem.strategies)


def best_of_all(question: LayersQuestion) -> tuple[float, LayerChoices | None]:
    """The best choice by a look at all of them; infinite where none is accepted."""
    best: tuple[float, LayerChoices | None] = (inf, None)
    for names in product(*question.problem.strategies):
        answer = LayerChoices(names)
        verdict = judge(question, answer)
        if verdict.accepted and verdict.value < best[0]:
            best = verdict.value, answer
    return best


def prove(question: LayersQuestion, saved: Result[LayerChoices, LayerTotals], watch: Watch) -> Proved:
    """Carry out the dynamic program at the prices of the proof, or look at every choice."""
    proof, problem = saved.proof, question.problem
    if isinstance(proof, RecomputableBound):
        few = every_choice(problem) <= MOST_CHOICES
        found = by_looking_at_all(saved, lambda: best_of_all(question)[0] if few else None, question.unit)
        return Proved(found.checked, found.refused, found.unverified, BY_ALL)
    trees = _priced_tree(proof, sum(limit is not None for limit in problem.limits))
    if isinstance(trees, str):
        return Proved(refused=(f"proof: {trees}",))
    aim = problem.units_from(inf if saved.bound is None else saved.bound)
    core = core_of(problem) if aim is not None else without_objective(core_of(problem))
    branches, prices = trees
    states = 0
    try:
        for part, own in zip(leaves(core, branches), prices, strict=True):
            watch(Progress("the proof", None))
            steps, lowest = steps_of(part.core), SMALLEST if aim is None else float(aim)
            found_pass = pareto_pass(part.core, steps, own, lowest, _nothing, objective=aim is not None)
            if found_pass.cost is not None:
                least = problem.amount(0, found_pass.cost)
                told = "something is" if aim is None else f"a choice costs {least!r} {question.unit}".rstrip()
                return Proved(refused=(f"bound: {told} within all budgets, the result claims {saved.bound!r}",))
            states += found_pass.states
    except (WideError, ManyStatesError) as error:
        return Proved(refused=(f"proof: it cannot be carried out, as {error}",))
    except ValueError as error:
        return Proved(refused=(f"proof: {error}",))
    parts = f" in {len(prices):,} parts" if len(prices) > 1 else ""
    return Proved(
        (f"the dynamic program was carried out anew{parts}, of {states:,} states",), by=BY_TREE if len(branches) > 1 else BY_FRONTIER
    )


def _priced_tree(proof: Proof | None, budgets: int) -> tuple[tuple[Branch | None, ...], tuple[tuple[float, ...], ...]] | str:
    """Branches and prices of the leaves; or what is wrong with them."""
    branches: tuple[Branch | None, ...] = (None,)
    if isinstance(proof, Priced):
        prices: tuple[tuple[float, ...], ...] = (proof.prices,)
    elif isinstance(proof, PricedTree):
        branches, prices = proof.branches, proof.prices
    else:
        return f"{budgets} prices of budgets are needed"
    if len(prices) != sum(branch is None for branch in branches):
        return "each leaf of the tree needs its prices"
    if not all(len(own) == budgets and all(isfinite(price) and price >= 0.0 for price in own) for own in prices):
        return f"{budgets} prices of budgets are needed, which are finite and not negative"
    return branches, prices


def _nothing() -> None:
    """A proof takes the time that it takes."""
