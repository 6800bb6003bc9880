"""Checks saved strategies without believing any of it: the file is read anew, its digest compared, the strategies judged anew.

A bound is proved anew as far as the certificate in the result goes: the problem is reduced anew, and prices and messages are counted in
whole numbers. What a solver said beyond that is told as its word; no solver is asked.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.answer import differences
from crossopt.solvers.checking import Report, certificate_faults
from crossopt.solvers.sharding.answer import (
    ASKING_NOBODY,
    BY_ARCS,
    BY_DUAL,
    BY_EVERY,
    BY_LEAST,
    BY_PAIRS,
    BY_TREE,
    ENGINES,
    IN_FLOATS,
    KIND,
    UNKEPT,
    WHOLE,
    Certificate,
    ProofStep,
    Reductions,
    ShardingResult,
    described,
    lowered,
)
from crossopt.solvers.sharding.judge import judge
from crossopt.solvers.sharding.memory_fits import nothing_fits, too_much, too_much_together
from crossopt.solvers.sharding.plans import chosen_of, plans_of

if TYPE_CHECKING:
    from crossopt.formulation.sharding.core import Core
    from crossopt.formulation.sharding.reductions.loop import Reduction
    from crossopt.formulation.sharding.tree import Step

_SOLVERS = {IN_FLOATS: ("milp", "weak"), "cpsat": ("cpsat",)}
"""How the names of those begin whose word a bound may be, and the engines that ask them."""
_CERTIFIED = (BY_DUAL, BY_TREE)
_UNSEEN = "nothing is proved here, and the counts of the reductions were not looked at"
_PROVED, _UNPROVED = "that nothing costs less than", "it does not prove that nothing costs less than"


def check(result: ShardingResult, folder: Path) -> Report:
    """Everything the result says, said again from the file that it names; relative paths are tried from this folder too."""
    question, refused = faults_but_proof(result, folder)
    if question is None:
        return Report((), tuple(refused))
    checked = ["the file of the question was read anew, and it is the same"]
    if result.strategies is not None:
        checked.append("the strategies were judged anew: what is forbidden, cost, memory at every time")
    checked.append("the notes, the trace and the seconds were not looked at")
    return Report(tuple(checked), tuple(refused)) if refused else _proof(result, question, checked)


def faults_but_proof(result: ShardingResult, folder: Path) -> tuple[ShardingQuestion | None, list[str]]:
    """The question, and what the result says wrongly as far as that is seen without its proof."""
    try:
        question = read_again(result.instance, "sharding", folder)
    except InstanceError as error:
        return None, [f"the question of the result cannot be read: {error}"]
    refused = [*differences("instance", described(question), result.instance), *_word_faults(result)]
    refused += certificate_faults(result, KIND, ENGINES, 0.0, "a choice")
    refused += [] if result.plans == plans_of(question.network) else ["plans: they do not cost what the result says"]
    if result.strategies is not None:
        faults = _choice_faults(result, question)
        refused += faults or _meaning_faults(result, question)
    return question, refused


def _meaning_faults(result: ShardingResult, question: ShardingQuestion) -> list[str]:
    holds = result.choices == chosen_of(question.network, result.strategies)
    return [] if holds else ["choices: they are not what the strategies mean"]


def _word_faults(result: ShardingResult) -> list[str]:
    rules = (
        ("value and strategies belong together", (result.value is None) == (result.strategies is None)),
        ("peak and strategies belong together", (result.peak is None) == (result.peak_time is None) == (result.strategies is None)),
        ("a proof that there is no choice tells reasons", not (result.proved and result.value is None) or bool(result.reasons)),
        ("strategies come with the counts of their reductions", result.strategies is None or result.reductions is not None),
        ("the reductions take away what lies between before and after", _adds_up(result.reductions)),
        ("`auto` stands for no engine once the reductions are done", result.engine != "auto" or result.reductions is None),
    )
    return [sentence for sentence, holds in (*rules, *_proof_rules(result)) if not holds]


def _proof_rules(result: ShardingResult) -> tuple[tuple[str, bool], ...]:
    """What a bound, who proved it, and its certificate have to do with each other."""
    bound, by, certificate = result.bound, result.proved_by, result.certificate
    spared = by == BY_EVERY or UNKEPT in result.notes
    none = result.proved and result.value is None
    told, solved = bound is not None or none, by.startswith(tuple(_SOLVERS))
    asked = any(by.startswith(name) and result.engine in engines for name, engines in _SOLVERS.items())
    floats = by.startswith(IN_FLOATS)
    return (
        (f"proved_by: nothing is proved by {by!r}", not told or by in WHOLE or solved),
        (f"proved_by: the engine {result.engine} does not ask {by}", not told or not solved or asked or result.engine in ASKING_NOBODY),
        (f"bound: {by} counts in floating point and is a proof within a millionth at best", not floats or _below(result)),
        (f"proved_by: {by} counts in floating point and does not prove that there is no choice", not floats or not none),
        ("certificate: there is none without a bound", bound is not None or certificate is None or (none and by == BY_TREE)),
        ("certificate: it is missing", bound is None or certificate is not None or spared),
        ("certificate: it stands beside a note that there is none", certificate is None or not spared),
        ("certificate: it proves no more than the bound", certificate is None or bound is None or certificate.bound <= bound),
        ("certificate: it proves less than the bound", certificate is None or by not in _CERTIFIED or bound in (None, certificate.bound)),
        (f"the engine {result.engine} asks no solver", not told or result.engine not in ASKING_NOBODY or by in WHOLE),
        ("only the engine exhaustive looks at every choice", by != BY_EVERY or result.engine == "exhaustive"),
    )


def _below(result: ShardingResult) -> bool:
    """Whether a bound is as far below the value as one in floating point has to be."""
    return result.value is None or result.bound is None or result.bound <= lowered(result.value)


def _adds_up(reductions: Reductions | None) -> bool:
    return reductions is None or sum((step.taken for step in reductions.steps), reductions.after) == reductions.before


def _choice_faults(result: ShardingResult, question: ShardingQuestion) -> list[str]:
    try:
        verdict = judge(question.problem, result.strategies or ())
    except (ValueError, OverflowError) as error:
        return [f"the strategies are none of the problem: {error}"]
    faults = [f"the strategies break a rule: {violation}" for violation in verdict.violations]
    said = (("value", verdict.cost, result.value), ("peak", verdict.peak, result.peak), ("peak_time", verdict.peak_time, result.peak_time))
    return [*faults, *(f"{name}: it is {true:,}, the result says {told}" for name, true, told in said if true != told)]


def _proof(result: ShardingResult, question: ShardingQuestion, checked: list[str]) -> Report:
    if result.value is None and result.proved:
        return _none(result, question, checked)
    if result.bound is None:
        return Report((*checked, _UNSEEN), ())
    found = _reduction(question)
    if isinstance(found, str):
        return Report(tuple(checked), (f"bound: {found}",))
    faults, least = _reduction_faults(result, found), _least_of_few(found.core)
    checked = [*checked, "the reductions were carried out anew, and their counts compared"]
    if least is not None and result.bound > least:
        faults = [*faults, f"bound: a choice costs {least:,}, below {result.bound:,}"]
    sure = result.certificate.bound if result.certificate else None
    if result.certificate and not _proves(found.core, result.certificate):
        faults = [*faults, f"certificate: {_UNPROVED} {sure:,}"]
    if result.proved_by == BY_EVERY and least is None:
        faults = [*faults, f"proved_by: {_UNPROVED} {result.bound:,}"]
    if faults:
        return Report(tuple(checked), tuple(faults))
    if sure is not None:
        checked.append(f"{_PROVED} {sure:,} was proved anew, by prices and messages in whole numbers")
    told = sure != result.bound and least is None
    if told:
        checked.append(f"the bound {result.bound:,} is told ({result.proved_by}) and not proved anew: the result holds no proof of it")
    elif sure != result.bound:
        checked.append(f"{_PROVED} {result.bound:,} was proved anew, by {BY_EVERY}")
    return Report(tuple(checked), (), told)


def _none(result: ShardingResult, question: ShardingQuestion, checked: list[str]) -> Report:
    """That there is no choice: counted anew, by arc consistency or by looking at every choice anew, or told."""
    reasons = too_much(question.problem)
    found = None if reasons else _reduction(question)
    if isinstance(found, str):
        reasons, found = (found,), None
    reasons = reasons or too_much_together(question.problem)
    faults = _reduction_faults(result, found)
    least = None if reasons or found is None else _least_of_few(found.core)
    if least is not None and least < FORBIDDEN:
        return Report(tuple(checked), (*faults, f"reasons: there is a choice, which costs {least:,}"))
    if result.certificate:
        faults += _none_faults(found, result.certificate)
    if least is not None or result.certificate:
        reasons = reasons or nothing_fits(question.problem)
    if reasons:
        faults += [] if reasons == result.reasons else [f"reasons: {'; '.join(reasons)}"]
        return Report((*checked, "that there is no choice was proved anew"), tuple(faults))
    if result.proved_by in (BY_LEAST, BY_PAIRS, BY_ARCS, BY_EVERY):
        return Report(tuple(checked), (*faults, f"proved_by: {result.proved_by} does not show that there is no choice"))
    return Report((*checked, f"that there is no choice is the word of {result.proved_by}, not proved anew"), tuple(faults), told=True)


def _none_faults(found: "Reduction | None", certificate: Certificate) -> list[str]:
    from crossopt.formulation.sharding.core import beyond  # noqa: PLC0415 - most checks are of choices

    holds = found is not None and certificate.bound >= beyond(found.core) and _proves(found.core, certificate)
    return [] if holds else ["certificate: it does not prove that there is no choice"]


def _reduction(question: ShardingQuestion) -> "Reduction | str":
    """The problem reduced anew, or why nothing is allowed."""
    from crossopt.formulation.sharding.core import unreduced  # noqa: PLC0415 - some checks need no reductions
    from crossopt.formulation.sharding.reductions.loop import ContradictionError, reduced  # noqa: PLC0415

    try:
        return reduced(unreduced(question.problem))
    except ContradictionError as error:
        return str(error)


def _reduction_faults(result: ShardingResult, found: "Reduction | None") -> list[str]:
    """Counts that are others than those of the reductions carried out anew, where there are any; their seconds are never the same."""
    said = result.reductions
    if found is None or said is None:
        return [] if found is None and said is None else ["reductions: they stand where there are none, or are missing"]
    true, told = ((one.before, one.after, [(step.name, step.taken) for step in one.steps]) for one in (found, said))
    return [] if true == told else ["reductions: other counts follow from the file"]


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
        return closes(core, certificate.bound, iter([_step(step) for step in certificate.steps]))
    except (ValueError, OverflowError):
        return False


def _step(step: ProofStep) -> "Step":
    from crossopt.formulation.sharding.dual import Dual  # noqa: PLC0415
    from crossopt.formulation.sharding.tree import Branch  # noqa: PLC0415

    if step.node is not None:
        return Branch(step.node, np.array(step.first, np.int64))
    figures = (step.times, step.prices, step.to_firsts, step.to_seconds)
    return Dual(step.scale, *(np.array(figure, np.int64) for figure in figures))
