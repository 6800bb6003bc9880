"""Checks a saved result without believing any of it: the question is read anew, the design priced anew, the proof carried out anew."""

from dataclasses import asdict
from time import monotonic

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.solvers.answer import Watch, gap_between, status_of
from crossopt.solvers.checking import ANEW, STOPPED, Report, differences, short, trace_holds
from crossopt.solvers.codesign.blocks import block_faults
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import reread
from crossopt.solvers.codesign.boxes.search import search as boxes_search
from crossopt.solvers.codesign.certify import CHECKS, question, rivals
from crossopt.solvers.codesign.designs import from_words, to_words
from crossopt.solvers.codesign.engines import ENGINES, conflicts, proof, relaxation_proof, tree_of, tree_proof
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.result import BY_SOLVER, Result, Rival, evaluation_json

ASKED = "the engine boxes was asked as well: "


_LOOK = 10.0
"""Seconds for a look at a claim that there is no design."""
_ANY = 0.999
"""A gap at which any design is near enough."""


def check(result: Result, watch: Watch, cross_check: bool = False) -> Report:
    """Everything the result says, said again from the question alone.

    A bound by a solver cannot be proved anew without one. It is told as the solver's word, or held against the engine boxes.
    """
    try:
        instance = read_question(result.instance)
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    return check_answer(result, instance, watch, cross_check)


def check_answer(result: Result, instance: Instance, watch: Watch, cross_check: bool = False) -> Report:
    """The same for a question that was read anew."""
    checked, refused = ["the question was read anew"], faults_but_proof(result, instance)
    if result.design is not None:
        checked.append("the design was priced anew by the full model and every limit checked")
    if (result.proved or result.bound is not None) and not refused:
        proofs = {**PROOFS, **dict.fromkeys(BY_SOLVER, _crossed)} if cross_check else PROOFS
        facts, faults = proofs[result.engine](result, instance, watch)
        refused += faults
        checked.append(facts)
        refused += false_rivals(result, instance)
    told = result.engine in BY_SOLVER and (result.proved or result.bound is not None) and not checked[-1].startswith((ANEW, ASKED))
    return Report(tuple(checked), tuple(refused), told)


def faults_but_proof(result: Result, instance: Instance) -> list[str]:
    """Why the result is refused, as far as that can be said without carrying out its proof."""
    refused = [*_question_faults(result, instance), *_certificate_faults(result)]
    refused += block_faults(result, instance) if not refused else []
    refused += _design_faults(result, instance) if result.design is not None else []
    return refused + [fault for rival in result.rivals for fault in _rival_faults(rival, result, instance)]


def _question_faults(result: Result, instance: Instance) -> list[str]:
    return differences("instance", question(instance), result.instance)


def _design_faults(result: Result, instance: Instance) -> list[str]:
    try:
        chosen = from_words(instance, result.design)
        verdict = verify(instance, chosen)
    except (ValueError, TypeError) as error:
        return [f"the design is none of the question: {error}"]
    faults = [f"the design breaks a limit: {violation}" for violation in verdict.violations]
    if verdict.value != result.value:
        faults.append(f"value: the design costs {verdict.value!r}, the result says {result.value!r}")
    faults += differences("design", to_words(instance, chosen), result.design)
    return faults + differences("evaluation", evaluation_json(verdict.evaluation), result.evaluation)


def _certificate_faults(result: Result) -> list[str]:
    """Whether engine, status, value, bound and gap agree with each other."""
    value, bound, found, proves = result.value, result.bound, result.design is not None, result.engine in PROOFS
    status = status_of(value, bound, result.proved)
    near = value is not None and bound is not None and gap_between(value, bound) <= result.gap_asked
    rules = (
        (f"there is no engine {result.engine!r}", result.engine in ENGINES),
        ("value, design, evaluation and checks belong together", found == (value is not None) == (result.evaluation is not None)),
        (f"checks: {short(result.checks)} is not what is checked", result.checks == (CHECKS if found else ())),
        (f"status: {status} follows, the result says {result.status}", result.status == status),
        (f"the engine {result.engine} proves nothing", proves or not (result.proved or bound is not None)),
        ("an answer is proved if its bound is as near as was asked, and only then", not found or result.proved == near),
        (f"{short(result.stopped)} is no reason to stop", result.stopped in STOPPED),
        ("there is no bound without a design", found or bound is None),
        (f"gap: {_gap(value, bound)!r} follows, the result says {result.gap!r}", result.gap == _gap(value, bound)),
        (f"bound {bound!r} is above the value {value!r}", value is None or bound is None or bound <= value),
        ("what proved the bound is told without a bound", result.proved or bound is not None or not result.proved_by),
        (f"{result.seconds!r} seconds are no time", result.seconds >= 0.0),
        (f"a gap of {result.gap_asked!r} is none to ask for", 0.0 <= result.gap_asked < 1.0),
        ("the trace does not close in on value and bound", trace_holds(result.trace, result.value)),
        ("rivals and conflicts are told without a proof", result.proved or not (result.rivals or result.conflicts)),
    )
    return [sentence for sentence, holds in rules if not holds]


def _gap(value: float | None, bound: float | None) -> float | None:
    return None if value is None or bound is None else gap_between(value, bound)


def _rival_faults(rival: Rival, result: Result, instance: Instance) -> list[str]:
    if rival.value is None or rival.design is None:
        return []
    try:
        verdict = verify(instance, from_words(instance, rival.design))
    except (ValueError, TypeError) as error:
        return [f"rival {rival.name}: {error}"]
    faults = [] if verdict.value == rival.value else [f"rival {rival.name} costs {verdict.value!r}, the result says {rival.value!r}"]
    if result.bound is not None and rival.value < result.bound:
        faults.append(f"rival {rival.name} is below the bound")
    return faults


def _enumerated(result: Result, instance: Instance, watch: Watch) -> tuple[str, list[str]]:
    """Enumerate every design again."""
    found = search(instance, watch)
    facts = f"{ANEW}{found.space.designs:,} designs enumerated"
    if found.stopped != "complete":
        return facts, [f"the proof was not carried to its end: {found.stopped}"]
    faults = []
    if found.value != result.bound:
        faults.append(f"bound: no design is below {found.value!r}, the result says {result.bound!r}")
    if found.space != result.space:
        faults += differences("space", asdict(found.space), result.space and asdict(result.space))
    if result.proved_by != proof(found):
        faults.append(f"proved_by: it is {short(proof(found))}, the result says {short(result.proved_by)}")
    if result.conflicts != conflicts(instance, found):
        faults.append("conflicts differ from those that enumeration finds")
    return facts, faults


def _cut_again(result: Result, instance: Instance, watch: Watch) -> tuple[str, list[str]]:
    """Go down the tree of cuts again, and see that no plan is below the bound in any box."""
    del watch
    if result.tree is None:
        return f"{ANEW}nothing", ["a proof by boxes needs the tree of its cuts"]
    read = reread(instance, result.tree.cuts, float("inf") if result.bound is None else result.bound)
    tree = tree_of(instance, read)
    faults = list(read.faults)
    if tree != result.tree:
        faults += differences("tree", asdict(tree), asdict(result.tree))
    if result.proved_by != tree_proof(tree):
        faults.append(f"proved_by: it is {short(tree_proof(tree))}, the result says {short(result.proved_by)}")
    return f"{ANEW}{tree.boxes:,} boxes bounded, {tree.designs:,} designs in them", faults


def _solvers_word(result: Result, instance: Instance, watch: Watch) -> tuple[str, list[str]]:
    """What a solver said is only told; that there is no design is looked at for a while by the engine boxes."""
    if result.value is None:
        return _no_design(result, instance, watch)
    return f"the bound is told, not proved anew: {relaxation_proof(result.relaxation)} (--cross-check asks boxes)", []


def _no_design(result: Result, instance: Instance, watch: Watch) -> tuple[str, list[str]]:
    """Whether boxes find a design, which refutes the claim, or that there is none, which proves it, in the seconds that there are."""
    told = f"that there is no design is told, not proved anew: {result.proved_by} (--cross-check asks boxes)"
    try:
        found = boxes_search(instance, watch, Spend(monotonic() + _LOOK, _ANY))
    except RefusedError:
        return told, []
    if found.value is not None:
        return told, [f"there is a design of {found.value!r}, the result says there is none"]
    return (f"{ANEW}boxes hold no design that keeps every limit" if found.stopped == "complete" else told), []


def _crossed(result: Result, instance: Instance, watch: Watch) -> tuple[str, list[str]]:
    """What a solver said, held against branch and bound.

    Solvers choose among the plans that the families of the engine boxes leave, so that both would be wrong together if these were; the
    tree of boxes is therefore gone down again with all plans, one by one."""
    found = boxes_search(instance, watch, Spend(gap=0.0))
    facts, faults = f"{ASKED}its proof carried out anew: no design is below {found.bound!r}", list[str]()
    if found.stopped != "complete" or found.bound is None:
        return facts, [*faults, f"the cross-check was not carried to its end: {found.stopped}"]
    faults += [f"the cross-check is no proof: {fault}" for fault in reread(instance, found.cuts, found.bound).faults]
    if result.value is None and found.value is not None:
        faults.append(f"there is a design of {found.value!r}, the result says there is none")
    if result.bound is not None and found.value is not None and found.value < result.bound:
        faults.append(f"bound: there is a design of {found.value!r}, the result says that none is below {result.bound!r}")
    return facts, faults


PROOFS = {"exhaustive": _enumerated, "boxes": _cut_again, **dict.fromkeys(BY_SOLVER, _solvers_word)}
"""How the proof of an engine is carried out again: what was done, and why it does not hold."""


def false_rivals(result: Result, instance: Instance) -> list[str]:
    """Whether a proved result tells of other rivals than the rules choose."""
    expected = rivals(instance) if result.proved and result.design is not None else ()
    return [] if result.rivals == expected else ["rivals differ from what the rules choose"]
