"""Engines for strategies of layers: the dynamic program at prices, a look at everything, and rules to compare with."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from math import exp, inf, log10
from random import Random
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from crossopt.formulation.layers.branches import Branch, Part, best_branch, halves, whole_part
from crossopt.formulation.layers.core import Step, WideError, core_of, steps_of
from crossopt.formulation.layers.frontier import (
    MOST_STATES,
    Dual,
    ManyStatesError,
    best_prices,
    dual_of,
    exchanged,
    greatest_cost,
    is_within,
    least_totals,
    pareto_pass,
    proved_units,
    totals_of,
    without_objective,
)
from crossopt.instances.errors import RefusedError
from crossopt.instances.layers.problem import FIGURES, Figures, Problem, ties_by
from crossopt.instances.layers.question import LayersQuestion
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.layers import judge
from crossopt.solvers.proofs import ChipPrices, Priced, PricedChips, PricedTree, RecomputableBound

if TYPE_CHECKING:
    from crossopt.instances.layers.chips import Chips

_BEAMS = (64, 1_024, 8_192)
"""States of a front in passes that look for good choices."""
_SPELLED = 10**15
"""Numbers below are printed with all digits; Python prints none of thousands of digits."""
_MOST_OF_PART, _PARTS, _ROUNDS_OF_PART = 4_000, 20, 60
"""States of a pass of one part, so many more after each of so many parts; rounds of the prices of a part."""
_FAR = 0.01
"""Share of the incumbent that the bound leaves where parts are looked at before exchanges."""
_EQUAL = 1e-6
"""Share of the cost at the prices by which choices may differ that are taken as equally cheap."""
_STARTS = 6
"""Choices from which exchanges start."""
_PROPOSALS, _TEMPERATURE = 20_000, 1e-3
"""Of the Markov chain; the temperature is a share of the cost at its start."""


class _TimeUpError(Exception):
    """The time is over."""


class _Run:
    """What is known so far."""

    def __init__(self, question: LayersQuestion, limits: Limits, watch: Watch) -> None:
        self.question, self.limits, self.watch, self.began = question, limits, watch, monotonic()
        self.core = core_of(question.problem)
        self.choice: tuple[int, ...] | None = None
        self.cost: int | None = None
        self.bound: int | None = None
        self.prices: tuple[float, ...] = (0.0,) * len(self.core.limits)
        self.tree: _Leaf | None = None
        self.proved: float | None = None
        """The bound of a chip, in the unit of files; infinite where nothing is within the budgets."""
        self.trace = list[tuple[float, float | None, float | None]]()

    def tick(self) -> None:
        if monotonic() - self.began >= self.limits.seconds:
            raise _TimeUpError

    def offer(self, choice: tuple[int, ...] | None) -> None:
        """Keep a choice if it is within the budgets and better."""
        if choice is None:
            return
        totals = totals_of(self.core, choice)
        if is_within(self.core, totals) and (self.cost is None or totals[0] < self.cost):
            self.choice, self.cost = choice, totals[0]
            self.show()

    def prove(self, bound: int, prices: tuple[float, ...] | None = None) -> None:
        """Note a bound that the prices prove."""
        if self.bound is None or bound > self.bound:
            self.bound, self.prices = bound, self.prices if prices is None else prices
            self.show()

    def show(self) -> None:
        problem = self.question.problem
        best, bound = (None if units is None else problem.amount(0, units) for units in (self.cost, self.bound))
        self.trace.append((monotonic() - self.began, best, bound))
        self.watch(Progress("dynamic program", best, bound, answer=self.answer))

    def answer(self) -> judge.LayerChoices | None:
        return None if self.choice is None else judge.expanded(self.core, self.question.problem, self.choice)


def frontier(question: LayersQuestion, limits: Limits, watch: Watch) -> SearchOutcome[judge.LayerChoices]:
    """Prices of the budgets by their dual, good choices by narrow passes, and the pass that proves the best one."""
    if question.chips is not None:
        return _best_chip(question, question.chips, limits, watch)
    run, stopped, notes = _Run(question, limits, watch), "complete", question.notes
    try:
        reasons = _searched(run)
    except WideError as error:
        raise RefusedError(f"{error} (tie layers, or ask for fewer strategies)") from error
    except _TimeUpError:
        reasons, stopped = (), "time limit"
    except ManyStatesError as error:
        reasons, notes = ((), (*notes, f"the last pass was given up, as {error}"))
    problem = question.problem
    if reasons:
        return SearchOutcome(None, inf, Priced(judge.BY_FRONTIER, run.prices), "frontier", reasons=reasons, notes=notes)
    bound = None if run.bound is None else problem.amount(0, min(run.bound, run.bound if run.cost is None else run.cost))
    if bound is not None and run.cost is not None and question.tie != "none":
        notes += _worth_of_untying(question, (problem.amount(0, run.cost), bound), limits.seconds - (monotonic() - run.began))
    return SearchOutcome(
        answer=run.answer(),
        bound=bound if run.choice is not None else None,
        proof=None if bound is None or run.choice is None else _proof(run),
        engine="frontier",
        stopped=stopped,
        notes=notes,
        baselines=baselines(question, limits.seconds - (monotonic() - run.began)),
        trace=tuple(run.trace),
        value=None if run.cost is None else problem.amount(0, run.cost),
    )


def _searched(run: _Run) -> tuple[str, ...]:
    """Search until the best choice is proved; or reasons why there is none."""
    core, problem = run.core, run.question.problem
    steps = steps_of(core)
    least = least_totals(core, steps)
    if not is_within(core, least):
        return judge.too_little(problem, least)
    prices, dual, met = best_prices(core, steps, run.tick)
    for candidate in met:
        run.offer(candidate.choice)
    run.prove(proved_units(dual, core, prices), tuple(prices))
    if dual.bound <= greatest_cost(core):
        _look_for_choices(run, steps, prices, met)
    if run.cost is None and not _any_within(run):
        return (judge.NONE_TOGETHER,)
    _closed(run, _leaf(whole_part(core), steps, prices, dual, met))
    return ()


def _look_for_choices(run: _Run, steps: Sequence[Step], prices: list[float], met: list[Dual]) -> None:
    """Pairs of changes that make the choices better that the prices like best, then narrow passes, until what is asked is proved."""
    core, weights = run.core, np.array(prices)
    by_price = sorted(met, key=lambda candidate: candidate.totals[0] + float(weights @ np.array(candidate.totals[1:])))
    choices = list(dict.fromkeys(candidate.choice for candidate in by_price))
    several = len(core.limits) > 1
    for beam in _BEAMS[:2] if several else ():
        if _is_closed(run):
            return
        _narrow(run, steps, prices, beam)
    for choice in choices[: 2 if several else _STARTS] if core.limits else ():
        if not _is_closed(run) and not _is_far(run):
            run.offer(exchanged(core, choice, choices, prices, run.tick))
    for beam in () if _is_closed(run) or several else _BEAMS:
        if _narrow(run, steps, prices, beam):
            break


def _narrow(run: _Run, steps: Sequence[Step], prices: Sequence[float], beam: int) -> bool:
    """A pass of so many states of a front; whether it dropped none."""
    found = pareto_pass(run.core, steps, prices, inf if run.cost is None else float(run.cost), run.tick, beam)
    run.offer(found.choice)
    return found.dropped == inf


def _is_closed(run: _Run) -> bool:
    """Whether the bound is as near to the incumbent as is asked."""
    return run.cost is not None and run.bound is not None and run.bound >= _aim(run, run.cost)


def _is_far(run: _Run) -> bool:
    """Whether prices of several budgets leave so much that parts come first."""
    several = len(run.core.limits) > 1
    return several and run.cost is not None and run.bound is not None and run.bound < run.cost * (1.0 - _FAR)


def _aim(run: _Run, cost: int) -> int:
    """What a bound must reach: the incumbent, or what the asked gap leaves of it."""
    return cost if not run.limits.gap else int(cost * (1.0 - run.limits.gap)) + 1


def _any_within(run: _Run) -> bool:
    """Whether anything is within all budgets, by a pass without objective; prices are then those of its proof."""
    core = without_objective(run.core)
    steps = steps_of(core)
    own, _, met = best_prices(core, steps, run.tick, objective=False)
    for candidate in met:
        run.offer(candidate.choice)
    if run.cost is not None:
        return True
    found = pareto_pass(core, steps, own, judge.SMALLEST, run.tick, objective=False)
    run.offer(found.choice)
    if found.choice is None:
        run.prices = tuple(own)
    return found.choice is not None


@dataclass(eq=False, slots=True)
class _Leaf:
    """A part of all choices, with the prices of its best bound."""

    part: Part
    steps: tuple[Step, ...]
    prices: tuple[float, ...]
    bound: int
    met: list[tuple[int, ...]]
    """Choices that the search for prices met."""
    near: list[tuple[int, ...]]
    """Those of the least cost at the prices."""
    branch: Branch | None = None
    halves: tuple["_Leaf", "_Leaf"] | None = None


def _leaf(part: Part, steps: tuple[Step, ...], prices: Sequence[float], dual: Dual, met: Sequence[Dual]) -> _Leaf:
    weights = np.array([1.0, *prices])
    costs = [float(weights @ np.array(found.totals)) for found in met]
    aim = min(costs) * (1.0 + _EQUAL)
    near = [found.choice for cost, found in zip(costs, met, strict=True) if cost <= aim]
    return _Leaf(part, steps, tuple(prices), proved_units(dual, part.core, prices), [found.choice for found in met], near)


def _closed(run: _Run, root: _Leaf) -> None:
    """Passes that leave nothing out below the incumbent, or below what the gap leaves of it. Where a pass of several budgets has too many
    states, its part is cut in two, each with prices of its own; the part of the least bound comes first."""
    heap, number, lowest = [(root.bound, 0, root)], 0, inf
    run.tree = root
    while heap and run.cost is not None:
        aim, leaf = _aim(run, run.cost), heap[0][2]
        run.prove(int(min(leaf.bound, lowest)))
        if leaf.bound >= aim:
            return
        heappop(heap)
        several = len(run.core.limits) > 1
        try:
            most = min(_MOST_OF_PART * (1 + number // _PARTS), MOST_STATES) if several else MOST_STATES
            found = pareto_pass(leaf.part.core, leaf.steps, leaf.prices, float(aim), run.tick, most=most)
        except ManyStatesError:
            branch = best_branch(leaf.part, leaf.near, np.array([1.0, *leaf.prices])) if several else None
            if branch is None:
                raise
            leaf.halves, leaf.branch = _halved(run, leaf, branch), branch
            for half in leaf.halves:
                number += 1
                heappush(heap, (half.bound, number, half))
            continue
        lowest = min(lowest, aim if found.cost is None else found.cost)
        run.offer(None if found.choice is None else leaf.part.to_whole(found.choice))
    run.prove(int(lowest))


def _halved(run: _Run, leaf: _Leaf, branch: Branch) -> tuple[_Leaf, _Leaf]:
    """Both parts with their prices, and a narrow pass in each that is not closed by them."""
    found = list[_Leaf]()
    for part in halves(leaf.part, branch):
        steps = steps_of(part.core)
        known = [own for choice in leaf.met if (own := part.from_whole(leaf.part.to_whole(choice))) is not None]
        prices, dual, met = best_prices(part.core, steps, run.tick, _ROUNDS_OF_PART, known=known)
        half = _leaf(part, steps, prices, dual, met)
        half.bound, half.met = max(half.bound, leaf.bound), [*half.met, *known]
        for choice in half.met:
            run.offer(part.to_whole(choice))
        if run.cost is not None and half.bound < _aim(run, run.cost):
            good = pareto_pass(part.core, steps, prices, float(run.cost), run.tick, _BEAMS[0]).choice
            run.offer(None if good is None else part.to_whole(good))
        found.append(half)
    return found[0], found[1]


def _proof(run: _Run) -> Priced | PricedTree:
    """The prices of the bound, or those of all leaves."""
    if run.tree is None or run.tree.halves is None:
        return Priced(judge.BY_FRONTIER, run.prices)
    branches, prices, left = list[Branch | None](), list[tuple[float, ...]](), [run.tree]
    while left:
        leaf = left.pop()
        branches.append(leaf.branch)
        if leaf.halves is None:
            prices.append(leaf.prices)
        else:
            left += leaf.halves[::-1]
    return PricedTree(judge.BY_TREE, tuple(branches), tuple(prices))


# Free chips.

_SCREENS = 12
"""Prices at which all chips are bounded at once."""


def _best_chip(question: LayersQuestion, chips: "Chips", limits: Limits, watch: Watch) -> SearchOutcome[judge.LayerChoices]:
    """Chips in the order of their bounds, each solved below the best value so far; at the prices of each better choice all chips are
    bounded again. What is left has a bound above the best value."""
    from crossopt.instances.layers.chips import screened  # noqa: PLC0415 - most questions name a device

    began, names = monotonic(), tuple(chips.budgets)
    screens, bounds = [(0.0,) * len(names)], screened(chips, {})
    proofs, left, trace = list[ChipPrices](), np.isfinite(bounds), list[tuple[float, float | None, float | None]]()
    best: tuple[float, judge.LayerChoices | None] = (inf, None)
    prices = screens[0]
    while left.any() and bounds[left].min() < best[0] * (1.0 - limits.gap):
        seconds = limits.seconds - (monotonic() - began)
        chip = int(np.where(left, bounds, inf).argmin())
        run = _Run(question.on_chip(chip), Limits(seconds, gap=limits.gap), unwatched)
        complete = seconds > 0.0 and _below(run, best[0], dict(zip(names, prices, strict=True)))
        if run.proved is not None:
            bounds[chip] = max(bounds[chip], run.proved)
        if complete:
            proofs.append(_chip_proof(chip, run))
        if run.choice is not None:
            answer = replace(judge.expanded(run.core, run.question.problem, run.choice), chip=chip)
            best = run.question.problem.amount(0, run.cost or 0), answer
            trace.append((monotonic() - began, best[0], float(bounds.min())))
            watch(Progress("chips", best[0], float(bounds.min()), answer=partial(_same, answer)))
            prices = _in_si(run.question.problem, run.prices)
            if len(screens) < _SCREENS:
                screens.append(prices)
                bounds = np.maximum(bounds, screened(chips, dict(zip(names, screens[-1], strict=True))))
        if not complete:
            break
        left[chip] = False
    value, answer_found = best
    everywhere = not left.any() or bounds[left].min() >= value * (1.0 - limits.gap)
    if answer_found is None:
        reasons = (judge.NONE_OF_CHIPS,) if everywhere else ()
        proof = PricedChips(judge.BY_CHIPS, tuple(screens), tuple(proofs)) if everywhere else None
        return SearchOutcome(None, inf if everywhere else None, proof, "frontier", reasons=reasons, notes=question.notes)
    notes, bound = question.notes, min(value, float(bounds.min()))
    if question.tie != "none":
        worth = _worth_of_untying(question.on_chip(answer_found.chip), (value, bound), limits.seconds - (monotonic() - began))
        notes += tuple(f"on this chip, {note}" for note in worth)
    return SearchOutcome(
        answer=answer_found,
        bound=bound,
        proof=PricedChips(judge.BY_CHIPS, tuple(screens), tuple(proofs)),
        engine="frontier",
        stopped="complete" if everywhere else "time limit",
        notes=notes,
        baselines=_chip_baselines(question, chips, answer_found, limits.seconds - (monotonic() - began)),
        trace=tuple(trace),
        value=value,
    )


def _below(run: _Run, value: float, prices: Figures) -> bool:
    """Search a chip for a choice below a value; whether it was found, or proved that there is none. Prices in SI units of the best choice
    so far mostly prove that."""
    problem = run.question.problem
    run.cost = problem.units_from(value)
    try:
        reasons = _searched(run) if run.cost is None else _improved(run, _in_units(problem, prices))
    except (_TimeUpError, ManyStatesError):
        return False
    except WideError as error:
        raise RefusedError(f"{error} (tie layers, or ask for fewer formats)") from error
    run.proved = inf if reasons else None if run.bound is None else problem.amount(0, run.bound)
    return True


def _improved(run: _Run, prices: list[float]) -> tuple[str, ...]:
    """Look for a choice below the best cost, without the effort for good choices that a first search makes."""
    steps = steps_of(run.core)
    run.prove(proved_units(dual_of(run.core, steps, prices), run.core, prices), tuple(prices))
    if not _is_closed(run):
        own, dual, met = best_prices(run.core, steps, run.tick)
        for candidate in met:
            run.offer(candidate.choice)
        run.prove(proved_units(dual, run.core, own), tuple(own))
        _closed(run, _leaf(whole_part(run.core), steps, own, dual, met))
    return ()


def _chip_proof(chip: int, run: _Run) -> ChipPrices:
    proof = _proof(run)
    return ChipPrices(chip, (None,), (proof.prices,)) if isinstance(proof, Priced) else ChipPrices(chip, proof.branches, proof.prices)


def _scales(problem: Problem) -> dict[str, float]:
    """What a price of each budget, in units of the problem, is in SI units."""
    limited = (figure for figure, limit in enumerate(problem.limits) if limit is not None)
    return {problem.figures[figure]: 10.0 ** (problem.decimals[figure] - problem.decimals[0]) for figure in limited}


def _in_si(problem: Problem, prices: Sequence[float]) -> tuple[float, ...]:
    """Prices of budgets, in their order in files, for figures in SI units."""
    found = {name: price * scale for (name, scale), price in zip(_scales(problem).items(), prices, strict=True)}
    return tuple(found[name] for name in FIGURES if name in found)


def _in_units(problem: Problem, prices: Figures) -> list[float]:
    """Such prices for figures in units of the problem."""
    return [prices.get(name, 0.0) / scale for name, scale in _scales(problem).items()]


def _same(answer: judge.LayerChoices) -> judge.LayerChoices:
    return answer


def _chip_baselines(
    question: LayersQuestion, chips: "Chips", answer: judge.LayerChoices, seconds: float
) -> tuple[Baseline[judge.LayerChoices], ...]:
    """Rules on the same chip; and the chip that is best for the base format, split by the batch, with the best choices there."""
    from crossopt.instances.layers.chips import in_base  # noqa: PLC0415 - most questions name a device

    began, found = monotonic(), list[Baseline[judge.LayerChoices]]()
    what = "formats" if chips.parallel is None else "splits"
    for rule in baselines(question.on_chip(answer.chip), seconds):
        found.append(replace(rule, answer=None if rule.answer is None else replace(rule.answer, chip=answer.chip)))
    costs = in_base(chips)
    usual = int(costs.argmin())
    if np.isfinite(costs[usual]):
        own = _solved(question.on_chip(usual), seconds - (monotonic() - began)).answer()
        if own is not None:
            found.append(Baseline(f"{what} on the best chip for {chips.request.device.base}", None, replace(own, chip=usual)))
    return tuple(found)


def exhaustive(question: LayersQuestion, limits: Limits, watch: Watch) -> SearchOutcome[judge.LayerChoices]:
    """Every choice, where these are few."""
    del limits, watch
    count = judge.every_choice(question)
    if count > judge.MOST_CHOICES:
        number = f"{count:,}" if count < _SPELLED else f"more than 10^{int((count.bit_length() - 1) * log10(2.0))}"
        raise RefusedError(f"{number} choices are too many to look at each (take the engine frontier)")
    value, answer = judge.best_of_all(question)
    reasons = () if answer else (judge.NONE_OF_ALL,)
    if question.chips is None:
        rules = baselines(question)
    else:
        rules = () if answer is None else _chip_baselines(question, question.chips, answer, inf)
    return SearchOutcome(
        answer, value, RecomputableBound(judge.BY_ALL), "exhaustive", reasons=reasons, notes=question.notes, baselines=rules
    )


def best_by_use(question: LayersQuestion) -> tuple[tuple[float, float], ...]:
    """Uses of the only budget and values of choices that are the best within their own use, as a price finds them (Everett 1963); none
    where fronts are too wide for that."""
    core, problem = core_of(question.problem), question.problem
    steps = steps_of(core)
    if any(len(step.known) < len(step.sizes) for step in steps):
        return ()
    (price,), dual, _ = best_prices(core, steps, lambda: None)
    price = price or max(dual.totals[0], 1) / max(core.limits[0], 1)
    found = {dual_of(core, steps, [price * factor]).totals for factor in (0.0, *(2.0 ** (power / 2.0) for power in range(-14, 15)))}
    figure = next(figure for figure, limit in enumerate(problem.limits) if limit is not None)
    corners, least = list[tuple[float, float]](), inf
    for value, use in sorted(found, key=lambda totals: totals[::-1]):
        if value < least:
            corners.append((problem.amount(figure, use), problem.amount(0, value)))
            least = value
    return tuple(corners)


# Rules to compare with.


def baselines(question: LayersQuestion, seconds: float = inf) -> tuple[Baseline[judge.LayerChoices], ...]:
    """One strategy wherever it is offered, the same with the first and the last layer as they are, the ratio rule, and one-hot rows that
    foresee no conversions."""
    if question.types:
        return _split_baselines(question, seconds)
    found = judge.uniform(question)
    for title, rule in ((judge.RATIO, judge.ratio_greedy), ("one-hot rows without conversions", _without_links(seconds))):
        answer = rule(question)
        if answer is not None:
            found.append(Baseline(title, None, answer))
    return tuple(found)


def _split_baselines(question: LayersQuestion, seconds: float) -> tuple[Baseline[judge.LayerChoices], ...]:
    """Rules of the question, the best strategy for each type of operator, FlexFlow's Markov chain, and rules of other questions."""
    rules: list[tuple[str, Callable[[LayersQuestion], judge.LayerChoices | None]]] = [
        ("one strategy for each type of operator", _tied_by_type(seconds)),
        ("FlexFlow's Markov chain", markov_chain),
        (judge.RATIO, judge.ratio_greedy),
        ("one-hot rows without relayouts", _without_links(seconds)),
    ]
    found = ((name, rule(question)) for name, rule in rules)
    return (*judge.uniform(question), *(Baseline(name, None, answer) for name, answer in found if answer is not None))


def _solved(question: LayersQuestion, seconds: float) -> _Run:
    """A further question in the time that is left."""
    run = _Run(question, Limits(max(seconds, 0.0)), unwatched)
    with suppress(_TimeUpError, ManyStatesError, WideError):
        _searched(run)
    return run


def _tied_by_type(seconds: float) -> Callable[[LayersQuestion], judge.LayerChoices | None]:
    """One strategy for all operators of a type, as MAD-Max chooses (Hsia et al. 2024), and the best for what has no weights."""

    def rule(question: LayersQuestion) -> judge.LayerChoices | None:
        problem = question.problem
        if question.tie != "none":
            return None
        ties = tuple(ties_by({name: operator or None for name, operator in zip(problem.layers, question.types, strict=True)}))
        rows = {name: row for row, name in enumerate(problem.layers)}
        tied = replace(problem, ties=(*question.shared, *(tuple(rows[name] for name in names) for names in ties)))
        return _solved(replace(question, problem=tied), seconds).answer()

    return rule


def _worth_of_untying(question: LayersQuestion, tied: tuple[float, float], seconds: float) -> tuple[str, ...]:
    """The optimum without ties beside the one with them, each with its bound."""
    run = _solved(replace(question, problem=replace(question.problem, ties=question.shared)), seconds)
    if run.cost is None or run.bound is None:
        return ("without ties nothing was proved in the time that was left",)
    value, bound = (question.problem.amount(0, units) for units in (run.cost, min(run.cost, run.bound)))
    least, most = (max(1.0 - after / before, 0.0) if before else 0.0 for after, before in ((value, tied[1]), (bound, tied[0])))
    gain = f"{least:.2%}" if f"{least:.2%}" == f"{most:.2%}" else f"{least:.2%} to {most:.2%}"
    figure, unit = question.problem.figures[0], question.unit
    shown = [f"{amount:.6g} {unit}".rstrip() for amount in (value, bound)]
    return (f"without ties {figure} is {shown[0]}, and at least {shown[1]}: it falls by {gain}",)


def markov_chain(question: LayersQuestion) -> judge.LayerChoices | None:
    """FlexFlow's search (Jia et al. 2019, arXiv 1807.05358): a random operator, a random strategy, taken if it is better, and with
    exp(-difference / temperature) if it is worse; it starts with data parallelism. What is beyond budgets costs as much as the start."""
    core, random = core_of(question.problem), Random(0)
    start = next(iter(question.rules.values()), None)
    names = ["" if start is None else start[members[0]] for members in core.members]
    now = [
        own.index(name) if name in own else int(uses[:, 0].argmin())
        for own, name, uses in zip(core.strategies, names, core.uses, strict=True)
    ]
    near: list[list[tuple[int, list[list[list[int]]]]]] = [[] for _ in range(len(core))]
    for (first, second), table in core.pairs.items():
        near[first].append((second, table.tolist()))
        near[second].append((first, table.transpose(1, 0, 2).tolist()))
    own_uses, totals = [table.tolist() for table in core.uses], list(totals_of(core, now))
    scale = float(max(totals[0], 1))

    def cost(sums: list[int]) -> float:
        beyond = (max(use - limit, 0) / max(limit, 1) for use, limit in zip(sums[1:], core.limits, strict=True))
        return sums[0] / scale + sum(beyond)

    best, height = (list(now) if is_within(core, totals) else None, totals[0]), cost(totals)
    for _ in range(_PROPOSALS):
        layer = random.randrange(len(core))
        old, new = now[layer], random.randrange(len(core.strategies[layer]))
        if old == new:
            continue
        before, after = (
            map(sum, zip(own_uses[layer][choice], *[table[choice][now[neighbour]] for neighbour, table in near[layer]], strict=True))
            for choice in (old, new)
        )
        sums = [total + more - less for total, more, less in zip(totals, after, before, strict=True)]
        high = cost(sums)
        if high > height and random.random() >= exp((height - high) / _TEMPERATURE):
            continue
        now[layer], totals, height = new, sums, high
        if is_within(core, totals) and (best[0] is None or totals[0] < best[1]):
            best = list(now), totals[0]
    return None if best[0] is None else judge.expanded(core, question.problem, tuple(best[0]))


def _without_links(seconds: float) -> Callable[[LayersQuestion], judge.LayerChoices | None]:
    """What NVIDIA's AutoQuantize asks a solver: one strategy for each layer, rows of budgets, and nothing between layers."""

    def rule(question: LayersQuestion) -> judge.LayerChoices | None:
        if not question.problem.links:
            return None
        return _solved(replace(question, problem=replace(question.problem, links=())), seconds).answer()

    return rule
