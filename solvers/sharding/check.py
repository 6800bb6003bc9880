"""Checks saved strategies without believing any of it: the file is read anew, its digest compared, the strategies judged anew.

A bound is proved anew as far as the certificate in the result goes: the problem is reduced anew, and prices and messages are counted in
whole numbers. What a solver said beyond that is told as its word; no solver is asked.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from instances.document import InstanceError
from instances.sharding.question import ShardingQuestion, sharding_again
from solvers.check import Report
from solvers.graph_answers import certificate_faults, differences
from solvers.sharding.answer import ENGINES, KIND, Certificate, ProofStep, ShardingResult, described
from solvers.sharding.judge import judge
from solvers.sharding.least import too_much, too_much_together
from solvers.sharding.plans import chosen_of, plans_of

if TYPE_CHECKING:
    from formulation.sharding.core import Core
    from formulation.sharding.tree import Step


def check(result: ShardingResult, folder: Path) -> Report:
    """Everything the result says, said again from the file that it names; relative paths are tried from this folder too."""
    question, refused = faults_but_proof(result, folder)
    if question is None:
        return Report((), tuple(refused))
    checked = ["the file of the question was read anew, and it is the same"]
    if result.strategies is not None:
        checked.append("the strategies were judged anew: what is forbidden, cost, memory at every time")
    return Report(tuple(checked), tuple(refused)) if refused else _proof(result, question, checked)


def faults_but_proof(result: ShardingResult, folder: Path) -> tuple[ShardingQuestion | None, list[str]]:
    """The question, and what the result says wrongly as far as that is seen without its proof."""
    try:
        question = sharding_again(result.instance, folder)
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
        (
            "the certificate proves no more than the bound",
            result.certificate is None or (result.bound is not None and result.certificate.bound <= result.bound),
        ),
    )
    return [sentence for sentence, holds in rules if not holds]


def _choice_faults(result: ShardingResult, question: ShardingQuestion) -> list[str]:
    try:
        verdict = judge(question.problem, result.strategies or ())
    except (ValueError, OverflowError) as error:
        return [f"the strategies are none of the problem: {error}"]
    faults = [f"the strategies break a rule: {violation}" for violation in verdict.violations]
    said = (("value", verdict.cost, result.value), ("peak", verdict.peak, result.peak), ("peak_time", verdict.peak_time, result.peak_time))
    return [*faults, *(f"{name}: it is {true:,}, the result says {told}" for name, true, told in said if true != told)]


def _proof(result: ShardingResult, question: ShardingQuestion, checked: list[str]) -> Report:
    if result.value is None:
        return _none(result, question, checked) if result.proved else Report(tuple(checked), ())
    if result.bound is None:
        return Report(tuple(checked), ())
    if result.certificate is not None:
        core, bound = _core(question), result.certificate.bound
        if isinstance(core, str) or not _proves(core, result.certificate):
            return Report(tuple(checked), (f"certificate: it does not prove that nothing costs less than {bound:,}",))
        checked.append(f"that nothing costs less than {bound:,} was proved anew, by prices and messages in whole numbers")
        if bound == result.bound:
            return Report(tuple(checked), ())
    word = f"the bound {result.bound:,} is told ({result.proved_by}) and not proved anew: the result holds no proof of it"
    return Report((*checked, word), (), told=True)


def _none(result: ShardingResult, question: ShardingQuestion, checked: list[str]) -> Report:
    """That there is no choice: counted anew, or by arc consistency anew, or told."""
    reasons = too_much(question.problem)
    if not reasons:
        core = _core(question)
        reasons = (core,) if isinstance(core, str) else ()
        reasons = reasons or too_much_together(question.problem)
    if reasons:
        faults = () if reasons == result.reasons else (f"reasons: {'; '.join(reasons)}",)
        return Report((*checked, "that there is no choice was proved anew"), faults)
    return Report((*checked, f"that there is no choice is the word of {result.proved_by}, not proved anew"), (), told=True)


def _core(question: ShardingQuestion) -> "Core | str":
    """The problem reduced anew, or why nothing is allowed."""
    from formulation.sharding.core import unreduced  # noqa: PLC0415 - most checks need no reductions
    from formulation.sharding.reducing import ContradictionError, reduced  # noqa: PLC0415

    try:
        return reduced(unreduced(question.problem)).core
    except ContradictionError as error:
        return str(error)


def _proves(core: "Core", certificate: Certificate) -> bool:
    """Whether the steps of a certificate close this core at its bound."""
    from formulation.sharding.tree import closes  # noqa: PLC0415

    try:
        return closes(core, certificate.bound, iter([_step(step) for step in certificate.steps]))
    except (ValueError, OverflowError):
        return False


def _step(step: ProofStep) -> "Step":
    from formulation.sharding.dual import Dual  # noqa: PLC0415
    from formulation.sharding.tree import Branch  # noqa: PLC0415

    if step.node is not None:
        return Branch(step.node, np.array(step.first, np.int64))
    figures = (step.times, step.prices, step.to_firsts, step.to_seconds)
    return Dual(step.scale, *(np.array(figure, np.int64) for figure in figures))
