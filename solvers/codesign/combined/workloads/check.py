"""Checks a saved answer about several workloads without believing any of it: each plan is priced anew, the figure and the proof follow."""

from collections.abc import Sequence
from dataclasses import asdict
from math import prod

from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import asked_in
from crossopt.instances.codesign.space import hardware_points
from crossopt.instances.errors import InstanceError, ModelError, VerificationError
from crossopt.solvers.answer import Watch, gap_between, status_of
from crossopt.solvers.checking import ANEW, STOPPED, Report, differences, short, trace_holds
from crossopt.solvers.codesign.blocks import plans_of
from crossopt.solvers.codesign.certify import CHECKS
from crossopt.solvers.codesign.check import check_answer
from crossopt.solvers.codesign.check import faults_but_proof as answer_faults
from crossopt.solvers.codesign.combined.workloads.boxes import reread
from crossopt.solvers.codesign.combined.workloads.combined import Joint, joint
from crossopt.solvers.codesign.combined.workloads.engines import (
    ENGINES,
    enumeration_proof,
    question,
    share_of,
    together,
    tree_of,
    tree_proof,
)
from crossopt.solvers.codesign.combined.workloads.exhaustive import search
from crossopt.solvers.codesign.combined.workloads.result import JointResult, JointTree
from crossopt.solvers.codesign.designs import Candidate, from_words
from crossopt.solvers.codesign.result import Result

PROVES = ("boxes", "exhaustive")


def check_any(result: Result | JointResult, watch: Watch, cross_check: bool = False) -> Report:
    """Everything a result says, said again from the question alone."""
    try:
        asked = asked_in(result.instance)
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    if isinstance(result, Result) and isinstance(asked, Instance):
        return check_answer(result, asked, watch, cross_check)
    if isinstance(result, JointResult) and isinstance(asked, Portfolio):
        return _check(result, asked, watch, cross_check)
    return Report((), ("the question has one workload and the answer several, or the other way round",))


def _check(result: JointResult, portfolio: Portfolio, watch: Watch, cross_check: bool) -> Report:
    checked = ["the question was read anew"]
    refused = [*differences("instance", question(portfolio), result.instance), *_certificate_faults(result, portfolio)]
    refused += _block_faults(result, portfolio) if not refused else []
    if refused:
        return Report(tuple(checked), tuple(refused))
    for part, answer in zip(portfolio.parts, result.alone, strict=False):
        report = check_answer(answer, part, watch, cross_check)
        checked += [f"{part.name} alone: {line}" for line in report.checked[1:]]
        refused += [f"{part.name} alone: {line}" for line in report.refused]
    if not refused and (result.shares or result.bound is not None or result.proved):
        try:
            asked = joint(portfolio, [answer.value for answer in result.alone])
        except ModelError as error:
            return Report(tuple(checked), (str(error),))
        refused += _share_faults(result, portfolio, asked)
        checked += ["every plan was priced anew on the chip by the full model and every limit checked"] if result.shares else []
        if (result.proved or result.bound is not None) and not refused:
            facts, faults = _proof_faults(result, asked, watch)
            checked, refused = [*checked, facts], [*refused, *faults]
    return Report(tuple(checked), tuple(refused))


def faults_but_proof(result: JointResult, portfolio: Portfolio) -> list[str]:
    """Why the result is refused, as far as that can be said without carrying out its proofs."""
    refused = [*differences("instance", question(portfolio), result.instance), *_certificate_faults(result, portfolio)]
    refused += _block_faults(result, portfolio) if not refused else []
    if not refused:
        pairs = zip(portfolio.parts, result.alone, strict=False)
        refused += [f"{part.name} alone: {fault}" for part, answer in pairs for fault in answer_faults(answer, part)]
    if not refused and result.shares:
        try:
            refused += _share_faults(result, portfolio, joint(portfolio, [answer.value for answer in result.alone]))
        except ModelError as error:
            refused.append(str(error))
    return refused


def _certificate_faults(result: JointResult, portfolio: Portfolio) -> list[str]:
    """Whether engine, status, value, bound and gap agree with each other, and every part is there that belongs to them."""
    value, bound, found = result.value, result.bound, bool(result.shares)
    status = status_of(value, bound, result.proved)
    gap = None if value is None or bound is None else gap_between(value, bound)
    near = gap is not None and gap <= result.gap_asked
    says = result.proved or bound is not None
    needed = len(portfolio.parts) if portfolio.combine == "worst_regret" and (found or says) else 0
    rules = (
        (f"there is no engine {result.engine!r} for several workloads", result.engine in ENGINES and result.engine != "auto"),
        ("value, workloads and checks belong together", found == (value is not None)),
        ("each workload has one share", not found or len(result.shares) == len(portfolio.parts)),
        (f"{needed} answers about workloads alone are needed, {len(result.alone)} are there", len(result.alone) == needed),
        ("the optimum of each workload alone must be proved without a gap", all(map(_is_optimum, result.alone))),
        (f"checks: {short(result.checks)} is not what is checked", result.checks == (CHECKS if found else ())),
        (f"status: {status} follows, the result says {result.status}", result.status == status),
        (f"the engine {result.engine} proves nothing", result.engine in PROVES or not says),
        ("an answer is proved if its bound is as near as was asked", not found or result.proved == near),
        (f"{short(result.stopped)} is no reason to stop", result.stopped in STOPPED),
        ("there is no bound without a design", found or bound is None),
        (f"gap: {gap!r} follows, the result says {result.gap!r}", result.gap == gap),
        (f"bound {bound!r} is above the value {value!r}", value is None or bound is None or bound <= value),
        ("what proved the bound is told without a bound", says or not (result.proved_by or result.tree)),
        (f"{result.seconds!r} seconds are no time", result.seconds >= 0.0),
        (f"a gap of {result.gap_asked!r} is none to ask for", 0.0 <= result.gap_asked < 1.0),
        ("the trace does not close in on value and bound", trace_holds(result.trace, value)),
        ("a proof by enumeration has a space, one by boxes a tree, and neither has both", _has_its_proof(result)),
    )
    return [sentence for sentence, holds in rules if not holds]


def _is_optimum(answer: Result) -> bool:
    return answer.proved and answer.gap_asked == 0.0 and answer.engine in PROVES


def _has_its_proof(result: JointResult) -> bool:
    if result.engine == "boxes":
        return result.space is None and (result.tree is not None) == (result.proved or result.bound is not None)
    says = result.proved or result.bound is not None
    return result.tree is None and (not says if result.space is None else result.engine == "exhaustive")


def _block_faults(result: JointResult, portfolio: Portfolio) -> list[str]:
    """What cannot be in the counts of a proof, and words that do not follow from them."""
    block, says = result.tree or result.space, result.proved or result.bound is not None
    if block is None:
        return []
    points = hardware_points(portfolio.parts[0])
    counted = [plans_of(part) for part in portfolio.parts]
    plans = [said if true is None else true for said, true in zip(block.plans, counted, strict=False)]
    name, words = ("tree", tree_proof(block)) if isinstance(block, JointTree) else ("space", enumeration_proof(block))
    rules = (
        (f"{name}.hardware_points: it is {points}, the result says {block.hardware_points}", block.hardware_points == points),
        (
            f"{name}.plans: there are {plans}, the result says {list(block.plans)}",
            len(block.plans) == len(counted) and plans == [*block.plans],
        ),
        (f"{name}.designs: other plans and chips make {block.designs}", block.designs == prod(block.plans) * points),
        (f"proved_by: it is {words!r}, the result says another", not says or result.proved_by == words),
        ("tree: its boxes are not those of its cuts", result.tree is None or result.tree.boxes == len(result.tree.cuts)),
    )
    return [sentence for sentence, holds in rules if not holds]


def _share_faults(result: JointResult, portfolio: Portfolio, asked: Joint) -> list[str]:
    if not result.shares:
        return []
    try:
        chosen = [from_words(part, share.design) for part, share in zip(portfolio.parts, result.shares, strict=True)]
        return _priced_faults(result, portfolio, asked, chosen)
    except (ValueError, TypeError, VerificationError) as error:
        return [f"the design is none of the question: {error}"]


def _priced_faults(result: JointResult, portfolio: Portfolio, asked: Joint, chosen: Sequence[Candidate]) -> list[str]:
    if len({one.point for one in chosen}) > 1:
        return ["the workloads have different chips"]
    true = [share_of(portfolio, place, one, result.alone) for place, one in enumerate(chosen)]
    faults = [
        fault
        for place, (one, said) in enumerate(zip(true, result.shares, strict=True))
        for fault in differences(f"shares[{place}]", asdict(one), asdict(said))
    ]
    value = together(asked, true)
    return faults if value == result.value else [*faults, f"value: the workloads make {value!r}, the result says {result.value!r}"]


def _proof_faults(result: JointResult, asked: Joint, watch: Watch) -> tuple[str, list[str]]:
    """Carry the proof out again: enumerate every design, or go down the tree of cuts."""
    bound = float("inf") if result.bound is None else result.bound
    if result.tree is not None:
        read = reread(asked, result.tree.cuts, bound)
        tree = tree_of(asked, read)
        faults = list(read.faults)
        if tree != result.tree:
            faults += differences("tree", asdict(tree), asdict(result.tree))
        words, facts = tree_proof(tree), f"{ANEW}{tree.boxes:,} boxes bounded, {tree.designs:,} designs in them"
    else:
        found = search(asked, watch)
        faults = [] if found.stopped == "complete" else [f"the proof was not carried to its end: {found.stopped}"]
        if (float("inf") if found.value is None else found.value) != bound:
            faults.append(f"bound: no design is below {found.value!r}, the result says {result.bound!r}")
        if found.space != result.space:
            faults += differences("space", asdict(found.space), result.space and asdict(result.space))
        words, facts = enumeration_proof(found.space), f"{ANEW}{found.space.designs:,} designs enumerated"
    if result.proved_by != words:
        faults.append(f"proved_by: it is {short(words)}, the result says {short(result.proved_by)}")
    return facts, faults
