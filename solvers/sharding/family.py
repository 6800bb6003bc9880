"""Strategies of operators as a problem type, and verification of their bounds from the arrays of the file."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.instances.sharding.network import Network
from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.answer import Baseline, Watch
from crossopt.solvers.family import Judge, ProblemType, Proved, judge_baseline, lazy_import
from crossopt.solvers.proofs import Certificate, ProofStep, RecomputableBound, Reductions, Steps, UnverifiedBound
from crossopt.solvers.sharding.judge import (
    ASKING_NOBODY,
    BY_ARCS,
    BY_DUAL,
    BY_EVERY,
    BY_LEAST,
    BY_PAIRS,
    BY_TREE,
    ENGINES,
    EXACT_PROOFS,
    IN_FLOATS,
    UNKEPT,
    Answer,
    Meaning,
    Strategies,
    judge,
    lowered,
    peak_of,
    weigh,
)

if TYPE_CHECKING:
    from crossopt.formulation.sharding.core import Core
    from crossopt.formulation.sharding.reductions import Reduction
    from crossopt.formulation.sharding.tree import Step


# Whether memory can be kept at all: what is in use at least at each time, from the arrays of the file alone.

_NAMED = 8


def too_much(problem: Problem) -> tuple[str, ...]:
    """Why no choice keeps the limit: a time and what its nodes take at least; nothing where that does not show."""
    return _memory_lines(problem, least_usages(problem), "")


def nothing_fits(problem: Problem) -> tuple[str, ...]:
    """Reasons if all choices were enumerated, or if a solver reports infeasibility."""
    limit = "" if problem.limit is None else f" and keeps the limit of {problem.limit:,} bytes at every time"
    return (f"no choice takes allowed strategies and pairs only{limit}",)


def too_much_together(problem: Problem) -> tuple[str, ...]:
    """Why no choice fits the memory if each node takes the least strategy that forbidden pairs leave (arc consistency); needs one for every
    node."""
    from crossopt.formulation.sharding.core import unreduced  # noqa: PLC0415
    from crossopt.formulation.sharding.reductions import consistent  # noqa: PLC0415 - most questions are answered without

    core = consistent(unreduced(problem)).core
    least = np.zeros(len(problem), np.int64)
    if len(core.member_nodes):
        least[np.flatnonzero(problem.starts < problem.ends)] = np.minimum.reduceat(core.usages, core.usage_offsets[:-1])
    return _memory_lines(problem, least, " by strategies that forbidden pairs leave")


def _memory_lines(problem: Problem, least: Ints, how: str) -> tuple[str, ...]:
    if problem.limit is None:
        return ()
    peak, time = peak_of(problem, least)
    if peak <= problem.limit:
        return ()
    alive = np.flatnonzero((problem.starts <= time) & (time < problem.ends) & (least > 0))
    largest = alive[np.argsort(-least[alive], kind="stable")]
    named = ", ".join(f"{node} ({least[node]:,})" for node in largest[:_NAMED].tolist())
    more = f" and {len(largest) - _NAMED:,} more" if len(largest) > _NAMED else ""
    return (
        f"at time {time} the nodes that are alive take {peak:,} bytes at least{how}, the limit is {problem.limit:,}",
        f"these nodes, with what each takes at least: {named}{more}",
    )


def least_usages(problem: Problem) -> Ints:
    """What each node takes at least, of the strategies that it may choose; of all, where it may choose none."""
    usages = np.where(problem.costs < FORBIDDEN, problem.usages, FORBIDDEN)
    least = np.minimum.reduceat(usages, problem.offsets[:-1])
    return np.where(least < FORBIDDEN, least, np.minimum.reduceat(problem.usages, problem.offsets[:-1]))


# Megatron-LM's plans on the same mesh, where the cost model made the problem.


def baselines_of(network: Network | None) -> tuple[Baseline[Strategies], ...]:
    """Each as its strategies, the best first, and those whose memory does not fit last."""
    if network is None:
        return ()
    found = [(name, choice, weigh(network.problem, choice)) for name, choice in network.rules.items()]
    found.sort(key=lambda row: (bool(row[2].violations), 0 if row[2].violations else row[2].cost))
    return tuple(Baseline(name, None, Strategies(tuple(choice))) for name, choice, _ in found)


# Proofs about strategies, carried out anew: the problem is reduced, and prices and messages are counted in whole numbers.
#
# Anything beyond that is reported as the solver's unverified claim; no solver is called.

_SOLVERS = {IN_FLOATS: ("milp", "weak"), "cpsat": ("cpsat",)}
"""Prefixes of the names of solvers that a bound may rest on, and the engines that use them."""
_CERTIFIED = (BY_DUAL, BY_TREE)
_PROVED, _UNPROVED = "that nothing costs less than", "it does not prove that nothing costs less than"


def own_faults(question: ShardingQuestion, saved: Answer, judging: Judge[ShardingQuestion, Strategies, Meaning]) -> list[str]:
    """Where the words of a result do not fit each other, its proof, or the plans there are."""
    proof, none = saved.proof, saved.settled and saved.value is None
    reductions = proof.reductions if isinstance(proof, Steps) else None
    claims = proof is not None or saved.bound is not None  # a rule answers alone where the time was too short for all else
    rules = (
        ("value and bound are whole numbers", not isinstance(saved.value, float) and not isinstance(saved.bound, float)),
        ("a proof of infeasibility needs reasons", not none or bool(saved.reasons)),
        ("strategies come with the counts of their reductions", saved.answer is None or reductions is not None or not claims),
        ("a proof without reductions shows that there is no choice", not isinstance(proof, RecomputableBound) or none),
        ("a word comes with what reductions leave to prove", not isinstance(proof, UnverifiedBound)),
        ("the reductions take away what lies between before and after", _adds_up(reductions)),
        ("`auto` stands for no engine once the reductions are done", saved.engine != "auto" or reductions is None),
    )
    faults = [sentence for sentence, holds in (*rules, *_proof_rules(saved)) if not holds]
    same = saved.baselines == tuple(judge_baseline(judging, question, baseline) for baseline in baselines_of(question.network))
    same = same or (saved.stopped != "complete" and not saved.baselines)  # a search that was ended had no time for them
    return faults if same else [*faults, "baselines: they are not Megatron-LM's plans on this mesh, the best first"]


def _proof_rules(saved: Answer) -> tuple[tuple[str, bool], ...]:
    """What a bound, who proved it, and its certificate have to do with each other."""
    bound, by, steps = saved.bound, saved.proved_by, saved.proof if isinstance(saved.proof, Steps) else None
    certificate = steps.certificate if steps else None
    spared = by == BY_EVERY or UNKEPT in saved.notes
    none = saved.settled and saved.value is None
    claims, solved = bound is not None or none, by.startswith(tuple(_SOLVERS))
    matches = any(by.startswith(name) and saved.engine in engines for name, engines in _SOLVERS.items())
    floats = by.startswith(IN_FLOATS)
    return (
        (f"proved_by: nothing is proved by {by!r}", not claims or by in EXACT_PROOFS or solved),
        (f"proved_by: the engine {saved.engine} does not ask {by}", not claims or not solved or matches or saved.engine in ASKING_NOBODY),
        (f"bound: {by} counts in floating point and is a proof within a millionth at best", not floats or _below(saved)),
        (f"proved_by: {by} counts in floating point and does not prove that there is no choice", not floats or not none),
        (
            "proof: the solver-reported bound differs from the proof by integers in the result",
            not steps or steps.unverified == (solved or UNKEPT in saved.notes),
        ),
        ("certificate: there is none without a bound", bound is not None or certificate is None or (none and by == BY_TREE)),
        ("certificate: it is missing", bound is None or certificate is not None or spared),
        ("certificate: it stands beside a note that there is none", certificate is None or not spared),
        ("certificate: it proves no more than the bound", certificate is None or bound is None or certificate.bound <= bound),
        ("certificate: it proves less than the bound", certificate is None or by not in _CERTIFIED or bound in (None, certificate.bound)),
        (f"the engine {saved.engine} asks no solver", not claims or saved.engine not in ASKING_NOBODY or by in EXACT_PROOFS),
        (f"proved_by: {by} shows that there is no choice, and no bound", bound is None or by not in (BY_LEAST, BY_PAIRS, BY_ARCS)),
        ("only the engine exhaustive looks at every choice", by != BY_EVERY or saved.engine == "exhaustive"),
    )


def _below(saved: Answer) -> bool:
    """Whether a bound is as far below the value as one in floating point has to be."""
    return saved.value is None or saved.bound is None or saved.bound <= lowered(int(saved.value))


def _adds_up(reductions: Reductions | None) -> bool:
    return reductions is None or sum((step.taken for step in reductions.steps), reductions.after) == reductions.before


def prove(question: ShardingQuestion, saved: Answer, _: Watch) -> Proved:
    """Carry out the reductions again, and check the proof's steps on what they leave; claims beyond that stay unverified."""
    proof = saved.proof
    match proof:
        case Steps():
            return _none(question, saved, proof) if saved.value is None else _bound(question, saved, proof)
        case RecomputableBound():
            return _none(question, saved, None)
        case _:
            return Proved(refused=("proof: nothing in the result proves its claim",))


def _bound(question: ShardingQuestion, saved: Answer, proof: Steps) -> Proved:
    """That nothing costs less than the bound."""
    found, bound = _reduction(question), saved.bound or 0
    if isinstance(found, str):
        return Proved(refused=(f"bound: {found}",))
    faults, least = _reduction_faults(proof.reductions, found), _least_of_few(found.core)
    if least is not None and bound > least:
        faults.append(f"bound: a choice costs {least:,}, below {bound:,}")
    sure = proof.certificate.bound if proof.certificate else None
    if proof.certificate and not _proves(found.core, proof.certificate):
        faults.append(f"certificate: {_UNPROVED} {sure:,}")
    if proof.by == BY_EVERY and least is None:
        faults.append(f"proved_by: {_UNPROVED} {bound:,}")
    checked, unverified = ["the reductions were repeated, and their counts compared"], sure != bound and least is None
    if faults:
        return Proved(tuple(checked), tuple(faults))
    if sure is not None:
        checked.append(f"{_PROVED} {sure:,} was proved anew, by prices and messages in whole numbers")
    if unverified:
        checked.append(f"the bound {bound:,} is solver-reported ({proof.by}) and not proved again: the result contains no proof of it")
    elif sure != bound:
        checked.append(f"{_PROVED} {bound:,} was proved anew, by {BY_EVERY}")
    return Proved(tuple(checked), unverified=unverified)


def _none(question: ShardingQuestion, saved: Answer, proof: Steps | None) -> Proved:
    """Prove that no choice exists: by counting, by arc consistency or by enumeration; else it stays unverified."""
    reasons, certificate = too_much(question.problem), proof.certificate if proof else None
    found = None if reasons else _reduction(question)
    if isinstance(found, str):
        reasons, found = (found,), None
    reasons = reasons or too_much_together(question.problem)
    faults = _reduction_faults(proof.reductions if proof else None, found)
    least = None if reasons or found is None else _least_of_few(found.core)
    if least is not None and least < FORBIDDEN:
        return Proved(refused=(*faults, f"reasons: there is a choice, which costs {least:,}"))
    if certificate:
        faults += _none_faults(found, certificate)
    if least is not None or certificate:
        reasons = reasons or nothing_fits(question.problem)
    if reasons:
        faults += [] if reasons == saved.reasons else [f"reasons: {'; '.join(reasons)}"]
        return Proved(("that there is no choice was proved anew",), tuple(faults))
    if saved.proved_by in (BY_LEAST, BY_PAIRS, BY_ARCS, BY_EVERY):
        return Proved(refused=(*faults, f"proved_by: {saved.proved_by} does not show that there is no choice"))
    return Proved((f"that there is no choice is reported by {saved.proved_by}, not proved again",), tuple(faults), unverified=True)


def _none_faults(found: "Reduction | None", certificate: Certificate) -> list[str]:
    from crossopt.formulation.sharding.core import beyond  # noqa: PLC0415 - most checks are of choices

    holds = found is not None and certificate.bound >= beyond(found.core) and _proves(found.core, certificate)
    return [] if holds else ["certificate: it does not prove that there is no choice"]


def _reduction(question: ShardingQuestion) -> "Reduction | str":
    """The problem reduced anew, or why nothing is allowed."""
    from crossopt.formulation.sharding.core import unreduced  # noqa: PLC0415 - some checks need no reductions
    from crossopt.formulation.sharding.reductions import ContradictionError, reduced  # noqa: PLC0415

    try:
        return reduced(unreduced(question.problem))
    except ContradictionError as error:
        return str(error)


def _reduction_faults(saved: Reductions | None, found: "Reduction | None") -> list[str]:
    """Counts that are others than those of the reductions carried out anew, where there are any; their seconds are never the same."""
    if found is None or saved is None:
        return [] if found is None and saved is None else ["reductions: they stand where there are none, or are missing"]
    true, reported = ((part.before, part.after, [(step.name, step.taken) for step in part.steps]) for part in (found, saved))
    negative = any(step.seconds < 0.0 for step in saved.steps)
    faults = [] if true == reported else ["reductions: other counts follow from the file"]
    return [*faults, *(["reductions: they take less than 0 seconds"] if negative else [])]


def _least_of_few(core: "Core") -> int | None:
    """The least cost, FORBIDDEN where there is no choice, of a core whose choices are few; None where they are not."""
    from crossopt.solvers.sharding.exhaustive import MOST, best_of_all, choices_in  # noqa: PLC0415

    if choices_in(core) > MOST:
        return None
    best = best_of_all(core)
    return FORBIDDEN if best is None else best.cost


def _proves(core: "Core", certificate: Certificate) -> bool:
    """Whether the steps of a certificate close this core at its bound."""
    from crossopt.formulation.sharding.tree import closes  # noqa: PLC0415

    try:
        return closes(core, certificate.bound, iter([step_of(step) for step in certificate.steps]))
    except (ValueError, OverflowError):
        return False


def step_of(step: ProofStep) -> "Step":
    """A branch or a dual in the arrays of the core that it is about."""
    from crossopt.formulation.sharding.dual import Dual  # noqa: PLC0415
    from crossopt.formulation.sharding.tree import Branch  # noqa: PLC0415

    if step.node is not None:
        return Branch(step.node, np.array(step.first, np.int64))
    figures = (step.times, step.prices, step.to_firsts, step.to_seconds)
    return Dual(step.scale, *(np.array(figure, np.int64) for figure in figures), below=step.below)


# Strategies of operators as a family of questions: what is asked again, who answers, who judges, what proves.

_ANSWERED = lazy_import("crossopt.solvers.sharding.engines", "answered")


def _described(question: ShardingQuestion) -> dict[str, Any]:
    """The problem may be hundreds of megabytes: a result names its file and the digest of its text, and says how large it is."""
    problem = question.problem
    return {
        "unit": "" if question.network is None else "ns",
        "nodes": len(problem),
        "edges": len(problem.firsts),
        "strategies": len(problem.costs),
        "limit": problem.limit,
    }


FAMILY: ProblemType[ShardingQuestion, Strategies, Meaning] = ProblemType(
    kind="sharding",
    what="choice",
    unit="",
    answer=Strategies,
    details=Meaning,
    engines={name: partial(_ANSWERED, name) for name in ENGINES},
    judge=judge,
    judged="what is forbidden, cost, memory at every time",
    prove=prove,
    described=_described,
    integer_proof=lazy_import("crossopt.solvers.sharding.certificate", "integer_proof"),
    quick=lazy_import("crossopt.solvers.sharding.engines", "quick"),
    faults=own_faults,
)
