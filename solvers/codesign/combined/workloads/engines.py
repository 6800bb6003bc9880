"""Engines for several workloads: they find in their own ways and are judged in one way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from time import monotonic
from typing import Any

import numpy as np

from crossopt.instances.codesign.instance import Portfolio
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.instances.errors import VerificationError
from crossopt.solvers.answer import Limits, Trace, Watch, gap_between, status_of
from crossopt.solvers.codesign import engines as single
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.certify import CHECKS, told_bound, versions
from crossopt.solvers.codesign.combined.workloads import boxes as by_boxes
from crossopt.solvers.codesign.combined.workloads import exhaustive as by_enumeration
from crossopt.solvers.codesign.combined.workloads.combined import Joint, combined, joint
from crossopt.solvers.codesign.combined.workloads.result import JointResult, JointSpace, JointTree, Share
from crossopt.solvers.codesign.designs import Candidate, from_words, to_words
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.codesign.result import Result, evaluation_json
from crossopt.solvers.codesign.rivals.megatron import expert_design

Engine = Callable[[Portfolio, Limits, Watch], JointResult]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine found, before anybody believes it."""

    best: tuple[Candidate, ...] = ()
    value: float | None = None
    """What the engine thinks the designs make together; None to leave it to the full model."""
    bound: float | None = None
    """No design is below this; infinite where there is none."""
    proof: str = ""
    stopped: str = "complete"
    space: JointSpace | None = None
    tree: JointTree | None = None
    trace: Trace = ()


def exhaustive(portfolio: Portfolio, limits: Limits, watch: Watch) -> JointResult:
    """Price every plan of every workload on every chip."""

    def find(asked: Joint, limits: Limits) -> Outcome:
        found = by_enumeration.search(asked, watch, monotonic() + limits.seconds)
        bound = (float("inf") if found.value is None else found.value) if found.stopped == "complete" else None
        return Outcome(found.best, found.value, bound, enumeration_proof(found.space), found.stopped, space=found.space, trace=found.trace)

    return _answered(portfolio, "exhaustive", limits, watch, find)


def boxes(portfolio: Portfolio, limits: Limits, watch: Watch) -> JointResult:
    """Branch and bound over boxes of hardware points, with one tree of cuts for all workloads."""

    def find(asked: Joint, limits: Limits) -> Outcome:
        found = by_boxes.search(asked, watch, Spend(monotonic() + limits.seconds, limits.gap))
        tree = None if found.bound is None else tree_of(asked, found)
        return Outcome(found.best, found.value, found.bound, tree_proof(tree), found.stopped, tree=tree, trace=found.trace)

    return _answered(portfolio, "boxes", limits, watch, find)


def auto(portfolio: Portfolio, limits: Limits, watch: Watch) -> JointResult:
    """`exhaustive` where every plan can be priced on every chip in about a second, else `boxes`."""
    priced = hardware_points(portfolio.parts[0]) * sum(map(combinations, portfolio.parts))
    return (exhaustive if priced <= single.COUNTED else boxes)(portfolio, limits, watch)


def expert(portfolio: Portfolio, limits: Limits, watch: Watch) -> JointResult:
    """The rule's plan for each workload, on the rule's chip."""

    def find(asked: Joint, limits: Limits) -> Outcome:
        deadline = monotonic() + limits.seconds
        try:
            chosen = [expert_design(part, deadline) for part in asked.parts]
        except TimeoutError:
            return Outcome(stopped="time limit")
        best = tuple(one for one in chosen if one is not None)
        return Outcome(best if len(best) == len(chosen) else ())

    return _answered(portfolio, "expert", limits, watch, find)


def plan_only(portfolio: Portfolio, limits: Limits, watch: Watch) -> JointResult:
    """The best plan for each workload on the rule's chip: what a chip chosen for them is worth."""

    def find(asked: Joint, limits: Limits) -> Outcome:
        deadline = monotonic() + limits.seconds
        best = []
        for part in asked.parts:
            answer = single.plan_only(part, replace(limits, seconds=deadline - monotonic()), watch)
            if answer.design is None:
                return Outcome(stopped=answer.stopped)
            best.append(from_words(part, answer.design))
        return Outcome(tuple(best))

    return _answered(portfolio, "plan-only", limits, watch, find)


ENGINES: dict[str, Engine] = {"auto": auto, "boxes": boxes, "exhaustive": exhaustive, "expert": expert, "plan-only": plan_only}


def _answered(portfolio: Portfolio, engine: str, limits: Limits, watch: Watch, find: Callable[[Joint, Limits], Outcome]) -> JointResult:
    """What an engine finds, after the optima of the workloads alone where regrets are asked for, and judged by the full model."""
    began = monotonic()
    deadline = began + limits.seconds
    alone: list[Result] = []
    if portfolio.combine == "worst_regret":
        by = {"boxes": single.boxes, "exhaustive": single.exhaustive}.get(engine, single.auto)
        for part in portfolio.parts:
            alone.append(by(part, Limits(max(deadline - monotonic(), 0.0)), watch))
            if not alone[-1].proved:  # without an optimum there is nothing to regret
                return _certified(portfolio, engine, limits, began, Outcome(stopped=alone[-1].stopped), (), None)
    asked = joint(portfolio, [answer.value for answer in alone])
    outcome = find(asked, replace(limits, seconds=max(deadline - monotonic(), 0.0)))
    return _certified(portfolio, engine, limits, began, outcome, tuple(alone), asked)


def _certified(
    portfolio: Portfolio, engine: str, limits: Limits, began: float, outcome: Outcome, alone: tuple[Result, ...], asked: Joint | None
) -> JointResult:
    shares = shares_of(portfolio, outcome.best, alone) if asked else ()
    value = together(asked, shares) if asked and shares else None
    _refuse_contradictions(outcome, value)
    bound = told_bound(value, outcome.bound)
    proved = bound is not None and (bound == float("inf") if value is None else gap_between(value, bound) <= limits.gap)
    return JointResult(
        instance=question(portfolio),
        engine=engine,
        status=status_of(value, bound, proved),
        stopped=outcome.stopped,
        value=value,
        bound=None if bound == float("inf") else bound,
        gap=None if value is None or bound is None else gap_between(value, bound),
        proved=proved,
        proved_by="" if bound is None else outcome.proof,
        checks=CHECKS if shares else (),
        shares=shares,
        alone=alone,
        space=outcome.space,
        tree=None if bound is None else outcome.tree,
        gap_asked=limits.gap,
        trace=outcome.trace,
        seconds=monotonic() - began,
        seed=limits.seed,
        versions=versions(),
    )


def shares_of(portfolio: Portfolio, best: Sequence[Candidate], alone: Sequence[Result]) -> tuple[Share, ...]:
    """What each workload has of a design, priced alone by the full model; a VerificationError where it breaks a limit."""
    if len({chosen.point for chosen in best}) > 1:
        raise VerificationError("the workloads have different chips")
    return tuple(share_of(portfolio, place, chosen, alone) for place, chosen in enumerate(best))


def share_of(portfolio: Portfolio, place: int, chosen: Candidate, alone: Sequence[Result]) -> Share:
    """The same for one workload."""
    part = portfolio.parts[place]
    verdict = verify(part, chosen)
    if not verdict.accepted:
        raise VerificationError(f"the design found breaks a limit of {part.name}: {'; '.join(verdict.violations)}")
    optimum = alone[place].value if alone else None
    regret = None if optimum is None else verdict.value / optimum - 1.0
    evaluation = evaluation_json(verdict.evaluation)
    return Share(part.name, portfolio.weights[place], verdict.value, regret, to_words(part, chosen), evaluation)


def together(asked: Joint, shares: Sequence[Share]) -> float:
    """The figure that the values of all workloads make."""
    return float(combined(asked, [np.float64(share.value) for share in shares]))


def question(portfolio: Portfolio) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again."""
    unit = UNITS[portfolio.objective] if portfolio.combine == "weighted_sum" else ""
    head = {"name": portfolio.name, "objective": portfolio.objective, "combine": portfolio.combine, "unit": unit}
    return {**head, **portfolio.document}


def enumeration_proof(space: JointSpace) -> str:
    """Who proved the bound, in words."""
    return f"exhaustive enumeration of {space.designs:,} designs"


def tree_of(asked: Joint, seen: "by_boxes.Found | by_boxes.Reread") -> JointTree:
    """The tree of cuts and what it leaves of the plans."""
    points, looked = hardware_points(asked.parts[0]), seen.looked
    designs = prod(looked.plans) * points
    return JointTree(designs, points, looked.plans, looked.families, looked.promising, len(seen.cuts), seen.cuts)


def tree_proof(tree: JointTree | None) -> str:
    """Who proved the bound, in words."""
    return "" if tree is None else f"monotone branch and bound: {tree.boxes:,} box{'es' * (tree.boxes != 1)} of {tree.designs:,} designs"


def _refuse_contradictions(outcome: Outcome, value: float | None) -> None:
    if value is None:
        return
    if outcome.value is not None and value != outcome.value:
        raise VerificationError(f"the search prices the design at {outcome.value!r}, the full model at {value!r}")
    if outcome.bound is not None and value < outcome.bound:
        raise VerificationError(f"the full model prices the design at {value!r}, below the bound {outcome.bound!r}")
