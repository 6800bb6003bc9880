"""Engines for several workloads on one chip: a plan for each of them, and what they make together."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from time import monotonic

import numpy as np

from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.solvers.answer import Limits, SearchOutcome, Watch
from crossopt.solvers.codesign import engines as single
from crossopt.solvers.codesign.answer import Candidate, DesignResult, Designs, candidate_in, chosen_design
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.claims import UNREPEATED, enumerated_together, too_many
from crossopt.solvers.codesign.claims import by_boxes as cut_in_boxes
from crossopt.solvers.codesign.combined import workloads as by_boxes
from crossopt.solvers.codesign.combined import workloads as by_enumeration
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.megatron import on_chip, usual_points
from crossopt.solvers.codesign.objective import Joint, combined, joint
from crossopt.solvers.family import family_of, solve
from crossopt.solvers.proofs import Tree

Find = Callable[[Portfolio, Joint, Limits, Watch], SearchOutcome[Designs]]


def _exhaustive(portfolio: Portfolio, problem: Joint, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """Price every plan of every workload on every chip."""
    found = by_enumeration.exhaustive_search(problem, watch, monotonic() + limits.seconds)
    complete = found.stopped == "complete"
    return SearchOutcome(
        answer=_answer(portfolio, problem, found.best),
        bound=(float("inf") if found.value is None else found.value) if complete else None,
        proof=None if not complete else UNREPEATED if too_many(portfolio.parts) else enumerated_together(found.space),
        stopped=found.stopped,
        trace=found.trace,
        value=found.value,
    )


def _boxes(portfolio: Portfolio, problem: Joint, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """Branch and bound over boxes of hardware points, with one tree of cuts for all workloads."""
    found = by_boxes.search(problem, watch, Spend(monotonic() + limits.seconds, limits.gap))
    points, counts = hardware_points(problem.parts[0]), found.counts
    tree = Tree(prod(counts.plans) * points, points, counts.plans, counts.groups, counts.promising, len(found.cuts), found.cuts)
    return SearchOutcome(
        answer=_answer(portfolio, problem, found.best),
        bound=found.bound,
        proof=None if found.bound is None else cut_in_boxes(tree),
        stopped=found.stopped,
        trace=found.trace,
        value=found.value,
    )


def _by_rule(rule: single.Rule, portfolio: Portfolio, problem: Joint, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """A rule's plan for each workload, all on one chip that practice would take."""
    del watch
    deadline = monotonic() + limits.seconds

    try:
        return SearchOutcome(_answer(portfolio, problem, _on_usual_chips(problem, lambda part: rule(part, deadline))))
    except TimeoutError:
        return SearchOutcome(None, stopped="time limit")


def _plan_only(portfolio: Portfolio, problem: Joint, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best plan for each workload on a chip that practice would take: what a chip chosen for them is worth."""
    deadline, stopped = monotonic() + limits.seconds, set[str]()

    def planned(part: Instance) -> Candidate | None:
        found = single.plan_only(part, replace(limits, seconds=deadline - monotonic()), of_a_part(watch))
        stopped.add(found.stopped)
        return candidate_in(part, found.answer.design) if found.answer else None

    best = _on_usual_chips(problem, planned)
    return SearchOutcome(_answer(portfolio, problem, best), stopped=next(iter(stopped - {"complete"}), "complete"))


def _on_usual_chips(problem: Joint, designed: Callable[[Instance], Candidate | None]) -> tuple[Candidate, ...]:
    """A design for each workload, all on one of the chips that practice would take: the best such set that keeps every limit."""
    best, least = tuple[Candidate, ...](), float("inf")
    for point in usual_points(problem.parts[0]):
        found = [designed(on_chip(part, point)) for part in problem.parts]
        chosen = tuple(replace(candidate, point=point) for candidate in found if candidate is not None)
        if len(chosen) < len(found):
            continue
        verdicts = [verify(part, candidate) for part, candidate in zip(problem.parts, chosen, strict=True)]
        value = float(combined(problem, [np.float64(verdict.value) for verdict in verdicts]))
        if all(verdict.accepted for verdict in verdicts) and (value < least or not best):
            best, least = chosen, value
    return best


def of_a_part(watch: Watch) -> Watch:
    """Progress with one workload, whose design is no answer for all."""
    return lambda progress: watch(replace(progress, best=None, bound=None, answer=None))


FINDERS: dict[str, Find] = {
    "boxes": _boxes,
    "exhaustive": _exhaustive,
    **{name: partial(_by_rule, single.RULES[name]) for name in ("recipes", "expert")},
    "plan-only": _plan_only,
}
ENGINES = ("auto", *FINDERS)


def solve_together(portfolio: Portfolio, engine: str, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """What an engine finds, after the optima of the workloads alone where regrets are asked for."""
    deadline, alone = monotonic() + limits.seconds, list[DesignResult]()
    if engine == "auto":  # exhaustive where every plan can be priced on every chip in about a second
        designs = hardware_points(portfolio.parts[0]) * sum(map(combinations, portfolio.parts))
        engine = "exhaustive" if designs <= single.ENUMERABLE else "boxes"
    if portfolio.combine == "worst_regret":
        by, family = engine if engine in ("boxes", "exhaustive") else "auto", family_of("codesign")
        for part in portfolio.parts:
            alone.append(solve(family, part, by, Limits(max(deadline - monotonic(), 0.0)), of_a_part(watch)))
            if not alone[-1].proved:  # without an optimum there is nothing to regret
                return SearchOutcome(None, engine=engine, stopped=alone[-1].stopped)
    problem = joint(portfolio, [answer.value for answer in alone])
    found = FINDERS[engine](portfolio, problem, replace(limits, seconds=max(deadline - monotonic(), 0.0)), watch)
    parts = tuple(alone) if found.answer or found.bound == float("inf") else ()  # a bound without an answer says nothing
    return replace(found, engine=engine, parts=parts)


def _answer(portfolio: Portfolio, problem: Joint, best: tuple[Candidate, ...]) -> Designs | None:
    """A design for each workload; None where there are none."""
    if not best:
        return None
    designs = tuple(chosen_design(part, chosen) for part, chosen in zip(portfolio.parts, best, strict=True))
    return Designs(portfolio.parts[0].cluster.devices, designs, problem.scales if portfolio.combine == "worst_regret" else ())
