"""Bounds on profiles proved anew: every plan looked at where plans are few, and else a second dynamic program, which leaves nothing out."""

from math import fsum

from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.checking import by_looking_at_all
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import Counted
from crossopt.solvers.stages.pipedream.brute_force import least_of_all
from crossopt.solvers.stages.pipedream.judge import PipedreamLoads
from crossopt.solvers.stages.pipedream.plan import PipedreamPlan
from crossopt.solvers.stages.pipedream.second import least_slowest

_ROUNDINGS = 32 * 2.0**-52
"""Of all that a stage can add up: more than sums and products of the program and of the judge are off together."""


def prove(question: PipelineQuestion, saved: Result[PipedreamPlan, PipedreamLoads], _: Watch) -> Proved:
    """Every plan looked at, or none left out by the second program; else whose word it is."""
    least = least_of_all(question)
    if least is not None:
        return by_looking_at_all(saved, lambda: least)
    found = least_slowest(question)
    if found is None:
        fault = "proof: counting again takes more steps than a check does"
        return Proved((), (fault,)) if isinstance(saved.proof, Counted) else by_looking_at_all(saved, lambda: None)
    sure, bound = max(found - _ROUNDINGS * all_seconds(question), 0.0), float("inf") if saved.bound is None else saved.bound
    said = "that nothing is possible" if saved.bound is None else f"that none is below {saved.bound!r}"
    fault = f"bound: a second dynamic program shows no more than {sure!r} s, the result says {said}"
    return Proved((f"a second dynamic program looked at all stages of {len(question.profile):,} nodes",), () if bound <= sure else (fault,))


def all_seconds(question: PipelineQuestion) -> float:
    """More than any stage takes, with what its replicas exchange."""
    profile, slowest = question.profile, min(level.bandwidth for level in question.levels)
    moved = 4.0 * len(question.levels) * fsum(profile.parameters) / slowest
    moved += 0.0 if question.compression is None else 2.0 * fsum(profile.activation) / (question.compression * slowest)
    return fsum(profile.seconds) + moved
