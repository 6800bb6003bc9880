"""Proofs about designs, carried out anew: every design priced again, the tree of cuts gone down again.

A bound by a solver cannot be proved anew without one, unless it comes with a tree in whole numbers, which is counted. Else it is told as
the solver's word, or held against the engine boxes.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from time import monotonic

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.errors import ModelError, RefusedError
from crossopt.solvers.answer import Watch, less_rounding
from crossopt.solvers.checking import ANEW, differences
from crossopt.solvers.codesign import exhaustive
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import refuse_broken_bounds, reread, search
from crossopt.solvers.codesign.claims import COUNTED_AGAIN, too_many
from crossopt.solvers.codesign.combined import workloads as all_together
from crossopt.solvers.codesign.combined import workloads as together
from crossopt.solvers.codesign.exhaustive import conflicts_of
from crossopt.solvers.codesign.objective import joint
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import Boxes, Enumerated, EnumeratedTogether, Exact, Parts, Proof, Relaxed, Tree, UnverifiedBound

NOTHING = "proof: nothing in the result proves its claim"
CROSS_CHECKED = "the engine boxes was asked as well: "
_LOOK = 10.0
"""Seconds for a look at a claim that there is no design."""
_ANY = 0.999
"""A gap at which any design is near enough."""


def _many(number: int, what: str, ending: str = "s") -> str:
    """A number of things."""
    return f"{number:,} {what}{ending * (number != 1)}"


def prove(question: Instance | Portfolio | MultiScaleQuestion, result: DesignResult, watch: Watch) -> Proved:
    """Repeat the proof, by its own form."""
    proof = result.proof
    if isinstance(question, MultiScaleQuestion) and isinstance(proof, Parts):
        what = "batches" if question.batches else question.compared_names if question.networks else "numbers of devices"
        return Proved((f"what is said of all {what} follows from them",))
    if isinstance(question, Portfolio):
        return _of_several(question, result, proof, watch)
    return _of_one(question, result, watch) if isinstance(question, Instance) else Proved(refused=(NOTHING,))


def _of_one(instance: Instance, result: DesignResult, watch: Watch) -> Proved:
    """Repeat the proof of one workload on one number of devices."""
    match result.proof:
        case Enumerated() as proof:
            return _enumerated(instance, result, proof, watch)
        case Boxes() as proof:
            return _cut_again(instance, result, proof, _progress_with_claim(watch, result))
        case Exact() as proof:
            return _recounted(instance, result, proof)
        case Relaxed() | UnverifiedBound():
            return _unverified_report(instance, result, watch)
    return Proved(refused=(NOTHING,))


def _enumerated(instance: Instance, result: DesignResult, proof: Enumerated, watch: Watch) -> Proved:
    """Enumerate every design again."""
    if unrepeated := _enumeration_report(result, (instance,)):
        return unrepeated
    found = exhaustive.search(instance, watch)
    facts = (f"{ANEW}{_many(found.space.designs, 'design')} enumerated",)
    if found.stopped != "complete":
        return Proved(facts, (f"the proof was not completed: {found.stopped}",))
    faults = _bound_faults(found.value, result)
    faults += differences("space", asdict(found.space), asdict(proof.space)) if found.space != proof.space else []
    if proof.conflicts != conflicts_of(instance, found):
        faults.append("conflicts differ from those that enumeration finds")
    return Proved(facts, tuple(faults))


def _enumeration_report(result: DesignResult, parts: Sequence[Instance]) -> Proved | None:
    """The report that an enumeration is too large to be repeated; None where it is not."""
    if not (most := too_many(parts)):
        return None
    text = f"that {most:,} designs were enumerated is told, not done anew (at most {COUNTED_AGAIN:,} are)"
    return Proved((f"{text}: {result.proved_by}",), unverified=True)


def _progress_with_claim(watch: Watch, result: DesignResult) -> Watch:
    """Progress of a check beside the value and the bound that a result says."""
    return lambda progress: watch(replace(progress, best=result.value, bound=result.bound))


def _bound_faults(least: float | None, result: DesignResult) -> list[str]:
    """What the least value of all designs, which is None without any, says against a bound."""
    if least is not None and result.value is not None and result.bound == less_rounding(result.value) and result.bound <= least:
        return []  # the judge rounds otherwise than the enumeration
    return [] if least == result.bound else [f"bound: no design is below {least!r}, the result says {result.bound!r}"]


def _cut_again(instance: Instance, result: DesignResult, proof: Boxes, watch: Watch) -> Proved:
    """Go down the tree of cuts again, and see that no plan is below the bound in any box."""
    read = reread(instance, proof.tree.cuts, float("inf") if result.bound is None else result.bound, watch)
    counts = ((read.plans,), (read.groups,), (read.promising,))
    return _tree_again(proof.tree, counts, read.faults)


def _tree_again(tree: Tree, counts: tuple[tuple[int, ...], ...], faults: tuple[str, ...]) -> Proved:
    """What is seen on the way down a tree."""
    reported = (tree.plans, tree.groups, tree.promising)
    others = () if counts == reported else (f"tree: plans, groups and promising plans are {counts}, the result says {reported}",)
    return Proved((f"{ANEW}{_many(tree.boxes, 'box', 'es')} bounded, {_many(tree.designs, 'design')} in them",), (*faults, *others))


def _recounted(instance: Instance, result: DesignResult, proof: Exact) -> Proved:
    """Make the integer model again from the question, and count its tree."""
    from crossopt.solvers.codesign.linear.whole import proof_faults  # noqa: PLC0415 - other proofs need no model

    try:
        refuse_broken_bounds(instance)
    except RefusedError as error:
        return Proved(refused=(str(error),))
    steps, screens = len(proof.whole.steps), sum(map(len, proof.whole.screens))
    done = f"a tree of {steps:,} step{'s' * (steps != 1)} counted in whole numbers" if steps else "no plan is below the bound"
    after = f", after {screens:,} plans at prices" if screens else ""
    return Proved((f"{ANEW}{done}{after}",), proof_faults(instance, float("inf") if result.bound is None else result.bound, proof.whole))


def _unverified_report(instance: Instance, result: DesignResult, watch: Watch) -> Proved:
    """The report on a claim that rests on a solver. That there is no design is searched for by the engine boxes for a while."""
    if result.value is not None:
        return Proved(
            (f"the bound is solver-reported and was not proved again: {result.proved_by} (--cross-check asks boxes)",), unverified=True
        )
    text = f"that there is no design is solver-reported and was not proved again: {result.proved_by} (--cross-check asks boxes)"
    try:
        found = search(instance, watch, Spend(monotonic() + _LOOK, _ANY))
    except RefusedError:
        return Proved((text,), unverified=True)
    if found.value is not None:
        return Proved((text,), (f"there is a design of {found.value!r}, the result says there is none",), unverified=True)
    if found.stopped == "complete":
        return Proved((f"{ANEW}boxes hold no design that keeps every limit",))
    return Proved((text,), unverified=True)


def cross_check(question: Instance | Portfolio | MultiScaleQuestion, result: DesignResult, watch: Watch) -> Proved:
    """What a solver said, held against branch and bound.

    Solvers choose among the plans that the groups of the engine boxes leave, so that both would be wrong together if these were; the
    tree of boxes is therefore gone down again with all plans, one by one."""
    if not isinstance(question, Instance):
        return prove(question, result, watch)
    found = search(question, watch, Spend(gap=0.0))
    facts, faults = (f"{CROSS_CHECKED}its proof repeated: no design is below {found.bound!r}",), list[str]()
    if found.stopped != "complete" or found.bound is None:
        return Proved(facts, (f"the cross-check was not completed: {found.stopped}",))
    faults += [f"the cross-check is no proof: {fault}" for fault in reread(question, found.cuts, found.bound).faults]
    if result.value is None and found.value is not None:
        faults.append(f"there is a design of {found.value!r}, the result says there is none")
    if result.bound is not None and found.value is not None and found.value < result.bound:
        faults.append(f"bound: there is a design of {found.value!r}, the result claims {result.bound!r}")
    return Proved(facts, tuple(faults))


def _of_several(portfolio: Portfolio, result: DesignResult, proof: Proof | None, watch: Watch) -> Proved:
    """Repeat the proof of several workloads. The optima of each workload alone were proved before."""
    try:
        problem = joint(portfolio, [part.value for part in result.parts])
    except ModelError as error:
        return Proved(refused=(str(error),))
    if isinstance(proof, Boxes):
        read = together.reread(
            problem, proof.tree.cuts, float("inf") if result.bound is None else result.bound, _progress_with_claim(watch, result)
        )
        counts = (read.counts.plans, read.counts.groups, read.counts.promising)
        return _tree_again(proof.tree, counts, read.faults)
    if isinstance(proof, EnumeratedTogether | UnverifiedBound) and (unrepeated := _enumeration_report(result, portfolio.parts)):
        return unrepeated
    if not isinstance(proof, EnumeratedTogether):
        return Proved(refused=(NOTHING,))
    found = all_together.exhaustive_search(problem, watch)
    facts = (f"{ANEW}{_many(found.space.designs, 'design')} enumerated",)
    faults = [] if found.stopped == "complete" else [f"the proof was not completed: {found.stopped}"]
    faults += _bound_faults(found.value, result)
    faults += differences("space", asdict(found.space), asdict(proof.space)) if found.space != proof.space else []
    return Proved(facts, tuple(faults))
