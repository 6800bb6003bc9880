"""Certificates of strategies that `solvers/standalone.py` checks: the problem, the answer, the bound, and every step of its proof."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from crossopt.formulation.certificate import Certificate, proved_bound
from crossopt.formulation.model import Values
from crossopt.formulation.sharding.core import Core, beyond, unreduced
from crossopt.formulation.sharding.dual import bound_of, no_dual
from crossopt.formulation.sharding.integer import Choice, choice_of, leaf_of_dual
from crossopt.formulation.sharding.reductions import ContradictionError, reduced
from crossopt.formulation.sharding.tree import Branch, Chooser, Over, Recorder, Step, forbidding_price
from crossopt.formulation.vipr import IntegerProof
from crossopt.instances.errors import RefusedError
from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.instances.sharding.reading import FORBIDDEN_FROM
from crossopt.solvers.backends.whole import trace
from crossopt.solvers.proofs import Steps
from crossopt.solvers.sharding.exhaustive import MOST, choices_in
from crossopt.solvers.sharding.family import least_usages, step_of
from crossopt.solvers.sharding.judge import Answer, peak_of

FORMAT = 1


def certificate_of(question: ShardingQuestion, saved: Answer) -> dict[str, Any]:
    """What proves the bound of a result, or a lower one where the result's own is reported by a solver; refused where nothing does."""
    none = saved.value is None
    if saved.bound is None and not (none and saved.proved):
        raise RefusedError("this result has no bound for a certificate (solve it again with more time)")
    try:
        bound, steps = (None, _nothing(question.problem, saved)) if none else _bounded(question.problem, saved)
    except ValueError as error:
        raise RefusedError(f"the proof of this result does not hold: {error} (see `crossopt check`)") from error
    return {
        "kind": "sharding",
        "format": FORMAT,
        "problem": document_of(question.problem),
        "answer": None if saved.answer is None else list(saved.answer.strategies),
        "bound": bound,
        "steps": steps,
    }


def document_of(problem: Problem) -> dict[str, Any]:
    """The problem in the form of the contest."""
    costs, entries = (np.where(figures < FORBIDDEN, figures, FORBIDDEN_FROM).tolist() for figures in (problem.costs, problem.entries))
    nodes, edges = list(pairwise(problem.offsets.tolist())), list(pairwise(problem.entry_offsets.tolist()))
    usages = problem.usages.tolist()
    document: dict[str, Any] = {
        "name": problem.name,
        "nodes": {
            "intervals": np.stack([problem.starts, problem.ends], axis=1).tolist(),
            "costs": [costs[a:b] for a, b in nodes],
            "usages": [usages[a:b] for a, b in nodes],
        },
        "edges": {"nodes": np.stack([problem.firsts, problem.seconds], axis=1).tolist(), "costs": [entries[a:b] for a, b in edges]},
    }
    return document if problem.limit is None else {**document, "usage_limit": problem.limit}


LARGEST = 2_000
"""Variables up to which a problem is modelled as it is, and not after its reductions."""
_SECONDS, _BOXES = 60.0, 20_000
"""For a tree."""
_SOUGHT = 20_000
"""Variables beyond which no tree is sought where there are multipliers: the relaxation alone takes longer."""


def integer_proof(question: ShardingQuestion, saved: Answer) -> IntegerProof | None:
    """The marginal model with a tree; None where there is no bound to prove, and a RefusedError where no tree is found.

    A tree is the first multipliers of a result where these suffice, and else sought anew: the proof of a result reduces the problem between
    its steps, which no linear row says."""
    none = saved.value is None
    if saved.bound is None and not (none and saved.settled):
        return None
    core, about = unreduced(question.problem), "the model is the whole problem"
    if reducing := len(core.costs) + core.pairs > LARGEST:
        try:
            core, about = reduced(core).core, "the model is what reductions leave of the problem, which keep the least cost"
        except ContradictionError:  # forbidden pairs alone leave no choice
            return None
    choice, claim = choice_of(core), None if none else int(saved.bound or 0)
    tree = _by_first_dual(core, choice, saved) if reducing and not none else None
    known = None if saved.answer is None or reducing else _known(choice, saved.answer.strategies)
    bound = None if tree is None else proved_bound(choice.model, tree)
    if bound is None or claim is None or (bound < claim and len(choice.model.variables) <= _SOUGHT):
        found = trace(choice.model, claim, _SECONDS, _BOXES)
        if found.boxes and (found.bound is None or (not none and (bound is None or bound < found.bound))):
            tree = found.certificate
        if found.values is not None and found.value == saved.value and known is None:
            known = dict(zip(choice.model.variables, found.values, strict=True))
    if tree is None:
        why = f"no tree about the integer model is found in {_SECONDS:.0f} s, so there is no certificate of this form"
        raise RefusedError(f"{why} (`export --as certificate` writes the proof in the result)")
    return IntegerProof(choice.model, tree, known, f"objective: the cost of a choice; {about}")


def _by_first_dual(core: Core, choice: Choice, saved: Answer) -> Certificate | None:
    """What the first step of a proof about a reduced problem shows alone, where it has multipliers."""
    steps = saved.proof.certificate.steps if isinstance(saved.proof, Steps) and saved.proof.certificate else ()
    if not steps or isinstance(step := step_of(steps[0]), Branch):
        return None
    return leaf_of_dual(core, choice, step)


def _known(choice: Choice, strategies: Sequence[int]) -> Values:
    """Which strategies an answer takes."""
    return {x: int(s == taken) for own, taken in zip(choice.of, strategies, strict=True) for s, x in enumerate(own) if x}


def _bounded(problem: Problem, saved: Answer) -> tuple[int, list[Any]]:
    """The greatest bound that can be shown, with its steps."""
    core, recorder = _reduced(problem)
    if core is None:
        raise RefusedError("this result has an answer where none is allowed (see `crossopt check`)")
    bound, choose = _chooser(core, saved)
    recorder.close(core, bound, choose)
    return bound, recorder.steps


def _nothing(problem: Problem, saved: Answer) -> list[Any]:
    """Why there is no choice: memory at one time, forbidden pairs, or the steps that close what is left."""
    if problem.limit is not None:
        peak, time = peak_of(problem, least_usages(problem))
        if peak > problem.limit:
            return [forbidding_price(time)]
    core, recorder = _reduced(problem)
    if core is not None:
        recorder.steps.append(["beyond"])
        value, choose = _chooser(core, saved)
        if value != beyond(core):
            raise RefusedError("this result proves something else than that there is no choice (see `crossopt check`)")
        recorder.close(core, value, choose)
    return recorder.steps


def _reduced(problem: Problem) -> tuple[Core | None, Recorder]:
    core = unreduced(problem)
    recorder = Recorder(core)
    return recorder.reduce(core), recorder


def _chooser(core: Core, saved: Answer) -> tuple[int, Chooser]:
    """The bound to certify about a core, and the steps that prove it: those of the result, or an enumeration of all choices."""
    proof = saved.proof.certificate if isinstance(saved.proof, Steps) else None
    if proof is not None and (proof.bound == saved.bound or choices_in(core) > MOST):
        recorded = iter([step_of(step) for step in proof.steps])
        return proof.bound, lambda left: next(recorded, None)
    if choices_in(core) > MOST and _over(core) is None:
        raise RefusedError("this result contains no proof for a certificate (solve it again, with more time or another engine)")
    value = beyond(core) if saved.value is None else int(saved.bound or 0)
    return value, partial(_one_by_one, value)


def _one_by_one(value: int, core: Core) -> Step | Over | None:
    """Memory that cannot be kept, or a branch where the fewest strategies are open, one of them on its own; no prices where none is."""
    over = _over(core)
    if over is not None:
        return over
    open_nodes = np.flatnonzero(core.counts > 1)
    if not len(open_nodes):
        return no_dual(core) if bound_of(core, no_dual(core)) >= value else None
    return Branch(int(open_nodes[core.counts[open_nodes].argmin()]), np.zeros(1, np.int64))


def _over(core: Core) -> Over | None:
    """The time at which the least of each member is most, where that is above the limit."""
    if core.limit is None or not len(core.member_nodes):
        return None
    times, least = np.unique(core.member_starts), np.minimum.reduceat(core.usages, core.usage_offsets[:-1])
    change = np.zeros(len(times) + 1, np.int64)
    np.add.at(change, np.searchsorted(times, core.member_starts), least)
    np.add.at(change, np.searchsorted(times, core.member_ends), -least)
    taken = np.cumsum(change)[:-1]
    return Over(int(times[taken.argmax()])) if taken.max() > core.limit else None
