"""Sends over links as a problem type, and their bounds counted anew by cuts around all sets of NPUs."""

from math import inf

from crossopt.formulation.network.sends import least_steps
from crossopt.instances.network.synthesis import SynthesisQuestion
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.family import ProblemType, Proved, lazy_import
from crossopt.solvers.network.synthesis.judge import Sends, Used, judge
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound

# Bounds on sends counted anew: cuts around all sets of NPUs.


def prove(question: SynthesisQuestion, saved: Result[Sends, Used], _: Watch) -> Proved:
    """The bound of cuts, or whose word a greater one is."""
    if isinstance(saved.proof, UnverifiedBound):
        return Proved((f"the bound is the word of {saved.proof.by}, not proved anew",), told=True)
    if not isinstance(saved.proof, RecomputableBound) or saved.proof.by != "cuts":
        return Proved((), ("proof: bounds on sends are shown by cuts",))
    shown, deadline = least_steps(question), question.file.deadline
    words = f"cuts around all {2**question.npus - 1} sets of NPUs were counted anew"
    if saved.bound is None:
        fault = f"bound: cuts show no more than {shown} steps, the result says that nothing is possible"
        return Proved((words,), () if deadline is not None and shown > deadline else (fault,))
    fault = f"bound: cuts show no more than {shown} steps, the result says that none is below {saved.bound!r}"
    return Proved((words,), () if saved.bound <= shown and saved.bound < inf else (fault,))


# Sends over links as a family of questions: what is asked again, who answers, who judges, what proves.

_ENGINES = "crossopt.solvers.network.synthesis.engines"

FAMILY: ProblemType[SynthesisQuestion, Sends, Used] = ProblemType(
    kind="synthesis",
    what="schedule",
    unit="steps",
    answer=Sends,
    details=Used,
    engines={"auto": lazy_import(_ENGINES, "auto"), "tacos": lazy_import(_ENGINES, "tacos"), "ring": lazy_import(_ENGINES, "around")},
    judge=judge,
    judged="who has what, links, deadline",
    prove=prove,
    said=frozenset({"cuts"}),
    seeded=frozenset({"auto", "tacos"}),
)
