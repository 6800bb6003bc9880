"""What a proof about designs says in words and counts: how engines tell it, and how it is held against the question without carrying it
out. Reports rely on this alone, and checks begin with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf, prod
from typing import Any

from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.space import combinations, hardware_points, plan_blocks, plan_values
from crossopt.solvers.answer import less_rounding
from crossopt.solvers.codesign.answer import DesignResult, Designs, EvaluatedDesigns
from crossopt.solvers.codesign.devices import together
from crossopt.solvers.codesign.judge import judge
from crossopt.solvers.codesign.recipes import recipes_baselines
from crossopt.solvers.family import Judge, judge_baseline
from crossopt.solvers.proofs import (
    Boxes,
    Conflict,
    Enumerated,
    EnumeratedTogether,
    Exact,
    JointSpace,
    Proof,
    Relaxation,
    Relaxed,
    Space,
    Tree,
    UnverifiedBound,
    WholeProof,
)

Rules = tuple[tuple[str, bool], ...]
Question = Instance | Portfolio | MultiScaleQuestion
Judging = Judge[Question, Designs, EvaluatedDesigns]

PROVERS: dict[str, type | tuple[type, ...]] = {
    "exhaustive": (Enumerated, UnverifiedBound),
    "boxes": Boxes,
    "milp": (Relaxed, Exact),
    "cpsat": (Relaxed, Exact),
}
"""Engines that prove something about one workload, and how; of several workloads the first two do."""
_FEW, _FEW_ONE_BY_ONE = 1 << 20, 1 << 14
"""Combinations of choices up to which plans are counted: together, and where they are made one by one."""
COUNTED_AGAIN = 10**10
"""Designs that a check enumerates anew, in some quarter of an hour; that more were enumerated is only told."""
UNREPEATED = UnverifiedBound("an enumeration of every design, which is not repeated")


def too_many(parts: Sequence[Instance]) -> int:
    """How many designs of these parts would be priced again, where that are more than a check prices; 0 where it does.

    Plans that are not quickly counted are all combinations."""
    counts = ((combinations(part) if (plans := plans_of(part)) is None else plans) for part in parts)
    designs = hardware_points(parts[0]) * sum(counts)
    return designs if designs > COUNTED_AGAIN else 0


def enumerated(space: Space, conflicts: tuple[Conflict, ...]) -> Enumerated:
    """The proof by enumeration of all designs."""
    return Enumerated(f"exhaustive enumeration of {space.designs:,} design{'s' * (space.designs != 1)}", space, conflicts)


def enumerated_together(space: JointSpace) -> EnumeratedTogether:
    """The proof by enumeration of all designs for several workloads."""
    return EnumeratedTogether(f"exhaustive enumeration of {space.designs:,} design{'s' * (space.designs != 1)}", space)


def by_boxes(tree: Tree) -> Boxes:
    """The proof of a tree of cuts."""
    return Boxes(f"monotone branch and bound: {tree.boxes:,} box{'es' * (tree.boxes != 1)} of {tree.designs:,} designs", tree)


def relaxed(relaxation: Relaxation) -> Relaxed:
    """The proof of an integer model that was refined."""
    if not relaxation.rounds:
        return Relaxed("bounds on the best chip and prices on the budgets, without a solver", relaxation)
    rounds = f"{relaxation.rounds:,} round{'s' * (relaxation.rounds != 1)}"
    plans, tangents = relaxation.plans, relaxation.tangents
    size = f"{plans:,} plan{'s' * (plans != 1)} and {tangents:,} tangent{'s' * (tangents != 1)}"
    return Relaxed(f"{relaxation.solver} on {rounds} of a relaxation in the {relaxation.form} form with {size}", relaxation)


def exact(relaxation: Relaxation, tree: WholeProof) -> Exact:
    """The proof of the same with a tree in whole numbers, where one is needed."""
    steps, text = len(tree.steps), relaxed(relaxation).by
    return Exact(f"{text}; a tree of {steps:,} step{'s' * (steps != 1)} in whole numbers" if steps else text, relaxation, tree)


def reasons_of(conflicts: Sequence[Conflict]) -> tuple[str, ...]:
    """Why no design keeps every limit, in sentences, the hardest limit first."""
    reasons = [_reason(conflict) for conflict in sorted(conflicts, key=lambda item: -(item.least_share or 0.0))]
    none = conflicts and all(conflict.kept_by for conflict in conflicts)
    return (*reasons, *(["each limit is satisfied by some design, but no design satisfies all of them"] if none else []))


def _reason(conflict: Conflict) -> str:
    if conflict.least_share is None:
        return conflict.limit
    if conflict.kept_by:
        return f"{conflict.limit}: kept by {conflict.kept_by:,} design{'s' * (conflict.kept_by != 1)}"
    who = "any design that keeps the other limits" if conflict.limit == "step time" else "any design"
    times = f"{conflict.least_share:.4g}" if conflict.least_share < 1e4 else f"{conflict.least_share:,.0f}"
    return f"{conflict.limit}: no design keeps it; the least that {who} needs is {times} times what there is"


def faults_of(question: Question, result: DesignResult, judging: Judging = judge) -> list[str]:
    """Where a proof is another engine's, its counts cannot be those of the question, its words do not follow from them, or the baselines
    are not those that the rule chooses."""
    if isinstance(question, MultiScaleQuestion):
        rules = _of_counts(question, result)
    elif isinstance(question, Portfolio):
        rules = _of_several(question, result)
    else:
        rules = _of_one(question, result, judging)
    least = result.bound is None or result.bound >= 0.0
    return [sentence for sentence, holds in ((f"bound: {result.bound!r} is below 0, and nothing takes less", least), *rules) if not holds]


def _of_one(instance: Instance, result: DesignResult, judging: Judging) -> Iterator[tuple[str, bool]]:
    proof, engine = result.proof, result.engine
    yield f"proof: the engine {engine} has no such proof", _is_of(proof, PROVERS.get(engine, ()), (instance,))
    proved = result.stopped == "complete" and result.answer is not None and engine in PROVERS
    rules = [judge_baseline(judging, instance, baseline) for baseline in recipes_baselines(instance)] if proved else []
    yield "baselines: they are not what the rules choose", [replace(baseline, seconds=0.0) for baseline in result.baselines] == rules
    reasons = reasons_of(proof.conflicts) if isinstance(proof, Enumerated) and result.value is None else ()
    yield f"reasons: {'; '.join(reasons) or 'none'} follow from the proof", result.reasons == reasons
    if isinstance(proof, Enumerated):
        yield from _space_rules(result, proof, instance)
    elif isinstance(proof, UnverifiedBound):
        yield "bound: enumeration has no bound but the best value", _is_the_best(result)
    elif isinstance(proof, Boxes):
        yield from _tree_rules(proof, (instance,))
    elif isinstance(proof, Relaxed):
        yield from _relaxation_rules(result, proof, relaxed(proof.relaxation).by, instance)
    elif isinstance(proof, Exact):
        yield from _relaxation_rules(result, proof, exact(proof.relaxation, proof.whole).by, instance)


def _is_of(proof: Proof | None, provers: type | tuple[type, ...], parts: Sequence[Instance]) -> bool:
    """Whether a proof has one of these forms; an unverified enumeration only if a check would enumerate fewer designs."""
    return proof is None or (
        isinstance(proof, provers) and (not isinstance(proof, UnverifiedBound) or (proof == UNREPEATED and too_many(parts) > 0))
    )


def _is_the_best(result: DesignResult) -> bool:
    """Whether the bound is the value, or what rounding leaves of it where the judge rounds otherwise than the enumeration."""
    return result.bound == result.value or (result.value is not None and result.bound == less_rounding(result.value))


def _of_several(portfolio: Portfolio, result: DesignResult) -> Iterator[tuple[str, bool]]:
    proof, engine, found = result.proof, result.engine, result.answer is not None
    provers = {"exhaustive": (EnumeratedTogether, UnverifiedBound), "boxes": (Boxes,)}
    known = engine in (*provers, "recipes", "expert", "plan-only")
    yield f"there is no engine {engine!r} for several workloads", known
    yield f"proof: the engine {engine} has no such proof", _is_of(proof, provers.get(engine, ()), portfolio.parts)
    yield "baselines and reasons belong to results of one workload", not (result.baselines or result.reasons)
    needed = len(portfolio.parts) if portfolio.combine == "worst_regret" and (found or proof) else 0
    yield f"{needed} answers about workloads alone are needed, {len(result.parts)} are there", len(result.parts) == needed
    alone = all(part.proved and part.gap_asked == 0.0 and part.engine in provers for part in result.parts)
    yield "the optimum of each workload alone must be proved without a gap", alone
    values = tuple(part.value for part in result.parts)
    yield "alone: these are not the optima of the workloads", result.answer is None or result.answer.alone == values
    if isinstance(proof, EnumeratedTogether):
        yield from _joint_rules(proof, portfolio)
    elif isinstance(proof, UnverifiedBound):
        yield "bound: enumeration has no bound but the best value", _is_the_best(result)
    elif isinstance(proof, Boxes):
        yield from _tree_rules(proof, portfolio.parts)


def _of_counts(question: MultiScaleQuestion, result: DesignResult) -> Iterator[tuple[str, bool]]:
    """All but the parts follows from the parts."""
    true = together(question, result.engine, result.parts)
    gap, found = max((part.gap_asked for part in result.parts), default=result.gap_asked), result.answer is not None
    yield "the answer is not the best of its parts", result.answer == true.answer
    yield f"bound: {true.bound!r} follows, the result says {result.bound!r}", not found or result.bound == true.bound
    yield "proof: this does not follow from the parts", result.proof is None or result.proof == true.proof
    yield "proved: that there is no design follows from all parts together", found or result.settled == (true.bound == inf)
    yield f"stopped: {true.stopped} follows, the result says {result.stopped}", result.stopped == true.stopped
    yield f"gap_asked: {gap!r} follows, the result says {result.gap_asked!r}", result.gap_asked == gap
    yield f"seconds: {true.seconds!r} follows, the result says {result.seconds!r}", result.seconds == true.seconds
    yield "notes: others follow from the parts", result.notes == true.notes
    yield "baselines, reasons and the trace belong to the parts", not (result.baselines or result.reasons or result.trace)
    strange = [part.engine for part in result.parts if result.engine not in ("auto", part.engine)]
    yield f"engine: the parts are answered by {', '.join(strange)}", not strange


def _space_rules(result: DesignResult, proof: Enumerated, instance: Instance) -> Rules:
    space, none = proof.space, result.value is None
    counts = (0, space.ties, space.within_1_percent, space.within_5_percent, space.feasible, space.designs)
    options = dict(_open_options(instance))
    near = all(len(each.options) == len(each.least) and _among(each.options, options.get(each.name, ())) for each in space.near)
    return (
        *_designs_rules("space", space.hardware_points, (space.plans,), space.designs, (instance,)),
        (
            "space: such numbers of designs cannot be",
            list(counts) == sorted(counts) and (space.within_error or 0) in range(space.feasible + 1),
        ),
        ("space: such a number of chips that cannot be built cannot be", 0 <= space.unbuilt <= space.hardware_points),
        ("space: there are feasible designs where one was found, and only there", (space.feasible > 0) == (not none)),
        ("space: the design found is one of the best", (space.ties > 0) == (not none)),
        ("space.near: the question has other options", near),
        ("conflicts are told where there is no design", none or not proof.conflicts),
        ("bound: enumeration has no bound but the best value", _is_the_best(result)),
        (f"proof: it is {enumerated(space, ()).by!r}, the result says another", proof.by == enumerated(space, ()).by),
    )


def _among(listed: list[Any], options: tuple[Any, ...]) -> bool:
    return all(option in options for option in listed)


def _open_options(instance: Instance) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Every choice with its options."""
    yield from getattr(instance.hardware, "options", ())
    yield from plan_values(instance)


def _joint_rules(proof: EnumeratedTogether, portfolio: Portfolio) -> Rules:
    space, text = proof.space, enumerated_together(proof.space).by
    return (
        *_designs_rules("space", space.hardware_points, space.plans, space.designs, portfolio.parts),
        (f"proof: it is {text!r}, the result says another", proof.by == text),
    )


def _tree_rules(proof: Boxes, parts: Sequence[Instance]) -> Rules:
    tree, text = proof.tree, by_boxes(proof.tree).by
    fewer = all(len(counts) == len(parts) for counts in (tree.plans, tree.groups, tree.promising)) and all(
        0 <= count <= most for most, *some in zip(tree.plans, tree.groups, tree.promising, strict=True) for count in some
    )
    return (
        *_designs_rules("tree", tree.hardware_points, tree.plans, tree.designs, parts),
        ("tree: its boxes are not those of its cuts", tree.boxes == len(tree.cuts)),
        ("tree: such numbers of plans cannot be", fewer),
        (f"proof: it is {text!r}, the result says another", proof.by == text),
    )


def _relaxation_rules(result: DesignResult, proof: Relaxed | Exact, text: str, instance: Instance) -> Rules:
    from crossopt.formulation.codesign.forms import FORMS  # noqa: PLC0415 - other proofs are of no model

    relaxation = proof.relaxation
    solver, counts = relaxation.solver, (relaxation.rounds, relaxation.tangents, relaxation.plans)
    return (
        (f"engine: {result.engine} does not solve by {solver}", not solver or solver.startswith("cpsat") == (result.engine == "cpsat")),
        (f"relaxation: there is no form {relaxation.form[:40]!r}", relaxation.form in FORMS),
        ("relaxation: such numbers cannot be", min(counts) >= 0 and relaxation.plans <= combinations(instance)),
        ("relaxation: a solver is named without a round, or a round without one", bool(solver) == (relaxation.rounds > 0)),
        (f"proof: it is {text!r}, the result says another", proof.by == text),
    )


def _designs_rules(name: str, chips: int, plans: Sequence[int], designs: int, parts: Sequence[Instance]) -> Rules:
    """Numbers of chips, plans and designs; plans are counted again if they are few."""
    points, known = hardware_points(parts[0]), [plans_of(part) for part in parts]
    most = [reported if true is None else true for reported, true in zip(plans, known, strict=False)]
    possible = all(0 <= reported <= combinations(part) for reported, part in zip(plans, parts, strict=False))
    true = len(plans) == len(parts) and list(plans) == most and possible
    counts = ", ".join(f"{count:,}" for count in most)
    return (
        (f"{name}.hardware_points: it is {points}, the result says {chips}", chips == points),
        (f"{name}.plans: there are {counts}, the result says {', '.join(f'{count:,}' for count in plans)}", true),
        (f"{name}.designs: {prod(plans) * points} follows, the result says {designs}", designs == prod(plans) * points),
    )


def plans_of(instance: Instance) -> int | None:
    """How many plans the question has, where that is quickly counted."""
    few = _FEW if isinstance(instance.workload, Transformer) else _FEW_ONE_BY_ONE
    return sum(len(block) for block in plan_blocks(instance)) if combinations(instance) <= few else None
