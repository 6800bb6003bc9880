"""Chunks of a collective as a problem type, and their bounds counted anew in whole ns."""

from functools import partial
from math import inf

from crossopt.formulation.network.orders import asked_of, least_time
from crossopt.instances.network.collective import CollectiveQuestion
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.family import ProblemType, Proved, lazy_import
from crossopt.solvers.network.collective.judge import Chunks, Schedule, judge
from crossopt.solvers.proofs import UnverifiedBound, Weighed

# Bounds on chunks counted anew in whole ns: all numbers of chunks by order where these are few, weights of dimensions else.

BY = "loads of dimensions"


def prove(question: CollectiveQuestion, saved: Result[Chunks, Schedule], _: Watch) -> Proved:
    """The bound counted anew."""
    proof, options = saved.proof, question.options
    if isinstance(proof, UnverifiedBound):
        return Proved((f"the bound is the word of {proof.by}, not proved anew",), told=True)
    if not isinstance(proof, Weighed) or len(proof.weights) != len(options):
        return Proved((), ("proof: bounds on chunks are shown by weights of dimensions for each number of chunks",))
    try:
        shown = min(least_time(asked_of(question, option), own) for option, own in zip(options, proof.weights, strict=True))
    except ValueError as error:
        return Proved((), (f"proof: {error}",))
    if saved.bound is None:
        impossible = question.deadline is not None and shown > question.deadline
        fault = f"bound: it shows no more than {shown:,} ns, the result says that nothing is possible"
        return Proved((_text(options),), () if impossible else (fault,), by=BY)
    fault = f"bound: it shows no more than {shown!r} ns, the result says that none is below {saved.bound!r}"
    return Proved((_text(options),), () if saved.bound <= shown and saved.bound < inf else (fault,), by=BY)


def _text(options: tuple[int, ...]) -> str:
    return f"what {', '.join(map(str, options))} chunks ask of the dimensions was counted anew"


# Chunks of a collective as a family of questions: what is asked again, who answers, who judges, what proves.

_ENGINES = "crossopt.solvers.network.collective.engines"
_AUTO, _SEARCH, _RULE = (lazy_import(_ENGINES, name) for name in ("auto", "search", "by_rule"))

FAMILY: ProblemType[CollectiveQuestion, Chunks, Schedule] = ProblemType(
    kind="collective",
    what="schedule",
    unit="ns",
    answer=Chunks,
    details=Schedule,
    engines={
        "auto": _AUTO,
        "cpsat": _AUTO,
        "search": _SEARCH,
        "themis": partial(_RULE, "Themis", "themis"),
        "natural": partial(_RULE, "natural order", "natural"),
    },
    judge=judge,
    judged="phases, sequences, deadline",
    prove=prove,
    said=frozenset({"loads of dimensions"}),
    seeded=frozenset({"auto", "cpsat", "search"}),
)
