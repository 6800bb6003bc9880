"""Strategies of layers, their judge layer by layer, and the proof of a bound carried out anew."""

from dataclasses import dataclass, field
from itertools import product
from math import inf, prod
from typing import TYPE_CHECKING, Final

import numpy as np

from crossopt.formulation.layers.branches import Branch, leaves
from crossopt.formulation.layers.core import Core, WideError, core_of, steps_of
from crossopt.formulation.layers.frontier import ManyStatesError, least_totals, pareto_pass, totals_of, without_objective
from crossopt.instances.layers.problem import Problem, chosen
from crossopt.instances.layers.question import UNITS, LayersQuestion
from crossopt.solvers.answer import Baseline, Progress, Result, Verdict, Watch
from crossopt.solvers.checking import by_looking_at_all
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import Priced, PricedChips, PricedTree, Proof, RecomputableBound

if TYPE_CHECKING:
    from crossopt.instances.layers.chips import Chips

BY_FRONTIER: Final = "a dynamic program along the graph, at prices of the budgets"
BY_TREE: Final = f"branches on strategies, and in each part {BY_FRONTIER}"
BY_CHIPS: Final = f"prices that exclude chips, and on the others {BY_FRONTIER}"
BY_ALL: Final = "a look at every choice"
RATIO: Final = "ratio greedy"
NONE_TOGETHER: Final = "the budgets are out of reach together, each of them alone is not"
NONE_OF_ALL: Final = "no choice is within all budgets"
NONE_OF_CHIPS: Final = "no chip has a choice within all budgets"
MOST_CHOICES = 200_000
"""Choices that are looked at one by one."""
_HIGHEST_PRICE = 1e280
"""Times totals below 2^52 no sum overflows, which would compare as nothing below any bound."""
SMALLEST = 5e-324
"""The aim of a proof that nothing is within the budgets: whatever is surely beyond them is above it."""


@dataclass(frozen=True, slots=True)
class LayerChoices:
    """The strategy of each layer, in the order of the question."""

    strategies: tuple[str, ...]
    chip: int | None = None
    """The number of the chip, where it is free."""


@dataclass(frozen=True, slots=True)
class LayerTotals:
    """Figures of all layers together."""

    totals: dict[str, float]
    budget_shares: dict[str, float]
    """Share of each budget that is used."""
    chip: dict[str, float] = field(default_factory=dict)
    """What is chosen of a free chip, and its figures, in SI units."""


def judge(question: LayersQuestion, answer: LayerChoices) -> Verdict[LayerTotals]:
    """Totals, broken budgets and broken ties; a ValueError where the strategies or the chip are none of the question."""
    chips, question = question.chips, question.on_chip(answer.chip)
    problem = question.problem
    rows = chosen(problem, answer.strategies)
    sums = totals_of_rows(problem, rows)
    totals = {name: problem.amount(figure, sums[figure]) for figure, name in enumerate(problem.figures)}
    limited = [(figure, name, problem.limits[figure]) for figure, name in enumerate(problem.figures)]
    budgets = {name: (sums[figure], limit) for figure, name, limit in limited if limit is not None}
    violations = [
        f"{name} is {totals[name]:.9g}, above its budget {question.budgets[name]:.9g}"
        for name, (sum_, most) in budgets.items()
        if sum_ > most
    ]
    for tied in problem.ties:
        different = [problem.layers[layer] for layer in tied if answer.strategies[layer] != answer.strategies[tied[0]]]
        if different:
            violations.append(f"{problem.layers[tied[0]]} and {different[0]} are tied and differ")
    described = chips.described(answer.chip) if chips is not None and answer.chip is not None else {}
    shares = {name: sum_ / most if most else float(sum_ > 0) for name, (sum_, most) in budgets.items()}
    return Verdict(totals[problem.figures[0]], tuple(violations), LayerTotals(totals, shares, described))


def totals_of_rows(problem: Problem, rows: tuple[int, ...]) -> list[int]:
    """Figures in whole units, one by one."""
    sums = [0] * len(problem.figures)
    tables = [problem.uses[layer][row] for layer, row in enumerate(rows)]
    tables += [link.uses[rows[link.first], rows[link.second]] for link in problem.links]
    for table in tables:
        sums = [total + int(more) for total, more in zip(sums, table.tolist(), strict=True)]
    return sums


def every_choice(question: LayersQuestion) -> int:
    """How many choices there are, ties left aside."""
    return prod(len(names) for names in question.problem.strategies) * (1 if question.chips is None else len(question.chips))


def best_of_all(question: LayersQuestion) -> tuple[float, LayerChoices | None]:
    """The best choice by a look at all of them; infinite where none is accepted."""
    best: tuple[float, LayerChoices | None] = (inf, None)
    for chip in (None,) if question.chips is None else range(len(question.chips)):
        on_chip = question.on_chip(chip)
        for names in product(*on_chip.problem.strategies):
            verdict = judge(on_chip, LayerChoices(names))
            if verdict.accepted and verdict.value < best[0]:
                best = verdict.value, LayerChoices(names, chip)
    return best


def prove(question: LayersQuestion, saved: Result[LayerChoices, LayerTotals], watch: Watch) -> Proved:
    """Carry out the dynamic program at the prices of the proof, or look at every choice."""
    proof = saved.proof
    if isinstance(proof, RecomputableBound):
        few = every_choice(question) <= MOST_CHOICES
        found = by_looking_at_all(saved, lambda: best_of_all(question)[0] if few else None, question.unit)
        return Proved(found.checked, found.refused, found.unverified, BY_ALL)
    bound = inf if saved.bound is None else saved.bound
    if question.chips is not None:
        return _prove_chips(question, question.chips, proof, bound, watch)
    trees = _priced_tree(proof, sum(limit is not None for limit in question.problem.limits))
    if isinstance(trees, str):
        return Proved(refused=(f"proof: {trees}",))
    count = _states_above(question, trees, bound, watch)
    if isinstance(count, str):
        return Proved(refused=(count,))
    parts = f" in {len(trees[1]):,} parts" if len(trees[1]) > 1 else ""
    by = BY_TREE if len(trees[0]) > 1 else BY_FRONTIER
    return Proved((f"the dynamic program was carried out anew{parts}, of {count:,} states",), by=by)


def _prove_chips(question: LayersQuestion, chips: "Chips", proof: Proof | None, bound: float, watch: Watch) -> Proved:
    """Every chip is excluded by prices of the budgets, or by its own tree."""
    from crossopt.instances.layers.chips import screened  # noqa: PLC0415 - most questions name a device

    names = tuple(chips.budgets)
    if not isinstance(proof, PricedChips) or not all(_are_prices(own, len(names)) for own in proof.screens):
        return Proved(refused=(f"proof: {len(names)} prices of budgets are needed for each look at all chips",))
    lowest = np.zeros(len(chips))
    for own in proof.screens:
        lowest = np.maximum(lowest, screened(chips, dict(zip(names, own, strict=True))))
    left, states = set(np.flatnonzero(lowest < bound).tolist()), 0
    for tree in proof.chips:
        if tree.chip not in left:
            continue
        own_tree = _priced_tree(PricedTree(proof.by, tree.branches, tree.prices), len(names))
        count = own_tree if isinstance(own_tree, str) else _states_above(question.on_chip(tree.chip), own_tree, bound, watch)
        if isinstance(count, str):
            return Proved(refused=(f"chip {tree.chip:,}: {count}",))
        left.remove(tree.chip)
        states += count
    if left:
        return Proved(refused=(f"proof: {len(left):,} chips are not excluded, such as chip {min(left):,}",))
    done = f"of {len(chips):,} chips {len(chips) - len(proof.chips):,} were excluded by prices, on the others the dynamic program was"
    return Proved((f"{done} carried out anew, of {states:,} states",), by=BY_CHIPS)


Trees = tuple[tuple[Branch | None, ...], tuple[tuple[float, ...], ...]]
"""Branches, and prices of the leaves."""


def _states_above(question: LayersQuestion, trees: Trees, bound: float, watch: Watch) -> int | str:
    """States of passes that find nothing below a bound; or what they find, or why they cannot be carried out."""
    problem = question.problem
    aim, core, count = problem.units_from(bound), core_of(problem), 0
    core = core if aim is not None else without_objective(core)
    try:
        for part, own in zip(leaves(core, trees[0]), trees[1], strict=True):
            watch(Progress("the proof", None))
            steps, lowest = steps_of(part.core), SMALLEST if aim is None else float(aim)
            found = pareto_pass(part.core, steps, own, lowest, _nothing, objective=aim is not None)
            if found.cost is not None:
                least = problem.amount(0, found.cost)
                cheaper = "something is" if aim is None else f"a choice costs {least!r} {question.unit}".rstrip()
                return f"bound: {cheaper} within all budgets, the result claims {None if bound == inf else bound!r}"
            count += found.states
    except (WideError, ManyStatesError) as error:
        return f"proof: it cannot be carried out, as {error}"
    except ValueError as error:
        return f"proof: {error}"
    return count


def _are_prices(prices: tuple[float, ...], budgets: int) -> bool:
    return len(prices) == budgets and all(0.0 <= price <= _HIGHEST_PRICE for price in prices)


def _priced_tree(proof: Proof | None, budgets: int) -> Trees | str:
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
    if not all(_are_prices(own, budgets) for own in prices):
        return f"{budgets} prices of budgets are needed, from 0 to {_HIGHEST_PRICE:g}"
    return branches, prices


def _nothing() -> None:
    """A proof takes the time that it takes."""


def reasons_of(question: LayersQuestion, saved: Result[LayerChoices, LayerTotals]) -> tuple[str, ...]:
    """Why nothing is within all budgets, by the question and the kind of its proof."""
    if saved.proof == RecomputableBound(BY_ALL):
        return (NONE_OF_ALL,)
    if question.chips is not None:
        return (NONE_OF_CHIPS,)
    core = core_of(question.problem)
    return too_little(question.problem, least_totals(core, steps_of(core))) or (NONE_TOGETHER,)


def too_little(problem: Problem, least: tuple[int, ...]) -> tuple[str, ...]:
    """Budgets below the least that any choice has."""
    limited = [figure for figure, limit in enumerate(problem.limits) if limit is not None]
    found = []
    for figure, units in zip(limited, least[1:], strict=True):
        limit = problem.limits[figure]
        if limit is not None and units > limit:
            amounts = problem.amount(figure, units), problem.amount(figure, limit)
            name = problem.figures[figure]
            unit = f" {UNITS[name]}" if UNITS[name] else ""
            found.append(f"{name} is at least {amounts[0]:.9g}{unit}, above its budget of {amounts[1]:.9g}{unit}")
    return tuple(found)


def uniform(question: LayersQuestion) -> list[Baseline[LayerChoices]]:
    """One strategy wherever it is offered, and the same with the first and the last layer as they are; rules of a question with splits."""
    if question.types:
        return [Baseline(name, None, LayerChoices(strategies)) for name, strategies in question.rules.items()]
    problem = question.problem
    first = tuple(own[0] for own in problem.strategies)
    free = [layer for layer, own in enumerate(problem.strategies) if len(own) > 1]
    found = list[Baseline[LayerChoices]]()
    for name in dict.fromkeys(name for own in problem.strategies for name in own):
        uniform = tuple(name if name in own else own[0] for own in problem.strategies)
        if uniform not in {baseline.answer.strategies for baseline in found if baseline.answer}:
            found.append(Baseline(f"all {name}", None, LayerChoices(uniform)))
        ends = {free[0], free[-1]} if free else set[int]()
        high = tuple(first[layer] if layer in ends else name for layer, name in enumerate(uniform))
        if len(free) > 2 and high != uniform:
            found.append(Baseline(f"all {name} but the first and the last layer", None, LayerChoices(high)))
    return found


def ratio_greedy(question: LayersQuestion) -> LayerChoices | None:
    """From the cheapest strategy of each layer, the change that saves most of what is beyond the budgets for each unit of the objective,
    until all hold. Conversions are not foreseen, and no layer comes back to a strategy that it left; None where no change is left."""
    core = core_of(question.problem)
    if not len(core):
        return None
    choice = [int(uses[:, 0].argmin()) for uses in core.uses]
    counts = [len(uses) for uses in core.uses]
    starts = np.concatenate([[0], np.cumsum(counts)])
    owner, uses, limits = np.repeat(np.arange(len(core)), counts), np.concatenate(core.uses), np.array(core.limits)
    left = np.ones(len(owner), bool)
    totals = np.array(totals_of(core, choice))
    while (totals[1:] > limits).any():
        now = uses[starts[:-1] + np.array(choice)][owner]
        beyond = np.maximum(totals[1:] - limits, 0)
        saved = (np.minimum(now[:, 1:] - uses[:, 1:], beyond) / np.maximum(limits, 1))[:, beyond > 0].sum(axis=1)
        left[starts[:-1] + np.array(choice)] = False
        ratio = np.where(left & (saved > 0.0), np.maximum(uses[:, 0] - now[:, 0], 0) / np.where(saved > 0.0, saved, 1.0), inf)
        best = int(ratio.argmin())
        if ratio[best] == inf:
            return None
        choice[owner[best]] = best - int(starts[owner[best]])
        totals = np.array(totals_of(core, choice)) if core.pairs else totals + uses[best] - now[best]
    return expanded(core, question.problem, tuple(choice))


def expanded(core: Core, problem: Problem, choice: tuple[int, ...]) -> LayerChoices:
    """Strategies of all layers of a choice for variables."""
    names = [""] * len(problem)
    for members, own, strategy in zip(core.members, core.strategies, choice, strict=True):
        for layer in members:
            names[layer] = own[strategy]
    return LayerChoices(tuple(names))
